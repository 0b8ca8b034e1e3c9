// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "pleat/core/base/streaming.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/elementwise.h"

/// The pieces of an elementwise loop: which operands a kernel reads where they lie, which are gathered
/// before, and how the result gets to its place. For elementwise.cpp.

namespace pleat {

/// A place in the loop, counted from the innermost dimension.
class LoopPosition {
 public:
  LoopPosition(const ElementwiseLoop& loop, int64_t linear) : loop_(&loop), index_(loop.dims.size()) {
    for (std::size_t d = 0; d < index_.size(); ++d) {
      index_[d] = linear % loop.dims[d].size;
      linear /= loop.dims[d].size;
      for (std::size_t k = 0; k < loop.operands.size(); ++k) at_[k] += index_[d] * loop.dims[d].step[k];
    }
  }

  /// Elements left in the innermost run.
  int64_t run_left() const { return loop_->dims[0].size - index_[0]; }
  /// Runs left in the innermost plane, the first one perhaps begun.
  int64_t runs_left() const { return loop_->dims.size() > 1 ? loop_->dims[1].size - index_[1] : 1; }
  /// Elements left in the innermost plane.
  int64_t plane_left() const { return runs_left() * loop_->dims[0].size - index_[0]; }
  int64_t at(std::size_t operand) const { return at_[operand]; }

  /// Moves on by `n` elements, not beyond the end of the loop.
  void advance(int64_t n) {
    const auto& dims = loop_->dims;
    index_[0] += n;
    for (std::size_t k = 0; k < loop_->operands.size(); ++k) at_[k] += n * dims[0].step[k];
    for (std::size_t d = 0; d + 1 < dims.size() && index_[d] >= dims[d].size; ++d) {
      const int64_t carry = index_[d] / dims[d].size;
      index_[d] -= carry * dims[d].size;
      index_[d + 1] += carry;
      for (std::size_t k = 0; k < loop_->operands.size(); ++k)
        at_[k] += carry * (dims[d + 1].step[k] - dims[d].size * dims[d].step[k]);
    }
  }

 private:
  const ElementwiseLoop* loop_;
  std::vector<int64_t> index_;
  std::array<int64_t, max_operands> at_{};
};

/// Runs any piece of a loop.
struct ElementwiseRunner {
  /// Elements gathered at a time: all buffers of a loop stay in the first-level cache.
  static constexpr int64_t chunk_elements = 1024;
  /// Inner runs at least this long are handed on one by one, without gathering what is dense in them; shorter
  /// ones are collected into chunks of many. Where nothing would have to be gathered, short runs are handed
  /// on, too.
  static constexpr int64_t long_run = 128, short_run = 24;

  const ElementwiseLoop& loop;
  std::span<const Operand> operands = loop.operands;
  ElementwiseKernel kernel;
  std::size_t repeated = 0;  ///< the operand of which the kernel sees one element at a time; 0: none
  /// Whether the inner runs are long enough to be handed on one by one.
  bool by_runs = true;
  /// Else, whether chunks end with a plane, in each of which an operand repeats its run.
  bool by_planes = false;
  bool all_direct = true;
  bool streams = false;  ///< the first operand is written past the caches
  struct Lane {
    ConvertRun load = nullptr;
    ConvertRun store = nullptr;
    std::byte* base = nullptr;
    int64_t bytes = 0;          ///< of an element in the tensor
    int64_t as_bytes = 0;       ///< of an element in the kernel
    bool direct = false;        ///< the kernel sees the tensor's own memory
    bool repeats = false;       ///< its runs, in the loop or in each plane
    int64_t ahead = 0;          ///< bytes from an element to the next where they follow one another; else 0
    int64_t ahead_of_line = 0;  ///< bytes of those that make a cache line of the first operand
    int64_t gap = 0;            ///< bytes from the end of a run to the next one
  };
  std::array<Lane, max_operands> lanes{};

  ElementwiseRunner(const ElementwiseLoop& loop_, const ElementwiseKernel& kernel_)
      : loop(loop_), kernel(kernel_) {
    const LoopDim& inner = loop.dims[0];
    const bool large = operands[0].access == Access::write &&
                       is_streamed(loop.numel() * size_of(operands[0].tensor.dtype()));
    bool as_stored = true;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const bool same_type = operands[k].as == operands[k].tensor.dtype();
      if (kernel.run_repeated != nullptr && repeated == 0 && same_type && inner.step[k] == 0) repeated = k;
      // What repeats its run is better gathered, once for a chunk of many.
      const bool repeats = loop.dims.size() > 1 && loop.dims[1].step[k] == 0;
      as_stored = as_stored && same_type && ((inner.step[k] == 1 && !repeats) || is_repeated(k));
    }
    by_runs = loop.dims.size() == 1 || inner.size >= (as_stored ? short_run : long_run);
    if (!by_runs) repeated = 0;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Operand& operand = operands[k];
      const DType dtype = operand.tensor.dtype();
      Lane& a = lanes[k];
      a.base = operand.tensor.raw();
      a.bytes = size_of(dtype);
      a.as_bytes = size_of(operand.as);
      a.ahead = in_a_row(k) ? a.bytes : 0;
      a.ahead_of_line = a.ahead * cache_line / lanes[0].bytes;
      if (by_runs && loop.dims.size() > 1) a.gap = loop.dims[1].step[k] * a.bytes - inner.size * a.ahead;
      a.direct = (operand.as == dtype && in_a_row(k)) || is_repeated(k);
      all_direct = all_direct && a.direct;
      if (a.direct) continue;
      a.repeats = loop.repeats(k);
      if (!a.repeats && !by_runs && loop.dims[1].step[k] == 0 &&
          loop.dims[0].size * loop.dims[1].size >= long_run)
        a.repeats = by_planes = true;
      if (operand.access != Access::write) a.load = find_convert_run(operand.as, dtype);
      if (operand.access != Access::read) a.store = find_convert_run(dtype, operand.as);
    }
    // Results that are converted gain nothing by it.
    streams = large && in_a_row(0) && (!by_runs || loop.dims.size() == 1 || inner.size >= long_run) &&
              lanes[0].store == nullptr &&
              std::all_of(operands.begin() + 1, operands.end(), [&](const Operand& other) {
                return other.access == Access::read && other.tensor.raw() != lanes[0].base;  // not in place
              });
  }

  bool is_repeated(std::size_t k) const { return k > 0 && k == repeated; }

  void call(std::byte* const* arrays, int64_t n) const {
    if (repeated == 0)
      kernel.run(kernel.context, arrays, n);
    else
      kernel.run_repeated(kernel.context, arrays, n, repeated);
  }

  std::byte* address(const LoopPosition& position, std::size_t k) const {
    return lanes[k].base + position.at(k) * lanes[k].bytes;
  }

  /// Calls `copy(place in the tensor, steps, elements done, elements of a row, rows)` for n elements of
  /// operand k: whole inner runs of a plane as rows, others alone.
  template <class Copy>
  void walk(LoopPosition& position, std::size_t k, int64_t n, const Copy& copy) const {
    const int64_t size = loop.dims[0].size;
    const Steps steps{loop.dims[0].step[k], loop.dims.size() > 1 ? loop.dims[1].step[k] : 0};
    for (int64_t done = 0; done < n;) {
      const int64_t run = std::min(n - done, position.run_left());
      const int64_t rows = run < size ? 1 : std::min((n - done) / size, position.runs_left());
      copy(address(position, k), steps, done, run, rows);
      done += run * rows;
      if (done < n) position.advance(run * rows);
    }
  }

  void gather(std::byte* buffer, const LoopPosition& first, std::size_t k, int64_t n) const {
    const Lane& a = lanes[k];
    if (by_runs) return a.load(buffer, {1, n}, address(first, k), {loop.dims[0].step[k]}, n, 1);
    LoopPosition position = first;
    const int64_t period = loop.dims[0].size;
    int64_t filled = a.repeats ? std::min(n, period) : n;
    walk(position, k, filled, [&](std::byte* own, Steps steps, int64_t done, int64_t run, int64_t rows) {
      a.load(buffer + done * a.as_bytes, {1, run}, own, steps, run, rows);
    });
    while (filled < n) {
      const int64_t more = std::min(filled, n - filled);
      std::memcpy(buffer + filled * a.as_bytes, buffer, static_cast<std::size_t>(more * a.as_bytes));
      filled += more;
    }
  }

  void scatter(const std::byte* buffer, const LoopPosition& first, std::size_t k, int64_t n) const {
    const Lane& a = lanes[k];
    if (by_runs) return a.store(address(first, k), {loop.dims[0].step[k]}, buffer, {1, n}, n, 1);
    LoopPosition position = first;
    walk(position, k, n, [&](std::byte* own, Steps steps, int64_t done, int64_t run, int64_t rows) {
      a.store(own, steps, buffer + done * a.as_bytes, {1, run}, run, rows);
    });
  }

  /// Elements handed to the kernel at once. Chunks of short runs begin with a run, so that what repeats is
  /// gathered only once.
  int64_t chunk(const LoopPosition& position, int64_t left) const {
    const int64_t size = loop.dims[0].size;
    if (by_runs) return std::min({left, position.run_left(), chunk_elements});
    if (position.run_left() < size) return std::min(left, position.run_left());
    const int64_t n = std::min(left, chunk_elements / size * size);
    return by_planes ? std::min(n, position.plane_left()) : n;
  }

  /// Whether an operand's elements follow one another in each piece.
  bool in_a_row(std::size_t k) const { return loop.is_dense(k) || (by_runs && loop.dims[0].step[k] == 1); }

  /// Writes n elements of the first operand past the caches, to where `places` say that operands lie, and
  /// fetches what comes next of the others: after the `left` ones of the run, that of the next row.
  void stream(std::byte* const* places, const std::byte* from, int64_t n, int64_t left) const {
    const int64_t bytes = lanes[0].bytes;
    std::array<const std::byte*, max_operands> next{};
    for (std::size_t k = 1; k < operands.size(); ++k)
      next[k] = places[k] + 2 * streamed_elements * lanes[k].ahead;
    int64_t end = (left - 2 * streamed_elements) * bytes;
    // A function that only fetches has no effect that compilers know, and they leave out calls of it.
    stream_bytes(
        places[0], from, n * bytes, [&](int64_t at) __attribute__((always_inline)) {
          if (at >= end) {
            for (std::size_t k = 1; k < operands.size(); ++k) next[k] += lanes[k].gap;
            end = std::numeric_limits<int64_t>::max();
          }
          for (std::size_t k = 1; k < operands.size(); ++k) {
            __builtin_prefetch(next[k]);
            next[k] += lanes[k].ahead_of_line;
          }
        });
  }

  /// A run of n elements of which nothing is gathered, written past the caches.
  void stream_run(std::array<std::byte*, max_operands> places, int64_t n) const {
    alignas(64) std::byte buffer[streamed_elements * 8];
    for (int64_t count = 0; n > 0; n -= count) {
      count = streamed_count(places[0], n, lanes[0].bytes);
      auto arrays = places;
      arrays[0] = buffer;
      call(arrays.data(), count);
      stream(places.data(), buffer, count, n);
      for (std::size_t k = 0; k < operands.size(); ++k) places[k] += count * lanes[k].ahead;
    }
  }

  /// Runs of which nothing is gathered, plane after plane.
  void run_rows(int64_t first, int64_t last) const {
    LoopPosition position(loop, first);
    while (first < last) {
      const int64_t n = std::min(last - first, position.run_left());
      const int64_t rows = n < loop.dims[0].size ? 1 : std::min((last - first) / n, position.runs_left());
      std::array<std::byte*, max_operands> arrays{};
      for (std::size_t k = 0; k < operands.size(); ++k) arrays[k] = address(position, k);
      for (int64_t row = 0; row < rows; ++row) {
        if (streams)
          stream_run(arrays, n);
        else
          call(arrays.data(), n);
        for (std::size_t k = 0; k < operands.size(); ++k) arrays[k] += loop.dims[1].step[k] * lanes[k].bytes;
      }
      first += rows * n;
      if (first < last) position.advance(rows * n);
    }
  }

  /// Chunks of all operands, of which those that the kernel cannot read where they lie are gathered.
  void run_gathered(int64_t first, int64_t last) const {
    std::array<std::byte*, max_operands> arrays{};
    alignas(64) std::byte buffer[max_operands][chunk_elements * 8];
    // Where the elements that lie in a buffer came from, and how many they are: often the next ones are the
    // same.
    std::array<const std::byte*, max_operands> gathered{};
    std::array<int64_t, max_operands> gathered_elements{};
    LoopPosition position(loop, first);
    while (first < last) {
      const int64_t n = chunk(position, last - first);
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const Lane& a = lanes[k];
        arrays[k] = a.direct && !(streams && k == 0) ? address(position, k) : buffer[k];
        if (a.load == nullptr) continue;
        const bool whole_runs = by_runs || position.run_left() == loop.dims[0].size;
        const bool lasting = operands[k].access == Access::read && whole_runs && (by_runs || a.repeats);
        if (lasting && gathered[k] == address(position, k) && gathered_elements[k] >= n) continue;
        gather(buffer[k], position, k, n);
        gathered[k] = lasting ? address(position, k) : nullptr;
        gathered_elements[k] = n;
      }
      call(arrays.data(), n);
      if (streams) {
        std::array<std::byte*, max_operands> places{};
        for (std::size_t k = 0; k < operands.size(); ++k) places[k] = address(position, k);
        stream(places.data(), buffer[0], n, position.run_left());
      }
      for (std::size_t k = streams ? 1 : 0; k < operands.size(); ++k)
        if (lanes[k].store != nullptr) scatter(buffer[k], position, k, n);
      first += n;
      if (first < last) position.advance(n);
    }
  }

  void run(int64_t first, int64_t last) const {
    if (!all_direct) {
      run_gathered(first, last);
    } else if (loop.dims.size() > 1) {
      run_rows(first, last);
    } else {
      std::array<std::byte*, max_operands> arrays{};
      for (std::size_t k = 0; k < operands.size(); ++k) arrays[k] = lanes[k].base + first * lanes[k].ahead;
      if (streams)
        stream_run(arrays, last - first);
      else
        call(arrays.data(), last - first);
    }
    if (streams) end_streaming();
  }
};

}  // namespace pleat
