#include <cmath>
#include <type_traits>

#include "pleat/core/kernels/block.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/reduce/team_lines.h"
#include "pleat/ops/softmax/kernels_cuda.h"

/// A team of threads takes one line and reads it as often as there are steps; what it reads again lies in the
/// cache. Half types are computed in float32, sums are taken in float64.

namespace pleat::ops {
namespace {

using reduction::exponent_shift;

template <class T, class Stored>
struct SoftmaxLines {
  TeamLines lines;
  bool logarithm;
  const Stored* x;
  Stored* y;

  __device__ T at(int64_t i) const { return convert<T>(x[i]); }

  __device__ void operator()(int64_t b, const Block& block) const {
    T largest;
    double sum;
    line_exponentials(lines, b, block, largest, sum, [this](int64_t i) { return at(i); });
    const T from = exponent_shift(largest);
    const T last = static_cast<T>(logarithm ? std::log(sum) : 1 / sum);
    lines.for_own(b, block, [&](int64_t i) {
      const T less = at(i) - from;
      y[i] = convert<Stored>(logarithm ? less - last : vmath::exp(less) * last);
    });
  }
};

/// dx = y (dy - sum of dy y), or dx = dy - exp(y) sum of dy.
template <class T, class Stored>
struct SoftmaxBackwardLines {
  TeamLines lines;
  bool logarithm;
  const Stored* dy;
  const Stored* y;
  Stored* dx;

  __device__ void operator()(int64_t b, const Block& block) const {
    double sum = 0;
    lines.for_own(b, block, [&](int64_t i) {
      const auto g = static_cast<double>(convert<T>(dy[i]));
      sum += logarithm ? g : g * static_cast<double>(convert<T>(y[i]));
    });
    block.combine(sum, lines.teams, AddNumber{});
    block.share(sum, lines.teams);
    const T total = static_cast<T>(sum);
    lines.for_own(b, block, [&](int64_t i) {
      const T g = convert<T>(dy[i]);
      const T out = convert<T>(y[i]);
      dx[i] = convert<Stored>(logarithm ? g - vmath::exp(out) * total : out * (g - total));
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

void softmax_cuda(const char* op, const Tensor& y, const Tensor& x, const Lines& lines, bool logarithm) {
  const TeamLines teams(lines);
  dispatch_stored(x.dtype(), [&]<class T, class Stored>(Type<T>, Type<Stored>) {
    launch_blocks(op, x.device(), teams.blocks(),
                  SoftmaxLines<T, Stored>{teams, logarithm, x.data<Stored>(), y.data<Stored>()});
  });
}

void softmax_backward_cuda(const char* op, const Tensor& dx, const Tensor& dy, const Tensor& y,
                           const Lines& lines, bool logarithm) {
  const TeamLines teams(lines);
  dispatch_stored(y.dtype(), [&]<class T, class Stored>(Type<T>, Type<Stored>) {
    launch_blocks(op, y.device(), teams.blocks(),
                  SoftmaxBackwardLines<T, Stored>{teams, logarithm, dy.data<Stored>(), y.data<Stored>(),
                                                  dx.data<Stored>()});
  });
}

}  // namespace pleat::ops
