// LeNet on MNIST: the digits are read from the four idx files, gzipped or not.
//
// Expected after 5 epochs: test accuracy 99.15 %, in 72 s on two cores of an AMD EPYC.
#include "options.h"
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

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

  nn::Sequential net = models::lenet({.num_classes = 10});
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
