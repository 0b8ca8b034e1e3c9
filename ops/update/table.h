// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/graph/host_tables.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/ops/update/step_count.h"

/// Updates of many tensors, and how one launch makes them all: a table of functors, tensors and sizes goes to
/// the device, and each thread or block finds its row.

namespace pleat::ops {

/// A functor with the tensors whose elements it is called for: `f(p, g, states...)` with references to an
/// element of each of `F::operands` tensors, of which the second, if there is one, is only read. On the CPU
/// `f.update_array(n, p, g...)`, if there is one, is called for arrays instead.
template <class F>
struct Update {
  F f;
  std::array<Tensor, F::operands> tensors;
  StepCount count = {};
};

/// Whether a functor has constants that go by the number of the step, from 1, and are to be worked out first.
template <class F>
concept GoesByStep = requires(F f) {
  f.at_step(int64_t{1});
};

/// The tensors as operands whose elements the functor sees as T.
template <class T, class F>
std::array<Operand, F::operands> update_operands(const Update<F>& update) {
  std::array<Operand, F::operands> operands;
  for (std::size_t k = 0; k < F::operands; ++k)
    operands[k] = {update.tensors[k], dtype_of<T>(), k == 1 ? Access::read : Access::read_write};
  return operands;
}

/// The tensors of one update.
template <class F>
struct Row {
  F f;
  StepCount count;
  std::array<std::byte*, F::operands> base;
  std::array<DType, F::operands> dtype;
  int64_t n;        ///< elements
  int64_t strides;  ///< place in the table's strides; -1 where all tensors lie densely and alike
  bool by_vectors;  ///< whether `vector_width` elements at a time may be moved
};

/// The table on the device.
template <class F>
struct Rows {
  Row<F>* rows;
  const int64_t* first;  ///< share of each row
  const ElementOffsets<F::operands>* strides;
  int64_t count;  ///< rows

  PLEAT_HOST_DEVICE int64_t row_of(int64_t share) const {
    int64_t low = 0;
    int64_t high = count;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (first[middle] <= share ? low : high) = middle;
    }
    return low;
  }
  /// Where element i of a row lies in its tensors.
  PLEAT_HOST_DEVICE std::array<int64_t, F::operands> places(const Row<F>& row, int64_t i) const {
    if (row.strides >= 0) return strides[row.strides].at(i);
    std::array<int64_t, F::operands> at;
    for (std::size_t k = 0; k < F::operands; ++k) at[k] = i;
    return at;
  }
};

template <class T>
bool moves_by_vectors(const Tensor& t) {
  const auto bytes = static_cast<std::size_t>(size_of(t.dtype()) * vector_width);
  return moves_vectors_of<T>(t.dtype()) && reinterpret_cast<std::uintptr_t>(t.raw()) % bytes == 0;
}

/// The table as it is made on the host.
template <class T, class F>
class Table {
 public:
  static constexpr std::size_t operands = F::operands;

  /// `share`: elements that a thread or block takes, all of one row.
  explicit Table(int64_t share) : share_(share) {}

  void add(const char* op, const Update<F>& update, const ElementwiseLoop& loop) {
    const StepCount& count = update.count;
    if (loop.numel() == 0 && count.made == nullptr) return;
    Row<F> row{update.f, count, {}, {}, loop.numel(), -1, true};
    if constexpr (GoesByStep<F>)
      if (count.made == nullptr) row.f.at_step(count.before + 1);
    counts_ = counts_ || count.made != nullptr;
    for (std::size_t k = 0; k < operands; ++k) {
      const Tensor& t = loop.operands[k].tensor;
      row.base[k] = t.raw();
      row.dtype[k] = t.dtype();
      row.by_vectors = row.by_vectors && moves_by_vectors<T>(t);
      if (!loop.is_dense(k)) row.strides = static_cast<int64_t>(strides_.size());
    }
    if (row.strides >= 0) {
      row.by_vectors = false;
      strides_.emplace_back(op, loop.dims);
    }
    first_.push_back(shares_);
    rows_.push_back(row);
    shares_ += row.n == 0 ? 1 : ceil_div(row.n, share_);  // the first counts the step
  }

  /// Whether the number of a row's step is on the device.
  bool counts() const { return counts_; }

  /// Calls `run` with the table on the device and the number of shares; not at all when there are none, or
  /// when a CUDA graph has the kernel already (core/device/capture.h).
  template <class Run>
  void launch(const char* op, Device device, const Run& run) const {
    if (shares_ == 0) return;
    const std::size_t strides_at = rounded(bytes(rows_));
    const std::size_t first_at = strides_at + rounded(bytes(strides_));
    const Shape size = {static_cast<int64_t>(first_at + bytes(first_))};
    const Tensor host = cuda::empty_pinned(size, uint8);
    write(host.raw(), rows_);
    write(host.raw() + strides_at, strides_);
    write(host.raw() + first_at, first_);
    HostTables* const part = HostTables::current();
    const Tensor table =
        part != nullptr ? part->send(op, host) : to_device(host, device, {.non_blocking = true});
    if (part != nullptr && part->replays()) return;
    run(Rows<F>{reinterpret_cast<Row<F>*>(table.raw()),
                reinterpret_cast<const int64_t*>(table.raw() + first_at),
                reinterpret_cast<const ElementOffsets<operands>*>(table.raw() + strides_at),
                static_cast<int64_t>(rows_.size())},
        shares_);
  }

 private:
  template <class A>
  static std::size_t bytes(const std::vector<A>& array) {
    return array.size() * sizeof(A);
  }
  static std::size_t rounded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }
  template <class A>
  static void write(std::byte* to, const std::vector<A>& array) {
    static_assert(std::is_trivially_copyable_v<A> && alignof(A) <= 16);
    if (!array.empty()) std::memcpy(to, array.data(), bytes(array));
  }

  std::vector<Row<F>> rows_;
  std::vector<int64_t> first_;
  std::vector<ElementOffsets<operands>> strides_;
  int64_t share_;
  int64_t shares_ = 0;
  bool counts_ = false;
};

}  // namespace pleat::ops
