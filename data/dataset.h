#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::data {

/// Samples side by side: inputs [B, ...] and, where there are any, targets [B, ...].
struct Batch {
  Tensor inputs;
  Tensor targets;
  /// Their places in the data set, in a batch of a DataLoader.
  std::vector<int64_t> indices = {};

  int64_t size() const { return inputs.size(0); }
};

/// Samples by index. Implementations are read by several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// The samples of these indices, in this order, in tensors of their own.
  /// Throws IndexError for an index outside [0, size).
  virtual Batch get(std::span<const int64_t> indices) const = 0;
  /// Where the samples are.
  virtual Device device() const { return {}; }
  /// A copy of the whole object, for those who know only a base of it; none where its type gives none.
  virtual std::shared_ptr<const Dataset> copy() const { return nullptr; }
};

/// Samples that lie in memory, of the host or of a GPU: inputs [N, ...] and targets [N, ...] (or undefined).
class TensorDataset : public Dataset {
 public:
  /// Throws ShapeError when the first dimensions differ or there is none, DeviceError when inputs and targets
  /// are on two devices.
  explicit TensorDataset(Tensor inputs, Tensor targets = {});

  int64_t size() const override { return inputs_.size(0); }
  Batch get(std::span<const int64_t> indices) const override;
  Device device() const override { return inputs_.device(); }
  std::shared_ptr<const Dataset> copy() const override { return std::make_shared<TensorDataset>(*this); }

  /// The same samples on a device: batches are then picked out there, and the host only sends their indices.
  TensorDataset to(Device device) const;
  /// Whether all samples take at most `share` of the memory that is free on the device. Always on the CPU,
  /// where they are already or go by a copy of the same size.
  bool fits(Device device, double share = 0.5) const;

  const Tensor& inputs() const { return inputs_; }
  const Tensor& targets() const { return targets_; }

 private:
  Tensor inputs_;
  Tensor targets_;
};

}  // namespace pleat::data
