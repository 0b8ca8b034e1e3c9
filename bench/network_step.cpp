#include "pleat/bench/network_step.h"

#include <memory>

#include "pleat/bench/case.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/models/char_transformer.h"
#include "pleat/models/dcgan.h"
#include "pleat/models/lenet.h"
#include "pleat/models/make_classifier.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/unet.h"
#include "pleat/models/voxel_net.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/optim/adam.h"
#include "pleat/nn/optim/sgd.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::bench {
namespace {

/// Small steps: on noise, nothing may run away while it is timed for long.
constexpr double lr = 1e-4;

const optim::SGDOptions sgd{.lr = lr, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true};

/// Forward, loss, backward of one batch, and the optimiser.
template <class Optimizer = optim::SGD, class Net, class Options = optim::SGDOptions>
NetworkStep trained(Net net, const Tensor& x, const std::function<Tensor(const Tensor&)>& loss,
                    const Options& options = sgd) {
  const auto shared = std::make_shared<Net>(std::move(net));
  const auto optimizer = std::make_shared<Optimizer>(shared->parameters(), options);
  return {[=] {
            loss((*shared)(x)).backward();
            optimizer->step();
            optimizer->zero_grad();
          },
          shared->num_parameters()};
}

std::function<Tensor(const Tensor&)> classification(const Shape& labels, int64_t classes) {
  return [target = randint(0, classes, labels)](const Tensor& y) { return cross_entropy(y, target); };
}

NetworkStep chars(int64_t batch) {
  const auto loss = [next = randint(0, 65, {batch * 64})](const Tensor& y) {
    return cross_entropy(flatten(y, 0, 1), next);
  };
  return trained<optim::AdamW>(models::CharTransformer{}, randint(0, 65, {batch, 64}), loss,
                               optim::AdamWOptions{.lr = lr});
}

/// A step of the discriminator on real and made images, and one of the generator.
NetworkStep dcgan(int64_t batch, const OperandKind& kind) {
  struct Player {
    nn::Sequential net;
    optim::Adam adam;
  };
  const auto player = [](const nn::Sequential& net) {
    const optim::AdamOptions options{.lr = lr, .betas = {0.5, 0.999}};
    return std::make_shared<Player>(Player{net, optim::Adam{net.parameters(), options}});
  };
  const auto maker = player(models::dcgan_generator(64)), judge = player(models::dcgan_discriminator(64));
  const Tensor noise = operand({batch, 100, 1, 1}, kind), real = operand({batch, 3, 64, 64}, kind);
  const auto loss = [](const Tensor& judged, bool wanted) {
    return bce_with_logits(judged, wanted ? ones_like(judged) : zeros_like(judged));
  };
  const auto run = [=] {
    const Tensor made = maker->net(noise);
    judge->adam.zero_grad();
    (loss(judge->net(real), true) + loss(judge->net(made.detach()), false)).backward();
    judge->adam.step();
    maker->adam.zero_grad();
    loss(judge->net(made), true).backward();
    maker->adam.step();
  };
  return {run, maker->net.num_parameters() + judge->net.num_parameters()};
}

}  // namespace

NetworkStep make_network_step(const std::string& name, int64_t batch, const std::string& format) {
  manual_seed(1);
  const OperandKind kind{.format = format, .device = default_device()};
  const auto images = [&](int64_t channels, int64_t size) {
    return operand({batch, channels, size, size}, kind);
  };
  if (name == "lenet")
    return trained(models::lenet({.num_classes = 10, .in_channels = 1, .image_size = 28}), images(1, 28),
                   classification({batch}, 10));
  if (name == "mobilenet_v2")
    return trained(models::mobilenet_v2({.num_classes = 10}), images(3, 32), classification({batch}, 10));
  if (name == "unet")
    return trained(models::unet({.num_classes = 2}), images(3, 64), classification({batch, 64, 64}, 2));
  if (name == "dcgan") return dcgan(batch, kind);
  if (name == "voxels")
    return trained(models::voxel_net({.num_classes = 2}), operand({batch, 1, 32, 32, 32}, kind),
                   classification({batch}, 2));
  if (name == "chars") return chars(batch);
  return trained(models::make_classifier(name, {.num_classes = 10}), images(3, 32),
                 classification({batch}, 10));
}

}  // namespace pleat::bench
