// Host and device.
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pleat/autograd/call.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce_kernels.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {

using namespace reduction;

namespace {

/// The best element and the index of its first occurrence.
template <class T, bool larger>
struct Arg {
  using In = T;
  struct State {
    T value;
    int64_t index;
  };
  static constexpr bool uses_index = true;
  static constexpr int64_t short_run = 64;
  static constexpr int64_t none = -1;

  PLEAT_HOST_DEVICE State empty() const { return {ExtremeStep<T, larger>::worst(), none}; }

  PLEAT_HOST_DEVICE void merge(State& into, const State& other) const {
    if (other.index == none) return;
    const bool into_nan = into.value != into.value;
    const bool other_nan = other.value != other.value;
    const bool equal = into.value == other.value || (into_nan && other_nan);
    const bool better =
        !into_nan && (other_nan || (larger ? other.value > into.value : other.value < into.value));
    if (into.index == none || better || (equal && other.index < into.index)) into = other;
  }

  using Running = State;
  PLEAT_HOST_DEVICE Running begin() const { return empty(); }
  template <std::size_t n>
  PLEAT_HOST_DEVICE void add(Running& best, const std::array<T, n>& x, int64_t index, int64_t step) const {
    PLEAT_UNROLL
    for (std::size_t i = 0; i < n; ++i) merge(best, {x[i], index + static_cast<int64_t>(i) * step});
  }
  PLEAT_HOST_DEVICE State state(const Running& best) const { return best; }

  State row(const T* x, int64_t n, int64_t first) const {
    // The value is found at full speed; only then a search for its place, which ends early.
    const T best = Fold<ExtremeStep<T, larger>>{}.row(x, n, first);
    int64_t i = 0;
    if (best != best)
      while (x[i] == x[i]) ++i;
    else
      while (x[i] != best) ++i;
    return {best, first + i};
  }

  void columns(State* states, const T* const* rows, int64_t row_count, int64_t n, int64_t first) const {
    // Indices as wide as the elements, so that both move together through the vector unit.
    using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    alignas(64) std::array<T, column_block> best;
    alignas(64) std::array<Index, column_block> place;
    T* __restrict const b = best.data();
    Index* __restrict const p = place.data();
    for (int64_t j = 0; j < n; ++j) {
      b[j] = rows[0][j];
      p[j] = 0;
    }
    for (int64_t r = 1; r < row_count; ++r) {
      const T* __restrict const x = rows[r];
      for (int64_t j = 0; j < n; ++j) {
        const bool wins = (larger ? x[j] > b[j] : x[j] < b[j]) | ((x[j] != x[j]) & (b[j] == b[j]));
        b[j] = wins ? x[j] : b[j];
        p[j] = wins ? static_cast<Index>(r) : p[j];
      }
    }
    for (int64_t j = 0; j < n; ++j) states[j] = {b[j], first + p[j]};
  }
};

template <class T>
struct ValueAndIndex {
  template <class State>
  PLEAT_HOST_DEVICE Two<T, int64_t> operator()(const State& best) const {
    return {best.value, best.index};
  }
};

Plan plan_of_elements(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  Plan plan = make_plan(op, x, dims, keepdim);
  check<ShapeError>(plan.count > 0, "{}: needs at least one element to choose from, got {} reduced to {}", op,
                    x, plan.shape);
  return plan;
}

template <bool larger>
Tensor extreme(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  const RecordOp range(op, x);
  const Plan plan = plan_of_elements(op, x, dims, keepdim);
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to(op, Fold<ExtremeStep<T, larger>>{}, plan, x, x.dtype(), AsIs<T>{});
  });
}

template <bool larger>
ValuesIndices with_indices(const char* op, const Tensor& x, int64_t dim, bool keepdim) {
  const RecordOp range(op, x);
  const Plan plan = plan_of_elements(op, x, dim, keepdim);
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    const auto [values, indices] =
        reduce_to_two(op, Arg<T, larger>{}, plan, x, x.dtype(), int64, ValueAndIndex<T>{});
    return ValuesIndices{values, indices};
  });
}

template <bool larger>
Tensor arg(const char* op, const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  const Call call(op, {x}, {{"all", Flag(!dim)}, {"dim", dim.value_or(0)}, {"keepdim", Flag(keepdim)}});
  if (dim) return call.gives(with_indices<larger>(op, x, *dim, keepdim).indices);
  const Tensor flat = with_indices<larger>(op, reshape(x, {x.numel()}), 0, false).indices;
  const Tensor place = keepdim ? reshape(flat, Shape(x.shape().size(), 1)) : flat;
  place.mutable_impl().is_place_among_all = true;
  return call.gives(place);
}

}  // namespace

Tensor max(const Tensor& x, const Dims& dims, Flag keepdim) { return extreme<true>("max", x, dims, keepdim); }
Tensor min(const Tensor& x, const Dims& dims, Flag keepdim) {
  return extreme<false>("min", x, dims, keepdim);
}

ValuesIndices max_with_indices(const Tensor& x, Integer dim, Flag keepdim) {
  return with_indices<true>("max_with_indices", x, dim, keepdim);
}
ValuesIndices min_with_indices(const Tensor& x, Integer dim, Flag keepdim) {
  return with_indices<false>("min_with_indices", x, dim, keepdim);
}

Tensor argmax(const Tensor& x, std::optional<Integer> dim, Flag keepdim) {
  return arg<true>("argmax", x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<Integer> dim, Flag keepdim) {
  return arg<false>("argmin", x, dim, keepdim);
}

}  // namespace pleat::ops
