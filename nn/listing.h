// Private header: not installed.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/module.h"
#include "pleat/nn/record_forward.h"

/// Finds modules and parameters that no members() lists. At each call the outermost module marks
/// itself and all that it lists, modules and parameters; so do parameters(), state_dict() and the
/// like. A module that a forward calls without such a mark is kept here, with its tensors, until
/// something lists it or it is destroyed.

namespace pleat::nn::detail {

class Listing {
 public:
  /// Called where a forward begins: the outermost module marks, the others are looked up.
  static void begin(const RecordForward& call) {
    const bool listed = is_set(const_cast<Module&>(call.module_).listed_);
    // Off the tape one mark is enough.
    if (!listed || (call.caller_ == nullptr && grad_enabled())) look(call);
  }

  /// Throws Error when it was moved from.
  static void check_not_moved_from(const Module& module) {
    if (module.moved_from_) [[unlikely]]
      fail_moved_from(module);
  }

  /// Marks a module or tensor as listed. A parameter requires a gradient from now on, unless
  /// set_requires_grad was called for it.
  static void take(Module& module);
  static void take(const Tensor& tensor, bool buffer);
  /// Marks a parameter that an optimiser has.
  static void hold(const Tensor& parameter);
  /// Removes the mark of a module that is a copy with new tensors.
  static void forget(Module& module) { module.listed_ = false; }

  /// Handles one member in a walk that only marks.
  static void mark(Members& members, Tensor* tensor, bool buffer, Module* module);

  /// Throws ValueError when a running module in evaluation mode calls this one, which is in training mode,
  /// and no running module lists it.
  static void check_mode(const Module& module);
  /// Throws ValueError when a forward in `module` has called a module with tensors that no module
  /// lists.
  static void check_complete(const Module& module);
  static bool any_unlisted();
  /// Throws ValueError when backward gave a gradient to a parameter that neither a module lists nor
  /// an optimiser has. `held` are the parameters of the optimiser.
  static void check_gradients(const std::string& optimizer, const std::vector<Tensor>& held);

 private:
  // Modules are called by many threads at once; the flag is the only thing that a call may change.
  static bool is_set(bool& flag) { return std::atomic_ref<bool>(flag).load(std::memory_order_relaxed); }
  static void set(bool& flag) {
    if (!is_set(flag)) std::atomic_ref<bool>(flag).store(true, std::memory_order_relaxed);
  }
  [[noreturn]] static void fail_moved_from(const Module& module);
  static void look(const RecordForward& call);
  static void mark_all(const Module& module);
  /// Whether `call`, or one around it, is of a module that lists this one.
  static bool is_listed_around(const RecordForward* call, const Module& module);
  static bool lists(const Module& outer, const Module& inner);
  static void note(Module& module, const Module& caller);
};

}  // namespace pleat::nn::detail
