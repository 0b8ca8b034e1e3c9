// Networks of models/ with noise for data: what `pleat-bench step` and compare_torch.py train.
#include "pleat/bench/network_step.h"

#include <memory>
#include <optional>

#include "pleat/bench/measure.h"
#include "pleat/models/char_transformer.h"
#include "pleat/models/dcgan.h"
#include "pleat/models/lenet.h"
#include "pleat/models/make_classifier.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/unet.h"
#include "pleat/models/voxel_net.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

/// Small steps: on noise, nothing may run away while it is timed for long.
constexpr double lr = 1e-4;

const optim::SGDOptions sgd{.lr = lr, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true};

/// What all networks share: their kind of images, and the scope of mixed precision.
struct Setting {
  int64_t batch;
  std::string format;
  DType dtype;

  Tensor noise(Shape shape) const {
    shape.insert(shape.begin(), batch);
    return operand(
        shape,
        {.dtype = dtype == float64 ? "float64" : "float32", .format = format, .device = default_device()});
  }
  /// In mixed precision for half types.
  template <class Forward>
  Tensor autocast(const Forward& forward) const {
    std::optional<Autocast> scope;
    if (is_half(dtype)) scope.emplace(dtype);
    return forward();
  }
};

/// Forward, loss, backward of one batch, and the optimiser.
template <class Optimizer = optim::SGD, class Net, class Options = optim::SGDOptions>
NetworkStep trained(const Setting& setting, Net net, const Tensor& x,
                    const std::function<Tensor(const Tensor&)>& loss, const Options& options = sgd) {
  const auto shared = std::make_shared<Net>(std::move(net));
  if (setting.dtype == float64) shared->to(float64);
  const auto optimizer = std::make_shared<Optimizer>(shared->parameters(), options);
  return {[=] {
            setting.autocast([&] { return loss((*shared)(x)); }).backward();
            optimizer->step();
            optimizer->zero_grad();
          },
          shared->num_parameters()};
}

std::function<Tensor(const Tensor&)> classification(const Shape& labels, int64_t classes) {
  return [target = randint(0, classes, labels)](const Tensor& y) { return cross_entropy(y, target); };
}

NetworkStep chars(const Setting& setting) {
  const auto loss = [next = randint(0, 65, {setting.batch * 64})](const Tensor& y) {
    return cross_entropy(flatten(y, 0, 1), next);
  };
  return trained<optim::AdamW>(setting, models::CharTransformer{}, randint(0, 65, {setting.batch, 64}), loss,
                               optim::AdamWOptions{.lr = lr});
}

/// A step of the discriminator on real and made images, and one of the generator.
NetworkStep dcgan(const Setting& setting) {
  struct Player {
    nn::Sequential net;
    optim::Adam adam;
  };
  const auto player = [](const nn::Sequential& net) {
    const optim::AdamOptions options{.lr = lr, .betas = {0.5, 0.999}};
    return std::make_shared<Player>(Player{net, optim::Adam{net.parameters(), options}});
  };
  const auto maker = player(models::dcgan_generator(64)), judge = player(models::dcgan_discriminator(64));
  const Tensor noise = setting.noise({100, 1, 1}), real = setting.noise({3, 64, 64});
  const auto loss = [](const Tensor& judged, bool wanted) {
    return bce_with_logits(judged, wanted ? ones_like(judged) : zeros_like(judged));
  };
  const auto run = [=] {
    const Tensor made = setting.autocast([&] { return maker->net(noise); });
    judge->adam.zero_grad();
    setting.autocast([&] { return loss(judge->net(real), true) + loss(judge->net(made.detach()), false); })
        .backward();
    judge->adam.step();
    maker->adam.zero_grad();
    setting.autocast([&] { return loss(judge->net(made), true); }).backward();
    maker->adam.step();
  };
  return {run, maker->net.num_parameters() + judge->net.num_parameters()};
}

}  // namespace

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> names{"small",        "resnet20", "resnet18", "vgg11",  "lenet",
                                              "mobilenet_v2", "unet",     "dcgan",    "voxels", "chars"};
  return names;
}

NetworkStep make_network_step(const std::string& name, int64_t batch, const std::string& format,
                              DType dtype) {
  manual_seed(1);
  const Setting setting{batch, format, dtype};
  const auto train = [&](nn::Sequential net, const Shape& image, const Shape& labels, int64_t classes) {
    return trained(setting, std::move(net), setting.noise(image), classification(labels, classes));
  };
  if (name == "lenet")
    return train(models::lenet({.num_classes = 10, .in_channels = 1, .image_size = 28}), {1, 28, 28}, {batch},
                 10);
  if (name == "mobilenet_v2")
    return train(models::mobilenet_v2({.num_classes = 10}), {3, 32, 32}, {batch}, 10);
  if (name == "unet") return train(models::unet({.num_classes = 2}), {3, 64, 64}, {batch, 64, 64}, 2);
  if (name == "voxels") return train(models::voxel_net({.num_classes = 2}), {1, 32, 32, 32}, {batch}, 2);
  if (name == "dcgan") return dcgan(setting);
  if (name == "chars") return chars(setting);
  return train(models::make_classifier(name, {.num_classes = 10}), {3, 32, 32}, {batch}, 10);
}

}  // namespace pleat::bench
