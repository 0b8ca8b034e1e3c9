// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/reduce/plan.h"

/// One loop under every reduction. An operation defines how a block of plain elements becomes a state and how
/// two states merge; the loop handles strides, types and threads.
///
///   struct Operation {
///     using In = float;                // the type of the elements it sees
///     using State = double;            // what is known of some elements
///     State empty() const;             // of none
///     State row(const In* x, int64_t n, int64_t first) const;   // of n elements; the first is number
///     `first`
///     // states[c] of column c of some rows; row r is number first + r
///     void columns(State* states, const In* const* rows, int64_t row_count, int64_t n, int64_t first) const;
///     void merge(State& into, const State& other) const;
///     static constexpr bool uses_index = false;  // whether `first` matters
///   };
///
/// How the elements are cut into blocks and chunks, and the order in which states are merged (a binary tree
/// over the chunks), depends on shape and strides only: so the result is the same, to the bit, for any number
/// of threads, and rounding errors grow with the logarithm of the count.

namespace pleat::ops::reduction {

inline constexpr int64_t chunk_elements = 32768;  ///< one thread's piece of a long reduction
inline constexpr int64_t row_block = 2048;  ///< elements given to row(): they stay in the first-level cache
inline constexpr int64_t gather_block = 1024;   ///< elements gathered at a time when they are no plain array
inline constexpr int64_t column_block = 128;    ///< columns given to columns()
inline constexpr int64_t row_count_block = 64;  ///< rows given to columns()
inline constexpr int64_t long_run = 256;        ///< runs so long are handed on without gathering

template <class Operation, class Sink>
class Reduction {
 public:
  using In = typename Operation::In;
  using State = typename Operation::State;

  Reduction(const Operation& operation, const Plan& plan, const Tensor& x, const Sink& sink)
      : operation_(operation),
        plan_(plan),
        sink_(sink),
        base_(x.raw()),
        element_(size_of(x.dtype())),
        same_type_(x.dtype() == dtype_of<In>()),
        load_(find_convert_run(dtype_of<In>(), x.dtype())) {}

  void run() const {
    if (plan_.outputs == 0) return;
    if (plan_.by_columns && plan_.count > 0)
      run_columns();
    else
      run_rows();
  }

 private:
  const std::byte* at(int64_t offset) const { return base_ + offset * element_; }
  const In* element(int64_t offset) const { return reinterpret_cast<const In*>(at(offset)); }

  // --- one result after another
  // -----------------------------------------------------------------------------------
  State reduce_row(int64_t offset, int64_t first, int64_t last) const {
    State total = operation_.empty();
    if (first == last) return total;
    const Dim& inner = plan_.reduced[0];
    const bool single = plan_.reduced.size() == 1;
    const bool plain = same_type_ && inner.step == 1 && (single || inner.size >= long_run);
    if (plain && single && last <= row_block) return operation_.row(element(offset), last, 0);
    StridedIterator position(plan_.reduced, first);
    alignas(64) In buffer[gather_block];
    while (first < last) {
      int64_t n;
      if (plain) {
        n = std::min({last - first, position.run_left(), row_block});
        operation_.merge(total, operation_.row(element(offset + position.offset()), n, first));
        position.advance(n);
      } else {
        n = std::min(last - first, gather_block);
        for (int64_t done = 0; done < n;) {
          const int64_t run = std::min(n - done, position.run_left());
          load_(reinterpret_cast<std::byte*>(buffer + done), 1, at(offset + position.offset()), inner.step,
                run);
          position.advance(run);
          done += run;
        }
        operation_.merge(total, operation_.row(buffer, n, first));
      }
      first += n;
    }
    return total;
  }

  void run_rows() const {
    const int64_t chunks = std::max<int64_t>(1, ceil_div(plan_.count, chunk_elements));
    if (chunks == 1) {
      const int64_t grain = std::max<int64_t>(1, chunk_elements / (plan_.count + 8));
      parallel_for(0, plan_.outputs, grain, [&](int64_t first, int64_t last) {
        StridedIterator position(plan_.kept, first);
        for (; first < last; ++first, position.advance(1))
          sink_(position.out_offset(), reduce_row(position.offset(), 0, plan_.count));
      });
      return;
    }
    std::vector<State> states(static_cast<std::size_t>(plan_.outputs * chunks));
    parallel_chunks(plan_.outputs * chunks, [&](int64_t item) {
      const int64_t first = item % chunks * chunk_elements;
      const StridedIterator position(plan_.kept, item / chunks);
      states[static_cast<std::size_t>(item)] =
          reduce_row(position.offset(), first, std::min(first + chunk_elements, plan_.count));
    });
    StridedIterator position(plan_.kept, 0);
    for (int64_t output = 0; output < plan_.outputs; ++output, position.advance(1))
      sink_(position.out_offset(), merged(&states[static_cast<std::size_t>(output * chunks)], 1, chunks));
  }

  /// The states at 0, stride, 2 stride ... merged as a binary tree.
  State merged(const State* states, int64_t stride, int64_t n) const {
    if (n == 1) return *states;
    State left = merged(states, stride, n / 2);
    operation_.merge(left, merged(states + n / 2 * stride, stride, n - n / 2));
    return left;
  }

  // --- many results side by side
  // ----------------------------------------------------------------------------------
  /// The block of `n` columns from `column` on, over rows first ... last - 1.
  void reduce_columns(State* totals, int64_t offset, int64_t n, int64_t first, int64_t last) const {
    const Dim& inner = plan_.kept[0];
    std::fill_n(totals, n, operation_.empty());
    const int64_t wide = widened(n, last - first);
    if (wide > 1) return reduce_widened(totals, offset, n, wide, first, last);
    const bool plain = same_type_ && inner.step == 1;
    StridedIterator position(plan_.reduced, first);
    std::array<State, column_block> states;
    std::array<const In*, row_count_block> rows;
    alignas(64) In buffer[2 * gather_block];
    const int64_t block =
        plain ? row_count_block : std::clamp<int64_t>(2 * gather_block / n, 1, row_count_block);
    while (first < last) {
      const int64_t row_count = std::min(block, last - first);
      for (int64_t r = 0; r < row_count; ++r, position.advance(1)) {
        const int64_t from = offset + position.offset();
        rows[static_cast<std::size_t>(r)] = plain ? element(from) : buffer + r * n;
        if (!plain) load_(reinterpret_cast<std::byte*>(buffer + r * n), 1, at(from), inner.step, n);
      }
      operation_.columns(states.data(), rows.data(), row_count, n, first);
      for (int64_t c = 0; c < n; ++c) operation_.merge(totals[c], states[static_cast<std::size_t>(c)]);
      first += row_count;
    }
  }

  /// How many rows to take as one, where they follow each other without a gap and are short.
  int64_t widened(int64_t n, int64_t rows) const {
    const bool dense = same_type_ && plan_.kept[0].step == 1 && plan_.reduced.size() == 1 &&
                       plan_.reduced[0].step == n && n == plan_.kept[0].size;
    return !Operation::uses_index && dense ? std::min(column_block / n, rows / 4) : 1;
  }

  void reduce_widened(State* totals, int64_t offset, int64_t n, int64_t wide, int64_t first,
                      int64_t last) const {
    std::array<State, column_block> wide_totals;
    std::array<State, column_block> states;
    std::array<const In*, row_count_block> rows;
    const int64_t columns = wide * n;
    std::fill_n(wide_totals.data(), columns, operation_.empty());
    const In* x = element(offset + first * n);
    for (int64_t left = last - first; left > 0;) {
      int64_t row_count = std::min(left / wide, row_count_block);
      int64_t used = columns;
      if (row_count == 0) {
        row_count = 1;
        used = left * n;
      }
      for (int64_t r = 0; r < row_count; ++r) rows[static_cast<std::size_t>(r)] = x + r * columns;
      operation_.columns(states.data(), rows.data(), row_count, used, 0);
      for (int64_t c = 0; c < used; ++c)
        operation_.merge(wide_totals[static_cast<std::size_t>(c)], states[static_cast<std::size_t>(c)]);
      left -= row_count * (used / n);
      x += row_count * used;
    }
    for (int64_t c = 0; c < n; ++c) totals[c] = merged(&wide_totals[static_cast<std::size_t>(c)], n, wide);
  }

  void run_columns() const {
    const int64_t columns = plan_.kept[0].size;
    const int64_t width = std::min(columns, column_block);
    const int64_t blocks = ceil_div(columns, width);
    const int64_t chunk_rows = std::max<int64_t>(row_count_block, 2 * chunk_elements / width);
    const int64_t chunks = ceil_div(plan_.count, chunk_rows);
    const int64_t outer = plan_.outputs / columns;
    const std::span<const Dim> outer_dims(plan_.kept.data() + 1, plan_.kept.size() - 1);
    const auto outer_position = [&](int64_t index) {
      return outer_dims.empty() ? StridedIterator({}, 0) : StridedIterator(outer_dims, index);
    };
    std::vector<State> states(static_cast<std::size_t>(chunks > 1 ? plan_.outputs * chunks : 0));

    const int64_t grain = std::max<int64_t>(1, chunk_elements / (width * std::min(plan_.count, chunk_rows)));
    parallel_for(0, outer * chunks * blocks, grain, [&](int64_t item, int64_t end) {
      std::array<State, column_block> totals;
      for (; item < end; ++item) {
        const int64_t column = item % blocks * width;
        const int64_t chunk = item / blocks % chunks;
        const int64_t place = item / blocks / chunks;
        const StridedIterator position = outer_position(place);
        const int64_t n = std::min(width, columns - column);
        const int64_t first = chunk * chunk_rows;
        reduce_columns(totals.data(), position.offset() + column * plan_.kept[0].step, n, first,
                       std::min(first + chunk_rows, plan_.count));
        if (chunks > 1) {
          std::copy_n(totals.data(), n, states.data() + (place * chunks + chunk) * columns + column);
          continue;
        }
        for (int64_t c = 0; c < n; ++c)
          sink_(position.out_offset() + (column + c) * plan_.kept[0].out_step,
                totals[static_cast<std::size_t>(c)]);
      }
    });
    if (chunks == 1) return;
    parallel_for(0, plan_.outputs, std::max<int64_t>(1, chunk_elements / chunks),
                 [&](int64_t first, int64_t last) {
                   for (; first < last; ++first) {
                     const int64_t place = first / columns;
                     const int64_t column = first % columns;
                     sink_(outer_position(place).out_offset() + column * plan_.kept[0].out_step,
                           merged(states.data() + place * chunks * columns + column, columns, chunks));
                   }
                 });
  }

  const Operation& operation_;
  const Plan& plan_;
  const Sink& sink_;
  const std::byte* base_;
  int64_t element_;
  bool same_type_;
  ConvertRun load_;
};

/// Calls `sink(offset in the result, state)` once for each result, from several threads.
template <class Operation, class Sink>
void reduce(const Operation& operation, const Plan& plan, const Tensor& x, const Sink& sink) {
  Reduction<Operation, Sink>(operation, plan, x, sink).run();
}

}  // namespace pleat::ops::reduction
