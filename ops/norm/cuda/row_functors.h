// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pleat/ops/norm/cuda/norm_functors.h"

/// Group normalisation of rows x [N, C] without spatial dimensions, each of whose elements has a weight and a
/// bias of its own: what layer norm is. T: the type computed in; S: the type stored.

namespace pleat::ops {

/// What rows are normalised with: mean and rstd of each group of `size` neighbours, parameters of each
/// column.
struct RowStatistics {
  Statistics of;
  int64_t size;
  FastDivider vectors;  ///< of a group

  RowStatistics(const Statistics& statistics, int64_t group_size, std::size_t width)
      : of(statistics), size(group_size), vectors(group_size / static_cast<int64_t>(width)) {}

  /// The group of a vector, and the column of its first element.
  PLEAT_HOST_DEVICE int64_t group(int64_t vector) const { return vectors.divide(vector); }
  PLEAT_HOST_DEVICE int64_t column(int64_t vector, std::size_t width) const {
    return of.channel(vector * static_cast<int64_t>(width));
  }
};

/// A vector of x, and its parameters.
template <class T, class S, std::size_t lanes>
struct RawRow {
  Vector<S, lanes> x;
  T weight[lanes], bias[lanes];
};

/// y = (x - mean) rstd weight + bias.
template <class T, class S, std::size_t lanes>
struct ApplyRow {
  static constexpr std::size_t width = lanes;
  /// The mean in two parts: the second is what rounding to T cuts off the first.
  struct Numbers {
    T shift, rest, rstd;
  };
  using Raw = RawRow<T, S, lanes>;
  using Result = S;

  const S* x;
  RowStatistics rows;
  S* result;

  PLEAT_HOST_DEVICE Numbers numbers(int64_t group) const {
    const double mean = rows.of.mean[group];
    const T shift = static_cast<T>(mean);
    return {shift, static_cast<T>(mean - static_cast<double>(shift)), static_cast<T>(rows.of.rstd[group])};
  }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const {
    Raw raw;
    raw.x = reinterpret_cast<const Vector<S, lanes>*>(x)[vector];
    const int64_t c = rows.column(vector, lanes);
    PLEAT_UNROLL
    for (std::size_t j = 0; j < lanes; ++j) {
      raw.weight[j] = rows.of.weight.as<T>(c + static_cast<int64_t>(j));
      raw.bias[j] = rows.of.bias.as<T>(c + static_cast<int64_t>(j));
    }
    return raw;
  }
  PLEAT_HOST_DEVICE S value(const Numbers& k, const Raw& raw, std::size_t lane) const {
    const T h = (convert<T>(raw.x.lane[lane]) - k.shift - k.rest) * k.rstd;
    return convert<S>(h * raw.weight[lane] + raw.bias[lane]);
  }
};

/// dy and x of a vector, and its weights.
template <class T, class S, std::size_t lanes>
struct RawRowPair {
  RawPair<S, lanes> pair;
  T weight[lanes];
};
template <class T, class S, std::size_t lanes>
PLEAT_HOST_DEVICE RawRowPair<T, S, lanes> load_row_pair(const S* dy, const S* x, const RowStatistics& rows,
                                                        int64_t vector) {
  RawRowPair<T, S, lanes> raw;
  raw.pair = load_pair<S, lanes>(dy, x, vector);
  const int64_t c = rows.column(vector, lanes);
  PLEAT_UNROLL
  for (std::size_t j = 0; j < lanes; ++j) raw.weight[j] = rows.of.weight.as<T>(c + static_cast<int64_t>(j));
  return raw;
}

/// Of each group: sums of weight dy and of weight dy (x - shift), where shift is the mean rounded to T.
template <class T, class S, std::size_t lanes>
struct RowSums {
  static constexpr std::size_t width = lanes;
  using State = GradientState;
  using Raw = RawRowPair<T, S, lanes>;
  struct Numbers {
    T shift;
  };
  struct Running {
    T shift;
    double dy, dy_x;
  };
  struct Partial {
    T dy, dy_x;
  };

  const S* dy;
  const S* x;
  RowStatistics rows;

  PLEAT_HOST_DEVICE Numbers numbers(int64_t group) const { return {static_cast<T>(rows.of.mean[group])}; }
  PLEAT_HOST_DEVICE Running begin(const Numbers& numbers, int64_t) const { return {numbers.shift, 0, 0}; }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const { return load_row_pair<T, S, lanes>(dy, x, rows, vector); }
  PLEAT_HOST_DEVICE void add(const Running& running, Partial& partial, const Raw& raw,
                             std::size_t lane) const {
    const T g = convert<T>(raw.pair.dy.lane[lane]) * raw.weight[lane];
    partial.dy += g;
    partial.dy_x += g * (convert<T>(raw.pair.x.lane[lane]) - running.shift);
  }
  PLEAT_HOST_DEVICE void take(Running& running, const Partial& partial, int64_t) const {
    running.dy += static_cast<double>(partial.dy);
    running.dy_x += static_cast<double>(partial.dy_x);
  }
  PLEAT_HOST_DEVICE State state(const Running& r) const { return {r.dy, r.dy_x}; }
};

/// Of each column: sums of dy and of dy (x - mean) rstd, with mean and rstd of each row's group.
template <class T, class S, std::size_t lanes>
struct ColumnSums {
  static constexpr std::size_t width = lanes;
  using State = GradientState;
  struct Raw {
    RawPair<S, lanes> pair;
    T shift, rest, rstd;
  };
  struct Running {
    double dy, dy_x;
  };
  struct Partial {
    T dy, dy_x;
  };

  const S* dy;
  const S* x;
  RowStatistics rows;

  struct Numbers {};
  PLEAT_HOST_DEVICE Numbers numbers(int64_t) const { return {}; }
  PLEAT_HOST_DEVICE Running begin(const Numbers&, int64_t) const { return {0, 0}; }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const {
    const int64_t group = rows.group(vector);
    const double mean = rows.of.mean == nullptr ? 0 : rows.of.mean[group];
    const T shift = static_cast<T>(mean);
    return {load_pair<S, lanes>(dy, x, vector), shift, static_cast<T>(mean - static_cast<double>(shift)),
            static_cast<T>(rows.of.rstd[group])};
  }
  PLEAT_HOST_DEVICE void add(const Running&, Partial& partial, const Raw& raw, std::size_t lane) const {
    const T g = convert<T>(raw.pair.dy.lane[lane]);
    partial.dy += g;
    partial.dy_x += g * ((convert<T>(raw.pair.x.lane[lane]) - raw.shift - raw.rest) * raw.rstd);
  }
  PLEAT_HOST_DEVICE void take(Running& running, const Partial& partial, int64_t) const {
    running.dy += static_cast<double>(partial.dy);
    running.dy_x += static_cast<double>(partial.dy_x);
  }
  PLEAT_HOST_DEVICE State state(const Running& r) const { return {r.dy, r.dy_x}; }
};

/// dx = rstd (weight dy) - (x - shift) slope - offset, from the sums of each group.
template <class T, class S, std::size_t lanes>
struct ApplyRowGradient {
  static constexpr std::size_t width = lanes;
  using Numbers = GradientNumbers<T>;
  using Raw = RawRowPair<T, S, lanes>;
  using Result = S;

  const S* dy;
  const S* x;
  RowStatistics rows;
  const GradientState* sums;
  S* result;

  PLEAT_HOST_DEVICE Numbers numbers(int64_t group) const {
    return gradient_numbers<T>(rows.of.mean[group], rows.of.rstd[group], 1, sums[group].dy, sums[group].dy_x,
                               static_cast<double>(rows.size));
  }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const { return load_row_pair<T, S, lanes>(dy, x, rows, vector); }
  PLEAT_HOST_DEVICE S value(const Numbers& k, const Raw& raw, std::size_t lane) const {
    const T g = convert<T>(raw.pair.dy.lane[lane]) * raw.weight[lane];
    return convert<S>(g * k.scale - (convert<T>(raw.pair.x.lane[lane]) - k.shift) * k.slope - k.offset);
  }
};

}  // namespace pleat::ops
