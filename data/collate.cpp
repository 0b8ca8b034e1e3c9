#include "pleat/data/collate.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::data {
namespace {

/// Samples [1, L, ...] as [B, the longest, ...].
Tensor padded(const char* what, const std::vector<Tensor>& samples, double value) {
  const Tensor& first = samples.front();
  int64_t longest = 0;
  for (const Tensor& sample : samples) {
    check<ShapeError>(
        sample.rank() >= 2 && sample.size(0) == 1 && sample.rank() == first.rank() &&
            std::equal(sample.shape().begin() + 2, sample.shape().end(), first.shape().begin() + 2),
        "pad_collate: {} must be [1, length, ...] and differ in their length alone, got {} and {}", what,
        first, sample);
    check<DTypeError>(sample.dtype() == first.dtype(), "pad_collate: {} must be of one type, got {} and {}",
                      what, first, sample);
    longest = std::max(longest, sample.size(1));
  }
  Shape shape = first.shape();
  shape[0] = static_cast<int64_t>(samples.size());
  shape[1] = longest;
  const Tensor result = full(shape, value, {.dtype = first.dtype(), .device = first.device()});
  for (std::size_t i = 0; i < samples.size(); ++i)
    ops::copy_into(narrow(narrow(result, 0, i, 1), 1, 0, samples[i].size(1)), samples[i]);
  return result;
}

}  // namespace

Collate pad_collate(PadCollateOptions options) {
  return [options](const std::vector<Batch>& samples) {
    check<ValueError>(!samples.empty(), "pad_collate: needs at least one sample");
    std::vector<Tensor> inputs, targets;
    for (const Batch& sample : samples) {
      inputs.push_back(sample.inputs);
      targets.push_back(sample.targets);
      check<ValueError>(targets.back().defined() == targets.front().defined(),
                        "pad_collate: only some samples have targets");
    }
    Batch batch{padded("inputs", inputs, options.padding_value), {}};
    if (targets.front().defined())
      batch.targets = targets.front().rank() >= 2 ? padded("targets", targets, options.target_padding_value)
                                                  : cat(targets);
    std::vector<int64_t> lengths;
    for (const Tensor& sequence : inputs) lengths.push_back(sequence.size(1));
    batch.extras["lengths"] = from_vector(lengths, {batch.size()}, Device{});
    return batch;
  };
}

}  // namespace pleat::data
