#pragma once

#include <string>
#include <vector>

/// Axes: which values get a tick, and how numbers are written.

namespace pleat::bench::plot {

/// Three digits that count, with a comma for thousands; powers of ten outside of 0.0001 to a million:
/// "0.0123", "12.3", "1,230", "1.23×10⁷".
std::string number_text(double value);

/// A map from values to pixels with ticks at round values. Values beyond 1e-290 ... 1e290 are held there.
class Scale {
 public:
  /// From 0 to a round number from `high` on; with a `high` that is not positive to 1.
  static Scale linear_from_zero(double high);
  /// Round numbers around [low, high], which may be in any order, equal or negative.
  static Scale linear(double low, double high);
  /// Around positive numbers, at least a factor of two.
  static Scale logarithmic(double low, double high);

  /// Lets the scale end a little beyond `low` and `high` instead of at ticks; ticks beyond are dropped.
  void crop(double low, double high);

  /// From now on `low` of the scale is at pixel `start`, its high at `end`.
  void place(double start, double end) { start_ = start, end_ = end; }
  /// Values outside of the scale are held at its ends.
  double operator()(double value) const;

  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  bool log_ = false;
  double low_ = 0, high_ = 1;
  double start_ = 0, end_ = 1;
  std::vector<double> ticks_;
};

}  // namespace pleat::bench::plot
