// Private header: not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "pleat/core/base/device.h"

/// What of a CUDA graph (core/graph/cuda_graph.h) concerns those who put work into it. A graph repeats what
/// the GPU did while it was captured; what the host worked out meanwhile - rates, seeds, pointers - is in it
/// as it was. Who works out something new at each step says so here, and it is worked out again before each
/// replay.

namespace pleat {

enum class DType : uint8_t;
class Generator;
class Shape;
class Tensor;
struct TensorImpl;

class Capture {
 public:
  /// The capture under way in this thread, or nullptr.
  static Capture* current() noexcept;

  /// Whose work is captured.
  virtual Device device() const = 0;
  /// Throws Error: `op`, or the function of pleat::ops that called it, cannot be in a graph, because of
  /// `reason`.
  [[noreturn]] virtual void refuse(const char* op, const char* reason) const = 0;
  /// The same for what makes the host wait for the GPU, when this thread captures.
  static void refuse_to_wait(const char* op);
  /// The graph reads or writes this memory whenever it runs.
  virtual void keep(std::shared_ptr<std::byte> memory) = 0;
  /// Memory that is written before the graph runs, so that nothing else in the graph may use it.
  virtual Tensor own_memory(const Shape& shape, DType dtype) = 0;
  /// The stream whose memory is handed out.
  virtual void* memory_stream() const = 0;
  /// Has the generator's seed and the number of its draws on the device whenever the graph runs. A replay
  /// takes as many draws as the capture did.
  struct Draw {
    const uint64_t* state;  ///< on the device: the seed, and the draws taken before the replay
    uint64_t number;        ///< of this draw among those of the graph
  };
  virtual Draw next_draw(Generator& generator) = 0;
  /// Runs `part`, which makes tables for kernels on the host (HostTables), now and before each replay.
  virtual void run_host_part(std::function<void()> part) = 0;

  /// Gradients that the graph makes and then adds to; those from before it would be added to again and again.
  void add_gradient(const TensorImpl& gradient) { gradients_.insert(&gradient); }
  bool has_gradient(const TensorImpl& gradient) const { return gradients_.contains(&gradient); }

 protected:
  ~Capture() = default;

 private:
  std::unordered_set<const TensorImpl*> gradients_;
};

namespace detail {
/// For those who capture: makes `capture` this thread's, nullptr for none.
void set_capture(Capture* capture) noexcept;
}  // namespace detail

}  // namespace pleat
