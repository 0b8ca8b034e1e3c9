// Host and device.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/nhwc.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"

/// The formulas of ops/conv/problem.h as they stand, one result element at a time, through any strides. Slow
/// and plain: what every other implementation is checked against.

namespace pleat::ops {
namespace {

/// The index of a result element in five dimensions.
struct Index5 {
  int64_t i[5];
  PLEAT_HOST_DEVICE Index5(int64_t linear, int64_t channels, const Spatial& sizes) {
    for (int d = 2; d >= 0; --d) {
      i[2 + d] = linear % sizes[static_cast<std::size_t>(d)];
      linear /= sizes[static_cast<std::size_t>(d)];
    }
    i[1] = linear % channels;
    i[0] = linear / channels;
  }
};

/// Elements of a five-dimensional tensor, by index.
template <class T>
struct View5 {
  T* data;
  int64_t strides[5];

  explicit View5(const Tensor& t) : data(t.data<T>()) {
    for (std::size_t d = 0; d < 5; ++d) strides[d] = t.strides()[d];
  }
  PLEAT_HOST_DEVICE T& at(int64_t a, int64_t b, int64_t d, int64_t h, int64_t w) const {
    return data[a * strides[0] + b * strides[1] + d * strides[2] + h * strides[3] + w * strides[4]];
  }
  PLEAT_HOST_DEVICE T& at(const Index5& index) const {
    return at(index.i[0], index.i[1], index.i[2], index.i[3], index.i[4]);
  }
};

template <class T>
struct Forward {
  ConvProblem p;
  View5<T> x, w;
  const T* bias;
  View5<T> y;

  PLEAT_HOST_DEVICE T value(int64_t linear) const {
    const Index5 at(linear, p.out_channels, p.output);
    const int64_t k = at.i[1];
    const int64_t first = k / p.group_out() * p.group_in();
    T total = bias != nullptr ? bias[k] : T(0);
    for (int64_t t = 0; t < p.kernel[0]; ++t) {
      const int64_t d = at.i[2] * p.stride[0] - p.padding_low[0] + t * p.dilation[0];
      if (d < 0 || d >= p.input[0]) continue;
      for (int64_t r = 0; r < p.kernel[1]; ++r) {
        const int64_t h = at.i[3] * p.stride[1] - p.padding_low[1] + r * p.dilation[1];
        if (h < 0 || h >= p.input[1]) continue;
        for (int64_t s = 0; s < p.kernel[2]; ++s) {
          const int64_t v = at.i[4] * p.stride[2] - p.padding_low[2] + s * p.dilation[2];
          if (v < 0 || v >= p.input[2]) continue;
          for (int64_t c = 0; c < p.group_in(); ++c)
            total += x.at(at.i[0], first + c, d, h, v) * w.at(k, c, t, r, s);
        }
      }
    }
    return total;
  }

  PLEAT_HOST_DEVICE T& element(int64_t linear) const {
    return y.at(Index5(linear, p.out_channels, p.output));
  }
  PLEAT_HOST_DEVICE void operator()(int64_t linear) const { element(linear) = value(linear); }
};

/// The output whose window has input position `i` at tap `r`, or -1.
PLEAT_HOST_DEVICE inline int64_t output_of(const ConvProblem& p, std::size_t d, int64_t i, int64_t r) {
  const int64_t shifted = i + p.padding_low[d] - r * p.dilation[d];
  if (shifted < 0 || shifted % p.stride[d] != 0) return -1;
  const int64_t o = shifted / p.stride[d];
  return o < p.output[d] ? o : -1;
}

template <class T>
struct BackwardInput {
  ConvProblem p;
  View5<T> dy, w, dx;

  PLEAT_HOST_DEVICE T value(int64_t linear) const {
    const Index5 at(linear, p.in_channels, p.input);
    const int64_t c = at.i[1] % p.group_in();
    const int64_t first = at.i[1] / p.group_in() * p.group_out();
    T total = 0;
    for (int64_t t = 0; t < p.kernel[0]; ++t) {
      const int64_t d = output_of(p, 0, at.i[2], t);
      if (d < 0) continue;
      for (int64_t r = 0; r < p.kernel[1]; ++r) {
        const int64_t h = output_of(p, 1, at.i[3], r);
        if (h < 0) continue;
        for (int64_t s = 0; s < p.kernel[2]; ++s) {
          const int64_t v = output_of(p, 2, at.i[4], s);
          if (v < 0) continue;
          for (int64_t k = first; k < first + p.group_out(); ++k)
            total += dy.at(at.i[0], k, d, h, v) * w.at(k, c, t, r, s);
        }
      }
    }
    return total;
  }

  PLEAT_HOST_DEVICE T& element(int64_t linear) const { return dx.at(Index5(linear, p.in_channels, p.input)); }
  PLEAT_HOST_DEVICE void operator()(int64_t linear) const { element(linear) = value(linear); }
};

template <class T>
struct BackwardWeight {
  ConvProblem p;
  View5<T> dy, x, dw;

  PLEAT_HOST_DEVICE T value(int64_t linear) const {
    const Index5 at(linear, p.group_in(), p.kernel);
    const int64_t k = at.i[0];
    const int64_t c = k / p.group_out() * p.group_in() + at.i[1];
    T total = 0;
    for (int64_t n = 0; n < p.batch; ++n)
      for (int64_t a = 0; a < p.output[0]; ++a) {
        const int64_t d = a * p.stride[0] - p.padding_low[0] + at.i[2] * p.dilation[0];
        if (d < 0 || d >= p.input[0]) continue;
        for (int64_t b = 0; b < p.output[1]; ++b) {
          const int64_t h = b * p.stride[1] - p.padding_low[1] + at.i[3] * p.dilation[1];
          if (h < 0 || h >= p.input[1]) continue;
          for (int64_t o = 0; o < p.output[2]; ++o) {
            const int64_t v = o * p.stride[2] - p.padding_low[2] + at.i[4] * p.dilation[2];
            if (v < 0 || v >= p.input[2]) continue;
            total += dy.at(n, k, a, b, o) * x.at(n, c, d, h, v);
          }
        }
      }
    return total;
  }

  PLEAT_HOST_DEVICE T& element(int64_t linear) const { return dw.at(Index5(linear, p.group_in(), p.kernel)); }
  PLEAT_HOST_DEVICE void operator()(int64_t linear) const { element(linear) = value(linear); }
};

/// The square of a sample's error, and of the sample; -1 for one that does not count.
template <class F>
struct CompareSample {
  F pass;
  int64_t samples, elements;
  double largest;  ///< that counts
  double* squares;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t linear = i * elements / samples;
    const double reference = pass.value(linear);
    const double error = pass.element(linear) - reference;
    const bool counts = reference <= largest && reference >= -largest;
    squares[2 * i] = counts ? error * error : 0;
    squares[2 * i + 1] = counts ? reference * reference : -1;
  }
};

/// A little below what the type can hold, and what has a square.
double largest_compared(DType dtype) { return dtype == float16 ? 6e4 : dtype == float64 ? 1e150 : 3e38; }

bool is_finite(const Tensor& t) {
  return !t.defined() || sum(t.detach() * 0).item() == 0;  // 0 times infinity is NaN
}

/// `operands`: those that the pass reads.
template <class F>
double sampled_error(const ConvProblem& p, const F& pass, int64_t elements,
                     const std::vector<Tensor>& operands) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const int64_t samples = std::min<int64_t>(elements, 4096);
  const Tensor squares = empty({samples, 2}, {.dtype = float64, .device = p.device});
  for_each_index("conv", p.device, samples,
                 CompareSample<F>{pass, samples, elements, largest_compared(p.dtype), squares.data<double>()},
                 1);
  const std::vector<double> numbers = squares.to_vector<double>();
  double error = 0;
  double reference = 0;
  bool any = false;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i + 1] < 0) continue;
    any = true;
    error += numbers[i];
    reference += numbers[i + 1];
  }
  if (!any) return unknown;
  if (error == 0) return 0;
  if (std::isfinite(error)) return std::sqrt(error / reference);
  return std::all_of(operands.begin(), operands.end(), is_finite) ? std::numeric_limits<double>::infinity()
                                                                  : unknown;
}

class ReferenceConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "reference"; }
  bool runs_on(Device) const override { return true; }
  std::string unsupported(const ConvProblem&, ConvPass) const override { return {}; }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::strided; }
  int64_t workspace_bytes(const ConvProblem&, ConvPass) const override { return 0; }
  /// Above that of all others.
  double cost(const ConvProblem& p, ConvPass) const override { return 100 * static_cast<double>(p.flops()); }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_type(p, [&]<class T>(Type<T>) {
      const T* const b = bias.defined() ? bias.data<T>() : nullptr;
      for_each_index("conv", p.device, y.numel(), Forward<T>{p, View5<T>(x), View5<T>(w), b, View5<T>(y)},
                     16);
    });
  }
  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_type(p, [&]<class T>(Type<T>) {
      for_each_index("conv", p.device, dx.numel(),
                     BackwardInput<T>{p, View5<T>(dy), View5<T>(w), View5<T>(dx)}, 16);
    });
  }
  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_type(p, [&]<class T>(Type<T>) {
      for_each_index("conv", p.device, dw.numel(),
                     BackwardWeight<T>{p, View5<T>(dy), View5<T>(x), View5<T>(dw)}, 1);
    });
  }
};

}  // namespace

double reference_error(const ConvProblem& p, ConvPass pass, const Tensor& x, const Tensor& w,
                       const Tensor& bias, const Tensor& y) {
  // float64 holds every other floating type exactly.
  const Tensor wide_x = cast(x, float64);
  const Tensor wide_w = cast(w, float64);
  const Tensor wide_y = cast(y, float64);
  const Tensor wide_bias = bias.defined() ? cast(bias, float64) : Tensor();
  const View5<double> input(wide_x), weight(wide_w), output(wide_y);
  switch (pass) {
    case ConvPass::forward:
      return sampled_error(
          p,
          Forward<double>{p, input, weight, wide_bias.defined() ? wide_bias.data<double>() : nullptr, output},
          y.numel(), {wide_x, wide_w, wide_bias});
    case ConvPass::backward_input:
      return sampled_error(p, BackwardInput<double>{p, output, weight, input}, x.numel(), {wide_y, wide_w});
    case ConvPass::backward_weight:
      break;
  }
  return sampled_error(p, BackwardWeight<double>{p, output, input, weight}, w.numel(), {wide_y, wide_x});
}

const ConvImplementation* reference_conv() {
  static const auto* const implementation = new ReferenceConv;
  return implementation;
}

}  // namespace pleat::ops
