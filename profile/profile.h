#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/terminal.h"
#include "pleat/core/tensor/dtype.h"
#include "pleat/core/tensor/shape.h"

/// A profile, its parts and its table. Times are nanoseconds of a steady clock, counted from the profile's
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
      {};                 ///< path and type of the module whose forward it is part of: "layer1.0 (Residual)"
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

/// What separates rows beside the name. Can be combined: GroupBy::shape | GroupBy::module.
enum class GroupBy : unsigned { name = 0, shape = 1, module = 2, implementation = 4, format = 8 };
constexpr GroupBy operator|(GroupBy a, GroupBy b) {
  return static_cast<GroupBy>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool includes(GroupBy all, GroupBy one) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

struct KeyAveragesOptions {
  GroupBy group_by = GroupBy::name;
};

/// The key that a table is sorted by, the largest first (names: from A to Z).
enum class SortBy : unsigned char {
  automatic,  ///< self_cuda where a GPU was busy, else self_cpu
  name,
  self_cpu,
  cpu,
  self_cuda,
  cuda,
  self_cpu_memory,
  cpu_memory,
  self_cuda_memory,
  cuda_memory,
  calls,
  flops
};

struct TableOptions {
  SortBy sort_by = SortBy::automatic;
  std::size_t row_limit = 100;
  std::size_t max_name_width = 55;
  std::size_t max_shapes_width = 80;
  /// Columns of text that it may take: names are cut and columns left out that say least, down to name,
  /// times, what rows are grouped by and what they are sorted by. 0: as many as it needs.
  int width = page_width();
};

/// One row: all ranges of a key. Times are nanoseconds, memory is bytes.
///
/// `self` excludes all ranges inside, so that the sum over all rows is the whole. The others
/// include them; a range inside another of the same row is counted once.
struct KeyAverage {
  std::string name = {};  ///< steps of a training: "ProfilerStep*"
  RangeKind kind = RangeKind::user;
  std::string shapes = {};          ///< of the inputs, where grouped by shape: "[8, 3, 32, 32] [16, 3, 3, 3]"
  std::string module = {};          ///< where grouped by module
  std::string implementation = {};  ///< those that ran, separated by commas
  std::string format = {};          ///< memory formats of inputs with 3 to 5 dimensions, separated by commas
  std::string kernel = {};          ///< of those that it launched itself, the one with the longest total time
  int64_t calls = 0;
  int64_t cpu = 0, self_cpu = 0;
  int64_t cuda = 0, self_cuda = 0;
  int64_t cpu_memory = 0, self_cpu_memory = 0;
  int64_t cuda_memory = 0, self_cuda_memory = 0;
  double flops = 0;  ///< as the ranges report it
};

/// All rows; their self times add up to the totals.
struct KeyAverages {
  std::vector<KeyAverage> rows = {};  ///< in the order of their first ranges
  int64_t cpu = 0;                    ///< of all threads
  int64_t cuda = 0;                   ///< of all GPUs
  bool with_cuda = false, with_memory = false, with_flops = false, with_shapes = false, with_modules = false;
  std::vector<std::string> warnings;
  std::vector<std::string> hints = {};  ///< see fusion_hints

  /// The row of that name; throws ValueError where there is none. With several (grouped by more than the
  /// name), the first.
  const KeyAverage& at(const std::string& name) const;

  /// A text table with PyTorch's columns, and with implementation and memory format. Percentages of
  /// self times add up to 100 over all rows.
  std::string table(TableOptions options = {}) const;
};

std::ostream& operator<<(std::ostream& out, const KeyAverages& averages);

/// The result of a recording.
struct Profile {
  std::vector<Event> events;  ///< parents before children; those of one parent in the order in which they ran
  std::vector<DeviceActivity> activities;  ///< by their start
  std::vector<MemoryChange> memory;        ///< by time; empty unless asked for
  int64_t duration = 0;                    ///< ns
  int threads = 0;                         ///< number of threads that had ranges
  bool on_cuda = false;                    ///< whether GPUs were recorded
  bool with_shapes = false;
  bool with_memory = false;
  bool with_flops = false;
  std::vector<std::string> warnings;  ///< sentences about what is missing or inexact

  /// One row for all ranges with the same name (and, with `options`, the same shapes, modules ...).
  KeyAverages key_averages(KeyAveragesOptions options = {}) const;

  /// The events, flows and memory as a trace for chrome://tracing and https://ui.perfetto.dev. See
  /// write_chrome_trace.
  void export_chrome_trace(const std::filesystem::path& file) const;
};

/// The CPU time of a range without that of the ranges in it.
int64_t self_time(const Profile& profile, std::size_t event);
/// The time that GPUs were busy with what the range launched, by itself and by all ranges in it. Activities
/// that ran at the same time both count.
int64_t device_time(const Profile& profile, std::size_t event);
int64_t self_device_time(const Profile& profile, std::size_t event);

/// A line for functions that followed one another and that one call computes in fewer passes over memory,
/// where that saves `least` of the time or more, the most first: "batch_norm + relu, 12 calls: ... would save
/// about 14 % of the time". An estimate from what the functions after the first took. Needs shapes.
std::vector<std::string> fusion_hints(const Profile& profile, double least = 0.01);

/// The trace as JSON in Chrome's "trace event" format, which chrome://tracing and https://ui.perfetto.dev
/// open.
///
/// Slices ("X"): a row for each thread, with steps, modules, ops and nodes of the tape nested; a
/// row for each stream of a GPU, and further rows where activities of a stream overlap, since
/// slices of a row must nest. Flows: "ac2g" from a range to what it launched, "fwdbwd" from an op
/// to the node that is its backward. Counters: memory. `ts` and `dur` are microseconds from the
/// profile's start. The result is valid JSON in UTF-8 for any names: bytes that are not UTF-8
/// become U+FFFD.
void write_chrome_trace(std::ostream& out, const Profile& profile);

/// The same into a file, as AtomicFile writes it: as a whole or not at all. Throws FileError.
void write_chrome_trace(const std::filesystem::path& file, const Profile& profile);

}  // namespace pleat::profile
