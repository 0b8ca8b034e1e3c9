#include <cmath>
#include <type_traits>

#include "pleat/core/kernels/block.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/softmax/kernels_cuda.h"
#include "pleat/ops/softmax/line_exponentials.h"
#include "pleat/ops/softmax/short_lines.h"

/// A team of threads takes one line into its registers. Half types are computed in float32, sums are taken in
/// float64, but for what a thread adds up of half types.

namespace pleat::ops {

template <class T, class Stored, class Own>
struct SoftmaxLines {
  static constexpr bool keeps_registers = true;

  ShortLines lines;
  bool logarithm;
  const Stored* x;
  Stored* y;

  __device__ void operator()(int64_t b, const Block& block) const {
    const Own own(lines, b, block);
    sum_exponentials<T>(own, x, logarithm, [&](int64_t start, auto& held, const LineSum<T>& line) {
      const T scale = logarithm ? T(1) : static_cast<T>(1 / line.sum);
      const T offset = logarithm ? static_cast<T>(log_of<Stored>(line.sum)) : T(0);
      own.for_held(start, held, [&](int k) { held.of[k] = held.of[k] * scale - offset; });
      own.store(start, held, y);
    });
  }
};

/// dx = y (dy - sum of dy y), or dx = dy - exp(y) sum of dy.
template <class T, class Stored, class Own>
struct SoftmaxBackwardLines {
  static constexpr bool keeps_registers = true;

  ShortLines lines;
  bool logarithm;
  const Stored* dy;
  const Stored* y;
  Stored* dx;

  __device__ void operator()(int64_t b, const Block& block) const {
    const Own own(lines, b, block);
    double sum = 0;
    const auto load = [&](int64_t start, auto& g, auto& out) {
      own.load(start, g, dy, T(0));
      own.load(start, out, y, T(0));
    };
    const auto add_up = [&](int64_t start, auto& g, auto& out) {
      load(start, g, out);
      own.for_held(start, g, [&](int k) {
        sum += static_cast<double>(g.of[k]) * (logarithm ? 1 : static_cast<double>(out.of[k]));
      });
    };
    const auto merge = [&] { own.merge(sum, [](double& into, double other) { into += other; }); };
    const auto write = [&](int64_t start, auto& g, auto& out) {
      const T total = static_cast<T>(sum);
      if (logarithm)
        own.for_held(start, g, [&](int k) { g.of[k] -= exp_of<Stored>(out.of[k]) * total; });
      else
        own.for_held(start, g, [&](int k) { g.of[k] = out.of[k] * (g.of[k] - total); });
      own.store(start, g, dx);
    };
    if (is_short_line<Own> || lines.are_held()) {
      HeldLine<T> g, out;
      add_up(0, g, out);
      merge();
      return write(0, g, out);
    }
    if constexpr (!is_short_line<Own>) {
      HeldPart<T> g, out;
      own.for_parts([&](int64_t start, auto&) { add_up(start, g, out); });
      merge();
      own.for_parts([&](int64_t start, auto&) {
        load(start, g, out);
        write(start, g, out);
      });
    }
  }
};

void softmax_cuda(const char* op, const Tensor& y, const Tensor& x, const Lines& lines, bool logarithm) {
  const ShortLines own_lines(lines, {x, y});
  dispatch_lines(
      x.dtype(), own_lines, [&]<class T, class Stored, class Own>(Type<T>, Type<Stored>, Type<Own>) {
        const SoftmaxLines<T, Stored, Own> all{own_lines, logarithm, x.data<Stored>(), y.data<Stored>()};
        launch_blocks(op, x.device(), all.lines.blocks(), all);
      });
}

void softmax_backward_cuda(const char* op, const Tensor& dx, const Tensor& dy, const Tensor& y,
                           const Lines& lines, bool logarithm) {
  const ShortLines own_lines(lines, {dx, dy, y});
  dispatch_lines(y.dtype(), own_lines,
                 [&]<class T, class Stored, class Own>(Type<T>, Type<Stored>, Type<Own>) {
                   const SoftmaxBackwardLines<T, Stored, Own> all{own_lines, logarithm, dy.data<Stored>(),
                                                                  y.data<Stored>(), dx.data<Stored>()};
                   launch_blocks(op, y.device(), all.lines.blocks(), all);
                 });
}

}  // namespace pleat::ops
