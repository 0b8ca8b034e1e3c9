// LeNet on MNIST: the digits are read from the four idx files, gzipped or not.
//
// Expected after 5 epochs: test accuracy 99.15 %, in 72 s on two cores of an AMD EPYC.
#include "options.h"
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

/// Two convolutions with pooling, then three linear layers (LeCun et al., 1998), with ReLU and max-pooling.
struct LeNet : nn::Module {
  nn::Conv2d conv1{{.in_channels = 1, .out_channels = 6, .kernel_size = 5, .padding = 2}};
  nn::Conv2d conv2{{.in_channels = 6, .out_channels = 16, .kernel_size = 5}};
  nn::Linear fc1{{.in_features = 16 * 5 * 5, .out_features = 120}};
  nn::Linear fc2{{.in_features = 120, .out_features = 84}};
  nn::Linear fc3{{.in_features = 84, .out_features = 10}};

  Tensor forward(const Tensor& x) override {
    Tensor y = max_pool2d(relu(conv1(x)), {.kernel_size = 2});
    y = max_pool2d(relu(conv2(y)), {.kernel_size = 2});
    return fc3(relu(fc2(relu(fc1(flatten(y, 1))))));
  }
  void members(nn::Members& m) override {
    m("conv1", conv1);
    m("conv2", conv2);
    m("fc1", fc1);
    m("fc2", fc2);
    m("fc3", fc3);
  }
};

void run(const std::string& folder, int64_t epochs, int64_t batch_size, uint64_t seed) {
  manual_seed(seed);
  const data::TensorDataset train_set = data::read_mnist(folder, true);
  if (batch_size > train_set.size())
    throw UsageError("--batch-size " + std::to_string(batch_size) + ": there are " +
                     std::to_string(train_set.size()) + " training digits");
  const data::TensorDataset test_set = data::read_mnist(folder, false);
  const data::Transform normalization = data::normalize({0.1307F}, {0.3081F});  // of the training digits
  data::DataLoader train_loader(
      train_set, {.batch_size = batch_size, .shuffle = true, .seed = seed, .transforms = {normalization}});
  data::DataLoader test_loader(test_set, {.batch_size = 500, .transforms = {normalization}});

  LeNet net;
  print_text("LeNet with " + std::to_string(net.num_parameters()) + " parameters, " +
             std::to_string(train_set.size()) + " training and " + std::to_string(test_set.size()) +
             " test digits");
  optim::Adam adam{net.parameters(), {.lr = 2e-3}};
  optim::Schedule schedule{adam, optim::CosineAnnealingLR{.steps = epochs * train_loader.size()}};
  train::EpochTable table;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const train::EpochResult result =
        train::run_epoch({epoch, epochs}, net, train_loader, test_loader, adam, schedule);
    print("%s", table.line(epoch, result).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  int64_t epochs = 5;
  int64_t batch_size = 64;
  uint64_t seed = 1;
  CLI::App app{"Trains LeNet on MNIST.", "mnist"};
  app.add_option("--data", folder, "Folder with the four idx files, plain or gzipped")
      ->required()
      ->check(not_empty())
      ->check(CLI::ExistingDirectory);
  app.add_option("--epochs", epochs, "Times through the training digits")
      ->transform(whole_number(1, most_epochs))
      ->capture_default_str();
  app.add_option("--batch-size", batch_size, "Digits a step")
      ->transform(whole_number(1))
      ->capture_default_str();
  app.add_option("--seed", seed, "Seed of everything random")
      ->transform(seed_number())
      ->capture_default_str();
  return run_program(app, argc, argv, [&] { run(folder, epochs, batch_size, seed); });
}
