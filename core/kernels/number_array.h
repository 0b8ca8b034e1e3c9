// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pleat/core/kernels/load_as.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// The elements of a tensor as functors see them that compute in T, which is the tensor's type, or float for
/// the half types. So a kernel for T serves all types that are computed in it, without copies.
template <class T>
class NumberArray {
 public:
  explicit NumberArray(const Tensor& tensor) : base_(tensor.raw()), dtype_(tensor.dtype()) {}

  /// Element `i`, counted from the tensor's first one in memory, whatever its strides.
  PLEAT_HOST_DEVICE T load(int64_t i) const {
    if constexpr (std::is_same_v<T, float>) {
      if (dtype_ == float16) return convert<T>(reinterpret_cast<const Half*>(base_)[i]);
      if (dtype_ == bfloat16) return convert<T>(reinterpret_cast<const BFloat16*>(base_)[i]);
    }
    return reinterpret_cast<const T*>(base_)[i];
  }
  PLEAT_HOST_DEVICE void store(int64_t i, T value) const {
    if constexpr (std::is_same_v<T, float>) {
      if (dtype_ == float16) {
        reinterpret_cast<Half*>(base_)[i] = convert<Half>(value);
        return;
      }
      if (dtype_ == bfloat16) {
        reinterpret_cast<BFloat16*>(base_)[i] = convert<BFloat16>(value);
        return;
      }
    }
    reinterpret_cast<T*>(base_)[i] = value;
  }
  /// `width` of them from `i` on: 1, or at a multiple of that vector_width, of half types half_width, too.
  template <int width>
  PLEAT_HOST_DEVICE void load(int64_t i, T* values) const {
    if constexpr (width == 1)
      values[0] = load(i);
    else
      load_vector<width>(values, base_, i, dtype_);
  }
  template <int width>
  PLEAT_HOST_DEVICE void store(int64_t i, const T* values) const {
    if constexpr (width == 1)
      store(i, values[0]);
    else
      store_vector<width>(values, base_, i, dtype_);
  }

 private:
  std::byte* base_;
  DType dtype_;
};

}  // namespace pleat
