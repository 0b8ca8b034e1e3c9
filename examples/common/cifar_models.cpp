#include "cifar_models.h"

using namespace pleat;

namespace {

nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride = 1) {
  return nn::Conv2d{{.in_channels = in,
                     .out_channels = out,
                     .kernel_size = 3,
                     .stride = stride,
                     .padding = 1,
                     .bias = false}};
}

/// Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the size changes.
nn::Residual basic_block(int64_t in, int64_t out, int64_t stride) {
  nn::Sequential body{conv3x3(in, out, stride), nn::BatchNorm2d{{.num_features = out}}, nn::ReLU{},
                      conv3x3(out, out), nn::BatchNorm2d{{.num_features = out}}};
  if (stride == 1 && in == out) return nn::Residual{{.body = body, .activation = nn::ReLU{}}};
  nn::Sequential shortcut{
      nn::Conv2d{{.in_channels = in, .out_channels = out, .kernel_size = 1, .stride = stride, .bias = false}},
      nn::BatchNorm2d{{.num_features = out}}};
  return nn::Residual{{.body = body, .shortcut = shortcut, .activation = nn::ReLU{}}};
}

/// A stem, then stages of `blocks` basic blocks, each but the first of half the size; then a linear layer on
/// the mean.
nn::Sequential resnet(const std::vector<int64_t>& widths, int blocks, int64_t classes) {
  nn::Sequential net{conv3x3(3, widths[0]), nn::BatchNorm2d{{.num_features = widths[0]}}, nn::ReLU{}};
  int64_t in = widths[0];
  for (const int64_t width : widths)
    for (int block = 0; block < blocks; ++block) {
      net.add(basic_block(in, width, block == 0 && width != widths[0] ? 2 : 1));
      in = width;
    }
  net.add(nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = in, .out_features = classes}});
  return net;
}

}  // namespace

nn::Sequential small_cnn(int64_t classes) {
  nn::Sequential net;
  int64_t in = 3;
  for (const int64_t out : {32, 64, 128}) {
    net.add(conv3x3(in, out));
    net.add(nn::BatchNorm2d{{.num_features = out}});
    net.add(nn::ReLU{});
    net.add(nn::MaxPool2d{{.kernel_size = 2}});
    in = out;
  }
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = 128 * 4 * 4, .out_features = classes}});
  return net;
}

nn::Sequential resnet20(int64_t classes) { return resnet({16, 32, 64}, 3, classes); }
nn::Sequential resnet18(int64_t classes) { return resnet({64, 128, 256, 512}, 2, classes); }

nn::Sequential vgg11(int64_t classes) {
  nn::Sequential net;
  int64_t in = 3;
  for (const int64_t out : {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}) {
    if (out == 0) {
      net.add(nn::MaxPool2d{{.kernel_size = 2}});
      continue;
    }
    net.add(conv3x3(in, out));
    net.add(nn::BatchNorm2d{{.num_features = out}});
    net.add(nn::ReLU{});
    in = out;
  }
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = 512, .out_features = classes}});
  return net;
}

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"small", "resnet20", "resnet18", "vgg11"};
  return names;
}

nn::Sequential make_model(const std::string& name, int64_t classes) {
  if (name == "small") return small_cnn(classes);
  if (name == "resnet20") return resnet20(classes);
  if (name == "resnet18") return resnet18(classes);
  if (name == "vgg11") return vgg11(classes);
  throw ValueError("model \"" + name + "\": there are small, resnet20, resnet18 and vgg11");
}
