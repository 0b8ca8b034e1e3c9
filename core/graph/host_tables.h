// Private header: not installed.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Tables that the host part of a step sends to the device. While a graph is captured they get memory of
/// their own, and the kernel that reads it goes into the graph, the copy does not; when the part runs again
/// before a replay, only the copies are made.
class HostTables {
 public:
  /// Those of the part that runs in this thread, or nullptr.
  static HostTables* current() noexcept;

  /// Copies a table, in pinned memory, to where the graph reads it. Throws Error when it has another size
  /// than the one that was captured in its place.
  Tensor send(const char* op, const Tensor& table);
  /// Whether the kernels are in the graph already.
  bool replays() const { return replays_; }

  /// Calls `part`; the tables are sent in the order of the first call.
  void run(const std::function<void()>& part, bool replays);

 private:
  std::vector<Tensor> tables_;
  std::size_t next_ = 0;
  bool replays_ = false;
};

}  // namespace pleat
