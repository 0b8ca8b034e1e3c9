#include "pleat/nn/containers.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/nn/fusion.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/elementwise/arithmetic.h"

namespace pleat::nn {

void Members::operator()(std::string_view name, AnyModule& child) {
  if (child.defined()) (*this)(name, child.get());
}

Lambda::Lambda(std::function<Tensor(const Tensor&)> function) : function_(std::move(function)) {
  check<ValueError>(bool(function_), "Lambda: there is no function in it");
}

Tensor Lambda::forward(const Tensor& x) {
  check_not_moved_from();
  return function_(x);
}

bool AnyModule::defined() const {
  check<Error>(module_ || copy_ == nullptr,
               "AnyModule: its module was moved away; use the one that it was moved to");
  return module_ != nullptr;
}

Module& AnyModule::get() const {
  check<Error>(defined(), "AnyModule: there is no module in it; give it one first");
  return *module_;
}

ModuleList::ModuleList(std::initializer_list<Item> modules) {
  for (const Item& item : modules) item.name ? add(*item.name, item.module) : add(item.module);
}

void ModuleList::members(Members& m) {
  for (Named& named : modules_) m(named.name, named.module);
}

ModuleList& ModuleList::add(AnyModule module) { return add(std::to_string(size()), std::move(module)); }

ModuleList& ModuleList::add(std::string name, AnyModule module) {
  check_not_moved_from();
  check<ValueError>(module.defined(), "{}: the module '{}' to add is undefined", type_name(), name);
  check<ValueError>(!name.empty() && name.find('.') == std::string::npos,
                    "{}: the name of a module must not be empty or have dots, got '{}'", type_name(), name);
  check<ValueError>(std::ranges::none_of(modules_, [&](const Named& named) { return named.name == name; }),
                    "{}: there is a module '{}' already", type_name(), name);
  modules_.push_back({std::move(name), std::move(module)});
  return *this;
}

Module& ModuleList::operator[](int64_t index) const {
  check<IndexError>(index >= -size() && index < size(), "{}: has {} modules, got index {}", type_name(),
                    size(), index);
  return modules_[static_cast<std::size_t>(index < 0 ? index + size() : index)].module.get();
}

Module& ModuleList::operator[](const std::string& name) const {
  check_not_moved_from();
  for (const Named& named : modules_)
    if (named.name == name) return named.module.get();
  fail<ValueError>("{}: has no module '{}'", type_name(), name);
}

void ModuleList::throw_wrong_type(int64_t index, const Module& module) const {
  fail<ValueError>("{}: module {} is a {}, not what was asked for", type_name(), index, module.type_name());
}

Tensor Sequential::forward(const Tensor& x) { return run_fused(*this, x); }

Tensor Residual::forward(const Tensor& x) {
  check_not_moved_from();
  const Tensor side = shortcut.defined() ? shortcut(x) : x;
  Tail tail{.addend = side, .bounds = activation.defined() ? bounds_of(activation.get()) : Bounds()};
  const Tensor main = run_fused(body.get(), x, tail);
  if (tail.done) {
    if (!activation.defined()) return main;
    if (!tail.bounds.any()) return activation(main);
    const RecordForward shown(activation.get(), main);
    return main;
  }
  check<ShapeError>(
      main.shape() == side.shape(),
      "Residual: body and shortcut must give one shape, got {} and {} from {}; a body that changes the "
      "shape needs a shortcut that does, too",
      main.shape(), side.shape(), x.shape());
  const Tensor sum = main + side;
  return activation.defined() ? activation(sum) : sum;
}

void Residual::members(Members& m) {
  m("body", body);
  m("shortcut", shortcut);
  m("activation", activation);
}

}  // namespace pleat::nn
