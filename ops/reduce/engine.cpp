#include "pleat/ops/reduce/engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/transpose.h"

namespace pleat::ops::reduction {
namespace {

constexpr int64_t chunk_elements = 32768;  ///< one thread's piece of a long reduction
constexpr int64_t gather_block = 1024;     ///< elements gathered at a time when they are no plain array
constexpr int64_t row_count_block = 64;    ///< rows given to columns()
constexpr int64_t least_columns = 16;      ///< worth being made of short rows
constexpr int64_t long_run = 256;          ///< runs so long are handed on without gathering
constexpr int64_t largest_element = 8;     ///< bytes

constexpr int64_t column_elements = 8192;  ///< columns changed into rows at a time, at most
constexpr int64_t turned_elements = 4096;  ///< so many of short runs leave room in the cache for what is read

struct ColumnBuffer {
  alignas(64) std::byte bytes[column_elements * largest_element];
};

/// States side by side.
struct States {
  alignas(64) std::byte bytes[column_block * largest_state];
};

class Reduction {
 public:
  Reduction(const BlockFunctions& operation, const StateSink& sink, const Plan& plan, const Tensor& x)
      : operation_(operation),
        sink_(sink),
        plan_(plan),
        base_(x.raw()),
        element_(size_of(x.dtype())),
        same_type_(x.dtype() == operation.in),
        load_(find_convert_run(operation.in, x.dtype())) {}

  void run() const {
    if (plan_.outputs == 0) return;
    if (is_by_columns() && plan_.count > 0)
      run_columns();
    else
      run_rows();
  }

 private:
  const std::byte* at(int64_t offset) const { return base_ + offset * element_; }
  int64_t bytes(int64_t states) const { return states * operation_.state_size; }
  std::vector<std::byte> states_for(int64_t n) const {
    return std::vector<std::byte>(static_cast<std::size_t>(bytes(n)));
  }

  void empty(std::byte* states, int64_t n) const { operation_.empty(operation_.operation, states, n); }
  void merge(std::byte* into, const std::byte* other, int64_t n) const {
    operation_.merge(operation_.operation, into, other, n);
  }
  void rows(std::byte* states, int64_t count, const std::byte* x, int64_t step, int64_t n,
            int64_t first) const {
    operation_.rows(operation_.operation, states, count, x, step, n, first);
  }
  void columns(std::byte* states, const std::byte* const* rows, int64_t row_count, int64_t n,
               int64_t first) const {
    operation_.columns(operation_.operation, states, rows, row_count, n, first);
  }
  void take(int64_t offset, int64_t step, const std::byte* states, int64_t count) const {
    sink_.take(sink_.context, offset, step, states, count);
  }

  /// `count` groups of n states, of which the first ones lie `apart` states apart, merged as a binary tree.
  void merged(std::byte* result, const std::byte* states, int64_t apart, int64_t count, int64_t n) const {
    if (count == 1) {
      std::memcpy(result, states, static_cast<std::size_t>(bytes(n)));
      return;
    }
    States right;
    merged(result, states, apart, count / 2, n);
    merged(right.bytes, states + bytes(count / 2 * apart), apart, count - count / 2, n);
    merge(result, right.bytes, n);
  }

  /// Whether many results are worked on side by side.
  bool is_by_columns() const {
    const bool is_short = plan_.reduced[0].size < operation_.short_run && plan_.kept[0].size >= least_columns;
    return plan_.kept_inside || is_short;
  }

  // --- one result after another

  /// Whether the elements of a result are a plain array, or long pieces of one.
  bool has_plain_rows() const {
    const Dim& inner = plan_.reduced[0];
    return same_type_ && inner.step == 1 && (plan_.reduced.size() == 1 || inner.size >= long_run);
  }
  /// Whether they are one that is taken at once.
  bool has_short_rows() const {
    return plan_.count > 0 && plan_.count <= longest_row && plan_.reduced.size() == 1 && has_plain_rows();
  }

  /// Elements that are gathered at a time: bytes that stay in the first-level cache.
  int64_t gathered_elements() const { return gather_block * largest_element / size_of(operation_.in); }
  /// Whether they are few enough that several results' are gathered at once.
  bool has_gathered_rows() const {
    return plan_.count > 0 && 2 * plan_.count <= gathered_elements() && plan_.count <= longest_row &&
           plan_.reduced.size() == 1 && !has_plain_rows();
  }
  /// Whether elements lie in short pieces, between which those of neighbouring results lie.
  bool has_pieces() const {
    const std::vector<Dim>& dims = plan_.reduced;
    return same_type_ && plan_.count > 0 && dims.size() > 1 && dims[0].step == 1 && dims[0].size < long_run &&
           plan_.kept[0].size > 1 && plan_.kept[0].step < dims[1].step;
  }

  /// n results whose elements begin `step` apart.
  void reduce_gathered_rows(std::byte* totals, int64_t offset, int64_t step, int64_t n) const {
    alignas(64) std::byte buffer[gather_block * largest_element];
    const int64_t block = gathered_elements() / plan_.count;
    for (int64_t done = 0; done < n; done += block) {
      const int64_t count = std::min(block, n - done);
      load_(buffer, {1, plan_.count}, at(offset + done * step), {plan_.reduced[0].step, step}, plan_.count,
            count);
      rows(totals + bytes(done), count, buffer, plan_.count, plan_.count, 0);
    }
  }

  void reduce_pieces(std::byte* totals, int64_t offset, int64_t step, int64_t n) const {
    States states;
    const int64_t size = plan_.reduced[0].size;
    StridedIterator position(plan_.reduced, 0);
    for (int64_t first = 0; first < plan_.count; first += size) {
      rows(first == 0 ? totals : states.bytes, n, at(offset + position.offset()), step, size, first);
      if (first > 0) merge(totals, states.bytes, n);
      if (first + size < plan_.count) position.advance(size);
    }
  }

  void reduce_row(std::byte* total, int64_t offset, int64_t first, int64_t last) const {
    empty(total, 1);
    if (first == last) return;
    const Dim& inner = plan_.reduced[0];
    const bool plain = has_plain_rows();
    StridedIterator position(plan_.reduced, first);
    alignas(64) std::byte buffer[gather_block * largest_element];
    alignas(8) std::byte state[largest_state];
    const int64_t size = size_of(operation_.in);
    while (first < last) {
      int64_t n;
      if (plain) {
        n = std::min({last - first, position.run_left(), longest_row});
        rows(state, 1, at(offset + position.offset()), 0, n, first);
        position.advance(n);
      } else {
        n = std::min(last - first, gather_block);
        for (int64_t done = 0; done < n;) {
          const int64_t run = std::min(n - done, position.run_left());
          load_(buffer + done * size, {1}, at(offset + position.offset()), {inner.step}, run, 1);
          position.advance(run);
          done += run;
        }
        rows(state, 1, buffer, 0, n, first);
      }
      merge(total, state, 1);
      first += n;
    }
  }

  void run_rows() const {
    const int64_t chunks = std::max<int64_t>(1, ceil_div(plan_.count, chunk_elements));
    if (chunks == 1) {
      const int64_t grain = std::max<int64_t>(1, chunk_elements / (plan_.count + 8));
      const bool is_short = has_short_rows();
      const bool is_gathered = has_gathered_rows();
      const bool is_in_pieces = has_pieces();
      parallel_for(0, plan_.outputs, grain, [&](int64_t first, int64_t last) {
        States states;
        for (StridedIterator position(plan_.kept, first); first < last;) {
          const int64_t n = std::min({last - first, position.run_left(), column_block});
          const int64_t step = plan_.kept[0].step;
          if (is_short)
            rows(states.bytes, n, at(position.offset()), step, plan_.count, 0);
          else if (is_gathered)
            reduce_gathered_rows(states.bytes, position.offset(), step, n);
          else if (is_in_pieces)
            reduce_pieces(states.bytes, position.offset(), step, n);
          else
            for (int64_t i = 0; i < n; ++i)
              reduce_row(states.bytes + bytes(i), position.offset() + i * step, 0, plan_.count);
          take(position.out_offset(), plan_.kept[0].out_step, states.bytes, n);
          position.advance(n);
          first += n;
        }
      });
      return;
    }
    std::vector<std::byte> states = states_for(plan_.outputs * chunks);
    parallel_chunks(plan_.outputs * chunks, [&](int64_t item) {
      const int64_t first = item % chunks * chunk_elements;
      const StridedIterator position(plan_.kept, item / chunks);
      reduce_row(states.data() + bytes(item), position.offset(), first,
                 std::min(first + chunk_elements, plan_.count));
    });
    StridedIterator position(plan_.kept, 0);
    for (int64_t output = 0; output < plan_.outputs; ++output, position.advance(1)) {
      States total;
      merged(total.bytes, states.data() + bytes(output * chunks), 1, chunks, 1);
      take(position.out_offset(), 0, total.bytes, 1);
    }
  }

  // --- many results side by side

  /// Whether columns lie as rows in memory, which change places first.
  bool is_turned() const { return plan_.kept[0].step != 1 && plan_.reduced[0].step == 1; }

  /// The block of `n` columns from `column` on, over rows first ... last - 1.
  void reduce_columns(std::byte* totals, int64_t offset, int64_t n, int64_t first, int64_t last) const {
    const Dim& inner = plan_.kept[0];
    const int64_t wide = widened(n, last - first);
    if (wide > 1) return reduce_widened(totals, offset, n, wide, first, last);
    const bool plain = same_type_ && inner.step == 1;
    const bool turned = is_turned();
    StridedIterator position(plan_.reduced, first);
    States states;
    std::array<const std::byte*, row_count_block> rows;
    ColumnBuffer buffer;
    const int64_t row_bytes = n * size_of(operation_.in);
    const int64_t block =
        plain ? row_count_block : std::clamp<int64_t>(column_elements / n, 1, row_count_block);
    for (bool is_first = true; first < last; is_first = false) {
      int64_t row_count = std::min(block, last - first);
      if (turned) {
        row_count = std::min(row_count, position.run_left());
        turn(buffer.bytes, at(offset + position.offset()), n, row_count);
        position.advance(row_count);
      } else if (!plain) {
        for (int64_t r = 0; r < row_count;) {
          const int64_t run = std::min(row_count - r, position.run_left());
          load_(buffer.bytes + r * row_bytes, {1, n}, at(offset + position.offset()),
                {inner.step, plan_.reduced[0].step}, n, run);
          position.advance(run);
          r += run;
        }
      }
      for (int64_t r = 0; r < row_count; ++r) {
        rows[static_cast<std::size_t>(r)] =
            plain ? at(offset + position.offset()) : buffer.bytes + r * row_bytes;
        if (plain) position.advance(1);
      }
      columns(is_first ? totals : states.bytes, rows.data(), row_count, n, first);
      if (!is_first) merge(totals, states.bytes, n);
      first += row_count;
    }
  }

  /// The first `count` elements, neighbours from x on, of each of n results: as `count` rows of n.
  void turn(std::byte* to, const std::byte* x, int64_t n, int64_t count) const {
    const int64_t step = plan_.kept[0].step;
    if (same_type_) return turn_plain(to, x, step, n, count);
    ColumnBuffer converted;
    const int64_t size = size_of(operation_.in);
    for (int64_t i = 0; i < n; ++i)
      load_(converted.bytes + i * count * size, {1}, x + i * step * element_, {1}, count, 1);
    turn_plain(to, converted.bytes, count, n, count);
  }

  void turn_plain(std::byte* to, const std::byte* x, int64_t step, int64_t n, int64_t count) const {
    const auto as = [&]<class Bits>(Bits) {
      transpose_matrix(reinterpret_cast<Bits*>(to), n, reinterpret_cast<const Bits*>(x), step, n, count);
    };
    if (operation_.in == uint8) return as(uint8_t());
    size_of(operation_.in) == 4 ? as(uint32_t()) : as(uint64_t());
  }

  /// How many rows to take as one, where they follow each other without a gap and are short.
  int64_t widened(int64_t n, int64_t rows) const {
    const bool dense = plan_.kept[0].step == 1 && plan_.reduced.size() == 1 && plan_.reduced[0].step == n &&
                       n == plan_.kept[0].size;
    return !operation_.uses_index && dense ? std::min(column_block / n, rows / 4) : 1;
  }

  void reduce_widened(std::byte* totals, int64_t offset, int64_t n, int64_t wide, int64_t first,
                      int64_t last) const {
    States wide_totals, states;
    std::array<const std::byte*, row_count_block> rows;
    ColumnBuffer converted;
    const int64_t width = wide * n;
    const int64_t block = same_type_ ? row_count_block : std::min(row_count_block, column_elements / width);
    empty(wide_totals.bytes, width);
    const std::byte* x = at(offset + first * n);
    for (int64_t left = last - first; left > 0;) {
      int64_t row_count = std::min(left / wide, block);
      int64_t used = width;
      if (row_count == 0) {
        row_count = 1;
        used = left * n;
      }
      if (!same_type_) load_(converted.bytes, {1}, x, {1}, row_count * used, 1);
      for (int64_t r = 0; r < row_count; ++r)
        rows[static_cast<std::size_t>(r)] =
            same_type_ ? x + r * width * element_ : converted.bytes + r * width * size_of(operation_.in);
      columns(states.bytes, rows.data(), row_count, used, 0);
      merge(wide_totals.bytes, states.bytes, used);
      left -= row_count * (used / n);
      x += row_count * used * element_;
    }
    merged(totals, wide_totals.bytes, n, wide, n);
  }

  void run_columns() const {
    const int64_t column_count = plan_.kept[0].size;
    const int64_t out_step = plan_.kept[0].out_step;
    const int64_t fit = is_turned() ? turned_elements / plan_.reduced[0].size / 16 * 16 : column_block;
    const int64_t width = std::min(column_count, std::clamp<int64_t>(fit, 16, column_block));
    const int64_t blocks = ceil_div(column_count, width);
    const int64_t chunk_rows = std::max<int64_t>(row_count_block, 2 * chunk_elements / width);
    const int64_t chunks = ceil_div(plan_.count, chunk_rows);
    const int64_t outer = plan_.outputs / column_count;
    const std::span<const Dim> outer_dims(plan_.kept.data() + 1, plan_.kept.size() - 1);
    const auto outer_position = [&](int64_t index) {
      return outer_dims.empty() ? StridedIterator({}, 0) : StridedIterator(outer_dims, index);
    };
    // [outer, chunks, columns]
    std::vector<std::byte> states = states_for(chunks > 1 ? plan_.outputs * chunks : 0);

    const int64_t grain = std::max<int64_t>(1, chunk_elements / (width * std::min(plan_.count, chunk_rows)));
    parallel_for(0, outer * chunks * blocks, grain, [&](int64_t item, int64_t end) {
      States totals;
      for (; item < end; ++item) {
        const int64_t column = item % blocks * width;
        const int64_t chunk = item / blocks % chunks;
        const int64_t place = item / blocks / chunks;
        const StridedIterator position = outer_position(place);
        const int64_t n = std::min(width, column_count - column);
        const int64_t first = chunk * chunk_rows;
        std::byte* const into = chunks > 1
                                    ? states.data() + bytes((place * chunks + chunk) * column_count + column)
                                    : totals.bytes;
        reduce_columns(into, position.offset() + column * plan_.kept[0].step, n, first,
                       std::min(first + chunk_rows, plan_.count));
        if (chunks == 1) take(position.out_offset() + column * out_step, out_step, totals.bytes, n);
      }
    });
    if (chunks == 1) return;
    const int64_t merge_grain = std::max<int64_t>(1, chunk_elements / (chunks * width));
    parallel_for(0, outer * blocks, merge_grain, [&](int64_t item, int64_t end) {
      States totals;
      for (; item < end; ++item) {
        const int64_t column = item % blocks * width, place = item / blocks;
        const int64_t n = std::min(width, column_count - column);
        merged(totals.bytes, states.data() + bytes(place * chunks * column_count + column), column_count,
               chunks, n);
        take(outer_position(place).out_offset() + column * out_step, out_step, totals.bytes, n);
      }
    });
  }

  const BlockFunctions& operation_;
  const StateSink& sink_;
  const Plan& plan_;
  const std::byte* base_;
  int64_t element_;
  bool same_type_;
  ConvertRun load_;
};

}  // namespace

void reduce(const BlockFunctions& operation, const StateSink& sink, const Plan& plan, const Tensor& x) {
  Reduction(operation, sink, plan, x).run();
}

}  // namespace pleat::ops::reduction
