#include "pleat/ops/spatial/linear_map_cpu.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/base/streaming.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/transpose.h"

/// A row of the result takes two steps. First the rows of x that it depends on are added up, element by
/// element, which is one loop over long arrays in either layout. Then the columns of that sum are: where
/// there are many channels_last channels, with vectors along them; else for several rows at once, turned so
/// that they lie side by side, with vectors along the rows.

namespace pleat::ops {
namespace {

constexpr int64_t grain_elements = 16384;
/// Elements of rows that are worked on at a time: they stay in the first-level cache.
constexpr int64_t piece_elements = 4096;

/// The matrix of one dimension with its numbers in the kernel's type.
template <class T>
struct Rows {
  const SparseRows* rows;
  std::vector<T> weights;
  std::vector<T> scales;

  explicit Rows(const SparseRows& of)
      : rows(&of), weights(of.weight.begin(), of.weight.end()), scales(of.scale.begin(), of.scale.end()) {}
  int64_t inputs() const { return rows->inputs; }
  int64_t outputs() const { return rows->outputs(); }
  int64_t first(int64_t o) const { return rows->first[static_cast<std::size_t>(o)]; }
  int64_t index(int64_t tap) const { return rows->index[static_cast<std::size_t>(tap)]; }
  T weight(int64_t tap) const { return weights[static_cast<std::size_t>(tap)]; }
  T scale(int64_t o) const { return scales[static_cast<std::size_t>(o)]; }
  /// Whether row o is the one before it once more.
  bool repeats(int64_t o) const {
    if (o == 0 || scale(o) != scale(o - 1)) return false;
    const int64_t before = first(o - 1), taps = first(o) - before;
    if (first(o + 1) - first(o) != taps) return false;
    for (int64_t tap = first(o); tap < first(o + 1); ++tap)
      if (index(tap) != index(tap - taps) || weight(tap) != weight(tap - taps)) return false;
    return true;
  }
};

const SparseRows& identity_of_one() {
  static const auto& rows = *[] {
    auto* one = new SparseRows;
    one->inputs = 1;
    one->add_tap(0, 1);
    one->end_row(1);
    return one;
  }();
  return rows;
}

template <class T>
void set_product(T* __restrict y, const T* __restrict x, T weight, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = weight * x[i];
}
template <class T>
void add_product(T* __restrict y, const T* __restrict x, T weight, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += weight * x[i];
}

template <class T>
void set_two_products(T* __restrict y, const T* __restrict a, T weight_a, const T* __restrict b, T weight_b,
                      int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = weight_a * a[i] + weight_b * b[i];
}

/// y = the sum of `taps` products: those of array(i) with weight(i).
template <class T, class Array, class Weight>
void sum_products(T* y, int64_t taps, const Array& array, const Weight& weight, int64_t n) {
  if (taps == 0) return void(std::fill_n(y, n, T(0)));
  if (taps == 1) return set_product(y, array(0), weight(0), n);
  set_two_products(y, array(0), weight(0), array(1), weight(1), n);
  for (int64_t i = 2; i < taps; ++i) add_product(y, array(i), weight(i), n);
}

/// L neighbours of a pixel of the result, from the pixels `line` of the sum of rows, which begin with number
/// `begin` and are `step` numbers each.
template <int L, class T>
void sum_columns(const Rows<T>& columns, int64_t w, const T* line, int64_t begin, int64_t step, T* y) {
  constexpr int bytes = L * static_cast<int>(sizeof(T));
  simd::Vector<T, bytes> sum{};
  for (int64_t tap = columns.first(w); tap < columns.first(w + 1); ++tap)
    sum += columns.weight(tap) * simd::load<bytes>(line + (columns.index(tap) - begin) * step);
  simd::store<bytes>(y, sum * columns.scale(w));
}

template <class T>
class Kernel {
 public:
  Kernel(const LinearMap& map, const T* x, T* y, const ImagesView& view)
      : depth_(dim(map, 0)),
        height_(dim(map, 1)),
        columns_(dim(map, 2)),
        x_(x),
        y_(y),
        inner_(view.channels_last ? view.channels : 1),
        rows_(view.images * (view.channels_last ? 1 : view.channels) * depth_.outputs() * height_.outputs()),
        group_(inner_ >= lanes ? 1 : lanes) {
    find_runs();
    find_pieces();
  }

  void run() const {
    const int64_t row = columns_.outputs() * inner_;
    const bool streams = is_streamed(rows_ * row * int64_t{sizeof(T)});
    const int64_t work = group_ * inner_ * std::max(columns_.inputs(), columns_.outputs());
    parallel_for(
        0, ceil_div(rows_, group_), std::max<int64_t>(1, grain_elements / work), [&](int64_t i, int64_t end) {
          std::vector<T> scratch(
              static_cast<std::size_t>(2 * group_ * longest_ + (streams ? group_ * row : 0)));
          T* const sums = scratch.data();
          T* const turned = sums + group_ * longest_;
          for (int64_t first = i; i < end; ++i) {
            T* const own = y_ + i * group_ * row;
            T* const lines = streams ? turned + group_ * longest_ : own;
            const bool repeats = i > first && group_ == 1 && height_.repeats(i % height_.outputs());
            if (!repeats)
              for (const Piece& piece : pieces_)
                group_ == 1 ? one_row(i, piece, sums, lines)
                            : rows_side_by_side(i, piece, sums, turned, lines);
            else if (!streams)
              std::copy_n(own - row, row, own);
            if (streams)
              stream_bytes(own, lines, std::min(group_, rows_ - i * group_) * row * int64_t{sizeof(T)});
          }
          if (streams) end_streaming();
        });
  }

 private:
  static constexpr int64_t lanes = simd::lanes<T>;

  /// Neighbouring columns of the result, and those of x that they depend on.
  struct Piece {
    int64_t first, last;
    int64_t begin, end;
  };

  static const SparseRows& dim(const LinearMap& map, std::size_t d) {
    const std::size_t missing = 3 - map.dims.size();
    return d < missing ? identity_of_one() : map.dims[d - missing];
  }

  /// Where neighbours have the same taps, as in the gradient of wide windows.
  void find_runs() {
    if (inner_ > 1) return;
    for (int64_t w = 0; w < columns_.outputs(); ++w)
      if (!columns_.repeats(w)) runs_.push_back(w);
    if (std::ssize(runs_) * 4 > columns_.outputs()) return runs_.clear();
    group_ = 1;
    runs_.push_back(columns_.outputs());
  }

  void find_pieces() {
    // A row of runs is one piece.
    const int64_t most = runs_.empty() ? std::max<int64_t>(8, piece_elements / (group_ * inner_))
                                       : std::max(columns_.inputs(), columns_.outputs());
    for (int64_t w = 0; w < columns_.outputs(); ++w) {
      Piece one{w, w + 1, 0, 0};
      if (columns_.first(w) < columns_.first(w + 1))
        one = {w, w + 1, columns_.index(columns_.first(w)), columns_.index(columns_.first(w + 1) - 1) + 1};
      if (!pieces_.empty()) {
        Piece& last = pieces_.back();
        const bool is_empty = last.begin == last.end, adds_none = one.begin == one.end;
        const int64_t begin = adds_none || (!is_empty && last.begin < one.begin) ? last.begin : one.begin;
        const int64_t end = std::max(last.end, one.end);
        if (std::max(one.last - last.first, end - begin) <= most) {
          last = {last.first, one.last, begin, end};
          continue;
        }
      }
      pieces_.push_back(one);
    }
    for (const Piece& piece : pieces_)
      longest_ =
          std::max({longest_, (piece.last - piece.first) * inner_, (piece.end - piece.begin) * inner_});
  }

  /// The sum of the rows of x that row r of the result depends on, of a piece.
  void sum_rows(int64_t r, const Piece& piece, T* sum) const {
    const int64_t h = r % height_.outputs();
    const int64_t d = r / height_.outputs() % depth_.outputs();
    const int64_t line = columns_.inputs() * inner_;
    const T* const plane =
        x_ + r / (height_.outputs() * depth_.outputs()) * depth_.inputs() * height_.inputs() * line +
        piece.begin * inner_;
    const int64_t n = (piece.end - piece.begin) * inner_;
    const T scale = depth_.scale(d) * height_.scale(h);
    const int64_t rows = height_.first(h + 1) - height_.first(h);
    const int64_t taps = (depth_.first(d + 1) - depth_.first(d)) * rows;
    const auto tap_of = [&](int64_t i) {
      return std::pair(depth_.first(d) + i / rows, height_.first(h) + i % rows);
    };
    sum_products(
        sum, taps,
        [&](int64_t i) {
          const auto [a, b] = tap_of(i);
          return plane + (depth_.index(a) * height_.inputs() + height_.index(b)) * line;
        },
        [&](int64_t i) {
          const auto [a, b] = tap_of(i);
          return depth_.weight(a) * height_.weight(b) * scale;
        },
        n);
  }

  /// Vectors along the channels, or runs of columns.
  void one_row(int64_t r, const Piece& piece, T* sums, T* line) const {
    sum_rows(r, piece, sums);
    for (std::size_t i = 1; i < runs_.size(); ++i) {
      const int64_t w = runs_[i - 1];
      T sum = 0;
      for (int64_t tap = columns_.first(w); tap < columns_.first(w + 1); ++tap)
        sum += columns_.weight(tap) * sums[columns_.index(tap) - piece.begin];
      std::fill_n(line + w, runs_[i] - w, sum * columns_.scale(w));
    }
    for (int64_t w = piece.first; runs_.empty() && w < piece.last; ++w) {
      const int64_t first = columns_.first(w);
      sum_products(
          line + w * inner_, columns_.first(w + 1) - first,
          [&](int64_t i) { return sums + (columns_.index(first + i) - piece.begin) * inner_; },
          [&](int64_t i) { return columns_.weight(first + i) * columns_.scale(w); }, inner_);
    }
  }

  /// Vectors along as many rows, of which those behind the last one are not used.
  void rows_side_by_side(int64_t i, const Piece& piece, T* sums, T* turned, T* lines) const {
    const int64_t first = i * lanes;
    const int64_t rows = std::min(lanes, rows_ - first);
    const int64_t n = (piece.end - piece.begin) * inner_;
    for (int64_t r = 0; r < rows; ++r) sum_rows(first + r, piece, sums + r * n);
    transpose_matrix(turned, lanes, sums, n, rows, n);
    const int64_t row = (piece.last - piece.first) * inner_;
    for (int64_t w = piece.first; w < piece.last; ++w)
      for (int64_t c = 0; c < inner_; ++c)
        sum_columns<lanes>(columns_, w, turned + c * lanes, piece.begin, inner_ * lanes,
                           sums + ((w - piece.first) * inner_ + c) * lanes);
    transpose_matrix(lines + piece.first * inner_, columns_.outputs() * inner_, sums, lanes, row, rows);
  }

  Rows<T> depth_, height_, columns_;
  const T* x_;
  T* y_;
  int64_t inner_;              ///< numbers of a pixel that are neighbours
  int64_t rows_;               ///< of y
  int64_t group_;              ///< rows at a time
  std::vector<int64_t> runs_;  ///< where they start, and the last one ends; empty where there are none
  std::vector<Piece> pieces_;
  int64_t longest_ = 0;  ///< numbers of a piece of a row
};

}  // namespace

template <class T>
void apply_on_cpu(const LinearMap& map, const T* x, T* y, const ImagesView& view) {
  Kernel<T>(map, x, y, view).run();
}

template void apply_on_cpu(const LinearMap&, const float*, float*, const ImagesView&);
template void apply_on_cpu(const LinearMap&, const double*, double*, const ImagesView&);

}  // namespace pleat::ops
