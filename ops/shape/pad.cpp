#include "pleat/ops/shape/pad.h"

#include <algorithm>
#include <array>

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/ops/shape/pad_kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

using Widths = std::vector<ops::PadWidths>;  // of each dimension

/// The widths of each dimension, checked against the input's shape.
Widths widths_of(const Shape& shape, const std::vector<int64_t>& widths, PadMode mode) {
  constexpr std::array mode_names{"constant", "reflect", "replicate", "circular"};
  check<ShapeError>(widths.size() % 2 == 0 && widths.size() / 2 <= shape.size(),
                    "pad: needs a pair of widths for each of at most {} dimensions of {}, got {}",
                    shape.size(), shape, widths);
  Widths result(shape.size());
  for (std::size_t i = 0; i < widths.size() / 2; ++i) {
    const std::size_t d = shape.size() - 1 - i;
    const ops::PadWidths w{widths[2 * i], widths[2 * i + 1]};
    const int64_t size = shape[d];
    for (const int64_t width : {w.before, w.after}) checked_negate(width, "pad");
    // Places are counted from the far end of what is added, too, whatever is cut from the near one.
    checked_add(checked_add(size, std::max<int64_t>(w.before, 0), "pad"), std::max<int64_t>(w.after, 0),
                "pad");
    const int64_t wider = checked_add(checked_add(size, w.before, "pad"), w.after, "pad");
    check<ShapeError>(wider >= 0, "pad: widths {} and {} leave nothing of dimension {} of {}", w.before,
                      w.after, d, shape);
    const int64_t widest = std::max(w.before, w.after);
    const int64_t left = size + std::min<int64_t>(w.before, 0) + std::min<int64_t>(w.after, 0);
    const int64_t most = mode == PadMode::reflect    ? size - 1
                         : mode == PadMode::circular ? left
                         : size > 0                  ? widest
                                                     : 0;
    check<ShapeError>(mode == PadMode::constant || widest <= std::max<int64_t>(most, 0),
                      "pad: {} can add at most {} to dimension {} of {}, got widths {} and {}",
                      mode_names[static_cast<std::size_t>(mode)], std::max<int64_t>(most, 0), d, shape,
                      w.before, w.after);
    result[d] = w;
  }
  return result;
}

/// The part of x that is left when widths, times `sign`, cut off where they are negative.
Tensor cut(const Tensor& x, const Widths& widths, int64_t sign) {
  Tensor y = x;
  for (std::size_t d = 0; d < widths.size(); ++d) {
    const int64_t start = std::max<int64_t>(-sign * widths[d].before, 0);
    const int64_t end = x.shape()[d] - std::max<int64_t>(-sign * widths[d].after, 0);
    y = narrow(y, static_cast<int64_t>(d), std::min(start, std::max<int64_t>(end, 0)),
               std::max<int64_t>(end - start, 0));
  }
  return y;
}

Tensor padded_by_value(const Tensor& x, const Shape& shape, const Widths& widths, const Scalar& value) {
  const NoGrad off_the_tape;
  check_fits("pad", value, x.dtype());
  const TensorOptions like = {.dtype = x.dtype(), .device = x.device(), .format = x.memory_format()};
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      const Tensor y = empty(shape, like);
      ops::pad_cuda(y, x, widths, PadMode::constant, value);
      return y;
    }
  const Tensor kept = cut(x, widths, 1);
  const Tensor y = kept.shape() == shape ? empty(shape, like) : full(shape, value, like);
  if (kept.numel() > 0) ops::copy_into(cut(y, widths, -1), kept);
  return y;
}

/// The adjoint of pad, on the tape: its own derivative is pad.
Tensor pad_adjoint(const Tensor& dy, const Shape& shape, const std::vector<int64_t>& widths, PadMode mode) {
  const RecordOp range("pad_backward", dy);
  return record(
      "pad_backward", ops::pad_backward(dy, shape, widths_of(shape, widths, mode), mode),
      {grad_of(dy, [widths, mode](const Tensor& ddx) { return pad(ddx, widths, {.mode = mode}); })});
}

}  // namespace

Tensor pad(const Tensor& x, const IntegerList& list, PadOptions options) {
  const Call call("pad", {x}, [&] {
    return Attributes{
        {"widths", list.values()}, {"mode", static_cast<int64_t>(options.mode)}, {"value", options.value}};
  });
  std::vector<int64_t> widths = list.values();
  const Widths each = widths_of(x.shape(), widths, options.mode);
  const auto mode = options.mode;
  // In the order in which it was checked: the two widths alone may have a sum that does not fit.
  Shape shape = x.shape();
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = shape[d] + each[d].before + each[d].after;
  if (mode == PadMode::constant) {
    const Tensor y = padded_by_value(x, shape, each, options.value);
    for (int64_t& width : widths) width = -width;
    return call.result(y, grad_of(x, [widths](const Tensor& dy) { return pad(dy, widths); }));
  }
  if (mode == PadMode::circular && std::ranges::any_of(widths, [](int64_t width) { return width < 0; })) {
    for (int64_t& width : widths) width = std::max<int64_t>(width, 0);
    return call.gives(pad(to_format(cut(x, each, 1), x.memory_format()), widths, options));
  }
  return call.result(ops::pad_forward(x, shape, each, mode),
                     grad_of(x, [shape = x.shape(), widths, mode](const Tensor& dy) {
                       return pad_adjoint(dy, shape, widths, mode);
                     }));
}

}  // namespace pleat
