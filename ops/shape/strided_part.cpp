#include "pleat/autograd/strided_part.h"

#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// Memory in which a tensor lies as the whole does, and the part in it.
struct Frame {
  Tensor memory, whole, part;

  Frame(const StridedPart& places, DType dtype, Device device) {
    int64_t first = 0;
    int64_t last = 0;
    for (std::size_t d = 0; d < places.whole.size(); ++d) {
      const int64_t reach = (places.whole[d] - 1) * places.whole_strides[d];
      (reach < 0 ? first : last) += reach;
    }
    memory = zeros({last - first + 1}, {.dtype = dtype, .device = device});
    whole = memory.as_strided(places.whole, places.whole_strides, -first);
    part = memory.as_strided(places.shape, places.strides, places.offset - first);
  }
};

/// Adds `from` into a view of `memory` whose elements may share places, as those of windows do.
void add_overlapping(const Frame& frame, const Tensor& from) {
  const NoGrad off_the_tape;
  const Tensor& part = frame.part;
  const Tensor places = arange(0, frame.memory.numel(), 1, {.dtype = int64, .device = from.device()});
  const Tensor where = places.as_strided(part.shape(), part.strides(), part.offset());
  index_add_(frame.memory, 0, reshape(where, {-1}), reshape(from, {-1}));
}

}  // namespace

StridedPart::StridedPart(const TensorImpl& all, const TensorImpl& view)
    : whole(all.shape),
      whole_strides(all.strides),
      shape(view.shape),
      strides(view.strides),
      offset(view.offset - all.offset) {}

Tensor strided_part(const Tensor& x, const StridedPart& part) {
  const RecordOp range("strided_part", x);
  Tensor y;
  if (x.strides() == part.whole_strides) {
    y = ops::copy(x.as_strided(part.shape, part.strides, x.offset() + part.offset));
  } else {
    const Frame frame(part, x.dtype(), x.device());
    ops::copy_into(frame.whole, x);
    y = ops::copy(frame.part);
  }
  return record("strided_part", y,
                {grad_of(x, [part](const Tensor& dy) { return strided_part_backward(dy, part); })});
}

Tensor strided_part_backward(const Tensor& dy, const StridedPart& part) {
  const RecordOp range("strided_part_backward", dy);
  const Frame frame(part, dy.dtype(), dy.device());
  if (may_overlap(frame.part))
    add_overlapping(frame, dy);
  else
    ops::copy_into(frame.part, dy);
  return record("strided_part_backward", frame.whole,
                {grad_of(dy, [part](const Tensor& d) { return strided_part(d, part); })});
}

Tensor without_strided_part(const Tensor& x, const StridedPart& part) {
  const RecordOp range("without_strided_part", x);
  const Frame frame(part, x.dtype(), x.device());
  ops::copy_into(frame.whole, x);
  ops::fill(frame.part, 0);
  return record("without_strided_part", frame.whole,
                {grad_of(x, [part](const Tensor& dy) { return without_strided_part(dy, part); })});
}

}  // namespace pleat
