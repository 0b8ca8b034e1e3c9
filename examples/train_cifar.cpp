// Trains a convolutional network on CIFAR-10, on one's own folder of pictures, or on a synthetic set when no
// data is given; goes on with a run that was stopped; tests a trained network and classifies pictures with
// it. `mpirun -n 2 train_cifar` trains by two processes, with half of each batch.
//
// Expected: 96.5 % of the synthetic images after 5 epochs in 81 s; resnet20 75 % on the test images of a
// subset of CIFAR-10 (10,000 to train with), after the 15 epochs of docs/measurements.md in 10 minutes; on
// two cores of an AMD EPYC.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cifar_options.h"
#include "device.h"
#include "pictures.h"
#include "program.h"
#include "recipe.h"
#include "results.h"
#include <CLI/CLI.hpp>
#include <pleat/dist/dist.h>
#include <pleat/pleat.h>

using namespace pleat;
using namespace pleat::train;
namespace fs = std::filesystem;

namespace {

Precision precision_of(const std::string& name) {
  if (name == "medium") return Precision::medium;
  return name == "high" ? Precision::high : Precision::highest;
}

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

/// Checks options against the number of processes.
void check_processes(const CifarSettings& s, const dist::Communicator& world) {
  if (world.size() == 1) return;
  const std::string of = ": there are " + std::to_string(world.size()) + " processes";
  if (s.batch_size % world.size() != 0)
    throw UsageError("--batch-size " + std::to_string(s.batch_size) + of + ", which share each batch evenly");
  if (s.cuda_graph) throw UsageError("--cuda-graph" + of + ", and a graph cannot wait for the others");
  if (s.find_lr) throw UsageError("--find-lr" + of + "; start one alone");
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

/// Of one process, or of its part of the images.
data::DataLoader test_loader(const CifarSettings& s, const Classifier& classifier,
                             const data::TensorDataset& images, Device device,
                             const dist::Communicator& world = {}) {
  return data::DataLoader(near_device(images, device), {.batch_size = 250,
                                                        .workers = s.workers,
                                                        .transforms = {classifier.normalization()},
                                                        .rank = world.rank(),
                                                        .world_size = world.size(),
                                                        .device = device});
}

/// The score of all processes.
ClassificationScore joint(const ClassificationScore& own, const dist::Communicator& world) {
  const nn::StateDict state = own.state_dict();
  for (const auto& [name, sum] : state) dist::all_reduce_(sum, world);
  ClassificationScore all;
  all.load_state_dict(state);
  return all;
}

/// The images of an epoch that were trained so far, for a checkpoint in its middle.
struct EpochSoFar {
  ClassificationScore score = {};  ///< of this process
  ClassificationScore all = {};    ///< of all processes, when it is saved
  double learning_rate = 0;        ///< of the first step
  double seconds = 0;              ///< of earlier processes
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  double elapsed() const {
    return seconds + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  nn::StateDict state_dict() const {
    nn::StateDict state = all.state_dict();
    state.emplace("seconds", number(elapsed()));
    state.emplace("learning_rate", number(learning_rate));
    return state;
  }
  void load_state_dict(nn::StateDict state) {
    seconds = state.at("seconds").item();
    learning_rate = state.at("learning_rate").item();
    state.erase("seconds");
    state.erase("learning_rate");
    score.load_state_dict(state);
    start = std::chrono::steady_clock::now();
  }

 private:
  static Tensor number(double value) { return full({}, value, {.dtype = float64, .device = Device{}}); }
};

void print_by_class(const Predictions& test, const std::vector<std::string>& names) {
  const std::vector<double> shares = test.class_accuracy();
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (std::size_t c = 0; c < names.size(); ++c)
    print("%-*s %6s %%\n", static_cast<int>(width), names[c].c_str(),
          std::isnan(shares[c]) ? "-" : number(100 * shares[c], 2).c_str());
}

/// A trained network, as it is asked for.
Classifier trained(const CifarSettings& s, const fs::path& weights) {
  Classifier classifier = read_classifier(weights);
  if (s.tta) classifier.net = nn::Sequential{TestTimeAugmentation{std::move(classifier.net)}};
  return classifier;
}

void evaluate_weights(const CifarSettings& s) {
  const Device device = choose_device(s.device);
  Classifier classifier = trained(s, s.evaluate);
  const Pictures pictures = read_pictures(data_folder(s), classifier.options.image_size, s.seed);
  if (pictures.class_names.size() != classifier.class_names.size())
    throw UsageError("--evaluate " + s.evaluate + ": the weights know " +
                     std::to_string(classifier.class_names.size()) + " classes, the data has " +
                     std::to_string(pictures.class_names.size()));
  classifier.net.to(device);
  data::DataLoader loader = test_loader(s, classifier, pictures.test, device);
  const Predictions test = predict_classes(classifier.net, loader);
  print("%s: test loss %s, accuracy %s %% of %lld images\n", classifier.model.c_str(),
        number(test.loss(), 4).c_str(), number(100 * test.accuracy(), 2).c_str(),
        static_cast<long long>(test.samples.size()));
  print_by_class(test, classifier.class_names);
}

/// The classifier of the run in --output, for an option.
Classifier classifier_of_run(const CifarSettings& s, const char* option) {
  const fs::path weights = fs::path(s.output) / s.weights;
  if (!fs::exists(weights))
    throw UsageError(std::string(option) + ": there is no " + weights.string() +
                     "; name the folder of a run by --output");
  return trained(s, weights);
}

void export_network(const CifarSettings& s) {
  Classifier classifier = s.evaluate.empty() ? classifier_of_run(s, "--export-onnx") : trained(s, s.evaluate);
  export_classifier(s.export_onnx, classifier);
  print_text(classifier.model + " is written to " + s.export_onnx);
}

void predict(const CifarSettings& s) {
  Classifier classifier = classifier_of_run(s, "--predict");
  for (const std::string& picture : s.predict) {
    const std::vector<ClassProbability> classes = classify(classifier, picture);
    std::string line = picture + ':';
    for (std::size_t i = 0; i < std::min<std::size_t>(3, classes.size()); ++i)
      line += (i == 0 ? " " : ", ") + classes[i].name + ' ' + number(100 * classes[i].probability, 1) + " %";
    print("%s\n", line.c_str());
  }
}

void find_lr(const CifarSettings& s, nn::Module& net, optim::Optimizer& optimizer, Step& step,
             data::DataLoader& loader) {
  data::DataLoader::Iterator batch = loader.begin();
  const LearningRates found = find_learning_rate(net, optimizer, [&] {
    step.run({1, loader.batch(), optimizer.lr()}, *batch);
    if (++batch == loader.end()) batch = loader.begin();
    return step.loss().item();
  });
  const fs::path picture = fs::path(s.output) / "learning_rates.svg";
  write_file("--find-lr", picture, found.plot());
  print_text("the loss falls most steeply at a learning rate of " + general(found.suggestion, 2) + "; see " +
             picture.string());
}

void run(const CifarSettings& s) {
  check_together(s);
  if (!s.evaluate.empty()) evaluate_weights(s);
  if (!s.export_onnx.empty()) export_network(s);
  if (!s.evaluate.empty() || !s.export_onnx.empty()) return;
  if (!s.predict.empty()) return predict(s);
  const dist::Communicator world = dist::init();
  if (!world.is_main()) be_silent();
  check_processes(s, world);
  const Device device = choose_device(s.device, world.local_rank());
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
  std::optional<Pictures> pictures;
  if (!s.data.empty()) {
    pictures = read_pictures(s.data, s.image_size, s.seed);
    check_images(s, pictures->train.size());
  }
  if (!s.profile.empty()) AtomicFile::check_writable("--profile", s.profile);
  Results results(s, world.is_main());
  // The first process makes synthetic images, the others read them.
  if (!pictures && world.is_main()) pictures = read_pictures(data_folder(s), s.image_size, s.seed);
  dist::barrier(world);
  if (!pictures) pictures = read_pictures(data_folder(s), s.image_size, s.seed);

  const auto classes = static_cast<int64_t>(pictures->class_names.size());
  Classifier classifier =
      make_classifier(s.from.empty() ? s.model : s.from, {.num_classes = classes, .image_size = s.image_size},
                      pictures->class_names, pictures->statistics.mean, pictures->statistics.std);
  nn::Sequential& net = classifier.net;
  if (!s.start_from.empty())
    print("%s", transfer(net, io::read_safetensors(s.start_from).tensors).text().c_str());
  const ConvPolicy policy{{.implementation = s.conv_implementation}};
  const nn::FusionPolicy fusion{{.enabled = !s.no_fusion}};
  if (s.summary) {
    std::cout << nn::summary(net, Shape{1, 3, s.image_size, s.image_size}) << '\n';
    flush_output();
  }
  net.to(device);
  if (s.sync_batch_norm) dist::convert_sync_batch_norm(net, world);
  dist::DataParallel ddp(net, world);
  data::DataLoader loader(near_device(pictures->train, device),
                          {.batch_size = s.batch_size / world.size(),
                           .shuffle = true,
                           .seed = s.seed,
                           .workers = s.workers,
                           .transforms = training_transforms(s, classes, pictures->statistics),
                           .rank = world.rank(),
                           .world_size = world.size(),
                           .device = device});
  data::DataLoader tests = test_loader(s, classifier, pictures->test, device, world);
  const auto optimizer = make_optimizer(s, net.parameters());
  const int64_t steps_an_epoch = (loader.size() + s.accumulate - 1) / s.accumulate;
  optim::Schedule schedule = make_schedule(s, s.planned_epochs() * steps_an_epoch, *optimizer);
  Step step(world.size() > 1 ? static_cast<nn::Module&>(ddp) : net, *optimizer,
            [&](const Tensor& logits, const Tensor& targets) {
              return cross_entropy(logits, targets,
                                   {.label_smoothing = s.label_smoothing, .check_target = false});
            },
            {.autocast = amp_dtype(s.amp),
             .accumulate = s.accumulate,
             .clip_grad_norm = s.clip_grad,
             .cuda_graph = s.cuda_graph});
  if (s.find_lr) return find_lr(s, net, *optimizer, step, loader);
  std::optional<WeightAverage> average;
  if (s.ema) average.emplace(net, WeightAverageOptions{.decay = *s.ema});

  EpochSoFar so_far;
  Checkpoints& checkpoints = results.checkpoints();
  checkpoints.add("model", net);
  checkpoints.add("optimizer", *optimizer);
  checkpoints.add("schedule", schedule);
  checkpoints.add("scaler", step.scaler());
  checkpoints.add("loader", loader);
  checkpoints.add("epoch", so_far);
  if (average) checkpoints.add("average", *average);
  results.start();
  if (!world.is_main()) so_far.score = {};  // the first process has that of all

  print_text(classifier.model + " with " + std::to_string(net.num_parameters()) + " parameters, " +
             std::to_string(pictures->train.size()) + " training and " +
             std::to_string(pictures->test.size()) + " test images; " + describe(device));
  EpochTable table;
  std::optional<profile::Profiler> profiler;
  if (!s.profile.empty() && world.is_main()) profiler.emplace(profiler_options(s));
  const StopOnSignal stop;
  // What one process has to do, all do after the same step.
  const auto one_asks = [&](bool asks) {
    return dist::all_reduce(scalar(asks), world, dist::ReduceOp::max).item<bool>();
  };
  const auto steps = [&] {
    return loader.state_dict().at("epoch").item<int64_t>() * loader.size() + loader.batch();
  };
  const auto save = [&](std::optional<double> accuracy = {}) {
    so_far.all = joint(so_far.score, world);
    if (world.is_main()) results.save(steps(), accuracy);
  };
  const auto stop_if_asked = [&] {
    if (!one_asks(stop.requested())) return;
    save();
    checkpoints.wait();
    throw StoppedBySignal(
        "stopped after step " + std::to_string(steps()) + "; go on with: train_cifar --resume " + s.output,
        stop.requested() ? stop.signal() : SIGTERM);
  };
  while (loader.epoch() < s.epochs) {
    const int64_t epoch = loader.epoch() + 1;
    if (loader.batch() == 0) so_far = {.learning_rate = optimizer->lr()};
    train_epoch({epoch, s.epochs}, step, loader, *optimizer, schedule, so_far.score, [&] {
      if (average && step.updated()) average->update();
      if (profiler) profiler->step();
      if (!step.updated()) return;
      stop_if_asked();
      if (one_asks(world.is_main() && checkpoints.is_due())) save();
    });
    if (device.is_cuda()) cuda::synchronize(device);
    const double seconds = so_far.elapsed();
    std::optional<WeightAverage::Use> averaged;
    if (average) averaged.emplace(*average);
    const EpochResult result{joint(so_far.score, world), joint(evaluate(net, tests, epoch), world),
                             so_far.learning_rate, seconds};
    check_finite(net, "after epoch " + std::to_string(epoch));
    print("%s", table.line(epoch, result).c_str());
    if (world.is_main()) results.add(epoch, result, classifier);
    averaged.reset();
    save(result.test.accuracy());
    stop_if_asked();
    if (s.patience && one_asks(world.is_main() && results.epochs_since_best() >= *s.patience)) {
      print_text("no better test accuracy for " + std::to_string(*s.patience) + " epochs");
      break;
    }
  }
  if (!world.is_main()) return;
  if (!s.no_report)
    results.report(
        pictures->test, [&](const Classifier& best) { return test_loader(s, best, pictures->test, device); },
        device);
  results.conclude();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a convolutional network on CIFAR-10, or on a folder of pictures (or on synthetic shapes when "
      "--data is not given).",
      "train_cifar"};
  CifarSettings settings;
  add_cifar_options(app, settings);
  return run_program(app, argc, argv, [&] {
    keep_given_options(app, settings);
    run(settings.resume.empty() ? settings : resumed_settings(app, settings.resume));
  });
}
