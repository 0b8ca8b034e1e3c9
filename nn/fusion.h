#pragma once

#include "pleat/core/base/scope.h"
#include "pleat/core/tensor/tensor.h"

/// Modules that compute what follows them in their own pass over memory. Sequential does so with a ReLU
/// behind a module that can take it in, and Residual with its addition and its activation where the last
/// module of the body can; so far BatchNorm can. Results are the same but for rounding (a sum in a half type
/// is rounded once instead of twice), and so are names, modules and what a profiler shows: a module whose
/// work another has done shows with nothing in it. Nothing is fused
///
/// - while a ForwardObserver sees the thread's calls: it is given every module's result;
/// - for a class derived from one of these: its forward may be another;
/// - where sizes, types or devices of what is added differ: the addition itself knows best what to do.

namespace pleat::nn {

struct FusionPolicyOptions {
  bool enabled = true;
};

/// Sets for a scope whether modules are fused: `nn::FusionPolicy guard{{.enabled = false}};`
class FusionPolicy {
 public:
  explicit FusionPolicy(FusionPolicyOptions options) : scope_(options) {}

  static const FusionPolicyOptions& current();

 private:
  Scoped<FusionPolicyOptions> scope_;
};

/// What follows a module: y = relu(forward(x) + addend). Who can do that at once overrides
/// Module::forward_with and says that it is done; who called does what is not.
struct Epilogue {
  Tensor addend = {};  ///< or undefined
  bool relu = false;
  bool done = false;
};

}  // namespace pleat::nn
