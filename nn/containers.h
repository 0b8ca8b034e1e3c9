#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/nn/module.h"

namespace pleat::nn {

/// What can be used as a module: a module, or a function `Tensor(const Tensor&)`.
template <class F>
concept ModuleOrFunction =
    std::derived_from<std::remove_cvref_t<F>, Module> || std::is_invocable_r_v<Tensor, F&, const Tensor&>;

/// A function as a module without parameters: `nn::Lambda{[](const Tensor& x) { return flatten(x, 1); }}`.
class Lambda : public Module {
 public:
  /// Throws ValueError for an empty std::function.
  explicit Lambda(std::function<Tensor(const Tensor&)> function);
  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "Lambda"; }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

/// y = x: a module that does nothing.
struct Identity : Module {
  Tensor forward(const Tensor& x) override { return x; }
  std::string type_name() const override { return "Identity"; }
};

/// Holds a module of any class by value, or none. A copy holds a copy of the module.
class AnyModule {
 public:
  AnyModule() = default;
  template <ModuleOrFunction F>
  requires(!std::same_as<std::remove_cvref_t<F>, AnyModule>) AnyModule(F&& module);
  AnyModule(const AnyModule& other)
      : module_(other.module_ ? other.copy_(*other.module_) : nullptr), copy_(other.copy_) {}
  AnyModule(AnyModule&&) = default;
  AnyModule& operator=(const AnyModule& other) { return *this = AnyModule(other); }
  AnyModule& operator=(AnyModule&&) = default;

  /// Whether it holds a module. Throws Error when the module was moved away, which is not the same
  /// as none.
  bool defined() const;
  /// The module. Throws Error when there is none.
  Module& get() const;
  Tensor operator()(const Tensor& x) const { return get()(x); }

 private:
  std::unique_ptr<Module> module_;
  std::unique_ptr<Module> (*copy_)(const Module&) = nullptr;  ///< stays when the module is moved away
};

template <ModuleOrFunction F>
requires(!std::same_as<std::remove_cvref_t<F>, AnyModule>) AnyModule::AnyModule(F&& module) {
  using Given = std::remove_cvref_t<F>;
  using Kept = std::conditional_t<std::derived_from<Given, Module>, Given, Lambda>;
  module_ = std::make_unique<Kept>(std::forward<F>(module));
  copy_ = [](const Module& from) -> std::unique_ptr<Module> {
    return std::make_unique<Kept>(static_cast<const Kept&>(from));
  };
}

/// Modules in order, by the names "0", "1" ... or their own. The owner calls them:
///
///   for (nn::Module& layer : layers) x = x + layer(x);
///
/// Braces hold what is inside, also a single list or Sequential: `Sequential{block}` has block as "0", while
/// `Sequential(block)` and `= block` are copies of block. (clang before 20 makes a copy of all three;
/// `net.add(block)` puts it inside everywhere.) Modules of one class need no list: a `std::vector<Block>` is
/// listed in members() as it is.
class ModuleList : public Module {
 public:
  struct Named {
    std::string name;
    AnyModule module;
  };
  /// What braces hold: a module, or a name and a module.
  struct Item {
    template <ModuleOrFunction M>
    Item(M&& module_) : module(std::forward<M>(module_)) {}
    Item(std::string name_, AnyModule module_) : name(std::move(name_)), module(std::move(module_)) {}

    std::optional<std::string> name;  ///< else its number
    AnyModule module;
  };

  ModuleList() = default;
  template <ModuleOrFunction... M>
  requires(sizeof...(M) > 1 ||
           (... &&
            !std::derived_from<std::remove_cvref_t<M>, ModuleList>)) explicit ModuleList(M&&... modules) {
    (add(std::forward<M>(modules)), ...);
  }
  ModuleList(std::initializer_list<Item> modules);
  /// A copy would lack what a derived class adds. Braces nest it.
  template <std::derived_from<ModuleList> M>
  requires(!std::same_as<M, ModuleList>) ModuleList(const M& module)
  = delete;

  void members(Members& m) override;
  std::string type_name() const override { return "ModuleList"; }

  /// Appends a module, by the name of its number or by its own. Throws ValueError when the name is
  /// taken or not a name.
  ModuleList& add(AnyModule module);
  ModuleList& add(std::string name, AnyModule module);

  int64_t size() const {
    check_not_moved_from();
    return static_cast<int64_t>(modules_.size());
  }
  /// Negative indices count from the end. Throws IndexError.
  Module& operator[](int64_t index) const;
  /// The module of this name. Throws ValueError when there is none.
  Module& operator[](const std::string& name) const;
  /// The module as its own class M. Throws ValueError when it has another class.
  template <std::derived_from<Module> M>
  M& get(int64_t index) const {
    Module& module = (*this)[index];
    if (auto* typed = dynamic_cast<M*>(&module)) return *typed;
    throw_wrong_type(index, module);
  }

  class Iterator {
   public:
    using value_type = Module;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(const Named* at = nullptr) : at_(at) {}
    Module& operator*() const { return at_->module.get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const Named* at_;
  };
  Iterator begin() const {
    check_not_moved_from();
    return Iterator(modules_.data());
  }
  Iterator end() const { return Iterator(modules_.data() + modules_.size()); }

 private:
  [[noreturn]] void throw_wrong_type(int64_t index, const Module& module) const;

  std::vector<Named> modules_;
};

/// Calls one module after the other:
///
///   nn::Sequential net{nn::Linear{{.in_features = 2, .out_features = 16}}, nn::ReLU{}, my_function};
///   nn::Sequential net{{"conv", nn::Conv2d{{...}}}, {"act", nn::ReLU{}}};
///   net.add(nn::Linear{{...}});
///
/// An activation after a BatchNorm or a Linear is computed in its pass over memory, see nn/fusion.h.
class Sequential : public ModuleList {
 public:
  using ModuleList::ModuleList;
  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "Sequential"; }
};

struct ResidualOptions {
  Required<AnyModule> body;
  AnyModule shortcut = {};    ///< identity when absent
  AnyModule activation = {};  ///< applied to the sum; none when absent
};

/// y = activation(body(x) + shortcut(x)): He et al., "Deep residual learning for image recognition"
/// (2016). The shortcut is computed first. Where the body ends in a BatchNorm, the addition and a
/// ReLU (ReLU6, Hardtanh) are computed in its pass over memory, see nn/fusion.h. Throws ShapeError when body
/// and shortcut give different shapes.
class Residual : public Module {
 public:
  explicit Residual(ResidualOptions options)
      : body(options.body),
        shortcut(std::move(options.shortcut)),
        activation(std::move(options.activation)) {}
  /// `Residual{{block}}` would copy a block that is a Residual: write `{{.body = block}}`, or `= block`.
  Residual(std::initializer_list<Residual>) = delete;
  Tensor forward(const Tensor& x) override;
  void members(Members& m) override;
  std::string type_name() const override { return "Residual"; }

  AnyModule body, shortcut, activation;
};

}  // namespace pleat::nn
