#include <cmath>
#include <type_traits>

#include "pleat/core/convert.h"
#include "pleat/core/grid_block.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/grid_exponentials.h"
#include "pleat/ops/reduce/grid_lines.h"
#include "pleat/ops/reduce/logsumexp_functors.h"
#include "pleat/ops/softmax/grid_softmax.h"

/// A team of threads takes one line and reads it as often as there are steps; what it reads again lies in the
/// cache. Half types are computed in float32, sums are taken in float64.

namespace pleat::ops {
namespace {

using reduction::exponent_shift;

template <class T, class Stored>
struct SoftmaxLines {
  GridLines lines;
  bool logarithm;
  const Stored* x;
  Stored* y;

  PLEAT_HOST_DEVICE T at(int64_t i) const { return convert<T>(x[i]); }

  template <class Block>
  PLEAT_HOST_DEVICE void operator()(int64_t b, Block& block) const {
    typename Block::template Own<T> largest;
    typename Block::template Own<double> sum;
    line_exponentials(lines, b, block, largest, sum, [this](int64_t i) { return at(i); });

    block.each([&](int thread) {
      const T from = exponent_shift(largest[thread]);
      const T last = static_cast<T>(logarithm ? std::log(sum[thread]) : 1 / sum[thread]);
      lines.for_own(b, thread, [&](int64_t i) {
        const T less = at(i) - from;
        y[i] = convert<Stored>(logarithm ? less - last : vmath::exp(less) * last);
      });
    });
  }
};

/// dx = y (dy - sum of dy y), or dx = dy - exp(y) sum of dy.
template <class T, class Stored>
struct SoftmaxBackwardLines {
  GridLines lines;
  bool logarithm;
  const Stored* dy;
  const Stored* y;
  Stored* dx;

  template <class Block>
  PLEAT_HOST_DEVICE void operator()(int64_t b, Block& block) const {
    typename Block::template Own<double> sum;
    block.each([&](int thread) {
      double total = 0;
      lines.for_own(b, thread, [&](int64_t i) {
        const auto g = static_cast<double>(convert<T>(dy[i]));
        total += logarithm ? g : g * static_cast<double>(convert<T>(y[i]));
      });
      sum[thread] = total;
    });
    block.combine(sum, lines.teams, AddNumber{});
    block.share(sum, lines.teams);
    block.each([&](int thread) {
      const T total = static_cast<T>(sum[thread]);
      lines.for_own(b, thread, [&](int64_t i) {
        const T g = convert<T>(dy[i]);
        const T out = convert<T>(y[i]);
        dx[i] = convert<Stored>(logarithm ? g - vmath::exp(out) * total : out * (g - total));
      });
    });
  }
};

/// Calls `f(Type<T>{}, Type<Stored>{})`.
template <class F>
void dispatch_stored(DType dtype, const F& f) {
  if (dtype == float64) return f(Type<double>{}, Type<double>{});
  if (dtype == float16) return f(Type<float>{}, Type<Half>{});
  if (dtype == bfloat16) return f(Type<float>{}, Type<BFloat16>{});
  f(Type<float>{}, Type<float>{});
}

}  // namespace

void grid_softmax(const char* op, const Tensor& y, const Tensor& x, const Lines& lines, bool logarithm) {
  const GridLines grid(lines);
  dispatch_stored(x.dtype(), [&]<class T, class Stored>(Type<T>, Type<Stored>) {
    grid_blocks(op, x.device(), grid.blocks(),
                SoftmaxLines<T, Stored>{grid, logarithm, x.data<Stored>(), y.data<Stored>()});
  });
}

void grid_softmax_backward(const char* op, const Tensor& dx, const Tensor& dy, const Tensor& y,
                           const Lines& lines, bool logarithm) {
  const GridLines grid(lines);
  dispatch_stored(y.dtype(), [&]<class T, class Stored>(Type<T>, Type<Stored>) {
    grid_blocks(op, y.device(), grid.blocks(),
                SoftmaxBackwardLines<T, Stored>{grid, logarithm, dy.data<Stored>(), y.data<Stored>(),
                                                dx.data<Stored>()});
  });
}

}  // namespace pleat::ops
