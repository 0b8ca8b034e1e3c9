#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/core/base/device.h"

/// How work is recorded for a profiler. A piece of a program shows by its own name when it begins with
///
///   const RecordFunction range("augment");
///
/// and a function of namespace pleat::ops begins with one line, before it does anything:
///
///   const RecordOp op("softmax", x);
///
/// A range lasts from there to the end of the scope, and lies in the range around it. While there is no
/// listener it costs one relaxed load of an atomic pointer. A listener is a RangeObserver; profile/profiler.h
/// has one. docs/internals.md ("The profiler's hook") says which layer records what.

namespace pleat {

class Tensor;

/// What a range is: one that a user named, a step of a training (what lies between two calls of
/// Profiler::step), a module's forward, a function of pleat::ops, a node of the tape in backward.
enum class RangeKind : unsigned char { user, step, module, op, backward };

/// What is known when a range begins. Valid during the call only.
struct RangeStart {
  RangeKind kind = RangeKind::user;
  std::string_view name = {};                  ///< of a node: that of its forward
  std::span<const Tensor* const> inputs = {};  ///< some may be undefined
  std::string_view module_path = {};           ///< of a module: "layer1.0.conv1"
  uint64_t sequence = 0;                       ///< of a node: the number by which it was recorded
};

/// What is known only later.
struct RangeDetails {
  std::string_view implementation = {};  ///< "direct", "cublas"
  double flops = 0;                      ///< operations on floating numbers; a multiply-add is two
  double bytes = 0;                      ///< read and written by an ideal implementation
};

/// Is called for every range of every thread. Calls come from the threads that do the work, several at a
/// time, and also from destructors: none may throw, none may call functions that record ranges.
class RangeObserver {
 public:
  /// Returns a token for the calls below; 0 when it wants no more of the range.
  virtual uint64_t begin(const RangeStart& start) noexcept = 0;
  virtual void end(uint64_t token) noexcept = 0;
  virtual void add(uint64_t token, const RangeDetails& details) noexcept = 0;
  /// The tape has recorded, in this thread, the result of the function `name` under this number.
  virtual void recorded(std::string_view name, uint64_t sequence) noexcept = 0;
  /// A tensor's memory was taken (bytes > 0) or given back (bytes < 0).
  virtual void memory(const void* address, int64_t bytes, Device device) noexcept = 0;

 protected:
  ~RangeObserver() = default;
};

/// The listener from now on; nullptr for none. Ranges in other threads may call the old one a moment longer:
/// it must exist as long as the process.
void set_range_observer(RangeObserver* observer);

namespace detail {
inline std::atomic<RangeObserver*> range_observer{nullptr};
}

/// Whether there is a listener.
inline bool is_recording() { return detail::range_observer.load(std::memory_order_relaxed) != nullptr; }

namespace detail {

/// What the classes below share.
class Range {
 public:
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  /// Whether a listener takes this range, so that details are worth finding out.
  bool active() const { return token_ != 0; }
  void add(const RangeDetails& details) const;

 protected:
  Range() = default;
  ~Range() {
    if (token_ != 0) [[unlikely]]
      end();
  }
  void begin(const RangeStart& start);

 private:
  void end();
  uint64_t token_ = 0;
};

}  // namespace detail

/// A range that a user names.
class RecordFunction : public detail::Range {
 public:
  explicit RecordFunction(const char* name) {
    if (is_recording()) [[unlikely]]
      begin({.name = name});
  }
  explicit RecordFunction(const std::string& name) {
    if (is_recording()) [[unlikely]]
      begin({.name = name});
  }
  /// For "SGD" and ".step", which are joined only for a listener.
  RecordFunction(const std::string& name, const char* suffix) {
    if (is_recording()) [[unlikely]]
      begin({.name = name + suffix});
  }
};

/// A function of pleat::ops with the tensors it is given. In a range of an equal name - that of the node
/// whose backward it is, or of the overload that called it - it opens no second one, but adds to that one
/// what it knows.
///
///   const RecordOp op("matmul", a, b);
///   op.details([&] { return RangeDetails{.implementation = "eigen", .flops = 2.0 * m * n * k}; });
class RecordOp : public detail::Range {
 public:
  template <std::same_as<Tensor>... Tensors>
  explicit RecordOp(const char* name, const Tensors&... inputs) {
    if (is_recording()) [[unlikely]] {
      const std::array<const Tensor*, sizeof...(Tensors)> list{&inputs...};
      begin({.kind = RangeKind::op, .name = name, .inputs = list});
    }
  }
  /// For "max_pool2d" and "_backward", which are joined only for a listener.
  template <std::same_as<Tensor>... Tensors>
  RecordOp(const char* name, const char* suffix, const Tensors&... inputs) {
    if (is_recording()) [[unlikely]] {
      const std::array<const Tensor*, sizeof...(Tensors)> list{&inputs...};
      begin({.kind = RangeKind::op, .name = std::string(name) + suffix, .inputs = list});
    }
  }
  RecordOp(const char* name, std::span<const Tensor> inputs) {
    if (is_recording()) [[unlikely]]
      begin_with(name, inputs);
  }

  /// Adds what `find()` returns, and calls it only for a listener.
  template <std::invocable<> F>
  void details(const F& find) const {
    if (active()) [[unlikely]]
      add(find());
  }

 private:
  void begin_with(const char* name, std::span<const Tensor> inputs);
};

/// The backward of a node of the tape, with the gradients it is given.
class RecordBackward : public detail::Range {
 public:
  RecordBackward(const std::string& name, uint64_t sequence, const std::vector<Tensor>& gradients) {
    if (is_recording()) [[unlikely]]
      begin_with(name, sequence, gradients);
  }

 private:
  void begin_with(const std::string& name, uint64_t sequence, const std::vector<Tensor>& gradients);
};

/// A module's forward.
class RecordModule : public detail::Range {
 public:
  RecordModule(const std::string& type, const std::string& path, std::span<const Tensor* const> inputs) {
    begin({.kind = RangeKind::module, .name = type, .inputs = inputs, .module_path = path});
  }
};

/// For the tape and the allocators: report a node that was recorded, and memory taken and given back.
void record_node(std::string_view name, uint64_t sequence);
void record_memory(const void* address, int64_t bytes, Device device);

}  // namespace pleat
