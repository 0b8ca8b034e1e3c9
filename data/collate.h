#pragma once

#include <functional>
#include <vector>

#include "pleat/data/dataset.h"

/// How a DataLoader makes a batch of samples that do not lie side by side as they are: `.collate` of its
/// options.

namespace pleat::data {

/// Makes one batch [B, ...] of B batches of one sample each, [1, ...], in their order. A loader's workers
/// call it from several threads at once. What a batch has beside inputs and targets is in its `extras`.
using Collate = std::function<Batch(const std::vector<Batch>&)>;

struct PadCollateOptions {
  double padding_value = 0;  ///< behind the end of a sequence of inputs
  /// Behind that of targets where these are sequences, too: -100 is what cross_entropy ignores.
  double target_padding_value = -100;
};
/// Sequences [1, L, ...], each of its own length L, become [B, the longest, ...], and `extras["lengths"]`,
/// int64 [B], their lengths: `lstm.forward(x, {.lengths = batch.extras.at("lengths")})`. Targets
/// [1] become [B]; those of rank 2 and more are sequences, too. The function throws ShapeError for inputs
/// that have no length, and where other sizes differ, DTypeError where types do, ValueError where only some
/// have targets. (PyTorch's pad_sequence with batch_first.)
Collate pad_collate(PadCollateOptions options = {});

}  // namespace pleat::data
