#pragma once

#include <optional>

#include <pleat/pleat.h>

/// A number that a GPU works out, read when it is there: the host waits for nothing. On the CPU it is there
/// at once.
class Readback {
 public:
  /// Of a tensor of one element.
  explicit Readback(const pleat::Tensor& number);

  bool is_ready() const { return !done_ || done_->is_done(); }
  /// Waits for the number.
  double value() const;

 private:
  pleat::Tensor number_;  ///< on the CPU
  std::optional<pleat::cuda::Event> done_;
};
