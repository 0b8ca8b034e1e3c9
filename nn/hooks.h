#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Functions that are called with each call of one module; Module::register_forward_hook. A ForwardObserver
/// (nn/module.h) is told of the calls of all modules in a scope.

namespace pleat::nn {

class Module;

/// Called before a forward. What it returns replaces the inputs; nothing, `return {};`, leaves them. A
/// forward of several inputs has them all, undefined ones, too, and they cannot be replaced.
using ForwardPreHook = std::function<std::vector<Tensor>(Module& module, const std::vector<Tensor>& inputs)>;
/// Called after a forward. What it returns replaces the output; an undefined tensor, `return {};`, leaves it.
/// Of a forward that gives several tensors it is the member `output` or `h`, or the first of a vector.
using ForwardHook =
    std::function<Tensor(Module& module, const std::vector<Tensor>& inputs, const Tensor& output)>;

namespace detail {
/// One of the two; empty when it was removed.
struct Hook {
  std::shared_ptr<const ForwardPreHook> before;
  std::shared_ptr<const ForwardHook> after;
};
}  // namespace detail

/// Removes a hook. One that is destroyed leaves the hook where it is.
class RemovableHandle {
 public:
  RemovableHandle() = default;
  /// Removes it from the module and from all copies of it. May be called again, by the hook itself, and when
  /// the module is gone; not while another thread calls the module.
  void remove() {
    if (const auto hook = hook_.lock()) *hook = {};
  }

 private:
  friend class Module;
  explicit RemovableHandle(const std::shared_ptr<detail::Hook>& hook) : hook_(hook) {}
  std::weak_ptr<detail::Hook> hook_;
};

}  // namespace pleat::nn
