#include "pleat/nn/listing.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <type_traits>

#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/autograd/unlisted.h"
#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"

namespace pleat::nn::detail {
namespace {

/// A tensor of a module that was called without being listed.
struct Part {
  std::string name;
  uint64_t id;
  bool buffer;
  std::weak_ptr<autograd::Slot> slot;  ///< of a parameter
  std::weak_ptr<Storage> storage;

  bool open() const {
    if (buffer) return !storage.expired();
    const auto parameter = slot.lock();
    return parameter && !parameter->listed;
  }
};

struct UnlistedModule {
  const Module* caller = nullptr;
  std::string caller_type = {}, type = {}, text = {};
  std::vector<Part> parts = {};

  /// A module without parameters is judged by its buffers.
  bool open() const {
    const bool parameters = std::ranges::any_of(parts, [](const Part& part) { return !part.buffer; });
    return std::ranges::any_of(parts,
                               [=](const Part& part) { return part.buffer != parameters && part.open(); });
  }
};

/// A gradient that came to a parameter that no module lists.
struct UnlistedGradient {
  std::weak_ptr<autograd::Slot> slot;
  Shape shape;
  std::string op;  ///< the function that used the parameter

  bool open() const {
    const auto parameter = slot.lock();
    return parameter && !parameter->listed && parameter->requires_grad;
  }
};

/// What was found and may have been listed since.
struct Notes {
  ForkMutex<std::mutex> mutex;
  std::vector<UnlistedModule> modules;
  std::vector<UnlistedGradient> gradients;
  std::atomic<bool> any{false};  ///< spares calls and steps the lock

  /// Adds one unless it is known. With the lock, as all here.
  template <class Note>
  void add(std::vector<Note>& list, std::type_identity_t<Note> note, const auto& known) {
    forget_closed();
    if (std::ranges::none_of(list, known)) list.push_back(std::move(note));
    any = true;
  }
  void forget_closed() {
    const auto closed = [](const auto& note) { return !note.open(); };
    std::erase_if(modules, closed);
    std::erase_if(gradients, closed);
    any = !modules.empty() || !gradients.empty();
  }
};
Notes& notes() {
  static auto& all = *new Notes;
  return all;
}

void take_gradient(const std::shared_ptr<autograd::Slot>& slot, const Shape& shape, const std::string& op) {
  const std::lock_guard lock(notes().mutex);
  notes().add(notes().gradients, {slot, shape, op}, [&](auto& other) { return other.slot.lock() == slot; });
}
[[maybe_unused]] const auto takes = autograd::takes_unlisted.exchange(take_gradient);

std::vector<Members::Item> listed_by(Module& module) {
  Members members;
  module.members(members);
  return members.items();
}

/// Calls `tensor(path, tensor, is_buffer)` for all tensors inside.
template <class OnTensor>
void each_tensor(Module& module, const std::string& path, const OnTensor& on_tensor) {
  for (const Members::Item& item : listed_by(module)) {
    if (item.module != nullptr)
      each_tensor(*item.module, path + item.name + '.', on_tensor);
    else if (item.tensor->defined())
      on_tensor(path + item.name, *item.tensor, item.buffer);
  }
}

/// A listed tensor requires a gradient unless set_requires_grad was called for it.
void make_parameter(const Tensor& tensor) {
  if (!is_floating(tensor.dtype()) || !tensor.is_leaf()) return;
  if (autograd::is_undecided(tensor)) tensor.set_requires_grad();
  autograd::slot_of(tensor).parameter = true;
}

/// C++ does not tell what the member is called.
std::string remedy_for(const std::string& caller) {
  return fmt::format("add m(\"name\", name), with the member's own name, to members() of {}", caller);
}

/// Modules of one class that one module calls, as those of a vector: a line of a message.
struct MessageLine {
  std::vector<const UnlistedModule*> modules;
  std::vector<std::string> tensors = {};  ///< "weight [3, 3]"

  std::string text() const {
    std::string line = "\n  ";
    for (std::size_t i = 0; i < tensors.size() && i < 2; ++i) line += (i > 0 ? ", " : "") + tensors[i];
    if (tensors.size() > 2) line += " ...";
    if (!tensors.empty()) line += " of ";
    line += modules[0]->text;
    if (modules.size() > 1) line += fmt::format(" and {} more {}", modules.size() - 1, modules[0]->type);
    return line +
           fmt::format(", called by {}: {}", modules[0]->caller_type, remedy_for(modules[0]->caller_type));
  }
};

/// The line of this module, which it is added to.
MessageLine& line_of(const UnlistedModule& unlisted, std::vector<MessageLine>& lines) {
  for (MessageLine& line : lines)
    if (line.modules[0]->caller == unlisted.caller && line.modules[0]->type == unlisted.type) {
      if (std::ranges::find(line.modules, &unlisted) == line.modules.end()) line.modules.push_back(&unlisted);
      return line;
    }
  return lines.emplace_back(MessageLine{{&unlisted}});
}

std::string text_of_module(const Module& module) {
  return module.type_name() + '(' + module.options_text() + ')';
}

}  // namespace

void Listing::fail_moved_from(const Module& module) {
  fail<Error>("{}: this module was moved from; use the one that it was moved to", module.type_name());
}

void Listing::take(Module& module) { set(module.listed_); }

void Listing::take(const Tensor& tensor, bool buffer) {
  if (buffer) {
    if (!notes().any) return;
    const std::lock_guard lock(notes().mutex);
    for (UnlistedModule& unlisted : notes().modules)
      std::erase_if(unlisted.parts, [&](const Part& part) { return part.id == tensor.impl().id; });
    return;
  }
  const auto& known = tensor.impl().slot;
  if (known && known->decided && known->listed.load(std::memory_order_relaxed)) return;
  make_parameter(tensor);
  if (known) known->listed.store(true, std::memory_order_relaxed);
}

void Listing::hold(const Tensor& parameter) {
  autograd::slot_of(parameter).listed.store(true, std::memory_order_relaxed);
}

void Listing::mark(Members& members, Tensor* tensor, bool buffer, Module* module) {
  if (module != nullptr) {
    take(*module);
    module->members(members);
  } else if (tensor->defined()) {
    // Off the tape a call changes no tensor: many threads may run one module.
    const auto& slot = tensor->impl().slot;
    if (buffer || grad_enabled())
      take(*tensor, buffer);
    else if (slot && !slot->listed.load(std::memory_order_relaxed))
      slot->listed.store(true, std::memory_order_relaxed);
  }
}

void Listing::mark_all(const Module& module) {
  auto& outermost = const_cast<Module&>(module);  // listing changes nothing else
  Members members;
  members.only_marks_ = true;
  take(outermost);
  outermost.members(members);
}

bool Listing::is_listed_around(const RecordForward* call, const Module& module) {
  for (; call != nullptr; call = call->caller_)
    if (lists(call->module_, module)) return true;
  return false;
}

bool Listing::lists(const Module& outer, const Module& inner) {
  return std::ranges::any_of(listed_by(const_cast<Module&>(outer)), [&](const Members::Item& item) {
    return item.module != nullptr && (item.module == &inner || lists(*item.module, inner));
  });
}

void Listing::look(const RecordForward& call) {
  auto& module = const_cast<Module&>(call.module_);
  const RecordForward* caller = call.caller_;
  if (caller != nullptr && (&caller->module_ == &module || is_set(module.listed_))) return;
  // A checkpoint's second run, during backward, does not know the modules around it.
  if (autograd::current_node() != nullptr) {
    each_tensor(module, "", [](const std::string&, const Tensor& tensor, bool buffer) {
      if (!buffer) make_parameter(tensor);
    });
    return;
  }
  if (caller == nullptr) return mark_all(module);

  bool has_tensors = false;
  each_tensor(module, "", [&](const std::string&, const Tensor&, bool) { has_tensors = true; });
  if (!has_tensors) return;
  const RecordForward* outermost = caller;
  while (outermost->caller_ != nullptr) outermost = outermost->caller_;
  mark_all(outermost->module_);  // it may have been made since
  if (!is_set(module.listed_) && !is_listed_around(caller, module)) note(module, caller->module_);
}

void Listing::note(Module& module, const Module& caller) {
  UnlistedModule unlisted{.caller = &caller};
  bool shared = true;
  each_tensor(module, "", [&](const std::string& name, const Tensor& tensor, bool buffer) {
    if (!buffer && (!is_floating(tensor.dtype()) || !tensor.is_leaf())) return;
    if (!buffer && grad_enabled()) make_parameter(tensor);
    const auto& slot = tensor.impl().slot;
    shared = shared && (buffer || (slot && slot->listed));
    unlisted.parts.push_back({name, tensor.impl().id, buffer, slot, tensor.impl().storage});
  });
  if (!unlisted.open()) {
    if (shared) take(module);  // all its parameters are those of modules that are listed
    return;
  }
  unlisted.caller_type = caller.type_name();
  unlisted.type = module.type_name();
  unlisted.text = text_of_module(module);
  const std::lock_guard lock(notes().mutex);
  const uint64_t first = unlisted.parts.front().id;
  notes().add(notes().modules, std::move(unlisted),
              [&](auto& other) { return other.caller == &caller && other.parts.front().id == first; });
}

void Listing::check_mode(const Module& module) {
  const RecordForward* call = RecordForward::running_;
  for (const RecordForward* around = call; around != nullptr; around = around->caller_)
    if (&around->module_ == &module) call = around->caller_;
  const RecordForward* evaluating = call;
  const Module* called = &module;  // by the module that is in evaluation mode
  while (evaluating != nullptr && evaluating->module_.training_) {
    called = &evaluating->module_;
    evaluating = evaluating->caller_;
  }
  // Its own train() or eval() reached what it lists.
  if (evaluating == nullptr || is_listed_around(evaluating, module)) return;
  const std::string type = called->type_name();
  const std::string caller = evaluating->module_.type_name();
  fail<ValueError>(
      "{}: is in training mode, but {}, whose forward calls {}, is in evaluation mode and does not list it, "
      "so "
      "eval() has passed it by; {}, or call eval() on it",
      text_of_module(module), caller, called == &module ? "it" : type, remedy_for(caller));
}

void Listing::check_complete(const Module& module) {
  if (!notes().any) return;
  std::set<const Module*> inside;
  for (const auto& [path, one] : const_cast<Module&>(module).named_modules()) inside.insert(one);
  const std::lock_guard lock(notes().mutex);
  notes().forget_closed();
  std::vector<MessageLine> lines;
  for (const UnlistedModule& unlisted : notes().modules)
    if (inside.contains(unlisted.caller) && unlisted.caller->type_name() == unlisted.caller_type)
      line_of(unlisted, lines);
  std::string problems;
  for (const MessageLine& line : lines) problems += line.text();
  check<ValueError>(
      problems.empty(),
      "{}: state_dict() would lack tensors of modules that forward calls and members() does not "
      "list{}\n  For one that is kept elsewhere, call its own parameters() or state_dict() first.",
      module.type_name(), problems);
}

bool Listing::any_unlisted() { return notes().any; }

void Listing::check_gradients(const std::string& optimizer, const std::vector<Tensor>& held) {
  for (const Tensor& tensor : held)
    if (const auto& slot = tensor.impl().slot) slot->listed = true;
  std::vector<MessageLine> lines;
  std::map<std::string, int64_t> tensors;  // of no module that was called, with how often they look so
  const std::lock_guard lock(notes().mutex);
  notes().forget_closed();
  for (const UnlistedGradient& gradient : notes().gradients) {
    const auto slot = gradient.slot.lock();
    const UnlistedModule* owner = nullptr;
    const Part* found = nullptr;
    for (const UnlistedModule& unlisted : notes().modules)
      for (const Part& part : unlisted.parts)
        if (slot && part.slot.lock() == slot) owner = &unlisted, found = &part;
    if (owner != nullptr)
      line_of(*owner, lines).tensors.push_back(fmt::format("{} {}", found->name, gradient.shape));
    else
      ++tensors[fmt::format("{}, used by {}", gradient.shape, gradient.op)];
  }
  std::string problems;
  for (const MessageLine& line : lines) problems += line.text();
  for (const auto& [text, count] : tensors)
    problems += fmt::format("\n  {}{}: {}, or give it to an optimiser",
                            count > 1 ? fmt::format("{} times ", count) : "", text,
                            remedy_for("the module it is in"));
  check<ValueError>(
      problems.empty(),
      "{}: backward gave gradients to parameters that no members() lists, so that they would be "
      "neither trained nor saved{}\n  For a module that is not to be trained, call its "
      "requires_grad_(false).",
      optimizer, problems);
}

}  // namespace pleat::nn::detail
