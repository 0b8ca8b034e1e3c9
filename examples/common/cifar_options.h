#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

/// The options of train_cifar.
struct CifarSettings {
  std::string resume;                ///< the folder of a run that goes on; empty: a new run
  std::string evaluate;              ///< weights to test instead of training; empty: none
  std::vector<std::string> predict;  ///< pictures to classify instead of training
  std::string export_onnx;           ///< the ONNX file to write instead of training; empty: none
  bool tta = false;                  ///< average over versions of each picture when it is classified
  bool find_lr = false;              ///< look for a learning rate instead of training
  std::string from;                  ///< an ONNX file, whose network is trained on; empty: none
  std::string start_from;            ///< weights to begin with where they fit; empty: none

  std::string data;         ///< empty: a synthetic set
  int64_t image_size = 32;  ///< of one's own pictures
  std::string model = "small";
  int64_t epochs = 5;
  int64_t batch_size = 64;
  std::string optimizer = "adam";
  std::optional<double> lr;  ///< none: a value that suits the optimiser
  std::string schedule = "cosine";
  std::optional<int64_t> schedule_epochs;  ///< that --schedule step is made for; none: all
  std::optional<double> momentum;          ///< of sgd and rmsprop; none: 0.9
  std::optional<double> weight_decay;      ///< none: a value that suits the optimiser
  double label_smoothing = 0;
  int64_t accumulate = 1;           ///< batches an update
  std::optional<double> clip_grad;  ///< none: gradients are not clipped
  std::optional<double> ema;  ///< decay of the average of weights that is tested and kept; none: no average
  std::optional<int64_t> patience;  ///< epochs without improvement before the run ends; none: all epochs
  std::vector<std::string> augment = {"flip"};
  uint64_t seed = 1;
  int threads = 0;  ///< 0: all cores
  int workers = 1;
  std::string device = "auto";
  std::string precision = "highest";
  std::string amp = "off";
  std::string conv_implementation;  ///< empty: the default choice
  bool no_fusion = false;           ///< every module in passes of its own (nn/fusion.h)
  std::string output = "runs/cifar";
  std::string profile;  ///< empty: none
  int64_t keep_checkpoints = 3;
  double checkpoint_seconds = 600;  ///< between checkpoints within an epoch
  bool no_report = false;
  bool summary = false;
  bool cuda_graph = false;
  bool sync_batch_norm = false;  ///< of several processes

  /// The options that were given, as the text of a file for --config, and as arguments.
  std::string given;
  std::vector<std::pair<std::string, std::string>> arguments;

  /// Files and folders that a run leaves in `output`.
  static constexpr const char* metrics = "metrics.csv";
  static constexpr const char* weights = "weights.safetensors";
  static constexpr const char* curves = "learning_curves.svg";
  static constexpr const char* options = "options.toml";
  static constexpr const char* report = "report.html";
  static constexpr const char* checkpoints = "checkpoints/";
  static constexpr const char* tensorboard = "tensorboard/";

  double chosen_lr() const;
  int64_t planned_epochs() const { return schedule_epochs.value_or(epochs); }
  double chosen_momentum() const { return momentum.value_or(0.9); }
  double chosen_weight_decay() const { return weight_decay.value_or(optimizer == "sgd" ? 5e-4 : 0); }
  bool augments_by(const std::string& change) const;
};

void add_cifar_options(CLI::App& app, CifarSettings& settings);

/// Puts the options that were given into the settings.
void keep_given_options(const CLI::App& app, CifarSettings& settings);
/// The settings of a run that is to resume: those that its newest checkpoint has, but for options that were
/// given now. Throws UsageError when there is no checkpoint, and for options under which the learning rate
/// would not go on as it was planned.
CifarSettings resumed_settings(const CLI::App& app, const std::string& folder);

/// Throws UsageError for options that exclude each other.
void check_together(const CifarSettings& settings);
