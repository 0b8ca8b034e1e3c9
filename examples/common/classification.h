#pragma once

#include <pleat/pleat.h>

/// What training a classifier takes beside its loop.

/// Mean loss and share of right answers over the samples seen.
class ClassificationScore {
 public:
  /// `logits` [B, classes] with targets [B], or with probabilities [B, classes], of which the largest counts.
  void add(const pleat::Tensor& loss, const pleat::Tensor& logits, const pleat::Tensor& targets);
  double loss() const { return samples_ == 0 ? 0 : loss_ / static_cast<double>(samples_); }
  double accuracy() const {
    return samples_ == 0 ? 0 : static_cast<double>(right_) / static_cast<double>(samples_);
  }
  int64_t samples() const { return samples_; }

 private:
  double loss_ = 0;
  int64_t right_ = 0;
  int64_t samples_ = 0;
};

/// The score of a network on all batches of a loader, in evaluation mode and without recording.
ClassificationScore evaluate(pleat::nn::Module& net, pleat::data::DataLoader& loader);

/// Bytes to floats with the mean and spread of CIFAR-10's training images.
pleat::data::Transform cifar_normalization();
