// Host and device.
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/lines.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/reduce_to.h"

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
Tensor extreme(const char* op, const Plan& plan, const Tensor& x) {
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to(op, Fold<ExtremeStep<T, larger>>{}, plan, x, x.dtype(), AsIs<T>{});
  });
}

template <bool larger>
ValuesIndices with_indices(const char* op, const Plan& plan, const Tensor& x) {
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    const auto [values, indices] =
        reduce_to_two(op, Arg<T, larger>{}, plan, x, x.dtype(), int64, ValueAndIndex<T>{});
    return ValuesIndices{values, indices};
  });
}

/// 1 where both are equal or both NaN, else 0.
struct SameElement {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return T((a == b) | ((a != a) & (b != b)));
  }
};

/// One line of y a call, of which values and indices have one element.
template <class T>
struct PlaceAtIndex {
  FastDivider inner;
  int64_t size;
  const int64_t* indices;
  const T* values;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t line) const {
    int64_t within = line;
    const int64_t outer = inner.divide(within);
    y[(outer * size + indices[line]) * inner.divisor() + within] = values[line];
  }
};

}  // namespace

Tensor reduce_extreme(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool larger) {
  const Plan plan = plan_of_elements(op, x, dims, keepdim);
  return larger ? extreme<true>(op, plan, x) : extreme<false>(op, plan, x);
}

ValuesIndices reduce_extreme_with_indices(const char* op, const Tensor& x, int64_t dim, bool keepdim,
                                          bool larger) {
  const Plan plan = plan_of_elements(op, x, dim, keepdim);
  return larger ? with_indices<true>(op, plan, x) : with_indices<false>(op, plan, x);
}

Tensor equal_elements(const Tensor& x, const Tensor& y) {
  const RecordOp range("equal_elements", x, y);
  const Tensor equal = empty_like(x);
  map_into<Numbers>("max", x.dtype(), equal, std::array{x, y}, SameElement{});
  return equal;
}

Tensor place_at_indices(const Tensor& values, const Tensor& indices, int64_t dim, int64_t size,
                        MemoryFormat format) {
  Shape shape = values.shape();
  if (!shape.empty()) shape[static_cast<std::size_t>(normalize_dim(dim, values.rank(), "max"))] = size;
  const Tensor y = zeros(shape, {.dtype = values.dtype(), .device = values.device(), .format = format});
  const Tensor from = to_format(values, format), places = to_format(indices, format);
  dispatch(y.dtype(), [&]<class T>(Type<T>) {
    for_each_index("max", y.device(), values.numel(),
                   PlaceAtIndex<T>{FastDivider(Lines("max", y, dim).inner), size, places.data<int64_t>(),
                                   from.data<T>(), y.data<T>()});
  });
  return y;
}

}  // namespace pleat::ops
