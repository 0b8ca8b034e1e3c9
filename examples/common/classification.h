#pragma once

#include <pleat/pleat.h>

/// What training a classifier takes beside its loop.

/// Mean loss and share of right answers over the samples seen. They are summed where the tensors are: a GPU
/// is waited for only by who asks.
class ClassificationScore {
 public:
  /// `logits` [B, classes] with targets [B], or with probabilities [B, classes], of which the largest counts.
  void add(const pleat::Tensor& loss, const pleat::Tensor& logits, const pleat::Tensor& targets);
  double loss() const;
  double accuracy() const;
  int64_t samples() const { return samples_; }

 private:
  pleat::Tensor loss_;   ///< sum over the samples, float64; undefined before the first
  pleat::Tensor right_;  ///< how many, int64
  int64_t samples_ = 0;
};

/// The score of a network on all batches of a loader, which gives them on the network's device; in evaluation
/// mode and without recording.
ClassificationScore evaluate(pleat::nn::Module& net, pleat::data::DataLoader& loader);

/// Bytes to floats with the mean and spread of CIFAR-10's training images.
pleat::data::Transform cifar_normalization();
