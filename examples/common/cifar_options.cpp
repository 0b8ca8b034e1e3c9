#include "cifar_options.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "options.h"
#include "program.h"
#include <pleat/core/parallel/parallel.h>
#include <pleat/models/make_classifier.h>
#include <pleat/train/checkpoint.h>
#include <pleat/train/progress.h>

namespace {

const std::vector<std::string> precisions = {"highest", "high", "medium"};
const std::vector<std::string> amp_types = {"off", "float16", "bfloat16"};
const std::vector<std::string> optimizers = {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "muon"};
const std::vector<std::string> schedules = {"constant", "cosine", "one-cycle", "step"};
const std::vector<std::string> augmentations = {"none", "crop", "flip", "cutout", "mixup", "cutmix"};

}  // namespace

double CifarSettings::chosen_lr() const {
  if (lr) return *lr;
  if (optimizer == "sgd") return 0.1;
  if (optimizer == "lion") return 1e-4;
  if (optimizer == "muon") return 0.02;
  return 1e-3;
}

bool CifarSettings::augments_by(const std::string& change) const {
  return std::find(augment.begin(), augment.end(), change) != augment.end();
}

void add_cifar_options(CLI::App& app, CifarSettings& s) {
  app.add_option(
         "--data", s.data,
         "Folder with CIFAR-10's binary files, or with a subfolder of pictures for each class; without "
         "it a synthetic set is made")
      ->check(not_empty())
      ->check(CLI::ExistingDirectory);
  CLI::Option* resume =
      app.add_option("--resume", s.resume,
                     "Go on with the run in this folder, from its newest checkpoint and with its options")
          ->check(not_empty())
          ->check(CLI::ExistingDirectory);
  CLI::Option* evaluate = app.add_option("--evaluate", s.evaluate,
                                         "Test these weights instead of training: loss and accuracy by class")
                              ->check(not_empty())
                              ->check(CLI::ExistingFile);
  CLI::Option* predict =
      app.add_option("--predict", s.predict,
                     "Say what these pictures show instead of training, by the weights in --output")
          ->check(not_empty())
          ->check(CLI::ExistingFile);
  CLI::Option* export_onnx =
      app.add_option(
             "--export-onnx", s.export_onnx,
             "Write the weights in --output, or those of --evaluate, as an ONNX file instead of training")
          ->check(not_empty());
  CLI::Option* find_lr =
      app.add_flag("--find-lr", s.find_lr,
                   "Look for a learning rate instead of training: the loss over rising rates, as a picture");
  const std::vector<CLI::Option*> purposes = {resume, evaluate, predict, export_onnx, find_lr};
  for (CLI::Option* one : purposes)
    for (CLI::Option* other : purposes)
      if (one != other && !(one == evaluate && other == export_onnx) &&
          !(one == export_onnx && other == evaluate))
        one->excludes(other);
  app.add_flag(
      "--tta", s.tta,
      "Test-time augmentation: --evaluate, --predict and --export-onnx take the mean over each picture "
      "and its mirror image");
  app.add_option(
         "--from", s.from,
         "Train the network of this ONNX file on, in place of --model; its last layer becomes a new one "
         "where the number of classes differs")
      ->check(not_empty())
      ->check(CLI::ExistingFile);
  app.add_option("--start-from", s.start_from,
                 "Begin with these weights where names and shapes fit, and say which did (fine-tuning)")
      ->check(not_empty())
      ->check(CLI::ExistingFile);
  app.set_config("--config", "", "Read options from this file, as options.toml of an earlier run");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_option("--image-size", s.image_size, "Pixels a side to which one's own pictures are brought")
      ->transform(whole_number(8, 1024))
      ->capture_default_str();
  app.add_option("--model", s.model, "Network")
      ->check(CLI::IsMember(pleat::models::classifier_names()))
      ->excludes("--from")
      ->capture_default_str();
  app.add_option("--epochs", s.epochs, "Times through the training images")
      ->transform(whole_number(1, most_epochs))
      ->capture_default_str();
  app.add_option("--batch-size", s.batch_size,
                 "Images a step, of all processes together; at most those there are to train with")
      ->transform(whole_number(1))
      ->capture_default_str();
  app.add_option(
         "--optimizer", s.optimizer,
         "Optimiser (sgd is with Nesterov momentum; muon trains the filters, beside AdamW for the rest)")
      ->check(CLI::IsMember(optimizers))
      ->capture_default_str();
  app.add_option(
         "--lr", s.lr,
         "Highest learning rate; by default one that suits the optimiser. With muon, AdamW has 1/20 of it")
      ->transform(positive_number());
  app.add_option("--schedule", s.schedule, "How the learning rate goes")
      ->check(CLI::IsMember(schedules))
      ->capture_default_str();
  app.add_option("--schedule-epochs", s.schedule_epochs,
                 "Epochs for which --schedule step is made: it falls after half and after three quarters of "
                 "them; by default --epochs, and --resume with other --epochs keeps it")
      ->transform(whole_number(1, most_epochs));
  app.add_option("--momentum", s.momentum, "Momentum of sgd and rmsprop (0.9)")
      ->transform(fraction_below_one());
  app.add_option("--weight-decay", s.weight_decay, "Weight decay; by default 5e-4 for sgd, else 0")
      ->transform(real_number(0));
  app.add_option("--label-smoothing", s.label_smoothing, "Share of the target spread over all classes")
      ->transform(real_number(0, 1))
      ->capture_default_str();
  app.add_option("--accumulate", s.accumulate, "Batches whose mean gradient makes one update")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--clip-grad", s.clip_grad, "Largest norm of all gradients together")
      ->transform(positive_number());
  app.add_option("--ema", s.ema, "Test and keep an average of the weights with this decay (0.999)")
      ->transform(fraction_below_one());
  app.add_option("--patience", s.patience, "End after so many epochs without a better test accuracy")
      ->transform(whole_number(1, most_epochs));
  add_list(app, "--augment", s.augment, "Changes to training images, separated by commas", augmentations);
  app.add_option("--seed", s.seed,
                 "Seed of weights, order and augmentation; the same seed gives the same bits")
      ->transform(seed_number())
      ->capture_default_str();
  app.add_option("--threads", s.threads, "Threads; by default all cores")
      ->transform(whole_number(1, pleat::max_num_threads()));
  app.add_option("--workers", s.workers, "Threads that prepare batches ahead; 0: the loop makes them itself")
      ->transform(whole_number(0, 1024))
      ->capture_default_str();
  app.add_option("--device", s.device,
                 "Where to compute: cpu, cuda, cuda:1 ...; auto takes a GPU when there is one")
      ->check(not_empty())
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
      ->check(not_empty());
  app.add_flag("--no-fusion", s.no_fusion, "Compute every module in passes of its own");
  app.add_option("--output", s.output,
                 "Folder for metrics.csv, weights.safetensors (of the epoch with the best test accuracy), "
                 "learning_curves.svg, report.html, options.toml, TensorBoard's events and checkpoints; "
                 "those of an earlier "
                 "run are kept under other names")
      ->check(not_empty())
      ->capture_default_str();
  app.add_option("--keep-checkpoints", s.keep_checkpoints, "So many of the newest are kept, and the best")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--checkpoint-seconds", s.checkpoint_seconds,
                 "Save a checkpoint within an epoch when so many seconds have passed")
      ->transform(real_number(0))
      ->capture_default_str();
  app.add_option(
         "--profile", s.profile,
         "Profile three steps: the costliest ops as a table, and a trace for ui.perfetto.dev in this file")
      ->check(not_empty());
  app.add_flag("--no-report", s.no_report,
               "Write no report.html, for which the layers are timed at the end of the run");
  app.add_flag("--summary", s.summary, "Print the network layer by layer first");
  app.add_flag("--sync-batch-norm", s.sync_batch_norm,
               "Batch norms by the statistics of the whole batch where several processes share it");
  app.add_flag("--cuda-graph", s.cuda_graph,
               "Have the GPU repeat a step that was recorded once, as one CUDA graph");
}

void check_together(const CifarSettings& s) {
  if (s.tta && s.evaluate.empty() && s.predict.empty() && s.export_onnx.empty())
    throw UsageError("--tta is for --evaluate, --predict and --export-onnx, it has no effect on a training");
  if (s.augment.size() > 1 && s.augments_by("none"))
    throw UsageError("--augment: none stands alone, it changes nothing");
  for (const std::string name : {s.metrics, s.weights, s.curves, s.options, s.report})
    if (!s.profile.empty() && same_file(s.profile, s.output + '/' + name))
      throw UsageError("--profile " + s.profile + " is where the run leaves its " + name);
  if (s.momentum && s.optimizer != "sgd" && s.optimizer != "rmsprop")
    throw UsageError("--momentum is for sgd and rmsprop, it has no effect on --optimizer " + s.optimizer);
  if (s.schedule_epochs && s.schedule != "step")
    throw UsageError("--schedule-epochs is for --schedule step, it has no effect on " + s.schedule);
  if (s.cuda_graph && s.optimizer == "muon")
    throw UsageError("--cuda-graph: muon cannot be in a CUDA graph; use another --optimizer");
}

void keep_given_options(const CLI::App& app, CifarSettings& s) {
  // What says which run it is, not how it trains.
  const std::vector<std::string> others = {"help",    "config",      "resume",  "output", "evaluate",
                                           "predict", "export-onnx", "find-lr", "tta"};
  s.given.clear();
  s.arguments.clear();
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() == 0 || std::find(others.begin(), others.end(), name) != others.end()) continue;
    std::string values, argument;
    for (const std::string& value : option->results()) {
      values += values.empty() ? "\"" : ", \"";
      for (const char c : value) values += (c == '"' || c == '\\') ? std::string{'\\', c} : std::string{c};
      values += '"';
      argument += (argument.empty() ? "" : ",") + value;
    }
    s.given += name + " = [" + values + "]\n";
    s.arguments.emplace_back(name, argument);
  }
}

namespace {

CifarSettings parsed(const std::vector<std::string>& arguments) {
  CifarSettings settings;
  CLI::App app;
  add_cifar_options(app, settings);
  app.parse(std::vector<std::string>(arguments));
  keep_given_options(app, settings);
  return settings;
}

/// Throws UsageError when a run would go on with a learning rate that is not the one it was begun with.
void check_rate_goes_on(const CifarSettings& before, const CifarSettings& now, const std::string& folder) {
  const auto changes = [&](const std::string& option, const std::string& from, const std::string& to) {
    if (from == to) return;
    throw UsageError("--resume " + folder + ": --" + option + ' ' + to + " where the run has " + from +
                     " would change its learning rate (--schedule " + before.schedule +
                     "); begin a new run with its weights: --start-from " + folder + '/' + now.weights);
  };
  changes("schedule", before.schedule, now.schedule);
  changes("lr", pleat::train::general(before.chosen_lr(), 17), pleat::train::general(now.chosen_lr(), 17));
  if (now.schedule == "constant") return;
  changes("accumulate", std::to_string(before.accumulate), std::to_string(now.accumulate));
  const std::string option = now.schedule == "step" ? "schedule-epochs" : "epochs";
  changes(option, std::to_string(before.planned_epochs()), std::to_string(now.planned_epochs()));
}

}  // namespace

CifarSettings resumed_settings(const CLI::App& app, const std::string& folder) {
  const auto latest =
      pleat::train::latest_checkpoint(std::filesystem::path(folder) / CifarSettings::checkpoints);
  if (!latest) throw UsageError("--resume " + folder + ": there is no checkpoint in this folder");
  std::vector<std::string> saved, arguments;  // as CLI11 takes them: the last one first
  const auto add = [](std::vector<std::string>& to, const std::string& name,
                      const std::vector<std::string>& values) {
    for (const std::string& value : values) to.insert(to.begin(), "--" + name + '=' + value);
  };
  std::istringstream stored(latest->metadata.at("options"));
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(stored)) {
    const CLI::Option* given = app.get_option_no_throw("--" + item.name);
    if (given == nullptr)
      throw UsageError("--resume " + folder + ": its run has an option --" + item.name +
                       ", which there is not any more");
    add(saved, item.name, item.inputs);
    if (given->count() == 0) add(arguments, item.name, item.inputs);
  }
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && option->get_single_name() != "config")
      add(arguments, option->get_single_name(), option->results());
  const CifarSettings before = parsed(saved);
  CifarSettings settings = parsed(arguments);
  if (settings.schedule == "step" && settings.epochs != before.epochs && !settings.schedule_epochs) {
    add(arguments, "schedule-epochs", {std::to_string(before.epochs)});
    settings = parsed(arguments);
  }
  check_rate_goes_on(before, settings, folder);
  settings.output = folder;
  return settings;
}
