#include "pleat/ops/sample/deform_conv.h"

#include <array>
#include <utility>
#include <vector>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/sample/sample_points.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

constexpr const char* op = "deform_conv2d";

struct Sizes2d {
  std::array<int64_t, 2> kernel, stride, padding, dilation, output;
  int64_t groups, offset_groups;

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t places() const { return output[0] * output[1]; }
};

Sizes2d checked_sizes(const Tensor& x, const Tensor& offset, const Tensor& weight, const Tensor& bias,
                      const DeformConvOptions& o) {
  ops::check_types<ops::Floating>(op, x.dtype());
  const std::vector<std::pair<const char*, Tensor>> others = {
      {"the offset", offset}, {"the weight", weight}, {"the bias", bias}, {"the mask", o.mask}};
  for (const auto& [name, t] : others)
    if (t.defined()) ops::check_one_type(op, "the image", x, name, t);
  check<ShapeError>(x.rank() == 4 && offset.rank() == 4 && weight.rank() == 4,
                    "{}: needs x [N, C, H, W], offset [N, 2 G R S, P, Q] and weight [K, C / groups, R, S], "
                    "got {}, {} and {}",
                    op, x, offset, weight);
  const int64_t channels = x.size(1), depth = weight.size(1);
  check<ShapeError>(
      channels >= 1 && depth >= 1 && channels % depth == 0 && weight.size(0) % (channels / depth) == 0,
      "{}: the weight [K, C / groups, R, S] does not fit x [N, C, H, W], got {} and {}", op, weight, x);
  Sizes2d s{};
  s.groups = channels / depth;
  const std::vector<int64_t> stride = o.stride.expand(2, op, "stride"),
                             padding = o.padding.expand(2, op, "padding"),
                             dilation = o.dilation.expand(2, op, "dilation");
  for (std::size_t d = 0; d < 2; ++d) {
    s.kernel[d] = weight.size(static_cast<int64_t>(d) + 2);
    s.stride[d] = stride[d];
    s.padding[d] = padding[d];
    s.dilation[d] = dilation[d];
    check<ValueError>(padding[d] >= 0, "{}: padding must be at least 0, got {}", op, padding[d]);
    s.output[d] = ops::conv_output_size(op, x.size(static_cast<int64_t>(d) + 2), s.kernel[d], stride[d],
                                        padding[d], padding[d], dilation[d]);
  }
  const int64_t each = 2 * s.taps();
  s.offset_groups = offset.size(1) / each;
  check<ShapeError>(s.offset_groups >= 1 && offset.size(1) % each == 0 && channels % s.offset_groups == 0 &&
                        offset.shape() == Shape{x.size(0), offset.size(1), s.output[0], s.output[1]},
                    "{}: the offset must be [{}, G times {}, {}, {}], G dividing {} channels, got {}", op,
                    x.size(0), each, s.output[0], s.output[1], channels, offset);
  check<ShapeError>(!o.mask.defined() || o.mask.shape() == Shape{x.size(0), s.offset_groups * s.taps(),
                                                                 s.output[0], s.output[1]},
                    "{}: the mask must be [{}, {}, {}, {}], got {}", op, x.size(0),
                    s.offset_groups * s.taps(), s.output[0], s.output[1], o.mask);
  check<ShapeError>(!bias.defined() || bias.shape() == Shape{weight.size(0)},
                    "{}: the bias must be [{}], got {}", op, weight.size(0), bias);
  ops::check_plane(op, x);
  return s;
}

/// Where taps read along dimension d without an offset: [taps, places].
Tensor regular_places(const Sizes2d& s, std::size_t d, TensorOptions like) {
  const auto steps = [&](int64_t n, int64_t step, int64_t start) {
    return cast(arange(n, {.dtype = int64, .device = like.device}) * step + start, like.dtype);
  };
  Shape along_taps{1, 1, 1, 1}, along_places{1, 1, 1, 1};
  along_taps[d] = s.kernel[d];
  along_places[d + 2] = s.output[d];
  const Tensor places = reshape(steps(s.kernel[d], s.dilation[d], 0), along_taps) +
                        reshape(steps(s.output[d], s.stride[d], -s.padding[d]), along_places);
  return reshape(expand(places, {s.kernel[0], s.kernel[1], s.output[0], s.output[1]}),
                 {s.taps(), s.places()});
}

}  // namespace

Tensor deform_conv2d(const Tensor& any_x, const Tensor& any_offset, const Tensor& any_weight,
                     const Tensor& any_bias, const DeformConvOptions& any_options) {
  const auto typed = [](const Tensor& t) { return t.defined() ? autocast_to_float32(t) : t; };
  const Tensor x = typed(any_x), offset = typed(any_offset), weight = typed(any_weight),
               bias = typed(any_bias);
  DeformConvOptions options = any_options;
  options.mask = typed(options.mask);
  const Sizes2d s = checked_sizes(x, offset, weight, bias, options);
  const Call call(op, {x, offset, weight, bias, options.mask});
  const DType compute = compute_dtype(x.dtype());
  const int64_t batch = x.size(0), channels = x.size(1), maps = batch * s.offset_groups;
  const TensorOptions like{.dtype = compute, .device = x.device()};

  const Tensor moved = reshape(cast(offset, compute), {maps, s.taps(), 2, s.places()});
  const Tensor at = stack(
      {select(moved, 2, 1) + regular_places(s, 1, like), select(moved, 2, 0) + regular_places(s, 0, like)},
      -1);
  const ops::PlaceRule rule{.sizes = {x.size(2), x.size(3)},
                            .mode = GridMode::linear,
                            .padding = GridPadding::zeros,
                            .in_pixels = true};
  const bool masked = options.mask.defined();  // and rounded once, after that
  const Tensor images =
      reshape(masked ? cast(x, compute) : x, {maps, channels / s.offset_groups, x.size(2), x.size(3)});
  Tensor columns =
      sample_points(op, images, reshape(at, {maps, s.taps() * s.places(), 2}), rule, {s.taps(), s.places()});
  if (masked) columns = columns * reshape(cast(options.mask, compute), {maps, 1, s.taps(), s.places()});

  const int64_t depth = weight.size(1) * s.taps(), filters = weight.size(0);
  columns = reshape(cast(columns, x.dtype()), {batch, s.groups, depth, s.places()});
  const Tensor product = matmul(reshape(weight, {s.groups, filters / s.groups, depth}), columns);
  const Tensor y = reshape(product, {batch, filters, s.output[0], s.output[1]});
  return call.gives(bias.defined() ? y + reshape(bias, {filters, 1, 1}) : y);
}

}  // namespace pleat
