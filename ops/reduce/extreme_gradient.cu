#include <cstddef>
#include <cstdint>
#include <limits>

#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/lines.h"
#include "pleat/ops/softmax/team_lines.h"

namespace pleat::ops {

/// A team of threads takes one line of x: those that are its extreme share the line's gradient.
template <class T, class Stored>
struct ExtremeGradients {
  static constexpr bool keeps_registers = true;

  TeamLines lines;
  const Stored* x;
  const Stored* y;
  const Stored* dy;
  Stored* dx;

  __device__ void operator()(int64_t b, const Block& block) const {
    const OwnLine<T> own(lines, b, block);
    const T extreme = own.exists() ? convert<T>(y[own.line]) : T(0);
    const bool is_nan = extreme != extreme;
    const auto is_extreme = [&](T each) { return is_nan ? each != each : each == extreme; };
    unsigned count = 0;
    const auto load = [&](int64_t start, auto& held) {
      own.load(start, held, x, is_nan ? T(0) : std::numeric_limits<T>::quiet_NaN());
    };
    const auto add_up = [&](int64_t start, auto& held) {
      load(start, held);
      own.for_held(start, held, [&](int k) { count += is_extreme(held.of[k]) ? 1 : 0; });
    };
    const auto share_out = [&](int64_t start, auto& held, T share) {
      own.for_held(start, held, [&](int k) { held.of[k] = is_extreme(held.of[k]) ? share : T(0); });
      own.store(start, held, dx);
    };
    const auto share = [&] {
      own.merge(count, [](unsigned& into, unsigned other) { into += other; });
      return own.exists() ? convert<T>(dy[own.line]) / static_cast<T>(count) : T(0);
    };
    if (lines.are_held()) {
      HeldLine<T> held;
      add_up(0, held);
      return share_out(0, held, share());
    }
    own.for_parts([&](int64_t start, auto& held) { add_up(start, held); });
    const T each = share();
    own.for_parts([&](int64_t start, auto& held) {
      load(start, held);
      share_out(start, held, each);
    });
  }
};

Tensor extreme_gradient_cuda(const char* op, const Tensor& dy, const Tensor& any_x, const Tensor& y,
                             int64_t dim) {
  const RecordOp range(op, "_backward", dy, any_x, y);
  const Tensor x = dense(any_x);
  const Tensor dx = empty_like(x);
  if (x.numel() == 0) return dx;
  // An element for each line, in their order.
  const auto along = static_cast<std::size_t>(normalize_dim(dim, x.rank(), op));
  Strides strides = x.strides();
  for (int64_t& stride : strides)
    if (stride > x.strides()[along]) stride /= x.shape()[along];
  const auto of_lines = [&](const Tensor& t) {
    bool lies_so = t.dtype() == x.dtype();
    for (std::size_t d = 0; d < strides.size(); ++d)
      lies_so = lies_so && (t.shape()[d] == 1 || t.strides()[d] == strides[d]);
    if (lies_so) return t;
    const Tensor memory = empty({t.numel()}, {.dtype = x.dtype(), .device = x.device()});
    const Tensor result = memory.as_strided(t.shape(), strides, 0);
    copy_into(result, t);
    return result;
  };
  const Tensor extremes = of_lines(y), gradients = of_lines(dy);
  dispatch_stored(x.dtype(), [&]<class T, class Stored>(Type<T>, Type<Stored>) {
    const ExtremeGradients<T, Stored> all{TeamLines(Lines(op, x, dim), {dx, x}), x.data<Stored>(),
                                          extremes.data<Stored>(), gradients.data<Stored>(),
                                          dx.data<Stored>()};
    launch_blocks(op, x.device(), all.lines.blocks(), all);
  });
  return dx;
}

}  // namespace pleat::ops
