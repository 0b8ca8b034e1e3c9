// Host and device.
#include "pleat/ops/elementwise/dropout.h"

#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/core/random/random_functors.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat {

struct MaskedScale {
  static constexpr std::size_t mask = 1;
  double scale;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, uint8_t stays) const {
    const T scaled = a * static_cast<T>(scale);
    return stays != 0 ? scaled : T(0);
  }
};

namespace {

/// Draws a mask in the pass that applies it, `width` elements a call: of dense tensors in row-major order.
template <class Stored>
struct DrawAndScale {
  static constexpr uint32_t width = is_half(dtype_of<Stored>()) ? half_width : vector_width;
  MaskedScale by;
  BernoulliBlock mask;
  const Stored* x;
  Stored* y;
  bool by_vectors;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    constexpr uint32_t words = 4;
    const int64_t first = i * width;
    bool stays[width];
    PLEAT_UNROLL
    for (uint32_t j = 0; j < width; j += words) {
      const auto drawn = mask.random.words((first + j) / words);
      for (uint32_t k = 0; k < words; ++k) stays[j + k] = mask.is_true(drawn[k]);
    }
    if (by_vectors && first + width <= mask.n) {
      Drawn<Stored> lanes[width];
      Loaded<Stored, width>(x, i).unpack(lanes);
      PLEAT_UNROLL
      for (uint32_t j = 0; j < width; ++j) lanes[j] = by(lanes[j], stays[j]);
      store_lanes<width>(y, lanes, i);
      store_lanes<width>(mask.out, stays, i);
      return;
    }
    PLEAT_UNROLL
    for (uint32_t j = 0; j < width; ++j) {
      if (first + j >= mask.n) break;
      mask.out[first + j] = stays[j];
      y[first + j] = convert<Stored>(by(convert<Drawn<Stored>>(x[first + j]), stays[j]));
    }
  }
};

/// scale * x where the mask (bool, broadcast to x) is true, else 0. Linear in x, and its own adjoint. With
/// `next`, on a GPU, it draws the mask, too.
Tensor masked_scale(const Tensor& x, const Tensor& mask, double scale, const BernoulliBlock* next = nullptr) {
  const Call call("dropout", {x});  // the mask is random, which has no form in a graph
  const Tensor y = empty_like(x);
  const MaskedScale by{scale};
  if (next == nullptr)
    ops::map_into<ops::Floating>("dropout", x.dtype(), y, std::array{x, mask}, by);
  else
    dispatch(x.dtype(), [&]<class Stored>(Type<Stored>) {
      if constexpr (with_cuda && is_floating(dtype_of<Stored>())) {
        using Draw = DrawAndScale<Stored>;
        const bool aligned = reinterpret_cast<std::uintptr_t>(x.raw()) % (Draw::width * sizeof(Stored)) == 0;
        launch_indices("dropout", x.device(), ceil_div(x.numel(), int64_t{Draw::width}),
                       Draw{by, *next, x.data<Stored>(), y.data<Stored>(), aligned});
      }
    });
  return call.result(y, grad_of(x, [mask = saved(mask), scale](const Tensor& dy) {
                       return masked_scale(dy, *mask, scale);
                     }));
}

/// The mask is true, so that the element stays, with probability 1 - p: the same for every memory format,
/// device and number of threads.
Tensor dropout_by(const char* op, const Tensor& x, const Shape& mask_shape, MemoryFormat format, double p,
                  bool training, Generator& generator) {
  check<DTypeError>(is_floating(x.dtype()), "{}: needs a floating type, got {}", op, x);
  check<ValueError>(p >= 0 && p <= 1, "{}: the probability must be in [0, 1], got {}", op, p);
  if (!training || p == 0) return x;
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  if constexpr (with_cuda)
    if (x.device().is_cuda() && x.is_contiguous() && mask_shape == x.shape()) {
      const Tensor mask = empty(mask_shape, {.dtype = boolean, .device = x.device()});
      const BernoulliBlock next = next_mask(op, 1 - p, mask, generator);
      return masked_scale(x, mask, scale, &next);
    }
  const Tensor mask = [&] {
    const RecordOp range("dropout_mask");
    return ops::to_format(bernoulli(1 - p, mask_shape, x.device(), generator), format);
  }();
  return masked_scale(x, mask, scale);
}

}  // namespace

Tensor dropout(const Tensor& x, Real p, Flag training, Generator& generator) {
  return dropout_by("dropout", x, x.shape(), x.memory_format(), p, training, generator);
}

Tensor channel_dropout(const Tensor& x, Real p, Flag training, Generator& generator) {
  check<ShapeError>(x.rank() >= 2, "channel_dropout: needs [N, C, ...], got {}", x);
  Shape shape(x.shape().size(), 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  return dropout_by("channel_dropout", x, shape, MemoryFormat::contiguous, p, training, generator);
}

}  // namespace pleat
