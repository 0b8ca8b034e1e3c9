#include "pleat/nn/fusion.h"

#include <list>
#include <typeinfo>
#include <utility>
#include <vector>

#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/conv/fusion.h"
#include "pleat/ops/matmul/linear_activation.h"

namespace pleat::nn {
namespace {

/// The module, where it is of one of these classes and of none that derives from them, and has no hooks.
template <class M, class... Classes>
const M* exactly(const Module* module) {
  if (module == nullptr || module->has_hooks()) return nullptr;
  const bool is_one = ((typeid(*module) == typeid(M)) || ... || (typeid(*module) == typeid(Classes)));
  return is_one ? static_cast<const M*>(module) : nullptr;
}

/// A Conv1d, 2d or 3d that pads with zeros; else none.
const ConvModule* conv_of(const Module* module) {
  const auto* conv = exactly<ConvModule, Conv1d, Conv2d, Conv3d>(module);
  return conv != nullptr && conv->padding_mode == "zeros" ? conv : nullptr;
}

/// A BatchNorm1d, 2d or 3d that computes batch_norm; else none.
const BatchNormModule* norm_of(const Module* module) {
  const auto* norm = exactly<BatchNormModule, BatchNorm1d, BatchNorm2d, BatchNorm3d>(module);
  return norm != nullptr && !norm->function ? norm : nullptr;
}

/// An activation that a Linear before it can compute; else none.
LinearActivationPtr activation_of(const Module* module) {
  if (module == nullptr) return nullptr;
  if (const Bounds bounds = bounds_of(*module); bounds.any()) return linear_limit(bounds);
  if (const auto* gelu = exactly<GELU>(module)) return linear_gelu(gelu->options.approximation);
  if (exactly<SiLU>(module) != nullptr) return linear_silu();
  if (exactly<Tanh>(module) != nullptr) return linear_tanh();
  if (exactly<Sigmoid>(module) != nullptr) return linear_sigmoid();
  return nullptr;
}

/// A call of a module, or the beginning or the end of a Sequential's.
struct Step {
  Module* module;
  enum { call, begin, end } kind;
};

class FusedRun {
 public:
  explicit FusedRun(Tail& tail) : tail_(tail) { steps_.reserve(32); }

  void add(Module& module) {
    if (exactly<Sequential>(&module) == nullptr) return steps_.push_back({&module, Step::call});
    steps_.push_back({&module, Step::begin});
    for (Module& child : static_cast<Sequential&>(module)) add(child);
    steps_.push_back({&module, Step::end});
  }

  Tensor operator()(const Tensor& x) {
    FusedTensor y{x};
    std::list<RecordForward> open;
    while (at_ < steps_.size()) {
      const Step& step = steps_[at_++];
      if (step.kind == Step::begin)
        open.emplace_back(*step.module, y.x);
      else if (step.kind == Step::end)
        open.pop_back();
      else
        y = call(*step.module, y);
    }
    return value(y);
  }

 private:
  /// The call that comes `after` others after the present one, or null.
  const Module* next(std::size_t after = 0) const {
    for (std::size_t i = at_; i < steps_.size(); ++i)
      if (steps_[i].kind == Step::call && after-- == 0) return steps_[i].module;
    return nullptr;
  }

  FusedTensor call(Module& module, const FusedTensor& x) {
    if (std::exchange(is_done_, false)) {
      const RecordForward range(module, x.x);
      return x;
    }
    FusedTensor y;
    const auto run = [&](const auto& compute) {
      const RecordForward range(module, x.x);
      y = range.run(compute);
    };
    if (const auto* conv = conv_of(&module)) {
      const auto* norm = norm_of(next());
      const bool before_norm = norm != nullptr && norm->training();
      run([&] { return fused_conv(x, conv->weight, conv->bias, conv->options, before_norm); });
      return y;
    }
    if (const auto* norm = norm_of(&module)) {
      run([&] { return run_norm(*norm, x); });
      return y;
    }
    const Tensor input = value(x);
    const auto* linear = exactly<Linear>(&module);
    const LinearActivationPtr activation = linear != nullptr ? activation_of(next()) : nullptr;
    if (activation == nullptr || !fuses_activation(input, linear->weight)) return {module(input)};
    run([&]() -> FusedTensor {
      return {pleat::linear(input, linear->weight, linear->bias, linear->options, activation)};
    });
    is_done_ = true;
    return y;
  }

  FusedTensor run_norm(const BatchNormModule& norm, const FusedTensor& x) {
    const bool is_last = next() == nullptr;
    Tensor addend = is_last ? tail_.addend : Tensor();
    Bounds bounds = is_last ? tail_.bounds : bounds_of(*next());
    const bool fits = !addend.defined() || (addend.shape() == x.x.shape() && addend.dtype() == x.x.dtype() &&
                                            addend.device() == x.x.device());
    if (norm.options.bounds.any() || !fits) addend = {}, bounds = {};
    if (is_last)
      tail_.done = fits && !(norm.options.bounds.any() && (tail_.addend.defined() || tail_.bounds.any()));
    else
      is_done_ = bounds.any();
    const bool before_conv = conv_of(next(is_done_ ? 1 : 0)) != nullptr;
    norm.check_rank(x.x);
    return fused_norm(x, norm.operands(addend, bounds), before_conv);
  }

  Tail& tail_;
  std::vector<Step> steps_;
  std::size_t at_ = 0;    ///< the step to come
  bool is_done_ = false;  ///< the next call's work is done
};

bool is_fusing() { return FusionPolicy::current().enabled && !ForwardObserver::any(); }

}  // namespace

Bounds bounds_of(const Module& module) {
  if (exactly<ReLU>(&module) != nullptr) return {.min = 0};
  if (exactly<ReLU6>(&module) != nullptr) return {.min = 0, .max = 6};
  const auto* hardtanh = exactly<Hardtanh>(&module);
  return hardtanh != nullptr ? Bounds{.min = hardtanh->options.min, .max = hardtanh->options.max} : Bounds();
}

Tensor run_fused(const Sequential& sequence, const Tensor& x) {
  Tensor y = x;
  if (is_fusing()) {
    Tail nothing;
    FusedRun run(nothing);
    for (Module& module : sequence) run.add(module);
    return run(x);
  }
  for (Module& module : sequence) y = module(y);
  return y;
}

Tensor run_fused(Module& module, const Tensor& x, Tail& tail) {
  if (!is_fusing()) return module(x);
  FusedRun run(tail);
  run.add(module);
  return run(x);
}

}  // namespace pleat::nn
