#pragma once

#include <optional>

#include <pleat/pleat.h>

/// A number that a GPU computes, copied to the host without a wait. On the CPU it is there at once.
class Readback {
 public:
  /// Starts the copy of a tensor of one element.
  explicit Readback(const pleat::Tensor& number);

  bool is_ready() const { return !done_ || done_->is_done(); }
  /// Waits for the number.
  double value() const;

 private:
  pleat::Tensor number_;  ///< on the CPU
  std::optional<pleat::cuda::Event> done_;
};
