#include "pleat/models/unet.h"

#include "pleat/core/base/format.h"
#include "pleat/models/conv_norm.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/shape/join.h"

namespace pleat::models {
namespace {

/// Twice conv 3x3, batch norm and ReLU.
nn::Sequential double_conv(int64_t in, int64_t out) {
  nn::Sequential net;
  for (const int64_t from : {in, out}) {
    add_conv_norm(net, {from, out});
    net.add(nn::ReLU{});
  }
  return net;
}

/// A level of a U-Net: what is `inside` works at half the size, beside which the input is handed on. Sizes
/// that are halved in all levels below are multiples of `multiple`.
struct Level : nn::Module {
  Level(int64_t in, int64_t width, int64_t below, int64_t multiple_, const nn::AnyModule& deeper)
      : multiple(multiple_),
        before(double_conv(in, width)),
        inside{nn::MaxPool2d{{.kernel_size = 2}}, deeper,
               nn::ConvTranspose2d{
                   {.in_channels = below, .out_channels = width, .kernel_size = 2, .stride = 2}}},
        after(double_conv(2 * width, width)) {}

  Tensor forward(const Tensor& x) override {
    check<ShapeError>(
        x.rank() == 4 && x.size(2) % multiple == 0 && x.size(3) % multiple == 0,
        "unet: pictures must be [N, {}, H, W] with H and W multiples of {}, got {}; pad or resize them",
        before.get<nn::Conv2d>(0).weight.size(1), multiple, x);
    const Tensor y = before(x);
    return after(cat({y, inside(y)}, 1));
  }
  void members(nn::Members& m) override {
    m("before", before);
    m("inside", inside);
    m("after", after);
  }

  int64_t multiple;
  nn::Sequential before, inside, after;
};

}  // namespace

nn::Sequential unet(UNetOptions options) {
  const std::vector<int64_t>& widths = options.widths;
  check<ValueError>(widths.size() >= 2, "unet: widths must name at least two levels, got {}", widths.size());
  const std::size_t last = widths.size() - 1;
  nn::AnyModule net = double_conv(widths[last - 1], widths[last]);
  for (std::size_t i = last; i-- > 0;)
    net = Level(i > 0 ? widths[i - 1] : options.in_channels, widths[i], widths[i + 1],
                int64_t{1} << (last - i), net);
  return nn::Sequential{
      net, nn::Conv2d{{.in_channels = widths[0], .out_channels = options.num_classes, .kernel_size = 1}}};
}

}  // namespace pleat::models
