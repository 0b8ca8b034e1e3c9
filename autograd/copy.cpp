#include "pleat/autograd/copy.h"

#include "pleat/autograd/call.h"
#include "pleat/autograd/functions.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"

namespace pleat {

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return record("cast", ops::cast(x, dtype), {grad_of(x, [](const Tensor& dy) { return dy; })});
}

Tensor cast(const Tensor& x, DType dtype, MemoryFormat format) {
  if (x.dtype() == dtype && x.is_contiguous(format)) return x;
  return record(x.dtype() == dtype ? "to_format" : "cast", ops::cast(x, dtype, format),
                {grad_of(x, [](const Tensor& dy) { return dy; })});
}

Tensor to_device(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  return record("to_device", ops::to_device(x, device),
                {grad_of(x, [from = x.device()](const Tensor& dy) { return dy.to(from); })});
}

Tensor to_format(const Tensor& x, MemoryFormat format) { return cast(x, x.dtype(), format); }

Tensor clone(const Tensor& x) {
  const RecordOp range("clone", x);
  return record("clone", ops::copy(x), {grad_of(x, [](const Tensor& dy) { return dy; })});
}

const Tensor& copy_(const Tensor& x, const Tensor& from) {
  const RecordOp range("copy_", x, from);
  const Call call("copy_", {x, from});
  if (changes_tape(x, {from})) {
    replace_in_place("copy_", x, [&](const Tensor& before) {
      const Tensor after = empty_like(before);
      ops::copy_into(after, from);
      return record("copy_", after, {grad_of(from, [](const Tensor& dy) { return dy; })});
    });
  } else {
    ops::copy_into(x, from);
  }
  return call.gives(x);
}

}  // namespace pleat
