#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/dtype.h"
#include "pleat/core/tensor/shape.h"

/// The parts of a profile. All times are nanoseconds of a steady clock, counted from the profile's
/// start.

namespace pleat::profile {

/// The index of nothing.
inline constexpr std::size_t none = static_cast<std::size_t>(-1);

/// An input tensor of a range. For an undefined one (no bias) only `defined` is set.
struct TensorInfo {
  bool defined = false;
  Shape shape = {};
  DType dtype = float32;
  MemoryFormat format = MemoryFormat::contiguous;
  Device device = {};
  bool operator==(const TensorInfo&) const = default;
};

/// A range that ran (core/base/record_function.h). A range lies wholly within its parent.
struct Event {
  std::string name = {};  ///< of a node of the tape: its forward's with "_backward"
  RangeKind kind = RangeKind::user;
  uint64_t id = 0;
  int thread = 0;  ///< 0: the one that profiled
  int64_t start = 0;
  int64_t end = 0;
  bool cut = false;  ///< it had not ended when the recording ended
  std::size_t parent = none;
  std::vector<std::size_t> children = {};

  std::vector<TensorInfo> inputs = {};
  std::string implementation = {};
  double flops = 0;
  double bytes = 0;
  std::string module =
      {};                 ///< path and type of the module whose forward it belongs to: "layer1.0 (Residual)"
  uint64_t sequence = 0;  ///< the tape's number of the op's node; 0 when it was not recorded
  std::size_t forward = none;  ///< of a node: the op that recorded it

  std::vector<std::size_t> activities = {};  ///< launched by it, not by a range inside
  int64_t self_cpu_memory = 0;  ///< bytes allocated less bytes freed by it, not by a range inside
  int64_t self_cuda_memory = 0;

  int64_t duration() const { return end - start; }
};

/// A kernel, copy or fill of a GPU, or an op that events timed.
struct DeviceActivity {
  enum class Kind : unsigned char { kernel, memcpy, memset, measured };
  Kind kind = Kind::kernel;  ///< `measured`: the time of an op between two events in its stream
  std::string name = {};
  int64_t start = 0;
  int64_t end = 0;
  Device device = DeviceType::cuda;
  uint64_t stream = 0;
  uint64_t correlation = 0;        ///< CUPTI's number of the launch; 0 for none
  std::array<int64_t, 3> grid{};   ///< of a kernel
  std::array<int64_t, 3> block{};  ///< of a kernel
  int64_t registers = 0;           ///< of a kernel, for each thread
  int64_t shared_memory = 0;       ///< of a kernel, bytes for each block
  int64_t bytes = 0;               ///< of a copy
  std::size_t event = none;        ///< the range that launched it

  int64_t duration() const { return end - start; }
};

/// Memory allocated (bytes > 0) or freed (bytes < 0).
struct MemoryChange {
  int64_t time = 0;
  int64_t bytes = 0;
  Device device = {};
  std::size_t event = none;  ///< the innermost range that ran in the thread
};

}  // namespace pleat::profile
