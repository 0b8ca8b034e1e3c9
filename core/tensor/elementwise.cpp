#include "pleat/core/tensor/elementwise.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise_runner.h"

namespace pleat {
namespace {

/// Elements worth waking another thread for.
constexpr int64_t grain_elements = 32768;

/// Whether the elements of all operands lie one behind the other in the same order: most loops are such, and
/// the small ones should cost little.
bool lie_alike(std::span<const Operand> operands) {
  const Tensor& first = operands[0].tensor;
  return (first.is_contiguous() || first.is_contiguous(MemoryFormat::channels_last)) &&
         std::all_of(operands.begin() + 1, operands.end(), [&](const Operand& operand) {
           return operand.tensor.shape() == first.shape() && operand.tensor.strides() == first.strides();
         });
}

std::vector<LoopDim> joined_dims(std::span<const Operand> operands) {
  if (lie_alike(operands)) {
    LoopDim all{operands[0].tensor.numel(), {}};
    all.step.fill(1);
    return {all};
  }
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
  // Walk the first operand (the one written) as it lies in memory; the order of dimensions means nothing
  // here.
  std::reverse(dims.begin(), dims.end());
  std::stable_sort(dims.begin(), dims.end(), [](const LoopDim& a, const LoopDim& b) {
    return std::abs(a.step[0]) < std::abs(b.step[0]);
  });
  std::vector<LoopDim> joined;
  if (dims.empty()) {
    joined.push_back({1, {}});
    joined[0].step.fill(1);
  }
  for (const LoopDim& dim : dims) {
    const auto joins = [&](const LoopDim& inner) {
      for (std::size_t k = 0; k < operands.size(); ++k)
        if (dim.step[k] != inner.step[k] * inner.size) return false;
      return true;
    };
    if (!joined.empty() && joins(joined.back()))
      joined.back().size *= dim.size;
    else
      joined.push_back(dim);
  }
  return joined;
}

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.raw() == b.raw() && a.shape() == b.shape() && a.strides() == b.strides() && a.dtype() == b.dtype();
}

/// The bytes from a tensor's first element to its last; strides are not negative.
std::pair<const std::byte*, const std::byte*> byte_range(const Tensor& t) {
  int64_t last = 0;
  for (std::size_t d = 0; d < t.shape().size(); ++d) last += (t.shape()[d] - 1) * t.strides()[d];
  return {t.raw(), t.raw() + (last + 1) * size_of(t.dtype())};
}

bool share_bytes(const Tensor& a, const Tensor& b) {
  if (a.impl().storage->bytes.get() != b.impl().storage->bytes.get()) return false;
  const auto [a_first, a_end] = byte_range(a);
  const auto [b_first, b_end] = byte_range(b);
  return a_first < b_end && b_first < a_end;
}

/// Whether elements would be overwritten before they are read: written ones must be read in the same order.
bool is_overwritten(const Operand& operand, std::span<const Operand> operands) {
  if (operand.access != Access::read) return false;
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& written) {
    return written.access != Access::read && share_bytes(operand.tensor, written.tensor) &&
           !same_layout(operand.tensor, written.tensor);
  });
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 1; i <= from.size(); ++i)
    if (from[from.size() - i] != to[to.size() - i] && from[from.size() - i] != 1) return false;
  return true;
}

void check_operands(const char* op, std::span<const Operand> operands) {
  check<ValueError>(operands.size() <= max_operands, "{}: at most {} operands", op, max_operands);
  const Tensor& first = operands[0].tensor;
  for (const Operand& operand : operands) {
    const Tensor& t = operand.tensor;
    check<DeviceError>(t.device() == first.device(), "{}: all tensors must be on one device, got {} and {}",
                       op, first.device(), t.device());
    if (operand.access == Access::read) {
      check<ShapeError>(broadcasts_to(t.shape(), first.shape()), "{}: {} does not broadcast to {}", op,
                        t.shape(), first.shape());
    } else {
      check<ShapeError>(t.shape() == first.shape(), "{}: the result has shape {}, needs {}", op, t.shape(),
                        first.shape());
      check<ShapeError>(
          t.is_contiguous() || !may_overlap(t),
          "{}: cannot write to {}, whose elements share memory (it was expanded); clone() it first", op, t);
    }
  }
}

void check_on_cpu(const char* op, std::span<const Operand> operands) {
  check<DeviceError>(operands[0].tensor.device().is_cpu(), "{}: runs on the CPU only, got a tensor on {}", op,
                     operands[0].tensor.device());
}

void note_writes(std::span<const Operand> operands) {
  for (const Operand& operand : operands)
    if (operand.access != Access::read) operand.tensor.begin_write();
}

}  // namespace

bool may_overlap(const Tensor& t) {
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

bool ElementwiseLoop::is_dense(std::size_t operand) const {
  int64_t next = 1;
  for (const LoopDim& dim : dims) {
    if (dim.step[operand] != next) return false;
    next *= dim.size;
  }
  return true;
}

bool ElementwiseLoop::repeats(std::size_t operand) const {
  for (std::size_t d = 1; d < dims.size(); ++d)
    if (dims[d].step[operand] != 0) return false;
  return true;
}

ElementwiseLoop make_elementwise_loop(const char* op, std::span<const Operand> operands) {
  check_operands(op, operands);
  ElementwiseLoop loop;
  loop.operands = operands;
  if (loop.numel() == 0) return loop;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (is_overwritten(operands[k], operands)) {
      if (loop.own.empty()) loop.own.assign(operands.begin(), operands.end());
      loop.own[k].tensor = ops::copy(operands[k].tensor);
    }
  if (!loop.own.empty()) loop.operands = loop.own;
  loop.dims = joined_dims(loop.operands);
  return loop;
}

void elementwise_loops(const char* op, std::span<const ElementwiseCall> calls) {
  std::vector<ElementwiseLoop> loops;
  loops.reserve(calls.size());
  std::vector<ElementwiseRunner> runners;
  runners.reserve(calls.size());
  std::vector<int64_t> ends;  // of each runner's elements among all
  int64_t total = 0;
  for (const auto& [operands, kernel] : calls) {
    loops.push_back(make_elementwise_loop(op, operands));
    check_on_cpu(op, operands);
    if (loops.back().numel() == 0) continue;
    runners.emplace_back(loops.back(), kernel);
    ends.push_back(total += loops.back().numel());
  }
  for (const ElementwiseRunner& runner : runners) note_writes(runner.operands);
  parallel_for(0, total, grain_elements, [&](int64_t first, int64_t last) {
    auto at = static_cast<std::size_t>(std::ranges::upper_bound(ends, first) - ends.begin());
    for (; first < last; ++at) {
      const int64_t begin = at == 0 ? 0 : ends[at - 1];
      const int64_t end = std::min(last, ends[at]);
      runners[at].run(first - begin, end - begin);
      first = end;
    }
  });
}

void elementwise_loop(const char* op, std::span<const Operand> operands, const ElementwiseKernel& kernel) {
  const ElementwiseLoop loop = make_elementwise_loop(op, operands);
  check_on_cpu(op, operands);
  if (loop.numel() == 0) return;
  const ElementwiseRunner runner(loop, kernel);
  note_writes(operands);
  parallel_for(0, loop.numel(), grain_elements,
               [&](int64_t first, int64_t last) { runner.run(first, last); });
}

void elementwise_loop(const char* op, const Tensor& out, std::span<const Tensor> in,
                      std::span<const DType> as, const ElementwiseKernel& kernel) {
  std::array<Operand, max_operands> operands;
  operands[0] = {out, as[0], Access::write};
  for (std::size_t i = 0; i < in.size(); ++i) operands[i + 1] = {in[i], as[i + 1], Access::read};
  elementwise_loop(op, std::span(operands).first(in.size() + 1), kernel);
}

namespace {

/// Strides of dense elements in the order in which those of x lie, with gaps; none where some share a place.
std::optional<Strides> dense_strides_as(const Tensor& x) {
  const Shape& shape = x.shape();
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return x.strides()[a] > x.strides()[b]; });
  Strides strides(shape.size());
  int64_t next = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (shape[*d] > 1 && x.strides()[*d] < next) return std::nullopt;
    strides[*d] = next;
    next *= std::max<int64_t>(shape[*d], 1);
  }
  return strides;
}

}  // namespace

Tensor empty_as(std::span<const Tensor> inputs, const Shape& shape, DType dtype) {
  const Device device = inputs.empty() ? Device() : inputs[0].device();
  const Tensor out = empty(shape, {.dtype = dtype, .device = device});
  for (const Tensor& input : inputs) {
    if (input.shape() != shape || !input.is_dense()) continue;
    return input.is_contiguous() ? out : out.as_strided(shape, input.strides(), 0);
  }
  // As a part of a channels-last tensor, which is channels-last, too.
  for (const Tensor& input : inputs)
    if (input.shape() == shape)
      if (const auto strides = dense_strides_as(input))
        return *strides == out.strides() ? out : out.as_strided(shape, *strides, 0);
  return out;
}

}  // namespace pleat
