#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::data {

/// Samples side by side: inputs [B, ...] and, where there are any, targets [B, ...].
struct Batch {
  Tensor inputs;
  Tensor targets;
  /// Their places in the data set, in a batch of a DataLoader.
  std::vector<int64_t> indices = {};
  /// What else there is of the samples, by name: the "lengths" [B] of padded sequences, the "boxes" [K, 5] in
  /// pictures. Transforms that know nothing of them leave them as they are.
  std::map<std::string, Tensor> extras = {};

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
  /// The targets of all samples, [size, ...]; undefined where there are none. A type that knows them
  /// overrides this, which reads all samples.
  virtual Tensor targets() const;
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
  std::shared_ptr<const Dataset> copy() const override;

  /// The same samples on a device: batches are then picked out there, and the host only sends their indices.
  TensorDataset to(Device device) const;
  /// Whether all samples take at most `share` of the memory that is free on the device. Always on the CPU,
  /// where they are already or go by a copy of the same size.
  bool fits(Device device, double share = 0.5) const;

  const Tensor& inputs() const { return inputs_; }
  Tensor targets() const override { return targets_; }

 private:
  Tensor inputs_;
  Tensor targets_;
};

/// A data set of any type, as loaders, subsets and the like keep one. What takes it takes a data set, and
/// keeps a copy (that of a TensorDataset shares its tensors), or the data set itself when it is moved in; or
/// a std::shared_ptr, for one that cannot be copied or that changes between epochs. Throws ValueError for an
/// empty pointer, and for a data set that is known by a base of its type and has no copy() of its own, of
/// which only a part would be copied.
class AnyDataset {
 public:
  template <class D>
  requires std::derived_from<std::remove_cvref_t<D>, Dataset> AnyDataset(D&& dataset)
      : pointer_(kept(std::forward<D>(dataset))) {}
  template <class D>
  requires std::derived_from<std::remove_cv_t<D>, Dataset> AnyDataset(std::shared_ptr<D> dataset)
      : AnyDataset(Shared{}, std::move(dataset)) {}

  const Dataset& operator*() const { return *pointer_; }
  const Dataset* operator->() const { return pointer_.get(); }
  const std::shared_ptr<const Dataset>& pointer() const { return pointer_; }

 private:
  struct Shared {};
  AnyDataset(Shared, std::shared_ptr<const Dataset> dataset);

  template <class D>
  static std::shared_ptr<const Dataset> kept(D&& dataset) {
    using Kept = std::remove_cvref_t<D>;
    if constexpr (std::is_abstract_v<Kept>) {
      return whole_copy(dataset);
    } else {
      static_assert(std::is_constructible_v<Kept, D>,
                    "the data set is kept: this one cannot be copied; std::move it in, or give a "
                    "std::shared_ptr to it");
      if (typeid(dataset) != typeid(Kept)) return whole_copy(dataset);
      return std::make_shared<const Kept>(std::forward<D>(dataset));
    }
  }
  /// Of its own type, which is not that of the reference.
  static std::shared_ptr<const Dataset> whole_copy(const Dataset& dataset);

  std::shared_ptr<const Dataset> pointer_;
};

}  // namespace pleat::data
