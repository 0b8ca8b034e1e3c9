#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/error.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/offsets.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/shape/pad_kernels.h"
#include "pleat/ops/spatial/lanes.h"

namespace pleat::ops {
namespace {

inline constexpr std::size_t max_pad_dims = 16;

/// A dimension of a padded tensor that is written, or several that lie one behind the other in both tensors.
template <class Index>
struct PadAxis {
  Divider<Index> padded;     ///< how many places it has
  Index size = 1, step = 0;  ///< of the plain tensor
  std::make_signed_t<Index> before = 0;
};

/// `lanes` places of the outermost dimension a call, which are all of one place in the others. T is of an
/// element's size, or of several neighbours' that are always moved together.
template <class T, class Index>
struct PadElement {
  static constexpr int64_t lanes = sizeof(T) <= 2 ? 16 : 8;
  using Signed = std::make_signed_t<Index>;
  std::array<PadAxis<Index>, max_pad_dims> axis;  ///< from the densest on, but for the outermost
  std::size_t axes;
  Divider<Index> inner;  ///< elements of these
  PadAxis<Index> outer;
  Index groups;  ///< ceil(outer places / lanes)
  PadMode mode;
  T value;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    auto place = static_cast<Index>(i);
    const Index first = inner.divide(place);
    Index rest = place, offset = 0;
    bool inside = true;
    PLEAT_ROLLED
    for (std::size_t d = 0; d < axes; ++d) {
      Index at = rest;
      rest = axis[d].padded.divide(at);
      offset += source(axis[d], at, inside) * axis[d].step;
    }
    const PadAxis<Index> last = outer;  // whose numbers are then read once
    const Index step = inner.divisor() * groups;
    T loaded[lanes];
    Index at = first;
    PLEAT_UNROLL
    for (int k = 0; k < lanes; ++k, at += groups) {
      bool reads = inside && at < last.padded.divisor();
      const Index from = offset + source(last, at, reads) * last.step;
      loaded[k] = reads ? x[from] : value;
    }
    at = first;
    Index to = place + first * inner.divisor();
    PLEAT_UNROLL
    for (int k = 0; k < lanes; ++k, at += groups, to += step)
      if (at < last.padded.divisor()) y[to] = loaded[k];
  }

 private:
  /// The place in the plain tensor; for a constant, `inside` becomes false where there is none.
  PLEAT_HOST_DEVICE Index source(const PadAxis<Index>& of, Index at, bool& inside) const {
    const Signed plain = static_cast<Signed>(at) - of.before;
    if (mode != PadMode::constant)
      return static_cast<Index>(pad_source(mode, plain, static_cast<Signed>(of.size)));
    inside = inside && static_cast<std::make_unsigned_t<Index>>(plain) <
                           static_cast<std::make_unsigned_t<Index>>(of.size);
    return static_cast<Index>(plain);
  }
};

/// Those places of a padded dimension that read one element of the plain one, in order.
template <class Signed>
class PadReaders {
 public:
  PadReaders() = default;
  PLEAT_HOST_DEVICE PadReaders(PadMode mode, Signed i, Signed size, Signed before, Signed padded)
      : end_(padded) {
    const Signed own = before + i;
    if (mode == PadMode::replicate) {
      const Signed first = i == 0 ? 0 : own;
      const Signed end = i == size - 1 ? padded : own + 1;
      first_ = first < 0 ? 0 : first;
      end_ = end < padded ? end : padded;
      runs_ = true;
      return;
    }
    const bool reflects = mode == PadMode::reflect;
    const Signed low = !reflects ? own - size : i > 0 ? before - i : -1;
    const Signed high = !reflects ? own + size : i < size - 1 ? own + 2 * (size - 1 - i) : -1;
    last_ = valid(high) ? high : end_;
    middle_ = valid(own) ? own : last_;
    first_ = valid(low) ? low : middle_;
  }

  PLEAT_HOST_DEVICE Signed first() const { return first_; }
  PLEAT_HOST_DEVICE bool is_end(Signed place) const { return place >= end_; }
  PLEAT_HOST_DEVICE Signed next(Signed place) const {
    if (runs_) return place + 1;
    return place < middle_ ? middle_ : place < last_ ? last_ : end_;
  }

 private:
  PLEAT_HOST_DEVICE bool valid(Signed place) const { return place >= 0 && place < end_; }

  Signed first_ = 0, middle_ = 0, last_ = 0, end_ = 0;
  bool runs_ = false;
};

/// A dimension of a gradient dx and of the dy that it is made of.
template <class Index>
struct GradientAxis {
  Divider<Index> dx_step, size;
  Index step = 0;  ///< of dy
  std::make_signed_t<Index> padded = 1, before = 0;
};

/// `lanes` places of the outermost dimensions of dx a call, where these are not padded, and `width`
/// neighbours at each. They are sums over the places that had read them, in the order in which these lie in
/// dy's memory.
template <class T, class Index, int most_axes, int width>
struct PadBackwardElement {
  static constexpr int64_t lanes = width == 1 ? 8 : 4;
  using Signed = std::make_signed_t<Index>;
  std::array<GradientAxis<Index>, most_axes> axis;  ///< from dy's densest on, without the outermost of dx;
                                                    ///< `width` neighbours of dx count as one
  int axes;
  Divider<Index> inner;  ///< elements of dx of these, `width` as one
  Index outer, groups;   ///< places of the outermost; ceil(outer / lanes)
  Index outer_step;      ///< of dy
  PadMode mode;
  DType dtype;
  const std::byte* dy;
  std::byte* dx;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    as_stored<T>(dtype, [&]<class Stored>(Type<Stored>) {
      element(static_cast<Index>(i), reinterpret_cast<const Stored*>(dy), reinterpret_cast<Stored*>(dx));
    });
  }

 private:
  template <class Stored>
  PLEAT_HOST_DEVICE void element(Index place, const Stored* from, Stored* to) const {
    const Index first = inner.divide(place);
    PadReaders<Signed> readers[most_axes];
    Signed at[most_axes];
    bool more = true;
    PLEAT_UNROLL
    for (int d = 0; d < most_axes; ++d) {
      if (d >= axes) break;
      Index rest = place;
      Index own = axis[d].dx_step.divide(rest);
      axis[d].size.divide(own);
      readers[d] =
          PadReaders<Signed>(mode, static_cast<Signed>(own), static_cast<Signed>(axis[d].size.divisor()),
                             axis[d].before, axis[d].padded);
      at[d] = readers[d].first();
      more = more && !readers[d].is_end(at[d]);
    }
    T sum[lanes][width] = {};
    PLEAT_ROLLED
    while (more) {
      Index offset = 0;
      PLEAT_UNROLL
      for (int d = 0; d < most_axes; ++d)
        if (d < axes) offset += static_cast<Index>(at[d]) * axis[d].step;
      PLEAT_UNROLL
      for (int k = 0; k < lanes; ++k) {
        const Index lane = first + static_cast<Index>(k) * groups;
        if (lane >= outer) continue;
        const auto read =
            *reinterpret_cast<const Vector<Stored, width>*>(from + (offset + lane * outer_step));
        PLEAT_UNROLL
        for (int j = 0; j < width; ++j) sum[k][j] += convert<T>(read.lane[j]);
      }
      more = false;
      PLEAT_UNROLL
      for (int d = 0; d < most_axes; ++d)
        if (d < axes && !more) {
          at[d] = readers[d].next(at[d]);
          more = !readers[d].is_end(at[d]);
          at[d] = more ? at[d] : readers[d].first();
        }
    }
    PLEAT_UNROLL
    for (int k = 0; k < lanes; ++k) {
      const Index lane = first + static_cast<Index>(k) * groups;
      if (lane >= outer) continue;
      Vector<Stored, width> written;
      PLEAT_UNROLL
      for (int j = 0; j < width; ++j) written.lane[j] = convert<Stored>(sum[k][j]);
      reinterpret_cast<Vector<Stored, width>*>(to)[place + lane * inner.divisor()] = written;
    }
  }
};

/// The dimensions of `t` from the densest on, without those of one place in both tensors, which is the same.
std::vector<std::size_t> from_densest(const Tensor& t, const Tensor& other,
                                      const std::vector<PadWidths>& widths) {
  std::vector<std::size_t> order;
  for (std::size_t d = t.shape().size(); d-- > 0;)
    if (t.shape()[d] != 1 || other.shape()[d] != 1 || widths[d].before != 0) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return t.strides()[a] < t.strides()[b]; });
  return order;
}

void check_pad_dims(const char* op, std::size_t dims) {
  if (dims > max_pad_dims)
    throw ShapeError(std::string(op) + ": on a GPU at most " + std::to_string(max_pad_dims) +
                     " dimensions, got " + std::to_string(dims));
}

/// A PadAxis before it is known by what its numbers are counted.
struct WideAxis {
  int64_t padded, size, step, before;

  bool is_padded() const { return before != 0 || padded != size; }
};

/// The dimensions of y from the densest on, joined where that changes nothing.
std::vector<WideAxis> pad_axes(const Tensor& y, const Tensor& x, const std::vector<PadWidths>& widths,
                               PadMode mode) {
  std::vector<WideAxis> axes;
  for (const std::size_t d : from_densest(y, x, widths)) {
    const WideAxis axis{y.shape()[d], x.shape()[d], x.strides()[d], widths[d].before};
    const bool joins = !axes.empty() && !axes.back().is_padded() &&
                       axis.step == axes.back().step * axes.back().size &&
                       (mode == PadMode::constant || !axis.is_padded());
    if (!joins) {
      axes.push_back(axis);
      continue;
    }
    WideAxis& last = axes.back();
    last = {last.padded * axis.padded, last.size * axis.size, last.step, axis.before * last.size};
  }
  if (axes.empty()) axes.push_back({1, 1, 1, 0});
  return axes;
}

/// How many neighbours of `bytes` bytes can always be moved as one element.
int64_t moved_together(const std::vector<WideAxis>& axes, const Tensor& y, const Tensor& x, PadMode mode) {
  const int64_t bytes = size_of(x.dtype());
  const WideAxis& run = axes[0];
  if (run.step != 1 || (mode != PadMode::constant && run.is_padded())) return 1;
  const auto address = reinterpret_cast<std::uintptr_t>(x.raw()) | reinterpret_cast<std::uintptr_t>(y.raw());
  for (int64_t together = 8 / bytes; together > 1; together /= 2) {
    bool fits = run.padded % together == 0 && run.size % together == 0 && run.before % together == 0 &&
                address % static_cast<std::uintptr_t>(together * bytes) == 0;
    for (std::size_t d = 1; d < axes.size(); ++d) fits = fits && axes[d].step % together == 0;
    if (fits) return together;
  }
  return 1;
}

template <class T, class Index>
void launch_pad(const std::vector<WideAxis>& axes, PadMode mode, T value, const Tensor& x, const Tensor& y) {
  int64_t inner = 1;
  for (std::size_t d = 0; d + 1 < axes.size(); ++d) inner *= axes[d].padded;
  const auto narrow = [](const WideAxis& axis) {
    return PadAxis<Index>{Divider<Index>(axis.padded), static_cast<Index>(axis.size),
                          static_cast<Index>(axis.step), static_cast<std::make_signed_t<Index>>(axis.before)};
  };
  PadElement<T, Index> functor{
      .axis = {},
      .axes = axes.size() - 1,
      .inner = Divider<Index>(inner),
      .outer = narrow(axes.back()),
      .groups = static_cast<Index>(ceil_div(axes.back().padded, PadElement<T, Index>::lanes)),
      .mode = mode,
      .value = value,
      .x = reinterpret_cast<const T*>(x.raw()),
      .y = reinterpret_cast<T*>(y.raw())};
  for (std::size_t d = 0; d < functor.axes; ++d) functor.axis[d] = narrow(axes[d]);
  launch_indices("pad", y.device(), inner * static_cast<int64_t>(functor.groups), functor);
}

}  // namespace

void pad_cuda(const Tensor& y, const Tensor& x, const std::vector<PadWidths>& widths, PadMode mode,
              const Scalar& value) {
  if (y.numel() == 0) return;
  std::vector<WideAxis> axes = pad_axes(y, x, widths, mode);
  check_pad_dims("pad", axes.size());
  const int64_t together = moved_together(axes, y, x, mode);
  int64_t reach = y.numel();
  for (const WideAxis& axis : axes) reach = std::max(reach, axis.size * axis.step + std::abs(axis.before));
  for (std::size_t d = 0; d < axes.size(); ++d) {
    WideAxis& axis = axes[d];
    if (d == 0)
      axis = {axis.padded / together, axis.size / together, axis.step, axis.before / together};
    else
      axis.step /= together;
  }
  // All neighbours hold the constant.
  uint64_t bits = 0;
  if (mode == PadMode::constant)
    dispatch(x.dtype(), [&]<class T>(Type<T>) {
      const T element = value.to<T>();
      for (std::size_t k = 0; k < sizeof bits; k += sizeof element)
        std::memcpy(reinterpret_cast<std::byte*>(&bits) + k, &element, sizeof element);
    });
  const bool small = reach < small_loop / 2;  // of reflections, too
  const auto launch = [&]<class T>(Type<T>) {
    const auto element = static_cast<T>(bits);
    small ? launch_pad<T, uint32_t>(axes, mode, element, x, y)
          : launch_pad<T, int64_t>(axes, mode, element, x, y);
  };
  switch (together * size_of(x.dtype())) {
    case 1:
      return launch(Type<uint8_t>{});
    case 2:
      return launch(Type<uint16_t>{});
    case 4:
      return launch(Type<uint32_t>{});
    default:
      return launch(Type<uint64_t>{});
  }
}

void pad_backward_cuda(const Tensor& dx, const Tensor& dy, const std::vector<PadWidths>& widths,
                       PadMode mode) {
  if (dx.numel() == 0) return;
  // The outermost dimensions of dx, which are lanes.
  std::vector<std::size_t> order = from_densest(dx, dy, widths);
  int64_t outer = 1, outer_step = 0;
  while (!order.empty()) {
    const std::size_t d = order.back();
    const bool is_padded = widths[d].before != 0 || widths[d].after != 0;
    if (is_padded || (outer > 1 && dy.strides()[d] * dy.shape()[d] != outer_step)) break;
    outer *= dy.shape()[d];
    outer_step = dy.strides()[d];
    order.pop_back();
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return dy.strides()[a] < dy.strides()[b]; });
  check_pad_dims("pad_backward", order.size());
  int64_t reach = dx.numel();
  for (std::size_t d = 0; d < widths.size(); ++d)
    reach = std::max({reach, dy.shape()[d] * dy.strides()[d], dx.shape()[d] + std::abs(widths[d].before)});
  // Whether neighbours that are not padded can be moved as vectors.
  const auto by_vectors = [&] {
    if (order.empty()) return false;
    const std::size_t d = order[0];
    return dx.strides()[d] == 1 && dx.shape()[d] == dy.shape()[d] && widths[d].before == 0 &&
           moved_together(dx, static_cast<int64_t>(d), vector_width) == vector_width &&
           moved_together(dy, static_cast<int64_t>(d), vector_width) == vector_width;
  };
  const auto launch = [&]<class T, class Index, int most, int width>(std::integral_constant<int, most>,
                                                                     std::integral_constant<int, width>,
                                                                     Type<T>, Index) {
    using Functor = PadBackwardElement<T, Index, most, width>;
    Functor functor{.axis = {},
                    .axes = static_cast<int>(order.size()),
                    .inner = Divider<Index>(dx.numel() / outer / width),
                    .outer = static_cast<Index>(outer),
                    .groups = static_cast<Index>(ceil_div(outer, Functor::lanes)),
                    .outer_step = static_cast<Index>(outer_step),
                    .mode = mode,
                    .dtype = dy.dtype(),
                    .dy = dy.raw(),
                    .dx = dx.raw()};
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t d = order[k];
      using Signed = std::make_signed_t<Index>;
      const int64_t together = k == 0 ? width : 1;
      functor.axis[k] = {
          Divider<Index>(k == 0 ? dx.strides()[d] : dx.strides()[d] / width),
          Divider<Index>(dx.shape()[d] / together), static_cast<Index>(dy.strides()[d] * together),
          static_cast<Signed>(dy.shape()[d] / together), static_cast<Signed>(widths[d].before)};
    }
    launch_indices("pad_backward", dx.device(), dx.numel() / outer / width * ceil_div(outer, Functor::lanes),
                   functor);
  };
  constexpr std::size_t few = 3;
  using One = std::integral_constant<int, 1>;
  Floating::dispatch(dy.dtype(), [&]<class T>(Type<T> type) {
    if constexpr (std::is_same_v<T, float>)
      if (reach < small_loop / 2 && order.size() <= few) {
        constexpr std::integral_constant<int, few> axes;
        return by_vectors() ? launch(axes, std::integral_constant<int, vector_width>{}, type, uint32_t{})
                            : launch(axes, One{}, type, uint32_t{});
      }
    launch(std::integral_constant<int, max_pad_dims>{}, One{}, type, int64_t{});
  });
}

}  // namespace pleat::ops
