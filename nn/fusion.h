#pragma once

#include <memory>

#include "pleat/core/base/policy.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/spatial/bounds.h"

/// Modules that compute what follows them in their own pass over memory. Sequential passes an activation to
/// the module before it, and Residual passes its addition and its activation to the last module of the body,
/// where that module can compute them: BatchNorm an addition and a ReLU, ReLU6 or Hardtanh; Linear, on the
/// CPU in float32 and float64, these and a GELU, SiLU, Tanh or Sigmoid after it. Results are the same but for
/// rounding (a sum in a half type is rounded once instead of twice). Names and modules are the same, too. In
/// a profile the module whose work another has done shows with nothing in it.
///
/// Nothing is fused
///
/// - while a ForwardObserver observes the thread's calls: it gets every module's result;
/// - for a class derived from one of these: its forward may compute something else;
/// - where sizes, types or devices of the summands differ: the addition handles or refuses them.

namespace pleat {
class LinearActivation;
}

namespace pleat::nn {

struct FusionPolicyOptions {
  bool enabled = true;
};

/// Sets for a scope whether modules are fused: `nn::FusionPolicy guard{{.enabled = false}};`
using FusionPolicy = Policy<FusionPolicyOptions>;

/// The computation after a module: y = forward(x) + addend, within bounds. A module that can compute it in
/// its own pass overrides Module::forward_with and marks here what it has computed; the caller
/// computes the rest.
struct Epilogue {
  Tensor addend = {};  ///< or undefined
  Bounds bounds = {};  ///< those of a ReLU, ReLU6 or Hardtanh
  bool done = false;
  /// The activation after the module, bounds among them, for Linear; and whether it was computed.
  std::shared_ptr<const LinearActivation> activation = {};
  bool activated = false;
  /// The next module reads the result, and nobody else: it may be computed there (BatchNormOptions).
  bool deferred = false;
  /// The next module is a batch norm that wants the moments of the result (ConvOptions).
  bool moments = false;
};

}  // namespace pleat::nn
