#include "pleat/bench/inference_networks.h"

#include <functional>
#include <map>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/models/char_transformer.h"
#include "pleat/models/conv_norm.h"
#include "pleat/models/convnext.h"
#include "pleat/models/dcgan.h"
#include "pleat/models/efficientnet.h"
#include "pleat/models/make_classifier.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/unet.h"
#include "pleat/models/voxel_net.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

using Net = std::shared_ptr<nn::Module>;

template <class M>
Net shared(M net) {
  return std::make_shared<M>(std::move(net));
}

/// A convolution without bias, a batch norm, and perhaps an activation.
template <class... Activation>
void add(nn::Sequential& net, const models::ConvNorm& c, const Activation&... activation) {
  models::add_conv_norm(net, c);
  (net.add(activation), ...);
}

void add_head(nn::Sequential& net, int64_t features) {
  net.add(nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = features, .out_features = 1000}});
}

/// He et al., arXiv:1512.03385; with `groups` ResNeXt, Xie et al., arXiv:1611.05431.
nn::Sequential bottlenecks(int64_t groups) {
  nn::Sequential net;
  add(net, {3, 64, 7, 2}, nn::ReLU{});
  net.add(nn::MaxPool2d{{.kernel_size = 3, .stride = 2, .padding = 1}});
  int64_t in = 64, width = groups > 1 ? 128 : 64, out = 256;
  for (const int64_t blocks : {3, 4, 6, 3}) {
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t stride = i == 0 && out > 256 ? 2 : 1;
      nn::Sequential body, shortcut;
      add(body, {in, width, 1}, nn::ReLU{});
      add(body, {width, width, 3, stride, groups}, nn::ReLU{});
      add(body, {width, out, 1});
      if (i == 0) add(shortcut, {in, out, 1, stride});
      net.add(i == 0 ? nn::Residual{{.body = body, .shortcut = shortcut, .activation = nn::ReLU{}}}
                     : nn::Residual{{.body = body, .activation = nn::ReLU{}}});
      in = out;
    }
    width *= 2;
    out *= 2;
  }
  add_head(net, in);
  return net;
}

/// Ma et al., arXiv:1807.11164.
struct ShuffleBlock : nn::Module {
  ShuffleBlock(int64_t in, int64_t out, int64_t stride) : splits(stride == 1) {
    const int64_t half = out / 2, from = splits ? half : in;
    add(right, {from, half, 1}, nn::ReLU{});
    add(right, {half, half, 3, stride, half});
    add(right, {half, half, 1}, nn::ReLU{});
    if (splits) return;
    add(left, {in, in, 3, stride, in});
    add(left, {in, half, 1}, nn::ReLU{});
  }
  void members(nn::Members& m) override {
    m("right", right);
    m("left", left);
  }
  Tensor forward(const Tensor& x) override {
    if (!splits) return channel_shuffle(cat({left(x), right(x)}, 1), 2);
    const std::vector<Tensor> halves = chunk(x, 2, 1);
    return channel_shuffle(cat({halves[0], right(halves[1])}, 1), 2);
  }

  bool splits;
  nn::Sequential right, left;
};
nn::Sequential shufflenet_v2() {
  nn::Sequential net;
  add(net, {3, 24, 3, 2}, nn::ReLU{});
  net.add(nn::MaxPool2d{{.kernel_size = 3, .stride = 2, .padding = 1}});
  int64_t in = 24, out = 116;
  for (const int64_t blocks : {4, 8, 4}) {
    for (int64_t i = 0; i < blocks; ++i, in = out) net.add(ShuffleBlock(in, out, i == 0 ? 2 : 1));
    out *= 2;
  }
  add(net, {in, 1024, 1}, nn::ReLU{});
  add_head(net, 1024);
  return net;
}

/// Norm, activation, convolution, twice, and what came before beside it (Huang et al., arXiv:1608.06993).
struct DenseLayer : nn::Module {
  explicit DenseLayer(int64_t in) {
    body.add(nn::BatchNorm2d{{.num_features = in}});
    body.add(nn::ReLU{});
    add(body, {in, 96, 1}, nn::ReLU{});
    body.add(
        nn::Conv2d{{.in_channels = 96, .out_channels = 24, .kernel_size = 3, .padding = 1, .bias = false}});
  }
  void members(nn::Members& m) override { m("body", body); }
  Tensor forward(const Tensor& x) override { return cat({x, body(x)}, 1); }

  nn::Sequential body;
};
nn::Sequential densenet() {
  nn::Sequential net;
  add(net, {3, 48, 3}, nn::ReLU{});
  int64_t channels = 48;
  for (const int64_t layers : {6, 8, 8}) {
    for (int64_t i = 0; i < layers; ++i, channels += 24) net.add(DenseLayer(channels));
    add(net, {channels, channels / 2, 1}, nn::ReLU{});
    net.add(nn::AvgPool2d{{.kernel_size = 2}});
    channels /= 2;
  }
  add_head(net, channels);
  return net;
}

/// Square patches of an image as tokens [N, L, width], with places.
struct Patches : nn::Module {
  Patches(int64_t width, int64_t tokens, int64_t size = 8)
      : patch{{.in_channels = 3, .out_channels = width, .kernel_size = size, .stride = size}},
        places(randn({1, tokens, width}) * 0.02) {
    places.set_requires_grad();
  }
  void members(nn::Members& m) override {
    m("patch", patch);
    m("places", places);
  }
  Tensor forward(const Tensor& x) override { return transpose(flatten(patch(x), 2), 1, 2) + places; }

  nn::Conv2d patch;
  Tensor places;
};
struct MeanOfTokens : nn::Module {
  Tensor forward(const Tensor& x) override { return mean(x, 1); }
};

/// Tolstikhin et al., arXiv:2105.01601.
struct Mixer : nn::Module {
  Mixer(int64_t width, int64_t length)
      : norm_tokens{{.normalized_shape = width}},
        norm_channels{{.normalized_shape = width}},
        tokens{part(length, 2 * length)},
        channels{part(width, 4 * width)} {}
  static nn::Sequential part(int64_t width, int64_t inside) {
    return nn::Sequential{nn::Linear{{.in_features = width, .out_features = inside}}, nn::GELU{},
                          nn::Linear{{.in_features = inside, .out_features = width}}};
  }
  void members(nn::Members& m) override {
    m("norm_tokens", norm_tokens);
    m("norm_channels", norm_channels);
    m("tokens", tokens);
    m("channels", channels);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = x + transpose(tokens(transpose(norm_tokens(x), 1, 2)), 1, 2);
    return y + channels(norm_channels(y));
  }

  nn::LayerNorm norm_tokens, norm_channels;
  nn::Sequential tokens, channels;
};
nn::Sequential mlp_mixer() {
  nn::Sequential net{Patches(192, 64)};
  for (int layer = 0; layer < 8; ++layer) net.add(Mixer(192, 64));
  net.add(nn::LayerNorm{{.normalized_shape = 192}});
  net.add(MeanOfTokens{});
  net.add(nn::Linear{{.in_features = 192, .out_features = 1000}});
  return net;
}

/// The last output of a recurrent network of [N, L, 64].
template <class Layer>
struct LastOutput : nn::Module {
  void members(nn::Members& m) override {
    m("layer", layer);
    m("head", head);
  }
  Tensor forward(const Tensor& x) override { return head(select(layer(x), 1, -1)); }

  Layer layer{{.input_size = 64, .hidden_size = 256, .num_layers = 2, .batch_first = true}};
  nn::Linear head{{.in_features = 256, .out_features = 10}};
};

/// Dilated convolutions of a signal, with gates (van den Oord et al., arXiv:1609.03499).
struct Gated : nn::Module {
  explicit Gated(int64_t dilation)
      : gates{{.in_channels = 32,
               .out_channels = 64,
               .kernel_size = 2,
               .padding = Padding::Sides{dilation, 0},
               .dilation = dilation}} {}
  void members(nn::Members& m) override {
    m("gates", gates);
    m("out", out);
  }
  Tensor forward(const Tensor& x) override {
    const std::vector<Tensor> parts = chunk(gates(x), 2, 1);
    return x + out(tanh(parts[0]) * sigmoid(parts[1]));
  }

  nn::Conv1d gates, out{{.in_channels = 32, .out_channels = 32, .kernel_size = 1}};
};
nn::Sequential wavenet() {
  nn::Sequential net{nn::Conv1d{{.in_channels = 1, .out_channels = 32, .kernel_size = 1}}};
  for (int64_t dilation = 1; dilation <= 128; dilation *= 2) net.add(Gated(dilation));
  net.add(nn::ReLU{});
  net.add(nn::Conv1d{{.in_channels = 32, .out_channels = 64, .kernel_size = 1}});
  return net;
}

/// What steers a machine: three layers of 64.
nn::Sequential mlp() {
  return nn::Sequential{nn::Linear{{.in_features = 12, .out_features = 64}}, nn::Tanh{},
                        nn::Linear{{.in_features = 64, .out_features = 64}}, nn::Tanh{},
                        nn::Linear{{.in_features = 64, .out_features = 64}}, nn::Tanh{},
                        nn::Linear{{.in_features = 64, .out_features = 4}}};
}

struct Row {
  std::function<Net()> make;
  Shape sample;  ///< of the input, without the batch
};

const std::map<std::string, Row>& rows() {
  const auto classifier = [](const char* name) {
    return [name] { return shared(models::make_classifier(name, {.num_classes = 10})); };
  };
  static const auto& all = *new std::map<std::string, Row>{
      {"char_transformer", {[] { return shared(models::CharTransformer{}); }, {64}}},
      {"convnext_atto", {[] { return shared(models::convnext_atto({.num_classes = 1000})); }, {3, 64, 64}}},
      {"dcgan", {[] { return shared(models::dcgan_generator()); }, {100, 1, 1}}},
      {"densenet", {[] { return shared(densenet()); }, {3, 32, 32}}},
      {"efficientnet_b0", {[] { return shared(models::imagenet::efficientnet_b0()); }, {3, 64, 64}}},
      {"gru", {[] { return shared(LastOutput<nn::GRU>{}); }, {32, 64}}},
      {"lstm", {[] { return shared(LastOutput<nn::LSTM>{}); }, {32, 64}}},
      {"mlp", {[] { return shared(mlp()); }, {12}}},
      {"mlp_mixer", {[] { return shared(mlp_mixer()); }, {3, 64, 64}}},
      {"mobilenet_v2", {[] { return shared(models::mobilenet_v2({.num_classes = 1000})); }, {3, 32, 32}}},
      {"resnet18", {classifier("resnet18"), {3, 32, 32}}},
      {"resnet20", {classifier("resnet20"), {3, 32, 32}}},
      {"resnet50", {[] { return shared(bottlenecks(1)); }, {3, 64, 64}}},
      {"resnext50", {[] { return shared(bottlenecks(32)); }, {3, 64, 64}}},
      {"shufflenet_v2", {[] { return shared(shufflenet_v2()); }, {3, 64, 64}}},
      {"unet", {[] { return shared(models::unet({.num_classes = 2})); }, {3, 64, 64}}},
      {"vgg11", {classifier("vgg11"), {3, 32, 32}}},
      {"vit_tiny",
       {[] { return shared(vision_transformer({.width = 192, .layers = 12, .feedforward = 768})); },
        {3, 64, 64}}},
      {"voxels", {[] { return shared(models::voxel_net({.num_classes = 2})); }, {1, 32, 32, 32}}},
      {"wavenet", {[] { return shared(wavenet()); }, {1, 256}}},
  };
  return all;
}

}  // namespace

nn::Sequential vision_transformer(const VisionTransformerOptions& o) {
  nn::Sequential net{Patches(o.width, 64, o.patch)};
  for (int64_t layer = 0; layer < o.layers; ++layer)
    net.add(nn::TransformerEncoderLayer{{.d_model = o.width,
                                         .nhead = 3,
                                         .dim_feedforward = o.feedforward,
                                         .dropout = 0,
                                         .activation = nn::TransformerActivation::gelu,
                                         .batch_first = true,
                                         .norm_first = true}});
  net.add(nn::LayerNorm{{.normalized_shape = o.width}});
  net.add(MeanOfTokens{});
  net.add(nn::Linear{{.in_features = o.width, .out_features = o.num_classes}});
  return net;
}

const std::vector<std::string>& inference_network_names() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> list;
    for (const auto& [name, row] : rows()) list.push_back(name);
    return list;
  }());
  return names;
}

InferenceNetwork make_inference_network(const std::string& name, int64_t batch) {
  const auto found = rows().find(name);
  check<ValueError>(found != rows().end(), "there is no network \"{}\" for inference", name);
  manual_seed(1);
  InferenceNetwork made{found->second.make(), {}};
  for (const auto& [buffer_name, buffer] : made.net->named_buffers()) {
    if (buffer_name.ends_with("running_var")) copy_(buffer, rand(buffer.shape()) * 0.5 + 0.5);
    if (buffer_name.ends_with("running_mean")) copy_(buffer, randn(buffer.shape()) * 0.1);
  }
  made.net->eval();
  Shape shape = found->second.sample;
  shape.insert(shape.begin(), batch);
  made.input = name == "char_transformer" ? randint(0, 65, shape) : randn(shape);
  return made;
}

}  // namespace pleat::bench
