#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/conv/cuda/pixels.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/nhwc.h"

/// Depthwise convolution on a GPU, in both formats: every channel has kernels of its own, so
/// that there is no matrix product to make use of, and each result is a sum over few taps. Forward and
/// backward_input give a thread a result, or neighbouring channels of a row; backward_weight gives teams of
/// threads parts of the images, whose sums are added in order.

namespace pleat::ops {
namespace {

using namespace cuda_conv;

/// With one group there is nothing that a matrix product would not do better.
bool is_depthwise(const ConvProblem& p) { return p.groups > 1 && p.groups == p.in_channels; }

/// Where a tensor [image, channel, pixel] has its elements, and what neighbouring threads take of it: `width`
/// channels of a row each, or pixels of a plane.
struct ElementLayout {
  FastDivider vectors, pixels;
  int64_t width, channels;
  bool nhwc;

  ElementLayout(MemoryFormat format, int64_t channels_, int64_t pixels_, int64_t width_ = 1)
      : vectors(channels_ / width_),
        pixels(pixels_),
        width(width_),
        channels(channels_),
        nhwc(format == MemoryFormat::channels_last) {}

  struct Element {
    int64_t image, channel, pixel;
  };
  PLEAT_HOST_DEVICE Element operator()(int64_t index) const {
    Element element{};
    if (nhwc) {
      element.channel = index;
      element.pixel = vectors.divide(element.channel);
      element.image = pixels.divide(element.pixel);
      element.channel *= width;
    } else {
      element.pixel = index;
      element.channel = pixels.divide(element.pixel);
      element.image = vectors.divide(element.channel);
    }
    return element;
  }
  PLEAT_HOST_DEVICE int64_t at(int64_t image, int64_t channel, int64_t pixel) const {
    return nhwc ? (image * pixels.divisor() + pixel) * channels + channel
                : (image * channels + channel) * pixels.divisor() + pixel;
  }
  /// From a pixel to the next.
  PLEAT_HOST_DEVICE int64_t step() const { return nhwc ? channels : 1; }
};

ElementLayout input_layout(const ConvProblem& p, int64_t width = 1) {
  return {p.format, p.in_channels, p.input_pixels(), width};
}
ElementLayout output_layout(const ConvProblem& p, int64_t width = 1) {
  return {p.format, p.out_channels, p.output_pixels(), width};
}

/// w [K, taps] as sums [taps, K]: neighbouring channels take neighbouring weights.
template <class T>
struct WeightsByTap {
  FastDivider channels;
  int64_t taps;
  const T* w;
  Sum<T>* by_tap;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t k = index;
    const int64_t tap = channels.divide(k);
    by_tap[index] = convert<Sum<T>>(w[k * taps + tap]);
  }
};

/// `width` neighbouring channels of y; more than one where each has an input channel of its own.
template <class T, std::size_t width>
struct DepthwiseForward {
  Window window;
  PixelOf pixel;
  ElementLayout inputs, outputs;
  FastDivider multiplier;  ///< outputs of a channel
  const T* x;
  const Sum<T>* w;  ///< [taps, K]
  const T* bias;    ///< null: none
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    const auto element = outputs(index);
    const auto at = pixel(element.pixel);
    int64_t rest = element.channel;
    const T* const from = x + inputs.at(element.image, multiplier.divide(rest), 0);
    Vector<Sum<T>, width> total{};
    if (bias != nullptr)
      for (std::size_t j = 0; j < width; ++j)
        total.lane[j] = convert<Sum<T>>(bias[element.channel + static_cast<int64_t>(j)]);
    window.for_each_tap(at.d, at.h, at.w, [&](int64_t tap, int64_t input) {
      const auto values = *reinterpret_cast<const Vector<T, width>*>(from + input * inputs.step());
      const Sum<T>* const weights = w + tap * outputs.channels + element.channel;
      for (std::size_t j = 0; j < width; ++j) total.lane[j] += convert<Sum<T>>(values.lane[j]) * weights[j];
    });
    Vector<T, width> rounded;
    for (std::size_t j = 0; j < width; ++j) rounded.lane[j] = convert<T>(total.lane[j]);
    *reinterpret_cast<Vector<T, width>*>(y + outputs.at(element.image, element.channel, element.pixel)) =
        rounded;
  }
};

/// `width` neighbouring channels of dx; more than one where each has one output channel.
template <class T, std::size_t width>
struct DepthwiseBackwardInput {
  Window window;
  PixelOf pixel;
  ElementLayout inputs, outputs;
  int64_t multiplier;
  const T* dy;
  const Sum<T>* w;  ///< [taps, K]
  T* dx;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    const auto element = inputs(index);
    const auto at = pixel(element.pixel);
    const int64_t first = element.channel * multiplier;
    Vector<Sum<T>, width> total{};
    window.for_each_reader(at.d, at.h, at.w, [&](int64_t tap, int64_t output) {
      const Sum<T>* const weights = w + tap * outputs.channels + first;
      for (int64_t m = 0; m < multiplier; ++m) {
        const auto values =
            *reinterpret_cast<const Vector<T, width>*>(dy + outputs.at(element.image, first + m, output));
        for (std::size_t j = 0; j < width; ++j)
          total.lane[j] += convert<Sum<T>>(values.lane[j]) * weights[m + static_cast<int64_t>(j)];
      }
    });
    Vector<T, width> rounded;
    for (std::size_t j = 0; j < width; ++j) rounded.lane[j] = convert<T>(total.lane[j]);
    *reinterpret_cast<Vector<T, width>*>(dx + inputs.at(element.image, element.channel, element.pixel)) =
        rounded;
  }
};

/// Taps that a thread adds up at a time: a 3 x 3 kernel.
constexpr int64_t taps_at_once = 9;

template <class Total>
struct TapSums {
  Total value[taps_at_once];
};

/// How the sums of backward_weight are shared out: the output pixels of all images in parts, the taps in
/// groups, the channels among the teams of a block.
struct SumShares {
  Teams teams;
  int64_t values, channel_groups, tap_groups, part, parts;

  explicit SumShares(const ConvProblem& p)
      : values(p.batch * p.output_pixels()), tap_groups(ceil_div(p.taps(), taps_at_once)) {
    teams = choose_teams(values, p.format == MemoryFormat::channels_last ? p.out_channels : 1);
    channel_groups = ceil_div(p.out_channels, teams.count());
    constexpr int64_t wanted = 1056;  // eight blocks for each multiprocessor of the largest GPUs
    constexpr int64_t values_of_thread = 16;
    const int64_t most = std::max<int64_t>(1, values / (teams.lanes() * values_of_thread));
    part = ceil_div(values, std::clamp<int64_t>(wanted / (channel_groups * tap_groups), 1, most));
    parts = ceil_div(values, part);
  }
  int64_t blocks() const { return channel_groups * tap_groups * parts; }
};

/// partials[part][tap][K] = sums of dy x over a part of the output pixels.
template <class T>
struct DepthwiseWeightSums {
  Window window;
  PixelOf pixel;
  ElementLayout inputs, outputs;
  Teams teams;
  FastDivider multiplier, parts, tap_groups, kernel_h, kernel_w;
  int64_t values, part, taps;
  const T* dy;
  const T* x;
  Sum<T>* partials;

  DepthwiseWeightSums(const ConvProblem& p, const SumShares& shares, const T* dy_, const T* x_, Sum<T>* sums)
      : window(p),
        pixel(p.output),
        inputs(input_layout(p)),
        outputs(output_layout(p)),
        teams(shares.teams),
        multiplier(p.group_out()),
        parts(shares.parts),
        tap_groups(shares.tap_groups),
        kernel_h(p.kernel[1]),
        kernel_w(p.kernel[2]),
        values(shares.values),
        part(shares.part),
        taps(p.taps()),
        dy(dy_),
        x(x_),
        partials(sums) {}

  __device__ void operator()(int64_t b, const Block& block) const {
    int64_t number = b;
    int64_t first_tap = parts.divide(number);
    const int64_t channel_group = tap_groups.divide(first_tap);
    first_tap *= taps_at_once;
    const int lane = teams.lane_of(block.thread());
    const int64_t k = channel_group * teams.count() + teams.team_of(block.thread());
    TapSums<Sum<T>> sums{};
    if (k < outputs.channels) sums = sum(k, first_tap, number * part + lane, (number + 1) * part);
    block.combine(sums, teams, [](TapSums<Sum<T>>& a, const TapSums<Sum<T>>& other) {
      for (int64_t i = 0; i < taps_at_once; ++i) a.value[i] += other.value[i];
    });
    if (lane != 0 || k >= outputs.channels) return;
    for (int64_t i = 0; i < taps_at_once && first_tap + i < taps; ++i)
      partials[(number * taps + first_tap + i) * outputs.channels + k] = sums.value[i];
  }

  /// Of one thread: every so many output pixels from `first` on.
  PLEAT_HOST_DEVICE TapSums<Sum<T>> sum(int64_t k, int64_t first_tap, int64_t first, int64_t last) const {
    TapSums<Sum<T>> total{};
    int64_t c = k;
    c = multiplier.divide(c);
    int64_t first_s = first_tap;
    int64_t first_r = kernel_w.divide(first_s);
    const int64_t first_t = kernel_h.divide(first_r);
    for (int64_t j = first; j < last && j < values; j += teams.lanes()) {
      const auto at = pixel(j);
      const Sum<T> gradient = convert<Sum<T>>(dy[outputs.at(at.n, k, j - at.n * outputs.pixels.divisor())]);
      const T* const from = x + inputs.at(at.n, c, 0);
      int64_t t = first_t;
      int64_t r = first_r;
      int64_t s = first_s;
      for (int64_t i = 0; i < taps_at_once; ++i) {
        const int64_t d = window.input_of(0, at.d, t);
        const int64_t h = window.input_of(1, at.h, r);
        const int64_t w = window.input_of(2, at.w, s);
        if (first_tap + i < taps && d >= 0 && h >= 0 && w >= 0)
          total.value[i] += gradient * convert<Sum<T>>(from[window.input_pixel(0, d, h, w) * inputs.step()]);
        if (++s == window.kernel[2]) {
          s = 0;
          if (++r == window.kernel[1]) {
            r = 0;
            ++t;
          }
        }
      }
    }
    return total;
  }
};

/// dw [K, taps] = partials[0] + partials[1] + ..., in this order.
template <class T>
struct SumWeights {
  FastDivider taps;
  int64_t parts, channels;
  const Sum<T>* partials;  ///< [parts][taps][K]
  T* dw;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t tap = index;
    const int64_t k = taps.divide(tap);
    Sum<T> total = 0;
    for (int64_t part = 0; part < parts; ++part)
      total += partials[(part * taps.divisor() + tap) * channels + k];
    dw[index] = convert<T>(total);
  }
};

template <class T>
Tensor weights_by_tap(const ConvProblem& p, const T* w) {
  const Tensor by_tap = scratch_on<Sum<T>>(p.device, p.out_channels * p.taps());
  launch_indices(op, p.device, by_tap.numel(),
                 WeightsByTap<T>{FastDivider(p.out_channels), p.taps(), w, by_tap.data<Sum<T>>()});
  return by_tap;
}

/// Channels of which a thread may take several: each has an input channel of its own, and they lie side by
/// side.
int64_t vector_channels(const ConvProblem& p) {
  return p.format == MemoryFormat::channels_last && p.group_out() == 1 ? p.in_channels : 1;
}

class DirectConvCuda : public ConvImplementation {
 public:
  std::string_view name() const override { return "direct"; }
  bool runs_on(Device device) const override { return device.is_cuda(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    if (!problem.device.is_cuda()) return "it runs on CUDA";
    return is_depthwise(problem) ? std::string()
                                 : std::string("on CUDA it needs as many groups, above 1, as input channels");
  }
  ConvLayout layout(const ConvProblem& problem) const override { return requested_layout(problem); }
  bool takes(DType) const override { return true; }
  /// Below cuDNN's: depthwise convolutions read and write much for each product and gain nothing from matrix
  /// products. That this is the faster there is reasoned, not measured on a GPU.
  double cost(const ConvProblem& p, ConvPass) const override { return static_cast<double>(p.flops()) / 4; }
  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    const int64_t parts = pass == ConvPass::backward_weight ? SumShares(p).parts : 1;
    return parts * p.out_channels * p.taps() * sum_bytes(p);
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      const Tensor weights = weights_by_tap(p, w.data<T>());
      by_width<16 / sizeof(T), T>(
          vector_channels(p), {x.data<T>(), y.data<T>()},
          [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
            constexpr auto step = static_cast<int64_t>(width);
            launch_indices(op, p.device, y.numel() / step,
                           DepthwiseForward<T, width>{
                               Window(p), PixelOf(p.output), input_layout(p, step), output_layout(p, step),
                               FastDivider(p.group_out()), x.data<T>(), weights.data<Sum<T>>(),
                               bias.defined() ? bias.data<T>() : nullptr, y.data<T>()});
          });
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      const Tensor weights = weights_by_tap(p, w.data<T>());
      by_width<16 / sizeof(T), T>(
          vector_channels(p), {dx.data<T>(), dy.data<T>()},
          [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
            constexpr auto step = static_cast<int64_t>(width);
            launch_indices(op, p.device, dx.numel() / step,
                           DepthwiseBackwardInput<T, width>{
                               Window(p), PixelOf(p.input), input_layout(p, step), output_layout(p, step),
                               p.group_out(), dy.data<T>(), weights.data<Sum<T>>(), dx.data<T>()});
          });
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      const SumShares shares(p);
      const Tensor partials = scratch_on<Sum<T>>(p.device, shares.parts * dw.numel());
      launch_blocks(op, p.device, shares.blocks(),
                    DepthwiseWeightSums<T>(p, shares, dy.data<T>(), x.data<T>(), partials.data<Sum<T>>()));
      launch_indices(op, p.device, dw.numel(),
                     SumWeights<T>{FastDivider(p.taps()), shares.parts, p.out_channels,
                                   partials.data<Sum<T>>(), dw.data<T>()});
    });
  }
};

}  // namespace

const ConvImplementation* direct_conv_cuda() {
  static const auto* const implementation = new DirectConvCuda;
  return implementation;
}

}  // namespace pleat::ops
