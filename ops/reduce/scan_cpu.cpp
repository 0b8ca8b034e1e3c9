#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/lines.h"
#include "pleat/ops/reduce/read_as.h"
#include "pleat/ops/reduce/scan_kernels.h"

namespace pleat::ops {
namespace {

using namespace reduction;

constexpr int64_t grain_elements = 32768;
constexpr int64_t block_lines = 64;  ///< lines side by side
/// Of each of them, where they are turned to lie so; all stay in the first-level cache.
template <class T>
constexpr int64_t block_elements = 256 / sizeof(T);
/// Fewer are not worth turning. Integers never are: a processor adds one in a cycle.
template <class State>
constexpr int64_t few_lines = std::is_integral_v<State> ? std::numeric_limits<int64_t>::max() : 8;

/// One element of each of n lines that lie side by side. `step<is_first>(state, in...)` gives the result.
template <bool is_first, class State, class T, class Step, class... In>
void scan_step(State* __restrict states, T* y, int64_t n, const Step& step, const In*... in) {
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t c = 0; c < n; ++c)
    y[c] = static_cast<T>(step.template operator()<is_first>(states[c], in[c]...));
}

template <class State, class T, class Step, class... In>
void scan_step(State* states, bool is_first, T* y, int64_t n, const Step& step, const In*... in) {
  if (is_first)
    scan_step<true>(states, y, n, step, in...);
  else
    scan_step<false>(states, y, n, step, in...);
}

/// One line after another, whose elements are neighbours.
template <class State, class T, class Step, class... In>
void scan_line(int64_t size, bool reverse, T* y, const Step& step, const In*... in) {
  State state{};
  for (int64_t k = 0; k < size; ++k) {
    const int64_t at = reverse ? size - 1 - k : k;
    y[at] = static_cast<T>(k == 0 ? step.template operator()<true>(state, in[at]...)
                                  : step.template operator()<false>(state, in[at]...));
  }
}

/// Lines whose elements are neighbours, side by side: pieces of them are turned, and turned back.
template <class State, class T, class Step, class... In>
void scan_turned(int64_t size, int64_t lines, bool reverse, T* y, const Step& step, const In*... in) {
  State states[block_lines];
  alignas(64) T buffer[sizeof...(In)][block_elements<T> * block_lines];
  for (int64_t done = 0; done < size; done += block_elements<T>) {
    const int64_t n = std::min(block_elements<T>, size - done);
    const int64_t first = reverse ? size - done - n : done;
    std::size_t input = 0;
    (transpose_matrix(buffer[input++], lines, in + first, size, lines, n), ...);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = (reverse ? n - 1 - k : k) * lines;
      [&]<std::size_t... i>(std::index_sequence<i...>) {
        scan_step(states, done + k == 0, buffer[0] + at, lines, step, buffer[i] + at...);
      }
      (std::index_sequence_for<In...>());
    }
    transpose_matrix(y + first, size, buffer[0], lines, n, lines);
  }
}

/// Runs along all lines; `in` and y lie alike.
template <class State, class T, class Step, class... In>
void scan_lines(const Lines& lines, bool reverse, T* y, const Step& step, const In*... in) {
  if (lines.outer == 0) return;
  if (lines.inner == 1) {
    parallel_for(0, lines.outer, std::max<int64_t>(1, grain_elements / lines.size),
                 [&](int64_t line, int64_t end) {
                   while (line < end) {
                     const int64_t at = line * lines.size;
                     const int64_t n = end - line < few_lines<State> ? 1 : std::min(block_lines, end - line);
                     if (n == 1)
                       scan_line<State>(lines.size, reverse, y + at, step, in + at...);
                     else
                       scan_turned<State>(lines.size, n, reverse, y + at, step, in + at...);
                     line += n;
                   }
                 });
    return;
  }
  const int64_t width = std::min<int64_t>(lines.inner, column_block);
  const int64_t blocks = ceil_div(lines.inner, width);
  const int64_t grain = std::max<int64_t>(1, grain_elements / (lines.size * width));
  parallel_for(0, lines.outer * blocks, grain, [&](int64_t item, int64_t end) {
    State states[column_block];
    for (; item < end; ++item) {
      const int64_t column = item % blocks * width;
      const int64_t n = std::min(width, lines.inner - column);
      const int64_t base = item / blocks * lines.size * lines.inner + column;
      for (int64_t k = 0; k < lines.size; ++k) {
        const int64_t at = base + (reverse ? lines.size - 1 - k : k) * lines.inner;
        scan_step(states, k == 0, y + at, n, step, in + at...);
      }
    }
  });
}

template <class T, class Operator>
void run(const Lines& lines, bool reverse, Operator combine, const T* x, T* y) {
  using State = SumType<T>;
  scan_lines<State>(
      lines, reverse, y,
      [combine]<bool is_first>(State& total, T element) {
        const State value = static_cast<State>(element);
        total = is_first ? value : combine(total, value);
        return total;
      },
      x);
}

template <class T>
void recur(const Lines& lines, bool reverse, const T* factors, const T* terms, T* y) {
  const auto forwards = []<bool is_first>(double& total, T factor, T term) {
    const auto added = static_cast<double>(term);
    total = is_first ? added : static_cast<double>(factor) * total + added;
    return total;
  };
  // Reversed, the factor of a place belongs to the next one: the state is multiplied with it already.
  const auto backwards = []<bool is_first>(double& state, T factor, T term) {
    const auto added = static_cast<double>(term);
    const double total = is_first ? added : state + added;
    state = static_cast<double>(factor) * total;
    return total;
  };
  if (reverse)
    scan_lines<double>(lines, true, y, backwards, factors, terms);
  else
    scan_lines<double>(lines, false, y, forwards, factors, terms);
}

}  // namespace

Tensor running_on_cpu(const char* op, const Tensor& x, int64_t dim, bool reverse, bool is_product) {
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    const Tensor in = dense(cast(x, dtype_of<T>()));
    const Tensor out = empty_like(in);
    const Lines lines(op, in, dim);
    const auto* const from = static_cast<const T*>(in.data<T>());
    is_product ? run(lines, reverse, Times{}, from, out.data<T>())
               : run(lines, reverse, Plus{}, from, out.data<T>());
    return cast(out, is_floating(x.dtype()) ? x.dtype() : int64);
  });
}

Tensor recurrence_on_cpu(const Tensor& a, const Tensor& b, int64_t dim, bool reverse) {
  return dispatch_read_floating(a.dtype(), [&]<class T>(Type<T>) {
    const Tensor factors = to_format(cast(a, dtype_of<T>()), MemoryFormat::contiguous);
    const Tensor terms = to_format(cast(b, dtype_of<T>()), MemoryFormat::contiguous);
    const Tensor out = empty(a.shape(), {.dtype = dtype_of<T>(), .device = Device()});
    recur<T>(Lines("linear_scan", out, dim), reverse, factors.data<T>(), terms.data<T>(), out.data<T>());
    return cast(out, a.dtype());
  });
}

}  // namespace pleat::ops
