#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "pleat/core/tensor/tensor.h"
#include "pleat/data/loader.h"
#include "pleat/nn/module.h"
#include "pleat/nn/optim/optimizer.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/nn/state_dict.h"
#include "pleat/train/progress.h"
#include "pleat/train/step.h"

/// Parts of the training of a classifier.

namespace pleat::train {

/// Mean loss and share of right predictions over the samples seen. They are summed on the tensors'
/// device; only reading them waits for a GPU.
class ClassificationScore {
 public:
  /// `logits` [B, classes] with targets [B], or with probabilities [B, classes], of which the largest counts.
  void add(const Tensor& loss, const Tensor& logits, const Tensor& targets);
  double loss() const;
  double accuracy() const;
  int64_t samples() const { return samples_; }

  /// For checkpoints within an epoch.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

  /// The present score, which can be read once a GPU has computed it.
  struct Reading {
    Readback loss, right;  ///< sums over the samples
    int64_t samples;

    bool is_ready() const { return loss.is_ready() && right.is_ready(); }
    double mean_loss() const { return loss.value() / static_cast<double>(samples); }
    double accuracy() const { return right.value() / static_cast<double>(samples); }
  };
  /// Only after `add`.
  Reading reading() const { return {Readback(loss_), Readback(right_), samples_}; }

 private:
  Tensor loss_;   ///< sum over the samples, float64; undefined before the first
  Tensor right_;  ///< how many, int64
  int64_t samples_ = 0;
};

/// The score of a network on all batches of a loader, which must give them on the network's device;
/// in evaluation mode and off the tape. Throws NotFiniteError when the loss is not finite; the
/// message names the function that gave it first, and the epoch, where there is one; ValueError for a loader
/// that leaves out samples (drop_last).
ClassificationScore evaluate(nn::Module& net, data::DataLoader& loader,
                             std::optional<int64_t> epoch = std::nullopt);

/// The figures of an epoch.
struct EpochResult {
  ClassificationScore train;
  ClassificationScore test;
  double learning_rate;  ///< of its first step
  double seconds;        ///< of its training

  double images_per_second() const { return static_cast<double>(train.samples()) / seconds; }
};

/// Epoch `number` of `of`.
struct EpochNumber {
  int64_t number;
  int64_t of;
};

/// The rest of an epoch: all batches of the loader's next loop, with a step of the schedule after each
/// update. `score` gets the batches, beside what it has. Calls `after_step` after each batch. Shows a
/// progress bar on a terminal. Throws NotFiniteError, and what `after_step` throws.
void train_epoch(EpochNumber epoch, Step& step, data::DataLoader& loader, optim::Optimizer& optimizer,
                 optim::Schedule& schedule, ClassificationScore& score,
                 const std::function<void()>& after_step = {});

/// A whole epoch by the plain recipe: training with cross entropy, then the test.
EpochResult run_epoch(EpochNumber epoch, nn::Module& net, data::DataLoader& train_loader,
                      data::DataLoader& test_loader, optim::Optimizer& optimizer, optim::Schedule& schedule);

/// A line of text for each epoch, for a terminal.
class EpochTable {
 public:
  /// The next line, in at most `width` columns (0: all); see LineTable.
  std::string line(int64_t epoch, const EpochResult& result, int width = terminal_width(1));

 private:
  LineTable table_{{{"epoch", 5, 8},
                    {"train loss", 10, 5},
                    {"train acc", 9, 4},
                    {"test loss", 9, 6},
                    {"test acc", 8, 7},
                    {"learning rate", 13, 1},
                    {"images/s", 8, 2},
                    {"seconds", 7, 3}}};
};

}  // namespace pleat::train
