#include "pleat/op_cases/op_case.h"

#include <cmath>

#include "pleat/autograd/grad_mode.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::test {

DType same_type(DType dtype) { return dtype; }
DType floating_type(DType dtype) { return is_floating(dtype) ? dtype : float32; }
DType sum_type(DType dtype) { return is_floating(dtype) ? dtype : int64; }
DType number_type(DType dtype) { return dtype == boolean ? int64 : dtype; }
DType index_type(DType) { return int64; }
DType truth_type(DType) { return boolean; }

const std::vector<OpFamily>& op_families() {
#define PLEAT_FAMILY_ROW(family, ...) {#family, family##_ops},
  static const std::vector<OpFamily> all = {PLEAT_OP_FAMILIES(PLEAT_FAMILY_ROW)};
  return all;
}

std::vector<DType> types_of(const OpCase& c) {
  bool varies = false;
  for (const Tensor& x : c.inputs) varies = varies || (x.defined() && is_floating(x.dtype()));
  if (!varies) return {float64};
  std::vector<DType> types;
  if (c.types.floating) types = {float64, float32, float16, bfloat16};
  if (c.types.integers) types.insert(types.end(), {int64, int32, uint8});
  if (c.types.boolean) types.push_back(boolean);
  return types;
}

Tensors typed(const Tensors& inputs, DType dtype) {
  Tensors result;
  for (const Tensor& x : inputs) {
    Tensor t = x;
    if (x.defined() && is_floating(x.dtype()) && !is_floating(dtype)) {
      Numbers numbers = x.to_vector<double>();
      for (double& n : numbers) {
        if (!std::isfinite(n)) n = 0;
        n = dtype == boolean ? n > 0 : n < 0 ? std::floor(n) : std::ceil(n);
        if (dtype == uint8) n = std::abs(n);
      }
      t = from_vector(numbers, x.shape(), x.device());
    }
    if (x.defined() && is_floating(x.dtype())) t = ops::cast(t, dtype);
    result.push_back(x.defined() ? ops::to_device(t, default_device()) : x);
  }
  return result;
}

const std::vector<std::string>& op_layouts() {
  static const std::vector<std::string> all{"contiguous", "transposed",    "gaps",
                                            "offset",     "channels_last", "expanded"};
  return all;
}

Tensor in_layout(const Tensor& x, const std::string& layout) {
  const NoGrad off_the_tape;
  if (!x.defined() || x.rank() == 0) return x;
  if (layout == "contiguous" || layout == "channels_last") return laid_out(x, layout);
  if (layout == "gaps") return with_gaps(x);
  if (layout == "transposed") {
    std::vector<int64_t> reversed;
    for (int64_t d = x.rank(); d-- > 0;) reversed.push_back(d);
    return permute(ops::to_format(permute(x, reversed), MemoryFormat::contiguous), reversed);
  }
  if (layout == "offset") {
    const Tensor room = zeros({x.numel() + 3}, {.dtype = x.dtype(), .device = x.device()});
    const Tensor part = view(slice(room, 0, 3, x.numel() + 3), x.shape());
    ops::copy_into(part, x);
    return part;
  }
  return x.size(0) == 0 ? x : expand(slice(x, 0, 0, 1), x.shape());
}

Tensors in_layout(const Tensors& inputs, const std::string& layout) {
  Tensors result;
  for (const Tensor& x : inputs) result.push_back(in_layout(x, layout));
  return result;
}

double rounding(DType dtype) {
  switch (dtype) {
    case float64:
      return std::ldexp(1, -53);
    case float32:
      return std::ldexp(1, -24);
    case float16:
      return std::ldexp(1, -11);
    case bfloat16:
      return std::ldexp(1, -8);
    default:
      return 0;
  }
}

OpCase unary(const std::string& name, Tensor (*function)(const Tensor&), double (*reference)(double),
             Range values, const std::vector<Range>& smooth) {
  OpCase c{.name = name,
           .inputs = {uniform({3, 5, 7, 9}, values.low, values.high)},
           .call = [function](const Tensors& x) { return function(x[0]); },
           .reference = each(reference),
           .types = all_types,
           .results = {floating_type},
           .elementwise = true,
           .order = smooth.empty() ? 0 : 2};
  for (const Range& range : smooth) c.smooth.push_back({uniform({2, 3}, range.low, range.high)});
  return c;
}

OpCase refusing(OpCase c, std::vector<Refusal> refused) {
  c.refused = std::move(refused);
  return c;
}

OpCase recorded_as(const std::string& name, OpCase c) {
  c.recorded = name;
  return c;
}

}  // namespace pleat::test
