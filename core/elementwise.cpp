#include "pleat/core/elementwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "pleat/core/convert.h"
#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/parallel.h"

namespace pleat {
namespace {

constexpr std::size_t max_operands = 6;
/// Elements gathered at a time: all buffers of a loop stay in the first-level cache.
constexpr int64_t chunk_elements = 512;
/// Elements worth waking another thread for.
constexpr int64_t grain_elements = 32768;
/// Inner runs at least this long are handed on one by one, without gathering what is dense in them.
constexpr int64_t long_run = 128;

/// One dimension of the loop: its size, and the step of each operand in elements.
struct LoopDim {
  int64_t size;
  std::array<int64_t, max_operands> step;
};

/// The loop: dimensions from the innermost outwards, as few as the strides allow.
struct Loop {
  std::vector<LoopDim> dims;
  std::size_t operands;

  bool is_dense(std::size_t operand) const {
    return dims.empty() || (dims.size() == 1 && dims[0].step[operand] == 1);
  }
};

Loop make_loop(std::span<const Operand> operands) {
  const Shape& shape = operands[0].tensor.shape();
  const auto rank = shape.size();
  std::vector<LoopDim> dims(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    dims[d].size = shape[d];
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Tensor& t = operands[k].tensor;
      const auto own = t.shape().size();
      const bool has = d + own >= rank;
      const std::size_t at = has ? d + own - rank : 0;
      dims[d].step[k] = has && t.shape()[at] != 1 ? t.strides()[at] : 0;
    }
  }
  std::erase_if(dims, [](const LoopDim& dim) { return dim.size == 1; });
  // Walk the first operand (the one written) as it lies in memory; the order of dimensions means nothing here.
  std::reverse(dims.begin(), dims.end());
  std::stable_sort(dims.begin(), dims.end(),
                   [](const LoopDim& a, const LoopDim& b) { return std::abs(a.step[0]) < std::abs(b.step[0]); });
  Loop loop{{}, operands.size()};
  for (const LoopDim& dim : dims) {
    const auto joins = [&](const LoopDim& inner) {
      for (std::size_t k = 0; k < operands.size(); ++k)
        if (dim.step[k] != inner.step[k] * inner.size) return false;
      return true;
    };
    if (!loop.dims.empty() && joins(loop.dims.back())) loop.dims.back().size *= dim.size;
    else loop.dims.push_back(dim);
  }
  return loop;
}

/// A place in the loop, counted from the innermost dimension.
class Position {
 public:
  Position(const Loop& loop, int64_t linear) : loop_(&loop), index_(loop.dims.size()) {
    for (std::size_t d = 0; d < index_.size(); ++d) {
      index_[d] = linear % loop.dims[d].size;
      linear /= loop.dims[d].size;
      for (std::size_t k = 0; k < loop.operands; ++k) at_[k] += index_[d] * loop.dims[d].step[k];
    }
  }

  /// Elements left in the innermost run.
  int64_t run_left() const { return loop_->dims[0].size - index_[0]; }
  int64_t at(std::size_t operand) const { return at_[operand]; }

  /// Moves on by `n` elements, not further than to the end of the innermost run.
  void advance(int64_t n) {
    const auto& dims = loop_->dims;
    index_[0] += n;
    for (std::size_t k = 0; k < loop_->operands; ++k) at_[k] += n * dims[0].step[k];
    for (std::size_t d = 0; d + 1 < dims.size() && index_[d] == dims[d].size; ++d) {
      index_[d] = 0;
      ++index_[d + 1];
      for (std::size_t k = 0; k < loop_->operands; ++k)
        at_[k] += dims[d + 1].step[k] - dims[d].size * dims[d].step[k];
    }
  }

 private:
  const Loop* loop_;
  std::vector<int64_t> index_;
  std::array<int64_t, max_operands> at_{};
};

struct Runner {
  std::span<const Operand> operands;
  const Loop& loop;
  ElementwiseKernel kernel;
  const void* context;
  std::array<ConvertRun, max_operands> load{};
  std::array<ConvertRun, max_operands> store{};
  std::array<std::byte*, max_operands> base{};
  std::array<int64_t, max_operands> element{};  // bytes
  std::array<bool, max_operands> same_type{};

  Runner(std::span<const Operand> operands_, const Loop& loop_, ElementwiseKernel kernel_, const void* context_)
      : operands(operands_), loop(loop_), kernel(kernel_), context(context_) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Operand& operand = operands[k];
      base[k] = operand.tensor.raw();
      element[k] = size_of(operand.tensor.dtype());
      same_type[k] = operand.as == operand.tensor.dtype();
      if (operand.access != Access::write) load[k] = find_convert_run(operand.as, operand.tensor.dtype());
      if (operand.access != Access::read) store[k] = find_convert_run(operand.tensor.dtype(), operand.as);
    }
  }

  std::byte* address(const Position& position, std::size_t k) const {
    return base[k] + position.at(k) * element[k];
  }

  /// Copies operand k between its own layout and a plain array, from `position` on.
  template <class Copy>
  void walk(Position position, std::size_t k, int64_t n, Copy copy) const {
    const int64_t step = loop.dims[0].step[k];
    for (int64_t done = 0; done < n;) {
      const int64_t run = std::min(n - done, position.run_left());
      copy(address(position, k), step, done, run);
      done += run;
      if (done < n) position.advance(run);
    }
  }

  void run(int64_t first, int64_t last) const {
    alignas(64) std::byte buffer[max_operands][chunk_elements * 8];
    std::array<std::byte*, max_operands> arrays{};
    const bool by_runs = loop.dims[0].size >= long_run;
    bool all_direct = true;
    std::array<bool, max_operands> direct{};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      direct[k] = same_type[k] && (loop.is_dense(k) || (by_runs && loop.dims[0].step[k] == 1));
      all_direct = all_direct && direct[k];
    }
    Position position(loop, first);
    while (first < last) {
      int64_t n = last - first;
      if (!all_direct) n = std::min(n, chunk_elements);
      if (by_runs) n = std::min(n, position.run_left());
      for (std::size_t k = 0; k < operands.size(); ++k) {
        arrays[k] = direct[k] ? address(position, k) : buffer[k];
        if (!direct[k] && load[k] != nullptr)
          walk(position, k, n, [&](std::byte* own, int64_t step, int64_t done, int64_t run) {
            load[k](buffer[k] + done * size_of(operands[k].as), 1, own, step, run);
          });
      }
      kernel(context, arrays.data(), n);
      for (std::size_t k = 0; k < operands.size(); ++k)
        if (!direct[k] && store[k] != nullptr)
          walk(position, k, n, [&](std::byte* own, int64_t step, int64_t done, int64_t run) {
            store[k](own, step, buffer[k] + done * size_of(operands[k].as), 1, run);
          });
      first += n;
      for (int64_t left = n; left > 0 && first < last;) {
        const int64_t run = std::min(left, position.run_left());
        position.advance(run);
        left -= run;
      }
    }
  }
};

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.raw() == b.raw() && a.shape() == b.shape() && a.strides() == b.strides() && a.dtype() == b.dtype();
}

bool share_bytes(const Tensor& a, const Tensor& b) {
  return a.impl().storage->bytes.get() == b.impl().storage->bytes.get();
}

/// Whether two elements may lie in one place, as in an expanded tensor. Sorted by stride, each dimension must step
/// over all of the ones inside it.
bool overlaps_itself(const Tensor& t) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (std::size_t d = 0; d < t.shape().size(); ++d)
    if (t.shape()[d] > 1) dims.emplace_back(std::abs(t.strides()[d]), t.shape()[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

void check_operands(const char* op, std::span<const Operand> operands) {
  check<ValueError>(operands.size() <= max_operands, "{}: at most {} operands", op, max_operands);
  const Tensor& first = operands[0].tensor;
  for (const Operand& operand : operands) {
    const Tensor& t = operand.tensor;
    check<DeviceError>(t.device() == first.device(), "{}: all tensors must be on one device, got {} and {}", op,
                       first.device(), t.device());
    check<DeviceError>(t.device().is_cpu(), "{}: this is Pleat built without CUDA, got a tensor on {}", op,
                       t.device());
    if (operand.access == Access::read) {
      check<ShapeError>(broadcast(t.shape(), first.shape(), op) == first.shape(),
                        "{}: {} does not broadcast to {}", op, t.shape(), first.shape());
    } else {
      check<ShapeError>(t.shape() == first.shape(), "{}: the result has shape {}, needs {}", op, t.shape(),
                        first.shape());
      check<ShapeError>(!overlaps_itself(t),
                        "{}: cannot write to {}, whose elements share memory (it was expanded); clone() it first", op,
                        t);
    }
  }
}

}  // namespace

void elementwise_loop(const char* op, std::span<const Operand> operands, ElementwiseKernel kernel,
                      const void* context) {
  check_operands(op, operands);
  std::vector<Operand> own(operands.begin(), operands.end());
  for (Operand& operand : own) {
    if (operand.access != Access::read) continue;
    for (const Operand& written : operands)
      if (written.access != Access::read && share_bytes(operand.tensor, written.tensor) &&
          !same_layout(operand.tensor, written.tensor)) {
        operand.tensor = ops::copy(operand.tensor);
        break;
      }
  }
  const int64_t total = own[0].tensor.numel();
  if (total == 0) return;
  Loop loop = make_loop(own);
  if (loop.dims.empty()) loop.dims.push_back({1, {}});
  const Runner runner(own, loop, kernel, context);
  parallel_for(0, total, grain_elements, [&](int64_t first, int64_t last) { runner.run(first, last); });
  for (const Operand& operand : own)
    if (operand.access != Access::read) operand.tensor.bump_version();
}

Tensor empty_as(std::span<const Tensor> inputs, const Shape& shape, DType dtype) {
  const Device device = inputs.empty() ? Device() : inputs[0].device();
  for (const Tensor& input : inputs) {
    if (input.shape() != shape || !input.is_dense()) continue;
    Tensor out = empty(shape, {.dtype = dtype, .device = device});
    return input.is_contiguous() ? out : out.as_strided(shape, input.strides(), 0);
  }
  return empty(shape, {.dtype = dtype, .device = device});
}

}  // namespace pleat
