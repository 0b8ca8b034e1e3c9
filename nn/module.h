#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pleat/core/base/moved_from.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/hooks.h"
#include "pleat/nn/state_dict.h"

/// Modules: functions with parameters. A module is an ordinary class with ordinary members, which it lists
/// once:
///
///   struct Net : nn::Module {
///     nn::Conv2d conv{{.in_channels = 3, .out_channels = 64, .kernel_size = 3}};
///     nn::Linear fc{{.in_features = 64, .out_features = 10}};
///     Tensor forward(const Tensor& x) override { return fc(mean(relu(conv(x)), {2, 3})); }
///     void members(nn::Members& m) override { m("conv", conv); m("fc", fc); }
///   };
///
/// A member that members() leaves out is neither trained nor saved, and eval() does not change it.
/// Such a member is an error once the module has run. An optimiser's step() throws ValueError when
/// backward gave a gradient to a parameter that no module lists. state_dict() throws it when a
/// forward called a module that would not be saved. training() throws it in a module that eval()
/// has not reached. A module may call another without listing it (a loss network, a discriminator)
/// once the other's own parameters(), requires_grad_(), state_dict() or load_state_dict() was
/// called.

namespace pleat::nn {

class Module;
class AnyModule;
class RecordForward;

namespace detail {
class Listing;

template <class P>
concept Owner = !std::derived_from<P, Module> && !std::same_as<P, AnyModule> && requires(P & p) {
  static_cast<bool>(p);
  *p;
};
template <class R>
concept ListOfMembers = !std::derived_from<R, Module> && requires(R & each) {
  std::begin(each);
  std::end(each);
};
}  // namespace detail

/// The parameters, buffers and children of a module by name; filled by Module::members.
class Members {
 public:
  struct Item {
    std::string name;
    Tensor* tensor;  ///< of a parameter or buffer
    bool buffer;
    Module* module;  ///< of a child
  };

  /// A parameter. An undefined one (a layer without bias) is left out.
  void operator()(std::string_view name, Tensor& parameter) { add(name, &parameter, false, nullptr); }
  /// A tensor that is saved and moved with the module, but not trained.
  void buffer(std::string_view name, Tensor& buffer) { add(name, &buffer, true, nullptr); }
  /// A module inside the module.
  void operator()(std::string_view name, Module& child) { add(name, nullptr, false, &child); }
  /// A module that may be absent.
  void operator()(std::string_view name, AnyModule& child);
  /// Any of these in a std::unique_ptr, std::shared_ptr or std::optional; may be absent.
  template <detail::Owner P>
  void operator()(std::string_view name, P& owner) {
    if (owner) (*this)(name, *owner);
  }
  /// Several of one kind (std::vector, std::array ...): "name.0", "name.1" ...
  template <detail::ListOfMembers R>
  void operator()(std::string_view name, R& several) {
    std::size_t i = 0;
    for (auto& one : several) (*this)(numbered(name, i++), one);
  }

  const std::vector<Item>& items() const { return items_; }

 private:
  friend class detail::Listing;
  void add(std::string_view name, Tensor* tensor, bool buffer, Module* module);
  std::string numbered(std::string_view name, std::size_t i) const;

  std::vector<Item> items_;
  /// Marks members instead of storing them: no names, no allocations. See nn/listing.h.
  bool only_marks_ = false;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using NamedModules = std::vector<std::pair<std::string, Module*>>;

/// A function of a tensor, with parameters, buffers and modules inside it.
///
/// Names of parameters, buffers and modules inside are paths: "layer1.0.conv.weight". A tensor in
/// two places is one parameter with two names. Modules are values. A copy refers to the same
/// tensors, as a copy of a Tensor does; clone(module) has its own. A module that was moved from
/// throws Error when it is called or its members are listed.
class Module {
 public:
  virtual ~Module() = default;

  /// The function. A module of several inputs declares a forward of its own (see
  /// nn/record_forward.h). This one then throws Error.
  virtual Tensor forward(const Tensor& x);
  /// Lists parameters, buffers and children.
  virtual void members(Members& m);
  /// The class without namespaces: "Conv2d".
  virtual std::string type_name() const;
  /// The options as they are printed: "3, 16, kernel_size=3".
  virtual std::string options_text() const { return {}; }

  /// Calls forward between the hooks and tells every ForwardObserver of this thread.
  Tensor operator()(const Tensor& x);

  /// Calls `hook` before, or after, each call of this module, in the order of registration; until the handle
  /// removes it. Copies and clones have the hooks, too. Called are those of operator() and of a forward of
  /// several inputs, by its RecordForward::run, but not of forward(x) by name. A module with hooks is not
  /// computed together with its neighbours (nn/fusion.h), an Inference runs a network that has some as it is,
  /// and an ONNX file has what they compute. Not while another thread calls the module. The call throws Error
  /// where a hook replaces inputs that cannot be replaced, or no tensor is known as the output. Throws
  /// ValueError for no function.
  RemovableHandle register_forward_pre_hook(ForwardPreHook hook);
  RemovableHandle register_forward_hook(ForwardHook hook);
  /// Whether this module itself has any.
  bool has_hooks() const;

  /// Training mode, in which dropout drops and batch norm uses the batch's statistics. True at the
  /// start. Throws ValueError when it is true, but a module whose forward calls this one is in
  /// evaluation mode and does not list it, so that eval() has not reached it.
  bool training() const {
    if (training_) check_mode();
    return training_;
  }
  /// Sets it for the module and everything inside.
  void train(Flag training = true);
  void eval() { train(false); }

  /// The tensors that members() lists as parameters, frozen ones, too; each once. Those of Pleat's
  /// layers and of nn::parameter require gradients from the start. Any other floating leaf does so
  /// after its module's first call on the tape, or after this call, unless set_requires_grad was
  /// called for it. Like all functions that read the names of members, it throws ValueError when a
  /// name is empty, has an empty part, or is used twice in a module.
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  /// This module, by the name "", and all inside it, outermost first.
  NamedModules named_modules() &;
  /// Number of elements of all parameters.
  int64_t num_parameters() const;
  /// Calls `f` for all modules inside, innermost first, and for this one.
  void apply(const std::function<void(Module&)>& f);

  /// Makes the gradients of all parameters undefined.
  void zero_grad();
  void requires_grad_(Flag requires_grad);

  /// Converts floating parameters, buffers and gradients. Handles of them, such as an optimiser's,
  /// stay valid. Throws DTypeError unless floating.
  void to(DType dtype);
  /// Moves parameters, buffers and gradients to a device. Floating tensors of 3 to 5 dimensions get
  /// the memory format that convolutions read there (conv_format in ops/conv/options.h).
  void to(Device device);
  /// Changes the memory format of tensors of 3 to 5 dimensions.
  void to(MemoryFormat format);

  /// Parameters and buffers by name. They share memory with the module; clone(state) has copies.
  /// Throws ValueError when a forward in this module has called a module with tensors that no
  /// module lists.
  StateDict state_dict() const;
  /// Copies values from a state; see copy_state for the errors.
  LoadReport load_state_dict(const StateDict& state, LoadOptions options = {});

 protected:
  /// Throws Error when the module was moved from.
  void check_not_moved_from() const;

  Module() = default;
  Module(const Module&) = default;
  Module(Module&&) = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) = default;

 private:
  friend class detail::Listing;
  friend class RecordForward;
  void check_mode() const;
  RemovableHandle add_hook(detail::Hook hook);

  std::vector<std::shared_ptr<detail::Hook>> hooks_;
  bool training_ = true;
  bool listed_ = false;  ///< by a module that was called or whose members were read; may be this one
  MovedFrom moved_from_;
};

/// Is told of the calls of modules in this thread while it exists. nn/summary.h uses it.
class ForwardObserver {
 public:
  ForwardObserver();
  virtual ~ForwardObserver();
  ForwardObserver(const ForwardObserver&) = delete;
  ForwardObserver& operator=(const ForwardObserver&) = delete;

  /// Whether this thread has one.
  static bool any();
  virtual void enter(Module& module, const Tensor& input) = 0;
  /// `output` is undefined when forward threw. Must not throw.
  virtual void leave(Module& module, const Tensor& input, const Tensor& output) = 0;
};

/// Makes a tensor a parameter: `Tensor weight = nn::parameter(randn({3, 4}));`. Returns it, or, if
/// a function computed it on the tape, its elements off the tape. It requires a gradient and must
/// be listed in members() or given to an optimiser. Throws DTypeError unless floating.
Tensor parameter(const Tensor& tensor);

namespace detail {
/// How many hooks this process has registered.
uint64_t registered_hooks();
/// Replaces all parameters and buffers by copies; those that were one tensor stay one.
void own_tensors(Module& module);
}  // namespace detail

/// A copy with its own tensors, without gradients.
template <std::derived_from<Module> M>
M clone(const M& module) {
  M copy = module;
  detail::own_tensors(copy);
  return copy;
}

/// A tree of modules with their options:
///
///   Sequential(
///     (0): Linear(2, 16)
///     (1): ReLU()
///   )
std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace pleat::nn
