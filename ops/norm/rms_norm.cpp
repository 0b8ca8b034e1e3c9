// Host and device.
#include "pleat/ops/norm/rms_norm.h"

#include <cmath>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/vector_power.h"
#include "pleat/ops/norm/cuda/norm_cuda.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {
namespace {

/// By lengths, as squares may have no room.
struct ReciprocalOfLength {
  double part_of_norm, root_of_eps;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T norm) const {
    return 1 / vmath::hypot(norm * static_cast<T>(part_of_norm), static_cast<T>(root_of_eps));
  }
};

struct Product {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b, T c) const {
    return a * b * c;
  }
};

/// With h = x rrms: rrms (weight dy - h mean(weight dy h)). A sum of products: see MuonStep.
struct InputGradient {
  double count;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T weight, T rrms, T sum) const {
    const T h = x * rrms;
    return rrms * (weight * dy + h * (sum * rrms / static_cast<T>(-count)));
  }
};

DType wide(DType dtype) { return dtype == float64 ? float64 : float32; }

/// 1 where there is no weight.
Tensor weight_or_1(const Tensor& weight, const Tensor& x) {
  return weight.defined() ? weight : ones({1}, {.dtype = wide(x.dtype()), .device = x.device()});
}

template <std::size_t N, class F>
Tensor map(DType dtype, const std::array<Tensor, N>& in, const F& f) {
  const Tensor out = empty_as(in, in[0].shape(), dtype);
  map_into<Floating>("rms_norm", wide(dtype), out, in, f);
  return out;
}

/// Whether rows are what layer norm's kernels hold. Squares of float64 may have no room in it.
[[maybe_unused]] bool are_held_rows(const Tensor& x) {
  return x.device().is_cuda() && x.dtype() != float64 && x.size(1) <= longest_held_row;
}

}  // namespace

RmsNormResult rms_norm_forward(const Tensor& x, const Tensor& weight, double eps) {
  const RecordOp range("rms_norm", x, weight);
  check_types<Floating>("rms_norm", x.dtype());
  if constexpr (with_cuda)
    if (are_held_rows(x)) {
      const GroupNormResult of = group_norm_forward_cuda(x, weight, {}, {.eps = eps}, "rms_norm", false);
      return {of.y, of.rstd};
    }
  const DType compute = wide(x.dtype());
  const Tensor lengths = reduce_norm(cast(x, compute), 1, {.keepdim = true});
  const auto n = static_cast<double>(x.size(1));
  const Tensor rrms = map(compute, std::array{lengths}, ReciprocalOfLength{1 / std::sqrt(n), std::sqrt(eps)});
  return {map(x.dtype(), std::array{x, rrms, weight_or_1(weight, x)}, Product{}), rrms};
}

RmsNormGrads rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rrms,
                               bool need_input, bool need_weight) {
  const RecordOp range("rms_norm_backward", dy, x, weight);
  check_types<Floating>("rms_norm_backward", x.dtype());
  if constexpr (with_cuda)
    if (are_held_rows(x)) {
      const GroupNormGrads of = group_norm_backward_cuda(dy, x, weight, {}, rrms, {}, need_input, "rms_norm");
      return {of.x, need_weight && weight.defined() ? of.weight : Tensor()};
    }
  const DType compute = rrms.dtype();
  RmsNormGrads grads;
  if (need_input) {
    const Tensor factor = weight_or_1(weight, x);
    const Tensor sums = reduce_sum(map(compute, std::array{dy, x, factor}, Product{}), 1, true);
    grads.x =
        map(x.dtype(), std::array{dy, x, factor, rrms, sums}, InputGradient{static_cast<double>(x.size(1))});
  }
  if (need_weight && weight.defined())
    grads.weight = cast(reduce_sum(map(compute, std::array{dy, x, rrms}, Product{}), 0), weight.dtype());
  return grads;
}

}  // namespace pleat::ops
