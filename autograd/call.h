#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "pleat/autograd/tape.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/core/tensor/trace.h"

/// The frame of a differentiable function:
///
///   Tensor softmax(const Tensor& input, Integer dim) {
///     const Call call("softmax", {input}, {{"dim", dim}}, Autocasts::to_float32);
///     const Tensor& x = call.input(0);
///     const Tensor y = softmax_forward(x, dim);
///     return call.result(y, grad_of(x, [y = saved(y), dim](const Tensor& dy) { ... }));
///   }
///
/// It casts the inputs as an Autocast scope wants them, tells those who watch (core/tensor/trace.h) what is
/// called with what and what comes out, and records the result on the tape.

namespace pleat {

/// What an Autocast scope makes of a call's inputs (autograd/autocast.h).
enum class Autocasts : unsigned char {
  none,        ///< nothing: the usual promotion of types
  to_half,     ///< the scope's half type
  to_float32,  ///< float32 where they are halves
};

class Call : public TracedCall {
 public:
  static constexpr std::size_t most_inputs = 8;

  /// The inputs outlive the call; some may be undefined.
  explicit Call(const char* name, Inputs inputs, std::initializer_list<Attribute> attributes = {},
                Autocasts casts = Autocasts::none)
      : Call(name, inputs, casts) {
    if (is_watched()) [[unlikely]]
      begin({inputs_.data(), count_}, std::span(attributes.begin(), attributes.size()));
  }
  /// With attributes that take time to find: a function that returns them.
  template <std::invocable<> F>
  Call(const char* name, Inputs inputs, const F& attributes, Autocasts casts = Autocasts::none)
      : Call(name, inputs, casts) {
    if (is_watched()) [[unlikely]]
      begin({inputs_.data(), count_}, attributes());
  }
  /// With any number of inputs, which `input` does not give.
  Call(const char* name, std::span<const Tensor> inputs, std::initializer_list<Attribute> attributes = {});

  /// The input, cast.
  const Tensor& input(std::size_t i) const { return *inputs_[i]; }

  /// Records `output` with its derivatives (`record` in autograd/tape.h), if it has any, tells of it and
  /// returns it.
  template <std::same_as<Derivative>... D>
  Tensor result(const Tensor& output, D... derivatives) const {
    if constexpr (sizeof...(D) == 0) {
      return gives(output);
    } else {
      std::vector<Derivative> all;
      all.reserve(sizeof...(D));
      (all.push_back(std::move(derivatives)), ...);
      return result(output, std::move(all));
    }
  }
  Tensor result(const Tensor& output, std::vector<Derivative> derivatives) const;
  std::vector<Tensor> results(std::vector<Tensor> outputs, std::vector<Derivative> derivatives) const;

 private:
  Call(const char* name, Inputs inputs, Autocasts casts) : TracedCall(name) {
    for (const Tensor& input : inputs) inputs_[count_++] = &input;
    if (casts != Autocasts::none) cast(casts);
  }
  void cast(Autocasts casts);

  std::array<const Tensor*, most_inputs> inputs_;
  std::size_t count_ = 0;
  std::vector<Tensor> cast_;
};

}  // namespace pleat
