#include "pleat/ops/shape/pad.h"

#include "pleat/autograd/call.h"
#include "pleat/autograd/tape.h"

namespace pleat {
namespace {

/// The adjoint of pad, on the tape: its own derivative is pad, with zeros in constant mode.
Tensor pad_adjoint(const Tensor& dy, const Shape& shape, const std::vector<int64_t>& widths, PadMode mode) {
  return record(
      "pad_backward", ops::pad_backward(dy, shape, widths, mode),
      {grad_of(dy, [widths, mode](const Tensor& ddx) { return pad(ddx, widths, {.mode = mode}); })});
}

}  // namespace

Tensor pad(const Tensor& x, const IntegerList& widths, PadOptions options) {
  const Call call("pad", {x}, [&] {
    return Attributes{
        {"widths", widths.values()}, {"mode", static_cast<int64_t>(options.mode)}, {"value", options.value}};
  });
  return call.result(ops::pad(x, widths, options),
                     grad_of(x, [shape = x.shape(), widths, mode = options.mode](const Tensor& dy) {
                       return pad_adjoint(dy, shape, widths, mode);
                     }));
}

}  // namespace pleat
