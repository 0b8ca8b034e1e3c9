#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

/// The options of train_cifar.
struct CifarSettings {
  std::string data;  ///< empty: a synthetic set
  std::string model = "small";
  int64_t epochs = 5;
  int64_t batch_size = 64;
  std::string optimizer = "adam";
  std::optional<double> lr;  ///< none: a value that suits the optimiser
  std::string schedule = "cosine";
  std::optional<double> momentum;      ///< of sgd and rmsprop; none: 0.9
  std::optional<double> weight_decay;  ///< none: a value that suits the optimiser
  double label_smoothing = 0;
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
  bool summary = false;
  bool cuda_graph = false;

  /// Files that a run leaves in `output`.
  static constexpr const char* metrics = "metrics.csv";
  static constexpr const char* weights = "weights.safetensors";
  static constexpr const char* curves = "learning_curves.svg";

  double chosen_lr() const;
  double chosen_momentum() const { return momentum.value_or(0.9); }
  double chosen_weight_decay() const { return weight_decay.value_or(optimizer == "sgd" ? 5e-4 : 0); }
  bool augments_by(const std::string& change) const;
};

void add_cifar_options(CLI::App& app, CifarSettings& settings);

/// Throws UsageError for options that exclude each other.
void check_together(const CifarSettings& settings);
