// Times training steps of a network one by one, on demand: for each line on standard input it runs a step and
// prints its milliseconds: by the clock on the CPU, by the device's events on a GPU. bench/compare_step.py
// drives it in turns with PyTorch.
#include <chrono>
#include <iostream>

#include "cifar_models.h"
#include "device.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

int main(int argc, char** argv) {
  std::string model = "resnet20";
  int64_t batch = 128;
  int threads = 2;
  std::string device_name = "cpu";
  std::string precision = "highest";
  CLI::App app{"Runs one training step for each line read, and prints its milliseconds."};
  app.add_option("--model", model)->check(CLI::IsMember(model_names()))->capture_default_str();
  app.add_option("--batch-size", batch)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--threads", threads)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--device", device_name)->capture_default_str();
  app.add_option("--precision", precision)->check(CLI::IsMember({"highest", "high"}))->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const Device device = choose_device(device_name);
  set_float32_precision(precision == "high" ? Precision::high : Precision::highest);
  set_num_threads(threads);
  manual_seed(1);
  nn::Sequential net = make_model(model, 10);
  net.to(device);
  optim::SGD sgd{net.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true}};
  const Tensor images = randn({batch, 3, 32, 32}, {.device = device});
  const Tensor labels = randint(0, 10, {batch}, device);
  const auto step = [&] {
    const Tensor loss = cross_entropy(net(images), labels);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  };
  for (std::string line; std::getline(std::cin, line);) {
    double milliseconds = 0;
    if (device.is_cuda()) {
      const cuda::Event start({.device = device, .timing = true});
      const cuda::Event end({.device = device, .timing = true});
      start.record();
      step();
      end.record();
      end.synchronize();
      milliseconds = cuda::elapsed_ms(start, end);
    } else {
      const auto start = std::chrono::steady_clock::now();
      step();
      milliseconds =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    std::cout << milliseconds << std::endl;
  }
}
