#include "networks.h"

using namespace pleat;

namespace {

struct Conv {
  int64_t in, out, kernel = 3, stride = 1, groups = 1;
};

/// Convolution without bias, batch norm.
void add_conv(nn::Sequential& net, const Conv& c) {
  net.add(nn::Conv2d{{.in_channels = c.in,
                      .out_channels = c.out,
                      .kernel_size = c.kernel,
                      .stride = c.stride,
                      .padding = c.kernel / 2,
                      .groups = c.groups,
                      .bias = false}});
  net.add(nn::BatchNorm2d{{.num_features = c.out}});
}

/// To `expansion` times as many channels, a depthwise convolution there, and back.
nn::AnyModule inverted_residual(int64_t in, int64_t out, int64_t stride, int64_t expansion) {
  nn::Sequential body;
  const int64_t inside = in * expansion;
  if (expansion > 1) {
    add_conv(body, {in, inside, 1});
    body.add(nn::ReLU6{});
  }
  add_conv(body, {inside, inside, 3, stride, inside});
  body.add(nn::ReLU6{});
  add_conv(body, {inside, out, 1});
  if (stride == 1 && in == out) return nn::Residual{{.body = body}};
  return body;
}

nn::Sequential double_conv(int64_t in, int64_t out) {
  nn::Sequential net;
  for (const int64_t from : {in, out}) {
    add_conv(net, {from, out});
    net.add(nn::ReLU{});
  }
  return net;
}

/// A level of a U-Net: what is `inside` works at half the size, beside which the input is handed on.
struct Level : nn::Module {
  Level(int64_t in, int64_t width, int64_t below, const nn::AnyModule& deeper)
      : before(double_conv(in, width)),
        inside{nn::MaxPool2d{{.kernel_size = 2}}, deeper,
               nn::ConvTranspose2d{
                   {.in_channels = below, .out_channels = width, .kernel_size = 2, .stride = 2}}},
        after(double_conv(2 * width, width)) {}

  Tensor forward(const Tensor& x) override {
    const Tensor y = before(x);
    return after(cat({y, inside(y)}, 1));
  }
  void members(nn::Members& m) override {
    m("before", before);
    m("inside", inside);
    m("after", after);
  }

  nn::Sequential before, inside, after;
};

struct Attention : nn::Module {
  Attention(int64_t width, int64_t heads_)
      : heads(heads_),
        in{{.in_features = width, .out_features = 3 * width}},
        out{{.in_features = width, .out_features = width}} {}

  Tensor forward(const Tensor& x) override {
    const std::vector<Tensor> parts = chunk(in(x), 3, -1);
    // [N, heads, length, width of a head]
    const auto by_head = [&](const Tensor& part) {
      return transpose(reshape(part, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
    };
    const Tensor y = scaled_dot_product_attention(by_head(parts[0]), by_head(parts[1]), by_head(parts[2]),
                                                  {.is_causal = true});
    return out(reshape(transpose(y, 1, 2), x.shape()));
  }
  void members(nn::Members& m) override {
    m("in", in);
    m("out", out);
  }

  int64_t heads;
  nn::Linear in, out;
};

}  // namespace

nn::Sequential lenet(int64_t classes) {
  return nn::Sequential{nn::Conv2d{{.in_channels = 1, .out_channels = 6, .kernel_size = 5, .padding = 2}},
                        nn::ReLU{},
                        nn::MaxPool2d{{.kernel_size = 2}},
                        nn::Conv2d{{.in_channels = 6, .out_channels = 16, .kernel_size = 5}},
                        nn::ReLU{},
                        nn::MaxPool2d{{.kernel_size = 2}},
                        nn::Flatten{},
                        nn::Linear{{.in_features = 400, .out_features = 120}},
                        nn::ReLU{},
                        nn::Linear{{.in_features = 120, .out_features = 84}},
                        nn::ReLU{},
                        nn::Linear{{.in_features = 84, .out_features = classes}}};
}

nn::Sequential mobilenet_v2(int64_t classes) {
  struct Stage {
    int64_t expansion, out, blocks, stride;
  };
  nn::Sequential net;
  add_conv(net, {3, 32});
  net.add(nn::ReLU6{});
  int64_t in = 32;
  for (const Stage& stage : std::vector<Stage>{{1, 16, 1, 1},
                                               {6, 24, 2, 1},
                                               {6, 32, 3, 2},
                                               {6, 64, 4, 2},
                                               {6, 96, 3, 1},
                                               {6, 160, 3, 2},
                                               {6, 320, 1, 1}})
    for (int64_t block = 0; block < stage.blocks; ++block) {
      net.add(inverted_residual(in, stage.out, block == 0 ? stage.stride : 1, stage.expansion));
      in = stage.out;
    }
  add_conv(net, {in, 1280, 1});
  net.add(nn::ReLU6{});
  net.add(nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = 1280, .out_features = classes}});
  return net;
}

nn::Sequential unet(const std::vector<int64_t>& widths, int64_t classes) {
  const std::size_t last = widths.size() - 1;
  nn::AnyModule net = double_conv(widths[last - 1], widths[last]);
  for (std::size_t i = last; i-- > 0;) net = Level(i > 0 ? widths[i - 1] : 3, widths[i], widths[i + 1], net);
  return nn::Sequential{net,
                        nn::Conv2d{{.in_channels = widths[0], .out_channels = classes, .kernel_size = 1}}};
}

nn::Sequential dcgan_generator(int64_t width) {
  nn::Sequential net;
  int64_t in = 100;
  for (const int64_t out : {8 * width, 4 * width, 2 * width, width, int64_t{3}}) {
    const bool first = in == 100;
    net.add(nn::ConvTranspose2d{{.in_channels = in,
                                 .out_channels = out,
                                 .kernel_size = 4,
                                 .stride = first ? 1 : 2,
                                 .padding = first ? 0 : 1,
                                 .bias = false}});
    if (out > 3) {
      net.add(nn::BatchNorm2d{{.num_features = out}});
      net.add(nn::ReLU{});
    }
    in = out;
  }
  net.add(nn::Tanh{});
  return net;
}

nn::Sequential dcgan_discriminator(int64_t width) {
  nn::Sequential net;
  int64_t in = 3;
  for (const int64_t out : {width, 2 * width, 4 * width, 8 * width, int64_t{1}}) {
    net.add(nn::Conv2d{{.in_channels = in,
                        .out_channels = out,
                        .kernel_size = 4,
                        .stride = out > 1 ? 2 : 1,
                        .padding = out > 1 ? 1 : 0,
                        .bias = false}});
    if (out > width) net.add(nn::BatchNorm2d{{.num_features = out}});
    if (out > 1) net.add(nn::LeakyReLU{{.negative_slope = 0.2}});
    in = out;
  }
  return net;
}

nn::Sequential voxel_net(int64_t classes) {
  nn::Sequential net;
  int64_t in = 1;
  for (const int64_t out : {16, 32, 64}) {
    net.add(
        nn::Conv3d{{.in_channels = in, .out_channels = out, .kernel_size = 3, .padding = 1, .bias = false}});
    net.add(nn::BatchNorm3d{{.num_features = out}});
    net.add(nn::ReLU{});
    net.add(nn::MaxPool3d{{.kernel_size = 2}});
    in = out;
  }
  net.add(nn::AdaptiveAvgPool3d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = in, .out_features = classes}});
  return net;
}

CharTransformer::CharTransformer(CharTransformerOptions o)
    : characters{{.num_embeddings = o.characters, .embedding_dim = o.width}},
      places{{.num_embeddings = o.length, .embedding_dim = o.width}} {
  const auto norm = [&] { return nn::LayerNorm{{.normalized_shape = o.width}}; };
  for (int64_t i = 0; i < o.layers; ++i) {
    body.add(nn::Residual{{.body = nn::Sequential{norm(), Attention(o.width, o.heads)}}});
    body.add(
        nn::Residual{{.body = nn::Sequential{
                          norm(), nn::Linear{{.in_features = o.width, .out_features = 4 * o.width}},
                          nn::GELU{}, nn::Linear{{.in_features = 4 * o.width, .out_features = o.width}}}}});
  }
  body.add(norm());
  body.add(nn::Linear{{.in_features = o.width, .out_features = o.characters}});
}

Tensor CharTransformer::forward(const Tensor& text) {
  return body(characters(text) + places(arange(text.size(1))));
}

void CharTransformer::members(nn::Members& m) {
  m("characters", characters);
  m("places", places);
  m("body", body);
}
