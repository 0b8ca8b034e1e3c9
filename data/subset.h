#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pleat/data/dataset.h"

/// Data sets made of others, whose samples they do not copy.

namespace pleat::data {

/// Samples of a data set, by their places in it, in any order and as often as they are named.
class Subset : public Dataset {
 public:
  /// Throws IndexError for a place outside [0, dataset.size()).
  Subset(AnyDataset dataset, std::vector<int64_t> indices);

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Batch get(std::span<const int64_t> indices) const override;
  Tensor targets() const override;
  Device device() const override { return dataset_->device(); }
  std::shared_ptr<const Dataset> copy() const override;

  const Dataset& dataset() const { return *dataset_; }
  const std::vector<int64_t>& indices() const { return indices_; }

 private:
  AnyDataset dataset_;
  std::vector<int64_t> indices_;
};

/// The samples of several data sets, one set after the other.
class ConcatDataset : public Dataset {
 public:
  /// Throws ValueError without data sets, DeviceError where they are on several devices.
  explicit ConcatDataset(std::vector<AnyDataset> datasets);

  int64_t size() const override { return ends_.back(); }
  /// Throws IndexError; ShapeError and DTypeError where samples of two sets do not fit together, ValueError
  /// where only some have targets, or others extras, and for "boxes", which name
  /// pictures by their places: write one CSV file for both.
  Batch get(std::span<const int64_t> indices) const override;
  /// Throws as get does.
  Tensor targets() const override;
  Device device() const override { return datasets_.front()->device(); }
  std::shared_ptr<const Dataset> copy() const override;

 private:
  std::vector<AnyDataset> datasets_;
  std::vector<int64_t> ends_;  ///< of each set: samples up to its last
};

}  // namespace pleat::data
