// How much accuracy bfloat16 and int8 cost: trains resnet20, a MobileNetV2 or a small vision transformer on
// CIFAR-10's binary version, in float32 or under Autocast in bfloat16, and tests it as it is and through an
// Inference in each (docs/inference.md, docs/measurements.md).
//
//   inference_accuracy FOLDER NETWORK EPOCHS [SEED [bfloat16]]
#include <cstdlib>
#include <iostream>
#include <string>

#include <pleat/pleat.h>

#include "pleat/bench/inference_networks.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/program.h"

using namespace pleat;

namespace {

void run(const std::string& folder, const std::string& name, int64_t epochs, uint64_t seed, bool autocast) {
  manual_seed(seed);
  const auto train = data::read_cifar10(folder, true), test = data::read_cifar10(folder, false);
  nn::Sequential net =
      name == "vit" ? bench::vision_transformer(
                          {.width = 96, .layers = 6, .feedforward = 192, .patch = 4, .num_classes = 10})
                    : models::make_classifier(name, {.num_classes = 10});
  const data::Transform normalize = data::normalize(data::cifar10_mean, data::cifar10_std);
  data::DataLoader loader(train,
                          {.batch_size = 100,
                           .shuffle = true,
                           .transforms = {data::random_crop(), data::random_horizontal_flip(), normalize}});
  optim::AdamW optimizer(net.parameters(), {.weight_decay = 0.05});
  optim::Schedule schedule(optimizer, optim::OneCycleLR{.max_lr = name == "vit" ? 1e-3 : 5e-3,
                                                        .total_steps = epochs * loader.size()});
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    for (const data::Batch& batch : loader) {
      optimizer.zero_grad();
      Tensor loss;
      {
        const Autocast half(bfloat16, {.enabled = autocast});
        loss = cross_entropy(net(batch.inputs), batch.targets);
      }
      loss.backward();
      optimizer.step();
      schedule.step();
    }

  net.eval();
  const NoGrad off_the_tape;
  std::vector<std::vector<Tensor>> calibration;
  for (const data::Batch& batch : data::DataLoader(train, {.batch_size = 100, .transforms = {normalize}})) {
    calibration.push_back({batch.inputs});
    if (calibration.size() == 5) break;
  }
  data::DataLoader tests(test, {.batch_size = 100, .transforms = {normalize}});
  const auto classify = [&](DType dtype, auto&& net_or_engine) {
    std::vector<Tensor> parts;
    for (const data::Batch& batch : tests) parts.push_back(argmax(net_or_engine(batch.inputs.to(dtype)), 1));
    return cat(parts, 0);
  };
  std::vector<Tensor> parts;
  for (const data::Batch& batch : tests) parts.push_back(batch.targets);
  const Tensor targets = cat(parts, 0);
  const Tensor own = classify(float32, net);
  const Tensor int8 =
      classify(float32, Inference(net, calibration[0][0], {.measure = false, .calibration = calibration}));
  net.to(bfloat16);
  const Tensor half = classify(bfloat16, Inference(net, calibration[0][0].to(bfloat16), {.measure = false}));
  const auto percent = [&](const Tensor& equal) {
    return 100.0 * sum(equal).item<double>() / static_cast<double>(equal.numel());
  };
  std::cout << fmt::format("{}, {} epochs{}, seed {}, {} images: {:.2f} % in float32", name, epochs,
                           autocast ? " in bfloat16" : "", seed, targets.numel(), percent(own == targets));
  for (const auto& [type, found] : {std::pair{"bfloat16", half}, {"int8", int8}})
    std::cout << fmt::format(", {:.2f} % in {} ({:.2f} % the same)", percent(found == targets), type,
                             percent(found == own));
  std::cout << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc > 6 || (argc == 6 && std::string(argv[5]) != "bfloat16")) {
    std::cerr << "usage: inference_accuracy FOLDER resnet20|mobilenet_v2|vit EPOCHS [SEED [bfloat16]]\n";
    return exit_wrong_use;
  }
  try {
    run(argv[1], argv[2], std::strtoll(argv[3], nullptr, 10),
        argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1, argc == 6);
  } catch (const Error& error) {
    std::cerr << "inference_accuracy: " << error.what() << '\n';
    return exit_failed;
  }
}
