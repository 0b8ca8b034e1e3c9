// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/matmul/kernels.h"
#include "pleat/ops/spatial/limit.h"

namespace pleat::ops {

/// What becomes of the result y of a convolution or product while it is in a cache: f(y + addend), within the
/// bounds.
struct ResultFinish {
  Tensor addend = {};                  ///< as y lies; undefined: none
  const ElementFunction* f = nullptr;  ///< null: none
  Bounds bounds = {};                  ///< unlike f they take no call for each row
};

/// The same as kernels see it. In half types it is computed in float, and rounded at the end.
template <class T>
struct RowFinish {
  static constexpr bool widens = is_half(dtype_of<T>());
  using Wide = std::conditional_t<widens, float, T>;

  const T* addend = nullptr;
  const ElementFunction* f = nullptr;
  Limit<Wide> limit = {};
  bool limits = false;

  RowFinish() = default;
  explicit RowFinish(const ResultFinish& finish)
      : addend(finish.addend.defined() ? finish.addend.data<T>() : nullptr),
        f(finish.f),
        limit(finish.bounds),
        limits(finish.bounds.any()) {}

  explicit operator bool() const { return addend != nullptr || f != nullptr || limits; }

  /// Of n neighbours, which have the place `at` in y, wherever they lie now.
  void run(T* values, int64_t at, int64_t n) const {
    if constexpr (widens) {
      constexpr int64_t most = 512;
      Wide wide[most];
      for (int64_t first = 0; first < n; first += most) {
        const int64_t count = std::min(most, n - first);
        for (int64_t i = 0; i < count; ++i) wide[i] = convert<Wide>(values[first + i]);
        if (addend != nullptr)
          for (int64_t i = 0; i < count; ++i) wide[i] += convert<Wide>(addend[at + first + i]);
        complete(wide, count);
        for (int64_t i = 0; i < count; ++i) values[first + i] = convert<T>(wide[i]);
      }
    } else {
      if (addend != nullptr)
        for (int64_t i = 0; i < n; ++i) values[i] += addend[at + i];
      complete(values, n);
    }
  }

 private:
  void complete(Wide* values, int64_t n) const {
    if (f != nullptr) f->run(values, values, n);
    if (limits)
      for (int64_t i = 0; i < n; ++i) values[i] = limit.limited(values[i]);
  }
};

}  // namespace pleat::ops
