#include "pleat/ops/shape/pad_kernels.h"

#include <algorithm>
#include <numeric>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/ops/shape/pad_places.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

const char* name_of(PadMode mode) {
  switch (mode) {
    case PadMode::constant:
      return "constant";
    case PadMode::reflect:
      return "reflect";
    case PadMode::replicate:
      return "replicate";
    case PadMode::circular:
      break;
  }
  return "circular";
}

/// The widths of each dimension, checked against the input's shape.
std::vector<PadWidths> check_widths(const char* op, const Shape& shape, const std::vector<int64_t>& widths,
                                    PadMode mode) {
  check<ShapeError>(widths.size() % 2 == 0 && widths.size() / 2 <= shape.size(),
                    "{}: needs a pair of widths for each of at most {} dimensions of {}, got {}", op,
                    shape.size(), shape, widths);
  std::vector<PadWidths> result(shape.size());
  for (std::size_t i = 0; i < widths.size() / 2; ++i) {
    const std::size_t d = shape.size() - 1 - i;
    const PadWidths w{widths[2 * i], widths[2 * i + 1]};
    const int64_t size = shape[d];
    for (const int64_t width : {w.before, w.after}) checked_negate(width, op);
    // Places are counted from the far end of what is added, too, whatever is cut from the near one.
    checked_add(checked_add(size, std::max<int64_t>(w.before, 0), op), std::max<int64_t>(w.after, 0), op);
    const int64_t wider = checked_add(checked_add(size, w.before, op), w.after, op);
    check<ShapeError>(wider >= 0, "{}: widths {} and {} leave nothing of dimension {} of {}", op, w.before,
                      w.after, d, shape);
    const int64_t widest = std::max(w.before, w.after);
    const int64_t left = size + std::min<int64_t>(w.before, 0) + std::min<int64_t>(w.after, 0);
    const int64_t most = mode == PadMode::reflect    ? size - 1
                         : mode == PadMode::circular ? left
                         : size > 0                  ? widest
                                                     : 0;
    check<ShapeError>(mode == PadMode::constant || widest <= std::max<int64_t>(most, 0),
                      "{}: {} can add at most {} to dimension {} of {}, got widths {} and {}", op,
                      name_of(mode), std::max<int64_t>(most, 0), d, shape, w.before, w.after);
    result[d] = w;
  }
  return result;
}

Shape padded_shape(Shape shape, const std::vector<PadWidths>& widths) {
  // In the order in which it was checked: the two widths alone may have a sum that does not fit.
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = shape[d] + widths[d].before + widths[d].after;
  return shape;
}

/// One dimension of the loop over the padded tensor: its step there, and in the other one either a step or,
/// where it is padded, an offset for each place.
struct LoopDim {
  int64_t size = 1;
  int64_t padded_step = 0;
  int64_t step = 0;
  std::vector<int64_t> offsets;
  /// Places [begin, end) follow one another in the other tensor, too, from `first` on.
  int64_t begin = 0;
  int64_t end = 1;
  int64_t first = 0;

  int64_t offset(int64_t i) const {
    return offsets.empty() ? i * step : offsets[static_cast<std::size_t>(i)];
  }
};

/// A loop over all elements of `padded`, each with the one of `plain` that it is read from. Dimensions that
/// are not padded are divided among threads: then no two of them use the same element of `plain`.
class PaddedLoop {
 public:
  PaddedLoop(const Tensor& padded, const Tensor& plain, const std::vector<PadWidths>& widths, PadMode mode) {
    std::vector<std::size_t> order(padded.shape().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return padded.strides()[a] > padded.strides()[b]; });
    std::erase_if(order, [&](std::size_t d) { return padded.shape()[d] == 1 && plain.shape()[d] == 1; });
    for (const std::size_t d : order) {
      LoopDim dim{padded.shape()[d], padded.strides()[d], plain.strides()[d], {}};
      dim.begin = std::clamp<int64_t>(widths[d].before, 0, dim.size);
      dim.first = dim.begin - widths[d].before;
      dim.end = std::clamp(plain.shape()[d] + widths[d].before, dim.begin, dim.size);
      const bool is_padded = widths[d].before != 0 || widths[d].after != 0;
      if (is_padded) check_host_memory("pad", checked_multiply(dim.size, sizeof(int64_t), "pad"));
      if (is_padded)
        for (int64_t i = 0; i < dim.size; ++i)
          dim.offsets.push_back(pad_source(mode, i - widths[d].before, plain.shape()[d]) * dim.step);
      if (d == order.back())
        run_ = std::move(dim);
      else
        (is_padded ? inner_ : outer_).push_back(std::move(dim));
    }
  }

  /// Calls `visit(T& padded, T& plain)` for all pairs.
  template <class T, class Visit>
  void for_each(T* padded, T* plain, const Visit& visit) const {
    int64_t outer = 1;
    int64_t inner = 1;
    for (const LoopDim& dim : outer_) outer *= dim.size;
    for (const LoopDim& dim : inner_) inner *= dim.size;
    if (outer == 0 || inner == 0 || run_.size == 0) return;
    const int64_t work = inner * run_.size;
    parallel_for(0, outer, std::max<int64_t>(1, 16384 / work), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          T* p = padded;
          T* q = plain;
          move(outer_, o, p, q);
          move(inner_, i, p, q);
          visit_places(p, q, 0, run_.begin, visit);
          visit_run(p + run_.begin * run_.padded_step, q + run_.first * run_.step, visit);
          visit_places(p, q, run_.end, run_.size, visit);
        }
    });
  }

 private:
  /// What is padded of the densest dimension.
  template <class T, class Visit>
  void visit_places(T* p, T* q, int64_t first, int64_t last, const Visit& visit) const {
    for (int64_t r = first; r < last; ++r)
      visit(p[r * run_.padded_step], q[run_.offsets[static_cast<std::size_t>(r)]]);
  }

  /// The rest, where it is read as it lies.
  template <class T, class Visit>
  void visit_run(T* p, T* q, const Visit& visit) const {
    const int64_t n = run_.end - run_.begin;
    if (run_.padded_step == 1 && run_.step == 1) {
      PLEAT_INDEPENDENT_ITERATIONS
      for (int64_t r = 0; r < n; ++r) visit(p[r], q[r]);
    } else {
      for (int64_t r = 0; r < n; ++r) visit(p[r * run_.padded_step], q[r * run_.step]);
    }
  }

  template <class T>
  static void move(const std::vector<LoopDim>& dims, int64_t index, T*& padded, T*& plain) {
    for (std::size_t d = dims.size(); d-- > 0;) {
      const int64_t i = d == 0 ? index : index % dims[d].size;
      if (d > 0) index /= dims[d].size;
      padded += i * dims[d].padded_step;
      plain += dims[d].offset(i);
    }
  }

  std::vector<LoopDim> outer_;  // not padded
  std::vector<LoopDim> inner_;  // padded
  LoopDim run_;                 // the densest
};

bool cuts(const std::vector<PadWidths>& widths) {
  return std::any_of(widths.begin(), widths.end(),
                     [](const PadWidths& w) { return w.before < 0 || w.after < 0; });
}

/// The widths that add, and those that cut off.
std::vector<int64_t> part_of(std::vector<int64_t> widths, bool adding) {
  for (int64_t& width : widths) width = adding ? std::max<int64_t>(width, 0) : std::min<int64_t>(width, 0);
  return widths;
}

/// The part of a tensor that is left when negative widths cut off and positive ones are ignored.
Tensor cut(const Tensor& x, const std::vector<PadWidths>& widths) {
  Tensor y = x;
  for (std::size_t d = 0; d < widths.size(); ++d) {
    const int64_t start = std::max<int64_t>(-widths[d].before, 0);
    const int64_t end = x.shape()[d] - std::max<int64_t>(-widths[d].after, 0);
    y = narrow(y, static_cast<int64_t>(d), std::min(start, std::max<int64_t>(end, 0)),
               std::max<int64_t>(end - start, 0));
  }
  return y;
}

}  // namespace

Tensor pad(const Tensor& x, const IntegerList& widths, PadOptions options) {
  const RecordOp range("pad", x);
  const auto each = check_widths("pad", x.shape(), widths, options.mode);
  const TensorOptions like = {.dtype = x.dtype(), .device = x.device(), .format = x.memory_format()};
  const Shape shape = padded_shape(x.shape(), each);
  if (options.mode == PadMode::constant) {
    check_fits("pad", options.value, x.dtype());
    const Tensor y = full(shape, options.value, like);
    std::vector<PadWidths> inverse;
    for (const PadWidths& w : each) inverse.push_back({-w.before, -w.after});
    const Tensor kept = cut(x, each);
    if (kept.numel() > 0) copy_into(cut(y, inverse), kept);
    return y;
  }
  if (options.mode == PadMode::circular && cuts(each))
    return pad(to_format(cut(x, each), like.format), part_of(widths, true), options);
  const Tensor y = empty(shape, like);
  if (y.numel() == 0) return y;
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      pad_cuda(y, x, each, options.mode);
      return y;
    }
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    PaddedLoop(y, x, each, options.mode).for_each(y.data<T>(), x.data<T>(), [](T& padded, const T& plain) {
      padded = plain;
    });
  });
  return y;
}

Tensor pad_backward(const Tensor& dy, const Sizes& shape, const IntegerList& widths, PadMode mode) {
  const RecordOp range("pad_backward", dy);
  (void)count(shape);  // throws for what is no shape
  const auto each = check_widths("pad_backward", shape, widths, mode);
  check<ShapeError>(dy.shape() == padded_shape(shape, each), "pad_backward: the gradient must be {}, got {}",
                    padded_shape(shape, each), dy.shape());
  check<DTypeError>(is_floating(dy.dtype()), "pad_backward: needs a floating type, got {}", dy.dtype());
  if (mode == PadMode::constant) {
    std::vector<int64_t> inverse;
    for (const int64_t width : widths) inverse.push_back(-width);
    return pad(dy, inverse);
  }
  if (mode == PadMode::circular && cuts(each)) {
    const std::vector<int64_t> cutting = part_of(widths, false);
    Shape kept = shape;
    for (std::size_t i = 0; i < widths.size(); ++i) kept[kept.size() - 1 - i / 2] += cutting[i];
    return pad_backward(pad_backward(dy, kept, part_of(widths, true), mode), shape, cutting,
                        PadMode::constant);
  }
  if (dy.numel() == 0)
    return zeros(shape, {.dtype = dy.dtype(), .device = dy.device(), .format = dy.memory_format()});
  if constexpr (with_cuda)
    if (dy.device().is_cuda()) {
      const Tensor dx =
          empty(shape, {.dtype = dy.dtype(), .device = dy.device(), .format = dy.memory_format()});
      pad_backward_cuda(dx, dy, each, mode);
      return dx;
    }
  const Tensor wide = cast(dy, compute_dtype(dy.dtype()));
  const Tensor dx =
      zeros(shape, {.dtype = wide.dtype(), .device = dy.device(), .format = dy.memory_format()});
  const auto add = [&]<class T>(Type<T>) {
    PaddedLoop(wide, dx, each, mode).for_each(wide.data<T>(), dx.data<T>(), [](const T& padded, T& plain) {
      plain += padded;
    });
  };
  if (wide.dtype() == float64)
    add(Type<double>{});
  else
    add(Type<float>{});
  return cast(dx, dy.dtype());
}

}  // namespace pleat::ops
