#pragma once

#include <array>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::nn {

class Module;

namespace detail {
class Listing;
}

/// The range of a module's forward in a profile, with its class, its path in the outermost module
/// that is running, and its input tensors. Module::operator() makes one. A forward of several
/// inputs or of other types is called by its name and begins with its own:
///
///   struct Attention : nn::Module {
///     using Module::forward;
///     Tensor forward(const Tensor& query, const Tensor& key) {
///       const nn::RecordForward range(*this, query, key);
///       return range.run([&] { return ... });
///     }
///
/// run() is what calls hooks and lets errors name the module. The range also makes the parameters that the
/// module lists require gradients, as a call of the module does. Throws Error for a module that was moved
/// from.
class RecordForward {
 public:
  template <std::same_as<Tensor>... Tensors>
  explicit RecordForward(const Module& module, const Tensors&... inputs)
      : RecordForward(module, std::array<const Tensor*, sizeof...(Tensors)>{&inputs...}, false) {}
  ~RecordForward();
  RecordForward(const RecordForward&) = delete;
  RecordForward& operator=(const RecordForward&) = delete;

  /// Calls `forward` between the module's hooks. An Error that leaves a module inside another is given the
  /// module's place in front of its message, once: "in body.1 (Conv2d): conv2d: ...".
  template <class F>
  auto run(F&& forward) const {
    try {
      if (!hooked_) return forward();
      before();
      auto result = forward();
      after(output_of(result));
      return result;
    } catch (Error& error) {
      locate(error);
      throw;
    }
  }

 private:
  friend class Module;
  friend class detail::Listing;
  class Call;

  RecordForward(const Module& module, std::span<const Tensor* const> inputs, bool replaceable);
  /// Of Module::operator(), which gives forward what a hook has put in the place of its input.
  struct Replaceable {};
  RecordForward(const Module& module, const Tensor& x, Replaceable)
      : RecordForward(module, std::array{&x}, true) {}
  const Tensor& input(const Tensor& given) const;

  /// Call the hooks. A result that has no known tensor is null.
  void before() const;
  void after(Tensor* output) const;
  template <class Result>
  static Tensor* output_of(Result& result) {
    if constexpr (std::same_as<Result, Tensor>)
      return &result;
    else if constexpr (std::same_as<Result, std::vector<Tensor>>)
      return result.empty() ? nullptr : &result[0];
    else if constexpr (requires { Tensor(result.output); })
      return &result.output;
    else if constexpr (requires { Tensor(result.h); })
      return &result.h;
    else
      return nullptr;
  }
  void locate(Error& error) const;
  std::string place() const;

  static constinit thread_local const RecordForward* running_;  ///< the innermost of this thread

  const Module& module_;
  const RecordForward* caller_;  ///< the call around it
  bool hooked_ = false;
  std::unique_ptr<Call> call_;
};

}  // namespace pleat::nn
