#include <algorithm>
#include <optional>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/conv/cuda/depthwise_tiles.h"
#include "pleat/ops/conv/cuda/pixels.h"
#include "pleat/ops/conv/cuda/products.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/nhwc.h"

/// Depthwise convolution on a GPU, in both formats: every channel has kernels of its own, so
/// that there is no matrix product to make use of, and each result is a sum over few taps. Forward and
/// backward_input give a thread a result, or neighbouring channels of a row; backward_weight gives teams of
/// threads parts of the images, whose sums are added in order.

namespace pleat::ops {

const ConvImplementation* unfold_conv_cuda();

namespace {

using namespace cuda_conv;
using namespace image_tiles;
using namespace depthwise;

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
    } else {
      element.pixel = index;
      element.channel = pixels.divide(element.pixel);
      element.image = vectors.divide(element.channel);
    }
    element.channel *= width;
    return element;
  }
  PLEAT_HOST_DEVICE int64_t at(int64_t image, int64_t channel, int64_t pixel) const {
    return nhwc ? (image * pixels.divisor() + pixel) * channels + channel
                : (image * channels + channel) * pixels.divisor() + pixel;
  }
};

ElementLayout input_layout(const ConvProblem& p, int64_t width = 1) {
  return {p.format, p.in_channels, p.input_pixels(), width};
}
ElementLayout output_layout(const ConvProblem& p, int64_t width = 1) {
  return {p.format, p.out_channels, p.output_pixels(), width};
}

/// `width` neighbouring channels of dx; more than one where each has one output channel.
template <class T, std::size_t width>
struct DepthwiseBackwardInput {
  static constexpr bool keeps_registers = true;
  Window window;
  PixelOf pixel;
  ElementLayout inputs, outputs;
  int64_t multiplier;
  const T* dy;
  const Sum<T>* w;  ///< [taps, K]
  T* dx;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    static_assert(keeps_registers);
    const auto element = inputs(index);
    const auto at = pixel(element.pixel);
    const int64_t first = element.channel * multiplier;
    Vector<Sum<T>, width> total{};
    window.for_each_reader(at.d, at.h, at.w, [&](int64_t tap, int64_t output) {
      const Sum<T>* const weights = w + tap * outputs.channels + first;
      for (int64_t m = 0; m < multiplier; ++m) {
        const T* const from = dy + outputs.at(element.image, first + m, output);
        Vector<T, width> values;
        if (outputs.nhwc)
          values = *reinterpret_cast<const Vector<T, width>*>(from);
        else
          for (std::size_t j = 0; j < width; ++j)
            values.lane[j] = from[static_cast<int64_t>(j) * outputs.pixels.divisor()];
        for (std::size_t j = 0; j < width; ++j)
          total.lane[j] += convert<Sum<T>>(values.lane[j]) * weights[m + static_cast<int64_t>(j)];
      }
    });
    Vector<T, width> rounded;
    for (std::size_t j = 0; j < width; ++j) rounded.lane[j] = convert<T>(total.lane[j]);
    T* const result = dx + inputs.at(element.image, element.channel, element.pixel);
    if (inputs.nhwc)
      *reinterpret_cast<Vector<T, width>*>(result) = rounded;
    else
      for (std::size_t j = 0; j < width; ++j)
        result[static_cast<int64_t>(j) * inputs.pixels.divisor()] = rounded.lane[j];
  }
};

/// What the tiles of dw have, beside those of x: elements of dy, and sums of taps.
constexpr int64_t most_sums = 4096;

/// partials[part][K][tap] = sums of dy x over some tiles of a channel, of `width` neighbouring channels. A
/// warp adds up a tap.
template <class T, std::size_t width>
struct DepthwiseWeightTiles : DepthwiseBase<T, width> {
  static constexpr bool keeps_registers = true;
  using Base = DepthwiseBase<T, width>;
  using Base::channel_step, Base::multiplier, Base::taps, Base::to;
  using typename Base::Element;
  int64_t parts, tiles_of_channel, tiles_of_part, size;
  uint32_t pitch;  ///< of elements of dy, from a channel to the next
  const T* dy;
  Sum<T>* partials;

  DepthwiseWeightTiles(const TilePlan& plan, const ConvProblem& p, int64_t parts_, const T* x_, const T* dy_,
                       Sum<T>* partials_)
      : Base(plan, p, x_, false),
        parts(parts_),
        tiles_of_channel(plan.tiles() / ceil_div(plan.size[channel], plan.tile[channel])),
        tiles_of_part(ceil_div(tiles_of_channel, parts)),
        size(p.out_channels * p.taps()),
        pitch(static_cast<uint32_t>(plan.apart(plan.pixels()))),
        dy(dy_),
        partials(partials_) {}

  __device__ void operator()(int64_t number, const Block& block) const {
    static_assert(keeps_registers);
    const typename Base::Tile shared;
    const OffsetTable table;
    const typename Base::Results gradients;
    const typename Base::TapOffsets tap_offsets;
    const SharedArray<Element, most_sums / sizeof(Element)> sums;
    const auto thread = static_cast<uint32_t>(block.thread());
    const int64_t part = number % parts, first = number / parts * tiles_of_channel;
    const int64_t begin = first + part * tiles_of_part;
    const int64_t end = std::min(begin + tiles_of_part, first + tiles_of_channel);
    this->find_taps(thread, tap_offsets);
    constexpr uint32_t lanes = 32, warps = block_threads / lanes;
    constexpr Teams teams{5, true};
    const uint32_t lane = thread % lanes, warp = thread / lanes;
    for (uint32_t m = 0; m < multiplier; ++m)
      for (int64_t number_of_tile = begin; number_of_tile < end; ++number_of_tile) {
        const auto at = this->place(number_of_tile);
        this->load_x(at, thread, shared, table);
        this->find_pixels(at, thread, table);
        __syncthreads();
        const uint32_t channels = at.count[channel], pixels = Base::pixels_of(at);
        const auto stage = [&](uint32_t c, uint32_t p) {
          const T* const gradient =
              dy + this->result_place(at, c, m) + table.read(static_cast<int>(p)).lane[1];
          gradients.write(
              static_cast<int>(c * pitch + p),
              this->sums_of(gradient, multiplier == 1 && to.channel == 1, multiplier * to.channel));
        };
        // Neighbouring threads read neighbours.
        if (!this->loads_channels) {
          for (uint32_t c = 0; c < channels; ++c)
            for (uint32_t p = thread; p < pixels; p += block_threads) stage(c, p);
        } else {
          for (uint32_t i = thread; i < pixels * this->tile[channel].divisor(); i += block_threads) {
            uint32_t c = i;
            const uint32_t p = this->tile[channel].divide(c);
            if (c < channels) stage(c, p);
          }
        }
        __syncthreads();
        for (uint32_t first_sum = 0; first_sum < channels * taps; first_sum += warps) {
          const uint32_t sum = first_sum + warp;
          const uint32_t tap = sum % taps, c = sum / taps;
          Element total{};
          if (c < channels) {
            const uint32_t offset = tap_offsets.read(static_cast<int>(tap)) + c * channel_step;
            for (uint32_t p = lane; p < pixels; p += lanes) {
              const Element value =
                  shared.read(static_cast<int>(table.read(static_cast<int>(p)).lane[0] + offset));
              const Element gradient = gradients.read(static_cast<int>(c * pitch + p));
              for (std::size_t j = 0; j < width; ++j) total.lane[j] += value.lane[j] * gradient.lane[j];
            }
          }
          block.combine(total, teams, [](Element& a, const Element& b) {
            for (std::size_t j = 0; j < width; ++j) a.lane[j] += b.lane[j];
          });
          if (lane != 0 || c >= channels) continue;
          if (number_of_tile > begin) {
            const Element before = sums.read(static_cast<int>(sum));
            for (std::size_t j = 0; j < width; ++j) total.lane[j] += before.lane[j];
          }
          if (number_of_tile + 1 < end)
            sums.write(static_cast<int>(sum), total);
          else
            for (std::size_t j = 0; j < width; ++j)
              partials[part * size + this->result_channel(at.first[channel] + c, j, m) * taps + tap] =
                  total.lane[j];
        }
        __syncthreads();  // the next tile
      }
  }
};

/// Parts of the images whose sums for dw are added up in order; none is empty.
int64_t sum_parts(const TilePlan& plan) {
  constexpr int64_t wanted = 1056;  // eight blocks for each multiprocessor of the largest GPUs
  const int64_t channels = ceil_div(plan.size[channel], plan.tile[channel]);
  const int64_t tiles = plan.tiles() / channels;
  return ceil_div(tiles, ceil_div(tiles, std::clamp<int64_t>(wanted / channels, 1, tiles)));
}

/// The tiles for dw.
std::optional<TilePlan> sum_plan(const ConvProblem& p, int64_t width) {
  const int64_t bytes = width * sum_bytes(p);
  return tile_plan(p, width, true, most_sums / bytes, result_bytes / bytes);
}
/// Channels of an element where addresses allow several.
int64_t sum_width(const ConvProblem& p) {
  const auto most = static_cast<int64_t>(wide);
  return p.in_channels % most == 0 && sum_plan(p, most) ? most : 1;
}

/// w [K, taps] as sums [taps, K]: neighbouring channels take neighbouring weights.
template <class T>
Tensor weights_by_tap(const ConvProblem& p, const Tensor& w) {
  const Tensor by_tap = scratch_on<Sum<T>>(p.device, p.out_channels * p.taps());
  copy_into(by_tap.as_strided({p.taps(), p.out_channels}, {p.out_channels, 1}, 0),
            w.as_strided({p.taps(), p.out_channels}, {1, p.taps()}, w.offset()));
  return by_tap;
}

/// Whether dx is the forward pass of dy with the taps in reversed order.
bool is_transposed(const ConvProblem& p) { return p.stride == Spatial{1, 1, 1} && p.group_out() == 1; }

/// Channels of which a thread may take several: each has an output channel of its own.
int64_t vector_channels(const ConvProblem& p) { return p.group_out() == 1 ? p.in_channels : 1; }

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
    if (pass == ConvPass::forward) return by_tiles(p) ? 0 : unfold_conv_cuda()->workspace_bytes(p, pass);
    if (pass == ConvPass::backward_input && is_transposed(p) && by_tiles(transposed_problem(p))) return 0;
    if (pass == ConvPass::backward_input) return p.out_channels * p.taps() * sum_bytes(p);
    const auto plan = sum_plan(p, sum_width(p));
    return plan ? sum_parts(*plan) * p.out_channels * p.taps() * sum_bytes(p)
                : unfold_conv_cuda()->workspace_bytes(p, pass);
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    if (!by_tiles(p)) return unfold_conv_cuda()->forward(p, x, w, bias, y);
    by_stored_type(p, [&]<class T>(Type<T>) {
      multiply_by_tiles<T>(p, x.data<T>(), w.data<T>(), bias.defined() ? bias.data<T>() : nullptr,
                           y.data<T>(), false);
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      if (is_transposed(p) && by_tiles(transposed_problem(p)))
        return multiply_by_tiles<T>(transposed_problem(p), dy.data<T>(), w.data<T>(), nullptr, dx.data<T>(),
                                    true);
      const Tensor weights = weights_by_tap<T>(p, w);
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
    if (!sum_plan(p, 1)) return unfold_conv_cuda()->backward_weight(p, dy, x, dw);
    by_stored_type(p, [&]<class T>(Type<T>) {
      const auto sum = [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
        const auto plan = sum_plan(p, width);
        if (!plan) return false;
        const int64_t parts = sum_parts(*plan);
        const Tensor partials = scratch_on<Sum<T>>(p.device, parts * dw.numel());
        launch_blocks(op, p.device, ceil_div(plan->size[channel], plan->tile[channel]) * parts,
                      DepthwiseWeightTiles<T, width>(*plan, p, parts, x.data<T>(), dy.data<T>(),
                                                     partials.data<Sum<T>>()));
        launch_indices(op, p.device, dw.numel(),
                       SumParts<Sum<T>, T>{parts, dw.numel(), partials.data<Sum<T>>(), dw.data<T>()});
        return true;
      };
      bool done = false;
      by_width<wide, T>(p.in_channels, {x.data<T>(), dy.data<T>()}, [&](auto width) { done = sum(width); });
      if (!done) sum(std::integral_constant<std::size_t, 1>{});
    });
  }
};

}  // namespace

const ConvImplementation* direct_conv_cuda() {
  static const auto* const implementation = new DirectConvCuda;
  return implementation;
}

}  // namespace pleat::ops
