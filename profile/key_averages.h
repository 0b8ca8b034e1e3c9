#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "pleat/core/base/record_function.h"
#include "pleat/core/base/terminal.h"

namespace pleat::profile {

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
  std::vector<KeyAverage> rows;  ///< in the order of their first ranges
  int64_t cpu = 0;               ///< of all threads
  int64_t cuda = 0;              ///< of all GPUs
  bool with_cuda = false, with_memory = false, with_flops = false, with_shapes = false, with_modules = false;
  std::vector<std::string> warnings;

  /// The row of that name; throws ValueError where there is none. With several (grouped by more than the
  /// name), the first.
  const KeyAverage& at(const std::string& name) const;

  /// A text table with PyTorch's columns, and with implementation and memory format. Percentages of
  /// self times add up to 100 over all rows.
  std::string table(TableOptions options = {}) const;
};

std::ostream& operator<<(std::ostream& out, const KeyAverages& averages);

}  // namespace pleat::profile
