#include "pleat/nn/containers.h"

#include <algorithm>
#include <typeinfo>

#include "pleat/core/base/format.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/fusion.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/linear_activation.h"

namespace pleat::nn {
namespace {

/// Of an activation that does no more than limit its input; else none.
Bounds bounds_of(const Module& module) {
  if (typeid(module) == typeid(ReLU)) return {.min = 0};
  if (typeid(module) == typeid(ReLU6)) return {.min = 0, .max = 6};
  if (typeid(module) != typeid(Hardtanh)) return {};
  const HardtanhOptions& options = static_cast<const Hardtanh&>(module).options;
  return {.min = options.min, .max = options.max};
}

/// Of an activation that a Linear before it can compute; else none.
LinearActivationPtr activation_of(const Module& module, const Bounds& bounds) {
  if (bounds.any()) return linear_limit(bounds);
  if (typeid(module) == typeid(GELU))
    return linear_gelu(static_cast<const GELU&>(module).options.approximation);
  if (typeid(module) == typeid(SiLU)) return linear_silu();
  if (typeid(module) == typeid(Tanh)) return linear_tanh();
  if (typeid(module) == typeid(Sigmoid)) return linear_sigmoid();
  return nullptr;
}

bool wants_moments(const Module& module) {
  const auto is = [&](const std::type_info& type) { return typeid(module) == type; };
  return module.training() && (is(typeid(BatchNorm1d)) || is(typeid(BatchNorm2d)) || is(typeid(BatchNorm3d)));
}

/// Records a call whose work the module before it has done.
void show_done(const Module& module, const Tensor& x) { const RecordForward range(module, x); }

}  // namespace

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

Tensor Sequential::forward(const Tensor& x) {
  Epilogue nothing;
  return run(x, nothing);
}

Tensor Sequential::forward_with(const Tensor& x, Epilogue& after) {
  return typeid(*this) == typeid(Sequential) ? run(x, after) : forward(x);
}

Tensor Sequential::run(const Tensor& x, Epilogue& after) {
  Tensor y = x;
  for (Iterator at = begin(), last = end(); at != last;) {
    Module& module = *at++;
    if (at == last) return module(y, after);
    const Bounds bounds = bounds_of(*at);
    const bool limits = bounds.any();
    Epilogue next{.bounds = bounds,
                  .activation = activation_of(*at, bounds),
                  .deferred = !limits || std::next(at) != last,
                  .moments = wants_moments(*at)};
    y = module(y, next);
    if ((limits && next.done) || next.activated) show_done(*at++, y);
  }
  return y;
}

Tensor Residual::forward(const Tensor& x) {
  check_not_moved_from();
  const Tensor side = shortcut.defined() ? shortcut(x) : x;
  Epilogue after{.addend = side, .bounds = activation.defined() ? bounds_of(activation.get()) : Bounds()};
  const Tensor main = body.get()(x, after);
  if (after.done) {
    if (!activation.defined()) return main;
    if (!after.bounds.any()) return activation(main);
    show_done(activation.get(), main);
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
