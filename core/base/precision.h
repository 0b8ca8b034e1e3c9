#pragma once

#include <optional>

#include "pleat/core/base/scope.h"

namespace pleat {

/// How matrix products and convolutions of float32 tensors are computed on CUDA, where tensor cores take
/// inputs of fewer bits. Sums are float32 in each. It changes nothing on the CPU, nor for other types.
enum class Precision : unsigned char {
  highest,  ///< true float32: the default
  high,     ///< TF32 inside: 10 bits of mantissa
  medium,   ///< bfloat16 inside: 7 bits of mantissa
};

/// What calls use that do not say: of the innermost PrecisionScope of this thread, else of the whole process.
/// What holds at a forward call holds in its backward passes, too.
Precision float32_precision();
void set_float32_precision(Precision precision);

/// Sets the precision of this thread for a scope; without a value it changes nothing.
class PrecisionScope {
 public:
  explicit PrecisionScope(std::optional<Precision> precision);

 private:
  std::optional<Scoped<Precision>> scope_;
};

}  // namespace pleat
