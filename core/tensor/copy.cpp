// Host and device.
#include "pleat/core/tensor/copy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/core/tensor/strided_copy.h"
#include "pleat/core/tensor/tile_copy.h"
#include "pleat/core/tensor/transfer.h"

namespace pleat::ops {
namespace {

struct Identity {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T value) const {
    return value;
  }
};

template <class T>
struct Constant {
  T value;
  PLEAT_HOST_DEVICE T operator()() const { return value; }
};

/// Whether both have the same elements in the same places of dense memory, but for their types.
bool lie_alike(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || !a.is_dense() || !b.is_dense()) return false;
  for (std::size_t d = 0; d < a.shape().size(); ++d)
    if (a.shape()[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
  return true;
}

/// Whether it takes no kernel to copy to, from or on a GPU, then done here.
bool copied_by_transfer(const Tensor& to, const Tensor& from) {
  const bool across = to.device() != from.device();
  if (!across && (to.device().is_cpu() || to.impl().storage->bytes.get() == from.impl().storage->bytes.get()))
    return false;
  if (to.dtype() == from.dtype() && lie_alike(to, from))
    cuda::transfer(to, from, false);
  else if (across)
    copy_into(to, to_device(from, to.device()));
  else
    return false;
  return true;
}

/// Whether all bytes of the value are the same and it takes no kernel to set them on a GPU, then done here.
bool filled_by_bytes(const Tensor& x, const Number& value) {
  if (x.device().is_cpu() || !x.is_dense()) return false;
  return dispatch(x.dtype(), [&]<class T>(Type<T>) {
    const T element = value.to<T>();
    std::array<unsigned char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &element, sizeof(T));
    if (std::any_of(bytes.begin(), bytes.end(), [&](unsigned char byte) { return byte != bytes[0]; }))
      return false;
    cuda::set_bytes(x, bytes[0]);
    return true;
  });
}

/// Of CPU tensors that lie alike: without the pieces of the elementwise loop, which would be a pass more.
void convert_dense(const Tensor& to, const Tensor& from) {
  constexpr int64_t grain_elements = 32768;
  const ConvertRun convert_run = find_convert_run(to.dtype(), from.dtype());
  to.begin_write();
  parallel_for(0, to.numel(), grain_elements, [&](int64_t first, int64_t last) {
    convert_run(to.raw() + first * size_of(to.dtype()), {1}, from.raw() + first * size_of(from.dtype()), {1},
                last - first, 1);
  });
}

void copy_elements(const Tensor& to, const Tensor& from) {
  if (copied_by_transfer(to, from)) return;
  if (to.device().is_cuda()) {
    if constexpr (with_cuda)
      if (copied_by_tiles("copy", to, from)) return;
    // Half types go through float, of which kernels move vectors; of one type they keep their bits.
    const bool by_float = to.dtype() != from.dtype() && is_half(to.dtype());
    return dispatch(by_float ? float32 : to.dtype(), [&]<class T>(Type<T>) {
      if constexpr (with_cuda) elementwise_kernel<T, T>("copy", to, {from}, Identity{});
    });
  }
  if (to.dtype() == from.dtype()) return copy_strided(to, from);
  if (lie_alike(to, from)) return convert_dense(to, from);
  dispatch(to.dtype(), [&]<class T>(Type<T>) {
    elementwise<T, T>("copy", to, {from}, [](T* out, int64_t n, const T* in) {
      if (out != in) std::copy_n(in, n, out);
    });
  });
}

}  // namespace

void copy_into(const Tensor& to, const Tensor& from) {
  const RecordOp range("copy", to, from);
  copy_elements(to, from);
}

Tensor copy(const Tensor& x) {
  const RecordOp range("copy", x);
  const Tensor result = empty_like(x);
  copy_elements(result, x);
  return result;
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const RecordOp range("cast", x);
  const std::array inputs = {x};
  const Tensor result = empty_as(inputs, x.shape(), dtype);
  copy_elements(result, x);
  return result;
}

Tensor cast(const Tensor& x, DType dtype, MemoryFormat format) {
  if (x.dtype() == dtype && x.is_contiguous(format)) return x;
  const RecordOp range(x.dtype() == dtype ? "to_format" : "cast", x);
  const Tensor result = empty(x.shape(), {.dtype = dtype, .device = x.device(), .format = format});
  copy_elements(result, x);
  return result;
}

Tensor to_format(const Tensor& x, MemoryFormat format) { return cast(x, x.dtype(), format); }

Tensor to_device(const Tensor& x, Device device, TransferOptions options) {
  if (x.device() == device) return x;
  const RecordOp range("to_device", x);
  if (device.is_cuda()) cuda::check_device("to", device);
  const Tensor from = x.is_dense() ? x : copy(x);
  const bool pinned = device.is_cpu() && options.non_blocking;
  Tensor result = pinned ? cuda::empty_pinned(x.shape(), x.dtype())
                         : empty(x.shape(), {.dtype = x.dtype(), .device = device});
  if (!from.is_contiguous()) result = result.as_strided(from.shape(), from.strides(), 0);
  cuda::transfer(result, from, options.non_blocking);
  return result;
}

void fill(const Tensor& x, const Scalar& value) {
  const RecordOp range("fill", x);
  check_fits("fill", value, x.dtype());
  if (filled_by_bytes(x, value)) return;
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    const T element = value.to<T>();
    if constexpr (with_cuda)
      if (x.device().is_cuda()) return elementwise_kernel<T>("fill", x, {}, Constant<T>{element});
    elementwise<T>("fill", x, {}, [element](T* out, int64_t n) {
      if constexpr (is_half(dtype_of<T>()))  // of numbers the compiler makes vectors
        std::fill_n(reinterpret_cast<uint16_t*>(out), n, std::bit_cast<uint16_t>(element));
      else
        std::fill_n(out, n, element);
    });
  });
}

}  // namespace pleat::ops
