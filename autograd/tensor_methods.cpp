#include "pleat/autograd/backward.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/functions.h"
#include "pleat/autograd/node.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/core/tensor/undefined.h"

/// The methods of Tensor that use the tape; core/tensor/tensor.h declares them.

namespace pleat {

using autograd::present_slot;
using autograd::records_later;
using autograd::slot_of;

bool Tensor::requires_grad() const { return present_slot(*this) && present_slot(*this)->wants_grad(); }
bool Tensor::is_leaf() const { return !present_slot(*this) || !present_slot(*this)->node; }

const Tensor& Tensor::set_requires_grad(Flag requires_grad) const {
  check<AutogradError>(
      is_leaf(),
      "set_requires_grad: only leaves can be told; this tensor {} was computed by {}; use detach()", *this,
      is_leaf() ? "" : impl().slot->node->name.c_str());
  check<DTypeError>(
      !requires_grad || is_floating(dtype()),
      "set_requires_grad: only floating tensors have gradients, got {}; convert it with to(float32)", *this);
  slot_of(*this).requires_grad = requires_grad;
  slot_of(*this).decided = true;
  return *this;
}

Tensor Tensor::grad() const {
  const auto& slot = impl().slot;
  if (slot && slot->grad.defined()) return slot->grad;
  // Made once: optimisers read gradients at every step, and some may be missing.
  static const auto& not_required = *new Tensor(undefined_because(
      "grad: there is no gradient, because the tensor does not require one; call set_requires_grad() (of a "
      "module: requires_grad_(true)) before the forward"));
  static const auto& no_leaf = *new Tensor(undefined_because(
      "grad: there is no gradient, because a function computed the tensor, and only leaves keep theirs; call "
      "retain_grad() on it before backward()"));
  static const auto& none_yet = *new Tensor(undefined_because(
      "grad: there is no gradient, because no backward() has reached the tensor since it was made or its "
      "gradient was forgotten (zero_grad()); call backward() first, on a loss that was computed from it and "
      "not under NoGrad"));
  if (!slot || !slot->wants_grad()) return not_required;
  return !slot->node || slot->retains_grad ? none_yet : no_leaf;
}

void Tensor::set_grad(const Tensor& grad) const {
  if (grad.defined()) autograd::check_gradient("set_grad", grad, shape(), dtype(), device());
  if (grad.defined() || impl().slot) slot_of(*this).grad = grad;
}

const Tensor& Tensor::retain_grad() const {
  if (records_later()) return *this;
  check<AutogradError>(requires_grad(),
                       "retain_grad: the tensor {} does not require a gradient; call set_requires_grad() on "
                       "the leaves it is computed from, first",
                       *this);
  if (is_leaf()) return *this;
  impl().slot->retains_grad = true;
  impl().slot->node->outputs[impl().slot->output].retain = impl().slot;
  return *this;
}

const Tensor& Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  check<ValueError>(hook != nullptr, "register_hook: the hook is an empty function");
  if (records_later()) return *this;
  check<AutogradError>(requires_grad(),
                       "register_hook: the tensor {} does not require a gradient; call set_requires_grad() "
                       "on it, or on the leaves it is computed from, first",
                       *this);
  auto& hooks = is_leaf() ? impl().slot->hooks : impl().slot->node->outputs[impl().slot->output].hooks;
  hooks.push_back(std::move(hook));
  return *this;
}

void Tensor::backward(const Tensor& gradient) const { pleat::backward({*this}, {gradient}); }
void Tensor::backward(const BackwardOptions& options) const { pleat::backward({*this}, {}, options); }
void Tensor::backward(const Tensor& gradient, const BackwardOptions& options) const {
  pleat::backward({*this}, {gradient}, options);
}

namespace {

Tensor off_the_tape(const Tensor& x) {
  const TensorImpl& t = x.impl();
  Tensor same = make_tensor(t.storage, t.shape, t.strides, t.offset, t.dtype);
  same.mutable_impl().alias = Alias::detached;
  same.mutable_impl().viewed_at = t.storage->version;
  return same;
}

}  // namespace

Tensor Tensor::detach() const {
  // A profiler is not told: nothing is computed, and every saved tensor is one.
  if (detail::call_observer == nullptr) return off_the_tape(*this);
  const TracedCall call("detach", {*this});
  return call.gives(off_the_tape(*this));
}

Tensor Tensor::to(DType dtype) const { return pleat::cast(*this, dtype); }
Tensor Tensor::to(Device device) const { return pleat::to_device(*this, device); }
Tensor Tensor::to(MemoryFormat format) const { return pleat::to_format(*this, format); }
Tensor Tensor::clone() const { return pleat::clone(*this); }
Tensor Tensor::operator[](Integer index) const { return select(*this, 0, index); }
void Tensor::operator=(const Tensor& values) && { copy_(*this, values); }
void Tensor::operator=(Scalar value) && { fill_(*this, value); }

}  // namespace pleat
