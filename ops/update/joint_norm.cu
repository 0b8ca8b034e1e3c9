#include <algorithm>
#include <array>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/reduce/power_sum.h"
#include "pleat/ops/update/joint_norm.h"
#include "pleat/ops/update/table.h"

namespace pleat::ops {
namespace {

/// Elements of a block: a thread has eight vectors.
constexpr int64_t block_elements = 8 * block_threads * vector_width;

/// What a row of the table holds beside its tensor.
struct Nothing {
  static constexpr std::size_t operands = 1;
};

/// A block takes `block_elements` of one tensor.
template <class T>
struct Powers {
  Rows<Nothing> table;
  PowerNorm power;
  PowerSum* results;  ///< of each block

  __device__ void operator()(int64_t b, const Block& block) const {
    const int64_t k = table.row_of(b);
    const Row<Nothing>& row = table.rows[k];
    const int64_t begin = (b - table.first[k]) * block_elements;
    const int64_t end = begin + block_elements < row.n ? begin + block_elements : row.n;
    PowerSum total;
    for (int64_t i = begin + block.thread() * vector_width; i < end; i += block_threads * vector_width) {
      T lanes[vector_width] = {};
      if (row.by_vectors && i + vector_width <= end) {
        load_vector(lanes, row.base[0], i, row.dtype[0]);
      } else {
        PLEAT_UNROLL
        for (int64_t j = 0; j < vector_width; ++j)
          if (i + j < end) lanes[j] = load_as<T>(row.base[0], table.places(row, i + j)[0], row.dtype[0]);
      }
      PLEAT_UNROLL
      for (int64_t j = 0; j < vector_width; ++j)
        if (i + j < end) power.add(total, lanes[j]);
    }
    block.combine(total, Teams{log_block_threads, true}, power);
    if (block.thread() == 0) results[b] = total;
  }
};

/// One block puts all results together.
struct NormAndFactor {
  PowerNorm power;
  const PowerSum* results;
  int64_t count;
  double max_norm;
  double* out;

  __device__ void operator()(int64_t, const Block& block) const {
    PowerSum total;
    for (int64_t i = block.thread(); i < count; i += block_threads) power(total, results[i]);
    block.combine(total, Teams{log_block_threads, true}, power);
    if (block.thread() != 0) return;
    const double norm = power.root(total);
    out[0] = norm;
    out[1] = clip_factor(norm, max_norm);
  }
};

/// Writes a result for each block from `results` on, and returns how many there are.
template <class T>
void add_powers(const char* op, const std::vector<Tensor>& tensors, PowerNorm power, PowerSum* results) {
  // Loops refer to their operands and own copies of some, which must outlive the launch.
  std::vector<std::array<Operand, 1>> operands;
  operands.reserve(tensors.size());
  std::vector<ElementwiseLoop> loops;
  Table<T, Nothing> table(block_elements);
  for (const Tensor& tensor : tensors) {
    operands.push_back({Operand{tensor, dtype_of<T>(), Access::read_write}});
    loops.push_back(make_elementwise_loop(op, operands.back()));
    table.add(op, Update<Nothing>{{}, {tensor}}, loops.back());
  }
  const Device device = tensors[0].device();
  table.launch(op, device, [&](const Rows<Nothing>& rows, int64_t blocks) {
    launch_blocks(op, device, blocks, Powers<T>{rows, power, results});
  });
}

int64_t blocks_of(const std::vector<Tensor>& tensors) {
  int64_t blocks = 0;
  for (const Tensor& tensor : tensors) blocks += ceil_div(tensor.numel(), block_elements);
  return blocks;
}

}  // namespace

Tensor joint_norm_cuda(const char* op, const std::vector<Tensor>& tensors, double p, double max_norm) {
  std::vector<Tensor> doubles, others;
  for (const Tensor& tensor : tensors) (tensor.dtype() == float64 ? doubles : others).push_back(tensor);
  const Device device = tensors[0].device();
  const int64_t other_blocks = blocks_of(others);
  const int64_t blocks = other_blocks + blocks_of(doubles);
  const Tensor memory = empty({blocks, sizeof(PowerSum)}, {.dtype = uint8, .device = device});
  auto* const results = reinterpret_cast<PowerSum*>(memory.raw());
  const Tensor out = empty({2}, {.dtype = float64, .device = device});
  const PowerNorm power{p};
  if (!others.empty()) add_powers<float>(op, others, power, results);
  if (!doubles.empty()) add_powers<double>(op, doubles, power, results + other_blocks);
  launch_blocks(op, device, 1, NormAndFactor{power, results, blocks, max_norm, out.data<double>()});
  return out;
}

}  // namespace pleat::ops
