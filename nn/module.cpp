#include "pleat/nn/module.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ostream>
#include <set>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include <cxxabi.h>

#include "pleat/autograd/node.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/nn/listing.h"
#include "pleat/ops/conv/options.h"

namespace pleat::nn {

using detail::Listing;

namespace {

thread_local ThreadObject<std::vector<ForwardObserver*>> observers;
std::atomic<uint64_t> hook_count{0};

/// Tells the observers that a call began and, however it ends, that it ended.
class ObservedCall {
 public:
  ObservedCall(Module& module, const Tensor& input) : module_(module), input_(input), seen_by_(*observers) {
    for (ForwardObserver* observer : seen_by_) observer->enter(module_, input_);
  }
  ~ObservedCall() {
    for (auto observer = seen_by_.rbegin(); observer != seen_by_.rend(); ++observer)
      (*observer)->leave(module_, input_, output);
  }
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;

  Tensor output;

 private:
  Module& module_;
  Tensor input_;
  std::vector<ForwardObserver*> seen_by_;
};

/// "pleat::nn::(anonymous namespace)::Net<int>" -> "Net<int>".
std::string without_namespaces(const std::string& name) {
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (depth == 0 && name[i] == ':' && name[i + 1] == ':') start = i + 2;
  }
  return name.substr(start);
}

/// A name that is a path of parts, none empty.
bool is_path(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.back() != '.' && name.find("..") == std::string::npos;
}

/// members() changes nothing, so the module may be const.
std::vector<Members::Item> items_of(const Module& module) {
  Listing::check_not_moved_from(module);
  Members members;
  const_cast<Module&>(module).members(members);
  std::set<std::string> names;
  for (const Members::Item& item : members.items()) {
    check<ValueError>(is_path(item.name), "{}: the name '{}' of a member must not have empty parts",
                      module.type_name(), item.name);
    check<ValueError>(names.insert(item.name).second, "{}: members() lists the name '{}' twice",
                      module.type_name(), item.name);
  }
  return members.items();
}

/// Calls `tensor(path, tensor, is_buffer)` and `module(path, module)` for all that is inside, in the order
/// listed.
template <class OnTensor, class OnModule>
void walk(Module& module, const std::string& path, const OnTensor& on_tensor, const OnModule& on_module) {
  on_module(path, module);
  for (const Members::Item& item : items_of(module)) {
    const std::string name = path.empty() ? item.name : path + '.' + item.name;
    if (item.module != nullptr)
      walk(*item.module, name, on_tensor, on_module);
    else if (item.tensor->defined())
      on_tensor(name, *item.tensor, item.buffer);
  }
}

/// Marks everything inside as listed.
void take_all(const Module& module) {
  walk(
      const_cast<Module&>(module), "",
      [](const std::string&, const Tensor& tensor, bool buffer) { Listing::take(tensor, buffer); },
      [](const std::string&, Module& inner) { Listing::take(inner); });
}

template <class OnTensor>
void walk_tensors(const Module& module, const OnTensor& on_tensor) {
  walk(const_cast<Module&>(module), "", on_tensor, [](const std::string&, Module&) {});
}

NamedTensors distinct_tensors(const Module& module, bool buffers) {
  NamedTensors tensors;
  std::unordered_set<const TensorImpl*> seen;
  walk_tensors(module, [&](const std::string& name, const Tensor& tensor, bool buffer) {
    if (buffer == buffers && seen.insert(&tensor.impl()).second) tensors.emplace_back(name, tensor);
  });
  return tensors;
}

bool holds_images(const Tensor& x) { return x.rank() >= 3 && x.rank() <= 5; }

/// Replaces every tensor of the module by `convert` of it. All conversions are made before any
/// change.
template <class Convert>
void convert_tensors(const Module& module, const Convert& convert) {
  struct Change {
    Tensor tensor, data, grad;
  };
  std::vector<Change> changes;
  for (const bool buffers : {false, true})
    for (const auto& [name, tensor] : distinct_tensors(module, buffers)) {
      const Tensor grad = tensor.grad();
      changes.push_back({tensor, convert(tensor), grad.defined() ? convert(grad) : Tensor()});
    }
  for (const Change& change : changes) {
    change.tensor.set_data(change.data);
    if (change.grad.defined()) change.tensor.set_grad(change.grad);
  }
}

void print(std::string& text, const Module& module, const std::string& indent) {
  Listing::check_not_moved_from(module);
  text += module.type_name() + '(' + module.options_text();
  bool any = false;
  for (const Members::Item& item : items_of(module)) {
    if (item.module == nullptr) continue;
    text += '\n' + indent + "  (" + item.name + "): ";
    print(text, *item.module, indent + "  ");
    any = true;
  }
  text += any ? '\n' + indent + ')' : std::string(")");
}

}  // namespace

void Members::add(std::string_view name, Tensor* tensor, bool buffer, Module* module) {
  if (only_marks_)
    Listing::mark(*this, tensor, buffer, module);
  else
    items_.push_back({std::string(name), tensor, buffer, module});
}

std::string Members::numbered(std::string_view name, std::size_t i) const {
  return only_marks_ ? std::string() : fmt::format("{}.{}", name, i);
}

Tensor Module::forward(const Tensor& x) {
  fail<Error>("{}: has no forward of one tensor, got {}; call its members, or the forward it declares",
              type_name(), x.describe());
}

void Module::members(Members&) {}

std::string Module::type_name() const {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), std::free);
  return without_namespaces(status == 0 ? name.get() : typeid(*this).name());
}

Tensor Module::operator()(const Tensor& x) {
  const RecordForward range(*this, x, RecordForward::Replaceable());
  return range.run([&] {
    const Tensor& input = range.input(x);
    if (observers->empty()) return forward(input);
    ObservedCall call(*this, input);
    call.output = forward(input);
    return call.output;
  });
}

RemovableHandle Module::add_hook(detail::Hook hook) {
  check_not_moved_from();
  std::erase_if(hooks_, [](const auto& old) { return !old->before && !old->after; });
  hooks_.push_back(std::make_shared<detail::Hook>(std::move(hook)));
  ++hook_count;
  return RemovableHandle(hooks_.back());
}

RemovableHandle Module::register_forward_pre_hook(ForwardPreHook hook) {
  check<ValueError>(bool(hook), "{}: register_forward_pre_hook needs a function, got an empty one",
                    type_name());
  return add_hook({std::make_shared<const ForwardPreHook>(std::move(hook)), nullptr});
}

RemovableHandle Module::register_forward_hook(ForwardHook hook) {
  check<ValueError>(bool(hook), "{}: register_forward_hook needs a function, got an empty one", type_name());
  return add_hook({nullptr, std::make_shared<const ForwardHook>(std::move(hook))});
}

bool Module::has_hooks() const {
  return std::ranges::any_of(hooks_, [](const auto& hook) { return hook->before || hook->after; });
}

uint64_t detail::registered_hooks() { return hook_count; }

void Module::train(Flag training) {
  apply([training](Module& module) { module.training_ = training; });
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> tensors;
  for (auto& [name, tensor] : named_parameters()) tensors.push_back(std::move(tensor));
  return tensors;
}

void Module::check_not_moved_from() const { Listing::check_not_moved_from(*this); }
void Module::check_mode() const { Listing::check_mode(*this); }

NamedTensors Module::named_parameters() const {
  take_all(*this);
  return distinct_tensors(*this, false);
}
NamedTensors Module::named_buffers() const { return distinct_tensors(*this, true); }

NamedModules Module::named_modules() & {
  NamedModules modules;
  walk(
      *this, "", [](const std::string&, const Tensor&, bool) {},
      [&](const std::string& path, Module& module) { modules.emplace_back(path, &module); });
  return modules;
}

int64_t Module::num_parameters() const {
  int64_t n = 0;
  for (const auto& [name, tensor] : named_parameters()) n += tensor.numel();
  return n;
}

void Module::apply(const std::function<void(Module&)>& f) {
  check<ValueError>(bool(f), "{}: apply needs a function, got an empty one", type_name());
  for (const Members::Item& item : items_of(*this))
    if (item.module != nullptr) item.module->apply(f);
  f(*this);
}

void Module::zero_grad() {
  for (const Tensor& tensor : parameters()) tensor.set_grad({});
}

void Module::requires_grad_(Flag requires_grad) {
  for (const Tensor& tensor : parameters())
    if (is_floating(tensor.dtype())) tensor.set_requires_grad(requires_grad);
}

void Module::to(DType dtype) {
  check<DTypeError>(is_floating(dtype), "{}: the parameters of a module can only become floating, got {}",
                    type_name(), dtype);
  convert_tensors(*this,
                  [dtype](const Tensor& x) { return is_floating(x.dtype()) ? ops::cast(x, dtype) : x; });
}

void Module::to(Device device) {
  convert_tensors(*this, [device](const Tensor& x) {
    if (x.device() == device || !is_floating(x.dtype()) || !holds_images(x)) return ops::to_device(x, device);
    return ops::to_format(ops::to_device(x, device), conv_format(device, x.dtype(), float32_precision()));
  });
}

void Module::to(MemoryFormat format) {
  convert_tensors(*this,
                  [format](const Tensor& x) { return holds_images(x) ? ops::to_format(x, format) : x; });
}

StateDict Module::state_dict() const {
  take_all(*this);
  Listing::check_complete(*this);
  StateDict state;
  walk_tensors(*this, [&](const std::string& name, const Tensor& tensor, bool) {
    check<ValueError>(state.emplace(name, tensor.detach()).second, "{}: two members have the name '{}'",
                      type_name(), name);
  });
  return state;
}

LoadReport Module::load_state_dict(const StateDict& state, LoadOptions options) {
  return copy_state("load_state_dict: " + type_name(), state_dict(), state, options);
}

bool ForwardObserver::any() { return !observers->empty(); }
ForwardObserver::ForwardObserver() { observers->push_back(this); }
ForwardObserver::~ForwardObserver() { std::erase(*observers, this); }

Tensor parameter(const Tensor& tensor) {
  const Tensor leaf = tensor.is_leaf() ? tensor : tensor.detach();
  leaf.set_requires_grad();
  autograd::slot_of(leaf).parameter = true;
  return leaf;
}

void detail::own_tensors(Module& module) {
  std::unordered_map<const TensorImpl*, Tensor> copies;
  std::vector<std::pair<Tensor*, Tensor>> changes;
  for (const auto& [path, inner] : module.named_modules()) {
    Listing::forget(*inner);
    for (const Members::Item& item : items_of(*inner)) {
      if (item.tensor == nullptr || !item.tensor->defined()) continue;
      Tensor& copy = copies[&item.tensor->impl()];
      if (!copy.defined()) {
        copy = ops::copy(*item.tensor);
        if (!autograd::is_undecided(*item.tensor)) {
          copy.set_requires_grad(item.tensor->requires_grad());
          autograd::slot_of(copy).parameter = item.tensor->impl().slot->parameter;
        }
      }
      changes.emplace_back(item.tensor, copy);
    }
  }
  for (auto& [tensor, copy] : changes) *tensor = copy;
}

std::string to_string(const Module& module) {
  std::string text;
  print(text, module, "");
  return text;
}

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << to_string(module); }

}  // namespace pleat::nn
