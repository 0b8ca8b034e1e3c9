// Trains a convolutional network on CIFAR-10, or on a synthetic set in the same format when no data is given.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "cifar_options.h"
#include "device.h"
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;
using namespace pleat::train;
namespace fs = std::filesystem;

namespace {

constexpr int64_t classes = 10;

Precision precision_of(const std::string& name) {
  if (name == "medium") return Precision::medium;
  return name == "high" ? Precision::high : Precision::highest;
}

constexpr int64_t profiled_after = 3;  ///< steps, of which the first two are not even recorded
constexpr int64_t profiled_steps = 3;

/// Checks options against the number of training images.
void check_images(const CifarSettings& s, int64_t images) {
  if (s.batch_size > images)
    throw UsageError("--batch-size " + std::to_string(s.batch_size) + ": there are " +
                     std::to_string(images) + " training images");
  const int64_t steps = s.epochs * ((images + s.batch_size - 1) / s.batch_size);
  const int64_t needed = profiled_after + profiled_steps;
  if (!s.profile.empty() && steps < needed)
    throw UsageError("--profile needs " + std::to_string(needed) + " steps, " + std::to_string(s.epochs) +
                     " epochs of " + std::to_string(images) + " images in batches of " +
                     std::to_string(s.batch_size) + " have " + std::to_string(steps));
}

/// The folder of the images; the synthetic set is made there first when it is missing.
fs::path data_folder(const CifarSettings& s) {
  if (!s.data.empty()) return s.data;
  const fs::path folder = fs::path(s.output) / "shapes";
  if (!fs::exists(folder / "test_batch.bin")) {
    print_text("no --data: making 10,000 + 2,000 synthetic images in " + folder.string());
    data::write_synthetic_shapes(folder);
  }
  return folder;
}

std::vector<data::Transform> training_transforms(const CifarSettings& s) {
  std::vector<data::Transform> transforms;
  if (s.augments_by("crop")) transforms.push_back(data::random_crop({.padding = 4}));
  if (s.augments_by("flip")) transforms.push_back(data::random_horizontal_flip());
  transforms.push_back(data::normalize(data::cifar10_mean, data::cifar10_std));
  if (s.augments_by("cutout")) transforms.push_back(data::cutout(8));
  // The labels were checked when they were read.
  if (s.augments_by("mixup")) transforms.push_back(data::mixup(0.2, classes, {.check_target = false}));
  if (s.augments_by("cutmix")) transforms.push_back(data::cutmix(1.0, classes, {.check_target = false}));
  return transforms;
}

/// Muon for the filters. The linear layer, the only other matrix of these networks, gives the
/// classes, and Muon is meant for what lies before it; so AdamW trains it, the biases and the
/// norms.
std::unique_ptr<optim::Optimizer> make_muon(const CifarSettings& s, const std::vector<Tensor>& parameters) {
  const double lr = s.chosen_lr(), weight_decay = s.chosen_weight_decay();
  std::vector<Tensor> filters, others;
  for (const Tensor& parameter : parameters) (parameter.rank() > 2 ? filters : others).push_back(parameter);
  return std::make_unique<optim::MultiOptimizer>(
      optim::Muon{filters, {.lr = lr, .weight_decay = weight_decay}},
      optim::AdamW{others, {.lr = lr / 20, .weight_decay = weight_decay}});
}

std::unique_ptr<optim::Optimizer> make_optimizer(const CifarSettings& s,
                                                 const std::vector<Tensor>& parameters) {
  const double lr = s.chosen_lr(), momentum = s.chosen_momentum(), weight_decay = s.chosen_weight_decay();
  if (s.optimizer == "sgd")
    return std::make_unique<optim::SGD>(
        parameters,
        optim::SGDOptions{
            .lr = lr, .momentum = momentum, .weight_decay = weight_decay, .nesterov = momentum > 0});
  if (s.optimizer == "adam")
    return std::make_unique<optim::Adam>(parameters,
                                         optim::AdamOptions{.lr = lr, .weight_decay = weight_decay});
  if (s.optimizer == "adamw")
    return std::make_unique<optim::AdamW>(parameters,
                                          optim::AdamWOptions{.lr = lr, .weight_decay = weight_decay});
  if (s.optimizer == "rmsprop")
    return std::make_unique<optim::RMSprop>(
        parameters, optim::RMSpropOptions{.lr = lr, .weight_decay = weight_decay, .momentum = momentum});
  if (s.optimizer == "adagrad")
    return std::make_unique<optim::Adagrad>(parameters,
                                            optim::AdagradOptions{.lr = lr, .weight_decay = weight_decay});
  if (s.optimizer == "muon") return make_muon(s, parameters);
  return std::make_unique<optim::Lion>(parameters,
                                       optim::LionOptions{.lr = lr, .weight_decay = weight_decay});
}

/// How a learning rate goes over all steps of the training, from or to `lr`.
optim::Rate learning_rate(const CifarSettings& s, int64_t steps, double lr) {
  if (s.schedule == "cosine") return optim::CosineAnnealingLR{.steps = steps};
  if (s.schedule == "one-cycle")
    return optim::OneCycleLR{.max_lr = lr, .total_steps = steps, .cycle_momentum = false};
  if (s.schedule == "step") return optim::MultiStepLR{.milestones = {steps / 2, steps * 3 / 4}, .gamma = 0.1};
  return optim::ConstantLR{.factor = 1, .steps = 0};
}

optim::Schedule make_schedule(const CifarSettings& s, int64_t steps, optim::Optimizer& optimizer) {
  std::vector<optim::Rate> rates;
  for (std::size_t group = 0; group < optimizer.num_groups(); ++group)
    rates.push_back(learning_rate(s, steps, optimizer.lr(group)));
  return {optimizer, rates};
}

/// Records the fourth to the sixth step, after all work that happens only once.
profile::ProfilerOptions profiler_options(const fs::path& trace) {
  return {
      .schedule =
          profile::Schedule{.wait = profiled_after - 1, .warmup = 1, .active = profiled_steps, .repeat = 1},
      .with_memory = true,
      .with_flops = true,
      .on_trace_ready = [trace](const profile::Profile& profile) {
        print("\n%s", profile.key_averages().table({.row_limit = 25}).c_str());
        profile.export_chrome_trace(trace);
      }};
}

/// A step of the training: forward, backward, and the optimiser's.
class Step {
 public:
  Step(const CifarSettings& s, nn::Module& net, optim::Optimizer& optimizer, optim::GradScaler& scaler)
      : settings_(s), net_(net), optimizer_(optimizer), scaler_(scaler), watch_(net) {}

  void run(const StepPlace& place, const data::Batch& batch) {
    if (!settings_.cuda_graph) {
      train(batch, [&](const auto& compute) { return watch_.compute(place, batch, compute); });
      return;
    }
    const auto same_shapes = [&] {
      return batch.inputs.shape() == static_.inputs.shape() &&
             batch.targets.shape() == static_.targets.shape();
    };
    if (!static_.inputs.defined()) {  // the first step, with all work that happens only once
      static_ = {batch.inputs.clone(), batch.targets.clone()};
      train(batch, unwatched);
    } else if (same_shapes()) {
      copy_(static_.inputs, batch.inputs);
      copy_(static_.targets, batch.targets);
      if (!graph_) {
        graph_.emplace([&] { train(static_, unwatched); },
                       CudaGraphOptions{.device = batch.inputs.device(), .warmup = 0});
        loss_of_graph_ = loss_;
        logits_of_graph_ = logits_;
      }
      graph_->replay();
      loss_ = loss_of_graph_;
      logits_ = logits_of_graph_;
    } else {  // the rest of an epoch
      train(batch, unwatched);
    }
    watch_.add(place, loss_);
  }
  /// Waits until all losses are known to be finite.
  void finish() { watch_.finish(); }

  Tensor loss() const { return loss_.detach(); }
  Tensor logits() const { return logits_.detach(); }

 private:
  static constexpr auto unwatched = [](const auto& compute) { return compute(); };

  template <class Watch>
  void train(const data::Batch& batch, const Watch& watch) {
    const std::optional<DType> half = amp_dtype(settings_.amp);
    loss_ = watch([&] {
      const Autocast types{half.value_or(float16), {.enabled = half.has_value()}};
      logits_ = net_(batch.inputs);
      return cross_entropy(logits_, batch.targets,
                           {.label_smoothing = settings_.label_smoothing, .check_target = false});
    });
    optimizer_.zero_grad();
    scaler_.scale(loss_).backward();
    scaler_.step(optimizer_);
    scaler_.update();
  }

  const CifarSettings& settings_;
  nn::Module& net_;
  optim::Optimizer& optimizer_;
  optim::GradScaler& scaler_;
  LossWatch watch_;
  Tensor loss_, logits_;
  data::Batch static_;  ///< the batch that the graph reads
  std::optional<CudaGraph> graph_;
  Tensor loss_of_graph_, logits_of_graph_;
};

ClassificationScore train_epoch(const CifarSettings& s, int64_t epoch, Step& step, data::DataLoader& loader,
                                optim::Optimizer& optimizer, optim::Schedule& schedule,
                                std::optional<profile::Profiler>& profiler) {
  ClassificationScore score;
  ProgressBar bar("epoch " + std::to_string(epoch) + "/" + std::to_string(s.epochs), loader.size());
  std::optional<ClassificationScore::Reading> reading;
  int64_t done = 0;
  for (const data::Batch& batch : loader) {
    step.run({epoch, ++done, optimizer.lr()}, batch);
    schedule.step();
    score.add(step.loss(), step.logits(), batch.targets);
    if (profiler) profiler->step();
    if (!bar.is_due(done)) continue;
    if (!reading) reading = score.reading();
    if (!reading->is_ready()) continue;
    bar.update(done, {"loss " + number(reading->mean_loss(), 3),
                      "accuracy " + number(100 * reading->accuracy(), 1) + " %",
                      number(static_cast<double>(reading->samples) / bar.seconds(), 0) + " images/s"});
    reading.reset();
  }
  step.finish();
  return score;
}

void draw(const fs::path& file, const CifarSettings& s, const std::vector<EpochResult>& results) {
  plot::Curve train_loss{"training", {}}, test_loss{"test", {}}, train_accuracy{"training", {}},
      test_accuracy{"test", {}};
  for (const EpochResult& r : results) {
    train_loss.values.push_back(r.train.loss());
    test_loss.values.push_back(r.test.loss());
    train_accuracy.values.push_back(r.train.accuracy());
    test_accuracy.values.push_back(r.test.accuracy());
  }
  plot::write_learning_curves(file, s.model + ", " + s.optimizer + ", batch " + std::to_string(s.batch_size),
                              {train_loss, test_loss}, {train_accuracy, test_accuracy});
}

/// Writes the results of a run to its folder, epoch by epoch. The weights are those of the best
/// epoch: the one with the highest test accuracy, or of several the one with the lowest test loss.
class Results {
 public:
  Results(const CifarSettings& s) : settings_(s), folder_(s.output, {s.metrics, s.weights, s.curves}) {
    if (const std::string notice = folder_.notice(); !notice.empty()) print_text(notice);
  }

  void add(int64_t epoch, const EpochResult& r, const nn::Module& net) {
    if (!csv_) {
      folder_.make_room();
      csv_.emplace(folder_ / settings_.metrics,
                   std::vector<std::string>{"epoch", "train_loss", "train_accuracy", "test_loss",
                                            "test_accuracy", "learning_rate", "images_per_s", "seconds"});
    }
    csv_->row({epoch, r.train.loss(), r.train.accuracy(), r.test.loss(), r.test.accuracy(), r.learning_rate,
               r.images_per_second(), r.seconds});
    all_.push_back(r);
    if (best_ == 0 || better(r, all_[static_cast<std::size_t>(best_ - 1)])) {
      best_ = epoch;
      io::write_safetensors(folder_ / settings_.weights, net.state_dict(),
                            {{"model", settings_.model}, {"epoch", std::to_string(epoch)}});
    }
    draw(folder_ / settings_.curves, settings_, all_);
  }

  void conclude() const {
    const double best = all_[static_cast<std::size_t>(best_ - 1)].test.accuracy();
    print_text("test accuracy " + number(100 * all_.back().test.accuracy(), 2) +
               " %; metrics, learning curves and the weights of epoch " + std::to_string(best_) + " (" +
               number(100 * best, 2) + " %) are in " + settings_.output);
  }

 private:
  static bool better(const EpochResult& a, const EpochResult& b) {
    if (a.test.accuracy() != b.test.accuracy()) return a.test.accuracy() > b.test.accuracy();
    return a.test.loss() < b.test.loss();
  }

  const CifarSettings& settings_;
  RunFolder folder_;
  std::optional<io::CsvWriter> csv_;
  std::vector<EpochResult> all_;
  int64_t best_ = 0;  ///< epoch; 0: none yet
};

void run(const CifarSettings& s) {
  check_together(s);
  const Device device = choose_device(s.device);
  check_implementation(s.conv_implementation, device);
  if (s.cuda_graph && device.is_cpu())
    throw UsageError("--cuda-graph needs a GPU, and this training is on the CPU (--device)");
  set_float32_precision(precision_of(s.precision));
  if (device.is_cpu() && s.precision != "highest")
    print_text("--precision changes nothing on the CPU: products of float32 are float32 there");
  if (s.threads > 0) set_num_threads(s.threads);
  manual_seed(s.seed);
  // Options are checked before anything is written.
  if (s.data.empty()) check_images(s, data::SyntheticShapesOptions{}.train);
  std::optional<data::TensorDataset> train_images;
  if (!s.data.empty()) {
    train_images = data::read_cifar10(s.data, true);
    check_images(s, train_images->size());
  }
  if (!s.profile.empty()) AtomicFile::check_writable("--profile", s.profile);
  Results results(s);
  const fs::path folder = data_folder(s);
  const data::TensorDataset train_set =
      near_device(train_images ? *train_images : data::read_cifar10(folder, true), device);
  const data::TensorDataset test_set = near_device(data::read_cifar10(folder, false), device);

  nn::Sequential net = models::make_classifier(s.model, {.num_classes = classes});
  const ConvPolicy policy{{.implementation = s.conv_implementation}};
  const nn::FusionPolicy fusion{{.enabled = !s.no_fusion}};
  if (s.summary) {
    std::cout << nn::summary(net, Shape{1, 3, 32, 32}) << '\n';
    flush_output();
  }
  net.to(device);
  data::DataLoader train_loader(train_set, {.batch_size = s.batch_size,
                                            .shuffle = true,
                                            .seed = s.seed,
                                            .workers = s.workers,
                                            .transforms = training_transforms(s),
                                            .device = device});
  data::DataLoader test_loader(test_set,
                               {.batch_size = 250,
                                .workers = s.workers,
                                .transforms = {data::normalize(data::cifar10_mean, data::cifar10_std)},
                                .device = device});
  const auto optimizer = make_optimizer(s, net.parameters());
  optim::GradScaler scaler{{.enabled = s.amp == "float16"}};
  optim::Schedule schedule = make_schedule(s, s.epochs * train_loader.size(), *optimizer);

  print_text(s.model + " with " + std::to_string(net.num_parameters()) + " parameters, " +
             std::to_string(train_set.size()) + " training and " + std::to_string(test_set.size()) +
             " test images; " + describe(device));
  Step step(s, net, *optimizer, scaler);
  EpochTable table;
  std::optional<profile::Profiler> profiler;
  if (!s.profile.empty()) profiler.emplace(profiler_options(s.profile));
  for (int64_t epoch = 1; epoch <= s.epochs; ++epoch) {
    const double rate = optimizer->lr();
    const auto start = std::chrono::steady_clock::now();
    const ClassificationScore train_score =
        train_epoch(s, epoch, step, train_loader, *optimizer, schedule, profiler);
    if (device.is_cuda()) cuda::synchronize(device);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const EpochResult result{train_score, evaluate(net, test_loader, epoch), rate, seconds};
    check_finite(net, "after epoch " + std::to_string(epoch));
    print("%s", table.line(epoch, result).c_str());
    results.add(epoch, result, net);
  }
  results.conclude();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a convolutional network on CIFAR-10 (or on synthetic shapes when --data is not given).",
      "train_cifar"};
  CifarSettings settings;
  add_cifar_options(app, settings);
  return run_program(app, argc, argv, [&] { run(settings); });
}
