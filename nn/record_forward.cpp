#include "pleat/nn/record_forward.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <vector>

#include "pleat/autograd/node.h"
#include "pleat/core/base/error.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/listing.h"
#include "pleat/nn/module.h"
#include "pleat/nn/picture_size.h"

namespace pleat::nn {

namespace {

/// The buffers of a module, which a forward in a checkpoint's first run must not replace: the second run
/// would begin with the new ones.
class KeptBuffers {
 public:
  explicit KeptBuffers(Module& module) : type_(module.type_name()) {
    Members members;
    module.members(members);
    for (const Members::Item& item : members.items())
      if (item.buffer && item.tensor->defined()) kept_.push_back({item.name, item.tensor, *item.tensor});
  }
  ~KeptBuffers() {
    for (const auto& [name, buffer, kept] : kept_) {
      if (!buffer->defined() || buffer->shared_impl() == kept.shared_impl()) continue;
      if (buffer->shape() != kept.shape() || buffer->dtype() != kept.dtype()) continue;  // a table that grows
      *buffer = kept;
      autograd::first_run_error() = fmt::format(
          "checkpoint: the forward of {} makes its buffer \"{}\" another tensor, and it runs twice; change "
          "the "
          "elements of the one that it has, with copy_(buffer, value)",
          type_, name);
    }
  }
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  struct Kept {
    std::string name;
    Tensor* buffer;
    Tensor tensor;
  };
  std::string type_;
  std::vector<Kept> kept_;
};

}  // namespace

/// The data of a call while an observer is set, that belongs to a checkpoint, or whose module has hooks. The
/// outermost call that is observed has the names of all modules inside.
class RecordForward::Call {
 public:
  Call(const Module& module, std::span<const Tensor* const> inputs) {
    // members() changes nothing, so the module may be const.
    if (autograd::records_later()) buffers_.emplace(const_cast<Module&>(module));
    if (!is_recording()) return;
    if (names == nullptr) {
      names = &own_names_;
      learn_names(module);
    }
    const auto known = names->find(&module);
    if (known != names->end())
      range_.emplace(known->second.type, known->second.path, inputs);
    else
      range_.emplace(module.type_name(), std::string(), inputs);
  }
  ~Call() {
    if (names == &own_names_) names = nullptr;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::vector<std::shared_ptr<detail::Hook>> hooks;
  std::vector<Tensor> hook_inputs;
  bool replaceable = false;  ///< whether forward takes hook_inputs[0]

 private:
  struct Name {
    std::string type, path;
  };

  void learn_names(const Module& outermost) {
    try {
      // members() changes nothing, so the module may be const.
      for (const auto& [path, module] : const_cast<Module&>(outermost).named_modules())
        own_names_.emplace(module, Name{module->type_name(), path});
    } catch (const ValueError&) {
      // Members with bad names: a call must not fail only because it is observed.
    }
  }

  static thread_local const std::unordered_map<const Module*, Name>* names;
  std::unordered_map<const Module*, Name> own_names_;  ///< of the outermost call
  std::optional<RecordModule> range_;
  std::optional<KeptBuffers> buffers_;
};

thread_local const std::unordered_map<const Module*, RecordForward::Call::Name>* RecordForward::Call::names =
    nullptr;

constinit thread_local const RecordForward* RecordForward::running_ = nullptr;

RecordForward::RecordForward(const Module& module, std::span<const Tensor* const> inputs, bool replaceable)
    : module_(module), caller_(running_) {
  detail::Listing::check_not_moved_from(module);
  detail::Listing::begin(*this);
  // A forward of one input that calls its own of several is one call.
  if (!module.hooks_.empty()) [[unlikely]]
    hooked_ = replaceable || caller_ == nullptr || &caller_->module_ != &module;
  if (hooked_ || is_recording() || autograd::records_later()) [[unlikely]]
    call_ = std::make_unique<Call>(module, inputs);
  if (hooked_) {
    call_->hooks = module.hooks_;
    for (const Tensor* input : inputs) call_->hook_inputs.push_back(*input);
    call_->replaceable = replaceable;
  }
  running_ = this;
}

const Tensor& RecordForward::input(const Tensor& given) const {
  return hooked_ ? call_->hook_inputs[0] : given;
}

// A hook may change its module, which is const only for the ranges of const forwards.
void RecordForward::before() const {
  for (const auto& hook : call_->hooks)
    if (const auto function = hook->before) {
      std::vector<Tensor> replaced = (*function)(const_cast<Module&>(module_), call_->hook_inputs);
      if (replaced.empty()) continue;
      check<Error>(
          call_->replaceable && replaced.size() == 1 && replaced[0].defined(),
          "{}: a forward pre-hook can replace the input of a call with one tensor, by one, got {} for "
          "{}; where nothing is to be replaced it returns {{}}",
          module_.type_name(), replaced.size(), call_->hook_inputs.size());
      call_->hook_inputs = std::move(replaced);
    }
}

void RecordForward::after(Tensor* output) const {
  for (const auto& hook : call_->hooks)
    if (const auto function = hook->after) {
      check<Error>(
          output != nullptr,
          "{}: has a forward hook, but its forward gives no tensor, vector of tensors, or struct with "
          "a tensor named output or h; remove the hook, and register it with a module inside",
          module_.type_name());
      const Tensor replaced = (*function)(const_cast<Module&>(module_), call_->hook_inputs, *output);
      if (replaced.defined()) *output = replaced;
    }
}

RecordForward::~RecordForward() { running_ = caller_; }

/// "body.1 (Conv2d)": the path that leads from the outermost running module to this one. Callers that do not
/// list a module are passed over; where none does, the path begins at the last one that is listed:
/// "1 (Conv2d) of Block".
std::string RecordForward::place() const {
  const Module* top = &module_;
  const Module* outermost = top;
  std::string path;
  for (const RecordForward* call = caller_; call != nullptr; call = call->caller_) {
    outermost = &call->module_;
    if (outermost == top) continue;
    // members() changes nothing, so the module may be const.
    for (const auto& [name, inner] : const_cast<Module*>(outermost)->named_modules())
      if (inner == top) {
        path = path.empty() ? name : name + '.' + path;
        top = outermost;
        break;
      }
  }
  const std::string type = module_.type_name();
  if (path.empty()) return outermost == &module_ ? std::string() : type;
  return path + " (" + type + ')' + (top == outermost ? std::string() : " of " + top->type_name());
}

void RecordForward::locate(Error& error) const {
  // The last message that got a place; callers meet it again.
  static thread_local ThreadObject<std::string> of_thread;
  std::string& located = *of_thread;
  // Not what(): a user's class may have its own.
  std::runtime_error& base = error;
  if (caller_ == nullptr || located == base.std::runtime_error::what()) return;
  try {
    const std::string where = place();
    if (where.empty()) return;
    located = "in " + where + ": " + base.std::runtime_error::what();
    const Module* network = nullptr;
    for (const RecordForward* call = caller_; call != nullptr && typeid(call->module_) == typeid(Sequential);
         call = call->caller_)
      network = &call->module_;
    if (network != nullptr && dynamic_cast<ShapeError*>(&error) != nullptr)
      located += picture_size_hint(*network, module_);
    base = std::runtime_error(located);
  } catch (const std::exception&) {
    // A network whose members cannot be told, as after a move: the message stays as it is.
  }
}

}  // namespace pleat::nn
