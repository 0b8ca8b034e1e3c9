#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <span>

#include "pleat/core/base/scope.h"
#include "pleat/core/tensor/tensor.h"

/// Mixed precision: parameters and losses in float32, products in a half type. docs/mixed_precision.md says
/// what each function does.

namespace pleat {

namespace autograd {

/// What an Autocast scope decides.
struct AutocastTypes {
  std::optional<DType> dtype;
  bool cache_weights;
};

/// Casts of parameters are kept until the outermost of these ends.
class KeepCasts {
 public:
  KeepCasts();
  ~KeepCasts();
  KeepCasts(const KeepCasts&) = delete;
  KeepCasts& operator=(const KeepCasts&) = delete;
};

}  // namespace autograd

struct AutocastOptions {
  bool enabled = true;        ///< false: functions in the scope behave as outside of any
  bool cache_weights = true;  ///< whether a parameter is cast once for all its uses in the outermost scope
};

/// While one exists, differentiable functions called by this thread choose their types themselves:
///
///   Tensor loss;
///   {
///     Autocast guard{bfloat16};
///     loss = cross_entropy(net(x), target);
///   }
///   loss.backward();
///
/// Convolutions and matrix products cast their floating inputs to the half type; what loses much in it
/// (losses, softmax, sums, exp, log, pow ...) casts to float32; all others follow the usual promotion.
/// float64 is left alone. Casts are on the tape, so that gradients arrive in the types of the parameters.
/// backward needs no scope, and runs without one when called inside: its types are those of the forward.
/// Scopes nest; the innermost counts.
///
/// Casts of leaves that require gradients are kept until the outermost scope ends, or until the leaf is
/// changed. After Micikevicius et al., "Mixed Precision Training" (ICLR 2018); float16 wants
/// optim::GradScaler beside it.
class Autocast {
 public:
  /// Throws DTypeError unless `dtype` is float16 or bfloat16.
  explicit Autocast(DType dtype, AutocastOptions options = {});

 private:
  autograd::KeepCasts casts_;
  std::optional<Scoped<autograd::AutocastTypes>> types_;
};

/// The half type of this thread's scope; none outside of any and where it is switched off.
std::optional<DType> autocast_dtype();

/// --- For authors of functions: how a function chooses the type it computes in. Outside of a scope these
/// return what they get.

/// The inputs in the scope's half type: all of them, or none where one is float64. Undefined tensors and
/// integers stay.
template <std::same_as<Tensor>... T>
std::array<Tensor, sizeof...(T)> autocast_to_half(const T&... inputs);

/// The input as float32 where it is a half type.
Tensor autocast_to_float32(const Tensor& input);

namespace autograd {
/// The same in place. Inputs of 3 to 5 dimensions that are cast come to lie in the format `images`, if any.
void cast_to_half(std::span<Tensor> inputs, std::optional<MemoryFormat> images = {});
}  // namespace autograd

template <std::same_as<Tensor>... T>
std::array<Tensor, sizeof...(T)> autocast_to_half(const T&... inputs) {
  std::array<Tensor, sizeof...(T)> result{inputs...};
  autograd::cast_to_half(result);
  return result;
}

}  // namespace pleat
