// How much accuracy int8 costs: trains resnet20, a MobileNetV2 or a small vision transformer on CIFAR-10's
// binary version, and tests it as it is and through an Inference in int8 (docs/inference.md).
//
//   int8_accuracy FOLDER NETWORK EPOCHS
#include <cstdlib>
#include <iostream>

#include <pleat/pleat.h>

#include "pleat/bench/inference_networks.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/program.h"

using namespace pleat;

namespace {

void run(const std::string& folder, const std::string& name, int64_t epochs) {
  manual_seed(1);
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
      cross_entropy(net(batch.inputs), batch.targets).backward();
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
  const Inference engine(net, calibration[0][0], {.measure = false, .calibration = calibration});
  int64_t right = 0, right_in_int8 = 0, same = 0, images = 0;
  for (const data::Batch& batch : tests) {
    const Tensor own = argmax(net(batch.inputs), 1), int8 = argmax(engine(batch.inputs), 1);
    right += sum(own == batch.targets).item<int64_t>();
    right_in_int8 += sum(int8 == batch.targets).item<int64_t>();
    same += sum(own == int8).item<int64_t>();
    images += batch.size();
  }
  const auto percent = [&](int64_t n) {
    return 100.0 * static_cast<double>(n) / static_cast<double>(images);
  };
  std::cout << fmt::format(
      "{}, {} epochs: {:.2f} % in float32, {:.2f} % in int8, {:.2f} % the same of {} images\n", name, epochs,
      percent(right), percent(right_in_int8), percent(same), images);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: int8_accuracy FOLDER resnet20|mobilenet_v2|vit EPOCHS\n";
    return exit_wrong_use;
  }
  try {
    run(argv[1], argv[2], std::strtoll(argv[3], nullptr, 10));
  } catch (const Error& error) {
    std::cerr << "int8_accuracy: " << error.what() << '\n';
    return exit_failed;
  }
}
