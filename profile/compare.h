#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "pleat/profile/measurement.h"

namespace pleat::benchmark {

enum class Color : unsigned char {
  automatic,  ///< on a terminal, unless the environment variable NO_COLOR is set (no-color.org)
  always,
  never
};

struct CompareOptions {
  Color color = Color::automatic;
};

/// Measurements side by side: a table of medians for each label, in it a row of each sub_label under the
/// device and number of threads, and a column of each description, all in the order in which they came. In
/// each row the best is marked with *, and with it all within 1 % of it; a time whose quartiles are more than
/// a tenth of it apart is marked with ~. Digits that mean nothing are not shown.
///
///   benchmark::Compare compare(timer.measure_in_turns(subjects));
///   std::cout << compare;
class Compare {
 public:
  Compare() = default;
  explicit Compare(std::vector<Measurement> measurements);

  /// Blocks of a second measurement with the same labels, device and threads count as more blocks of the
  /// first.
  void add(const Measurement& measurement);
  const std::vector<Measurement>& measurements() const { return measurements_; }
  /// All tables. Color::automatic depends on standard output.
  std::string table(CompareOptions options = {}) const;

 private:
  std::vector<Measurement> measurements_;
};

/// The tables; in colour when `out` is std::cout or std::cerr and that is a terminal.
std::ostream& operator<<(std::ostream& out, const Compare& compare);

/// Whether text for this stream of the process (1: standard output, 2: standard error) may be coloured: it is
/// a terminal, and NO_COLOR is not set.
bool may_color(int descriptor);

/// How many columns of a terminal UTF-8 text takes, as far as each character takes one.
std::size_t display_width(const std::string& text);

}  // namespace pleat::benchmark
