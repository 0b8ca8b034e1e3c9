#pragma once

#include "pleat/core/base/policy.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/module.h"
#include "pleat/ops/spatial/bounds.h"

/// Modules that are computed together. Sequential, with those inside it, and Residual make of
///
/// - a convolution beside batch norms conv_norm_act and norm_act_conv (ops/conv/conv_norm_act.h);
/// - a BatchNorm and the ReLU, ReLU6 or Hardtanh behind it, and at the end of a Residual's body also the
///   addition, one batch_norm;
/// - a Linear and the ReLU, ReLU6, Hardtanh, GELU, SiLU, Tanh or Sigmoid behind it, on the CPU in float32 and
///   float64, one pass over memory.
///
/// Results are the same but for rounding (a sum in a half type is rounded once instead of twice). Names and
/// modules are the same, too. In a profile the module whose work another has done shows with nothing in it.
///
/// Nothing is fused
///
/// - while a ForwardObserver observes the thread's calls: it gets every module's result;
/// - of a module that has hooks, which get its inputs and its result;
/// - for a class derived from one of these: its forward may compute something else;
/// - where sizes, types or devices of the summands differ: the addition handles or refuses them.

namespace pleat::nn {

class Sequential;

struct FusionPolicyOptions {
  bool enabled = true;
};

/// Sets for a scope whether modules are fused: `nn::FusionPolicy guard{{.enabled = false}};`
using FusionPolicy = Policy<FusionPolicyOptions>;

/// What is to be computed of a module's result y: y + addend within bounds.
struct Tail {
  Tensor addend = {};
  Bounds bounds = {};
  bool done = false;  ///< whether it was
};

/// What an activation that does no more than limit its input limits it to; of others no bounds.
Bounds bounds_of(const Module& module);

/// Calls the modules of a sequence, one after the other, those of a Sequential inside it in its place.
Tensor run_fused(const Sequential& sequence, const Tensor& x);
/// Calls a module, and computes the tail where the last module in it can.
Tensor run_fused(Module& module, const Tensor& x, Tail& tail);

}  // namespace pleat::nn
