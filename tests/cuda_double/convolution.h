#pragma once

#include <array>
#include <cstdint>

#include "number.h"

/// Convolutions as cuDNN's graphs have them: strides of any layout, and three spatial dimensions (missing
/// ones are 1).

namespace cuda_double {

using Triple = std::array<int64_t, 3>;

struct TensorView {
  Type type{};
  void* memory = nullptr;
  std::array<int64_t, 5> sizes{1, 1, 1, 1, 1};
  std::array<int64_t, 5> strides{};
};

enum class Pass { forward, backward_data, backward_filter };

/// x [N, C, ...], w [K, C / groups, ...], y [N, K, ...]: of the pass's result, `alpha` times what it computes
/// is written plus `beta` times what was there. Operands lose all but `mantissa_bits` first, where that is
/// above 0. `bias` (if its memory is set) is added to y in forward.
struct Convolution {
  Pass pass{};
  TensorView x, w, y, bias;
  Triple stride{1, 1, 1}, dilation{1, 1, 1}, padding{0, 0, 0};
  bool in_double = false;
  double alpha = 1, beta = 0;
  int mantissa_bits = 0;
};

void convolve(const Convolution& convolution);

}  // namespace cuda_double
