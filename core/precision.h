#pragma once

namespace pleat {

/// How matrix products and convolutions of float32 tensors are computed on CUDA, where tensor cores take
/// inputs of fewer bits. Sums are float32 in each. It changes nothing on the CPU, nor for other types.
enum class Precision : unsigned char {
  highest,  ///< true float32: the default
  high,     ///< TF32 inside: 10 bits of mantissa
  medium,   ///< bfloat16 inside: 7 bits of mantissa
};

/// What calls use that do not say: of the innermost PrecisionScope of this thread, else of the whole process.
Precision float32_precision();
void set_float32_precision(Precision precision);

/// Sets the precision of this thread for a scope.
class PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  int previous_;
};

}  // namespace pleat
