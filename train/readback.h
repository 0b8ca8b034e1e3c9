#pragma once

#include <optional>

#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::train {

/// A number that a GPU computes, copied to the host without a wait. On the CPU it is there at once.
class Readback {
 public:
  /// Starts the copy of a tensor of one element.
  explicit Readback(const Tensor& number);

  bool is_ready() const { return !done_ || done_->is_done(); }
  /// Waits for the number.
  double value() const;

 private:
  Tensor number_;  ///< on the CPU
  std::optional<cuda::Event> done_;
};

}  // namespace pleat::train
