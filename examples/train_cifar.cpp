// Trains a convolutional network on CIFAR-10, or on a synthetic set in the same format when no data is given.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "checks.h"
#include "cifar_models.h"
#include "classification.h"
#include "device.h"
#include "learning_curves.h"
#include "progress.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;
namespace fs = std::filesystem;

namespace {

struct Settings {
  std::string data;
  std::string model = "small";
  int64_t epochs = 5;
  int64_t batch_size = 64;
  std::string optimizer = "adam";
  double lr = 0;  ///< 0: a value that suits the optimiser
  std::string schedule = "cosine";
  double momentum = 0.9;
  double weight_decay = -1;  ///< below 0: a value that suits the optimiser
  double label_smoothing = 0;
  std::vector<std::string> augment = {"flip"};
  uint64_t seed = 1;
  int threads = 0;
  int workers = 1;
  std::string device = "auto";
  std::string precision = "highest";
  std::string amp = "off";
  std::string conv_implementation;
  std::string output = "runs/cifar";
  std::string profile;
  bool summary = false;
};

const std::vector<std::string> precisions = {"highest", "high", "medium"};
const std::vector<std::string> amp_types = {"off", "float16", "bfloat16"};
const std::vector<std::string> optimizers = {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "muon"};
const std::vector<std::string> schedules = {"constant", "cosine", "one-cycle", "step"};
const std::vector<std::string> augmentations = {"none", "crop", "flip", "cutout", "mixup", "cutmix"};

double default_lr(const std::string& optimizer) {
  if (optimizer == "sgd") return 0.1;
  if (optimizer == "lion") return 1e-4;
  if (optimizer == "muon") return 0.02;
  return 1e-3;
}

Precision precision_of(const std::string& name) {
  if (name == "medium") return Precision::medium;
  return name == "high" ? Precision::high : Precision::highest;
}

Settings read_options(int argc, char** argv) {
  Settings s;
  CLI::App app{
      "Trains a convolutional network on CIFAR-10 (or on synthetic shapes when --data is not given)."};
  app.add_option("--data", s.data, "Folder with CIFAR-10's binary files; without it a synthetic set is made");
  app.add_option("--model", s.model, "Network")->check(CLI::IsMember(model_names()))->capture_default_str();
  app.add_option("--epochs", s.epochs, "Times through the training images")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option("--batch-size", s.batch_size, "Images a step")->check(at_least(1))->capture_default_str();
  app.add_option(
         "--optimizer", s.optimizer,
         "Optimiser (sgd is with Nesterov momentum; muon trains the filters, beside AdamW for the rest)")
      ->check(CLI::IsMember(optimizers))
      ->capture_default_str();
  app.add_option(
         "--lr", s.lr,
         "Highest learning rate; by default one that suits the optimiser. With muon, AdamW has 1/20 of it")
      ->check(at_least(0));
  app.add_option("--schedule", s.schedule, "How the learning rate goes")
      ->check(CLI::IsMember(schedules))
      ->capture_default_str();
  app.add_option("--momentum", s.momentum, "Momentum of sgd and rmsprop")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--weight-decay", s.weight_decay, "Weight decay; by default 5e-4 for sgd, else 0")
      ->check(at_least(0));
  app.add_option("--label-smoothing", s.label_smoothing, "Share of the target spread over all classes")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--augment", s.augment,
                 "Changes to training images, comma-separated: none, crop, flip, cutout, mixup, cutmix")
      ->delimiter(',')
      ->check(CLI::IsMember(augmentations))
      ->capture_default_str();
  app.add_option("--seed", s.seed,
                 "Seed of weights, order and augmentation; the same seed gives the same bits")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--threads", s.threads, "Threads; by default all cores")->check(at_least(0));
  app.add_option("--workers", s.workers, "Threads that prepare batches ahead")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--device", s.device,
                 "Where to compute: cpu, cuda, cuda:1 ...; auto takes a GPU when there is one")
      ->capture_default_str();
  app.add_option("--precision", s.precision,
                 "Convolutions and matrix products of float32 on a GPU: highest is true float32, high TF32 "
                 "inside, medium bfloat16 inside")
      ->check(CLI::IsMember(precisions))
      ->capture_default_str();
  app.add_option("--amp", s.amp,
                 "Mixed precision: the type in which convolutions and the linear layer are computed in "
                 "training (float16 with a scaled loss)")
      ->check(CLI::IsMember(amp_types))
      ->capture_default_str();
  app.add_option("--conv-implementation", s.conv_implementation, "Convolution implementation for all passes")
      ->check(CLI::IsMember(ops::conv_implementations()));
  app.add_option("--output", s.output, "Folder for metrics.csv, weights.safetensors and learning_curves.svg")
      ->capture_default_str();
  app.add_option(
      "--profile", s.profile,
      "Profile three steps: the costliest ops as a table, and a trace for ui.perfetto.dev in this file");
  app.add_flag("--summary", s.summary, "Print the network layer by layer first");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (s.lr == 0) s.lr = default_lr(s.optimizer);
  if (s.weight_decay < 0) s.weight_decay = s.optimizer == "sgd" ? 5e-4 : 0;
  return s;
}

/// The folder of the images; the synthetic set is made there first when it is missing.
fs::path data_folder(const Settings& s) {
  if (!s.data.empty()) return s.data;
  const fs::path folder = fs::path(s.output) / "shapes";
  if (!fs::exists(folder / "test_batch.bin")) {
    std::cout << "no --data: making 10,000 + 2,000 synthetic images in " << folder.string() << std::endl;
    data::write_synthetic_shapes(folder);
  }
  return folder;
}

std::vector<data::Transform> training_transforms(const Settings& s, int64_t classes) {
  const auto wanted = [&](const char* name) {
    return std::find(s.augment.begin(), s.augment.end(), name) != s.augment.end();
  };
  std::vector<data::Transform> transforms;
  if (wanted("crop")) transforms.push_back(data::random_crop({.padding = 4}));
  if (wanted("flip")) transforms.push_back(data::random_horizontal_flip());
  transforms.push_back(cifar_normalization());
  if (wanted("cutout")) transforms.push_back(data::cutout(8));
  if (wanted("mixup")) transforms.push_back(data::mixup(0.2, classes));
  if (wanted("cutmix")) transforms.push_back(data::cutmix(1.0, classes));
  return transforms;
}

/// Muon for the filters. The linear layer, the only other matrix of these networks, gives the classes, and
/// Muon is meant for what lies before it; so that, the biases and the norms are AdamW's.
std::unique_ptr<optim::Optimizer> make_muon(const Settings& s, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> filters, others;
  for (const Tensor& parameter : parameters) (parameter.rank() > 2 ? filters : others).push_back(parameter);
  return std::make_unique<optim::MultiOptimizer>(
      optim::Muon{filters, {.lr = s.lr, .weight_decay = s.weight_decay}},
      optim::AdamW{others, {.lr = s.lr / 20, .weight_decay = s.weight_decay}});
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Settings& s, const std::vector<Tensor>& parameters) {
  if (s.optimizer == "sgd")
    return std::make_unique<optim::SGD>(
        parameters,
        optim::SGDOptions{
            .lr = s.lr, .momentum = s.momentum, .weight_decay = s.weight_decay, .nesterov = s.momentum > 0});
  if (s.optimizer == "adam")
    return std::make_unique<optim::Adam>(parameters,
                                         optim::AdamOptions{.lr = s.lr, .weight_decay = s.weight_decay});
  if (s.optimizer == "adamw")
    return std::make_unique<optim::AdamW>(parameters,
                                          optim::AdamWOptions{.lr = s.lr, .weight_decay = s.weight_decay});
  if (s.optimizer == "rmsprop")
    return std::make_unique<optim::RMSprop>(
        parameters,
        optim::RMSpropOptions{.lr = s.lr, .weight_decay = s.weight_decay, .momentum = s.momentum});
  if (s.optimizer == "adagrad")
    return std::make_unique<optim::Adagrad>(
        parameters, optim::AdagradOptions{.lr = s.lr, .weight_decay = s.weight_decay});
  if (s.optimizer == "muon") return make_muon(s, parameters);
  return std::make_unique<optim::Lion>(parameters,
                                       optim::LionOptions{.lr = s.lr, .weight_decay = s.weight_decay});
}

/// How a learning rate goes over all steps of the training, from or to `lr`.
optim::Rate learning_rate(const Settings& s, int64_t steps, double lr) {
  if (s.schedule == "cosine") return optim::CosineAnnealingLR{.steps = steps};
  if (s.schedule == "one-cycle")
    return optim::OneCycleLR{.max_lr = lr, .total_steps = steps, .cycle_momentum = false};
  if (s.schedule == "step") return optim::MultiStepLR{.milestones = {steps / 2, steps * 3 / 4}, .gamma = 0.1};
  return optim::ConstantLR{.factor = 1, .steps = 0};
}

optim::Schedule make_schedule(const Settings& s, int64_t steps, optim::Optimizer& optimizer) {
  std::vector<optim::Rate> rates;
  for (std::size_t group = 0; group < optimizer.num_groups(); ++group)
    rates.push_back(learning_rate(s, steps, optimizer.lr(group)));
  return {optimizer, rates};
}

/// The figures of an epoch: a line on the screen and a row of metrics.csv.
struct EpochResult {
  ClassificationScore train;
  ClassificationScore test;
  double learning_rate;
  double images_per_second;
  double seconds;
};

/// Records the fourth to the sixth step, when what happens only once is over.
profile::ProfilerOptions profiler_options(const fs::path& trace) {
  return {.schedule = profile::Schedule{.wait = 2, .warmup = 1, .active = 3, .repeat = 1},
          .with_memory = true,
          .with_flops = true,
          .on_trace_ready = [trace](const profile::Profile& profile) {
            std::cout << '\n' << profile.key_averages().table({.row_limit = 25}) << std::flush;
            profile.export_chrome_trace(trace);
          }};
}

ClassificationScore train_epoch(const Settings& s, int64_t epoch, nn::Module& net, data::DataLoader& loader,
                                optim::Optimizer& optimizer, optim::GradScaler& scaler,
                                optim::Schedule& schedule, std::optional<profile::Profiler>& profiler) {
  const std::optional<DType> half = amp_dtype(s.amp);
  ClassificationScore score;
  ProgressBar bar("epoch " + std::to_string(epoch) + "/" + std::to_string(s.epochs), loader.size());
  int64_t done = 0;
  for (const data::Batch& batch : loader) {
    Tensor logits, loss;
    {
      const Autocast types{half.value_or(float16), {.enabled = half.has_value()}};
      logits = net(batch.inputs);
      // The labels were checked when they were read.
      loss =
          cross_entropy(logits, batch.targets, {.label_smoothing = s.label_smoothing, .check_target = false});
    }
    optimizer.zero_grad();
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    schedule.step();

    score.add(loss.detach(), logits.detach(), batch.targets);
    if (profiler) profiler->step();
    if (!bar.is_due(++done)) continue;
    char note[80];
    std::snprintf(note, sizeof note, "loss %.3f  accuracy %.1f %%  %.0f images/s", score.loss(),
                  100 * score.accuracy(), static_cast<double>(score.samples()) / bar.seconds());
    bar.update(done, note);
  }
  return score;
}

void print_header() {
  std::printf("epoch  train loss  train acc  test loss  test acc  learning rate  images/s  seconds\n");
}

void print_line(int64_t epoch, const EpochResult& r) {
  std::printf("%5ld %11.4f %9.2f%% %10.4f %8.2f%% %14.3g %9.0f %8.1f\n", static_cast<long>(epoch),
              r.train.loss(), 100 * r.train.accuracy(), r.test.loss(), 100 * r.test.accuracy(),
              r.learning_rate, r.images_per_second, r.seconds);
  std::fflush(stdout);
}

void draw(const fs::path& file, const Settings& s, const std::vector<EpochResult>& results) {
  Curve train_loss{"training", {}}, test_loss{"test", {}}, train_accuracy{"training", {}},
      test_accuracy{"test", {}};
  for (const EpochResult& r : results) {
    train_loss.values.push_back(r.train.loss());
    test_loss.values.push_back(r.test.loss());
    train_accuracy.values.push_back(r.train.accuracy());
    test_accuracy.values.push_back(r.test.accuracy());
  }
  write_learning_curves(file, s.model + ", " + s.optimizer + ", batch " + std::to_string(s.batch_size),
                        {train_loss, test_loss}, {train_accuracy, test_accuracy});
}

void train(const Settings& s) {
  const Device device = choose_device(s.device);
  set_float32_precision(precision_of(s.precision));
  if (s.threads > 0) set_num_threads(s.threads);
  manual_seed(s.seed);
  fs::create_directories(s.output);
  const fs::path folder = data_folder(s);
  const data::TensorDataset train_set = near_device(data::read_cifar10(folder, true), device);
  const data::TensorDataset test_set = near_device(data::read_cifar10(folder, false), device);
  constexpr int64_t classes = 10;

  nn::Sequential net = make_model(s.model, classes);
  const ConvPolicy policy{{.implementation = s.conv_implementation}};
  if (s.summary) std::cout << nn::summary(net, Shape{1, 3, 32, 32}) << '\n';
  net.to(device);
  data::DataLoader train_loader(train_set, {.batch_size = s.batch_size,
                                            .shuffle = true,
                                            .seed = s.seed,
                                            .workers = s.workers,
                                            .transforms = training_transforms(s, classes),
                                            .device = device});
  data::DataLoader test_loader(
      test_set,
      {.batch_size = 250, .workers = s.workers, .transforms = {cifar_normalization()}, .device = device});
  const auto optimizer = make_optimizer(s, net.parameters());
  optim::GradScaler scaler{{.enabled = s.amp == "float16"}};
  optim::Schedule schedule = make_schedule(s, s.epochs * train_loader.size(), *optimizer);
  io::CsvWriter csv(fs::path(s.output) / "metrics.csv",
                    {"epoch", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "learning_rate",
                     "images_per_s", "seconds"});

  std::printf("%s with %ld parameters, %ld training and %ld test images; %s\n", s.model.c_str(),
              static_cast<long>(net.num_parameters()), static_cast<long>(train_set.size()),
              static_cast<long>(test_set.size()), describe(device).c_str());
  print_header();
  std::vector<EpochResult> results;
  std::optional<profile::Profiler> profiler;
  if (!s.profile.empty()) profiler.emplace(profiler_options(s.profile));
  for (int64_t epoch = 1; epoch <= s.epochs; ++epoch) {
    const double rate = optimizer->lr();
    const auto start = std::chrono::steady_clock::now();
    const ClassificationScore train_score =
        train_epoch(s, epoch, net, train_loader, *optimizer, scaler, schedule, profiler);
    if (device.is_cuda()) cuda::synchronize(device);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const EpochResult result{train_score, evaluate(net, test_loader), rate,
                             static_cast<double>(train_score.samples()) / seconds, seconds};
    results.push_back(result);
    print_line(epoch, result);
    csv.row({epoch, result.train.loss(), result.train.accuracy(), result.test.loss(), result.test.accuracy(),
             rate, result.images_per_second, seconds});
    io::write_safetensors(fs::path(s.output) / "weights.safetensors", net.state_dict(),
                          {{"model", s.model}, {"epoch", std::to_string(epoch)}});
    draw(fs::path(s.output) / "learning_curves.svg", s, results);
  }
  std::printf("test accuracy %.2f %%; metrics, weights and learning curves are in %s\n",
              100 * results.back().test.accuracy(), s.output.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(read_options(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "train_cifar: " << error.what() << '\n';
    return 1;
  }
}
