// Private header: not installed.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/core/tensor/tensor.h"

/// How the calls of functions are written down as they happen (onnx/trace.h). The tape reports what it
/// records by name, inputs and outputs alone, also while no gradient is recorded. A function with numbers
/// that matter, with inputs that have no gradient, or without derivatives says so itself:
///
///   Tensor softmax(const Tensor& x, Integer dim) {
///     const TracedCall call("softmax", [&] { return Attributes{{"dim", dim}}; }, x);
///     ...
///     return call.gives(y);
///   }
///
/// What is called before `gives` belongs to the call and is not reported. While nobody listens this costs a
/// look at a pointer; attributes are made only when somebody does.

namespace pleat {

/// A number, list or text beside the tensors of a call.
struct Attribute {
  using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

  Attribute(std::string attribute, Integer number) : name(std::move(attribute)), value(int64_t{number}) {}
  Attribute(std::string attribute, Flag flag)
      : name(std::move(attribute)), value(static_cast<int64_t>(bool{flag})) {}
  template <std::floating_point T>
  Attribute(std::string attribute, T number) : name(std::move(attribute)), value(double{number}) {}
  template <std::derived_from<Number> T>
  Attribute(std::string attribute, const T& given) : name(std::move(attribute)) {
    const Number& number = given;
    if (number.kind() == float64)
      value = number.to<double>();
    else
      value = number.to<int64_t>();
  }
  Attribute(std::string attribute, const char* text) : name(std::move(attribute)), value(std::string(text)) {}
  Attribute(std::string attribute, std::vector<int64_t> list)
      : name(std::move(attribute)), value(std::move(list)) {}

  std::string name;
  Value value;
};
using Attributes = std::vector<Attribute>;

/// An input as it was before the call, which may have changed it in place; may be undefined.
struct TracedInput {
  explicit TracedInput(const Tensor& input) : tensor(input), version(input.defined() ? input.version() : 0) {}

  Tensor tensor;
  uint64_t version;
};

/// Is told of calls in the thread that set it.
class CallObserver {
 public:
  /// A function has computed `outputs` of `inputs`, or changed one of them in place, which then is an output.
  virtual void called(std::string_view name, const std::vector<TracedInput>& inputs,
                      std::span<const Tensor> outputs, const Attributes& attributes) = 0;

 protected:
  ~CallObserver() = default;
};

namespace detail {
inline thread_local CallObserver* call_observer = nullptr;
}

/// A call that is reported as one, whatever it is made of.
class TracedCall {
 public:
  template <std::same_as<Tensor>... T>
  explicit TracedCall(const char* name, const T&... inputs) {
    if (detail::call_observer != nullptr) [[unlikely]]
      begin(name, {TracedInput(inputs)...}, {});
  }
  template <std::invocable<> F, std::same_as<Tensor>... T>
  TracedCall(const char* name, const F& attributes, const T&... inputs) {
    if (detail::call_observer != nullptr) [[unlikely]]
      begin(name, {TracedInput(inputs)...}, attributes());
  }
  template <std::invocable<> F>
  TracedCall(const char* name, const F& attributes, const std::vector<Tensor>& inputs) {
    if (detail::call_observer != nullptr) [[unlikely]]
      begin(name, {inputs.begin(), inputs.end()}, attributes());
  }
  ~TracedCall() {
    if (parts_ != nullptr) [[unlikely]]
      end();
  }
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

  /// Reports the result, and returns it.
  Tensor gives(Tensor output) const {
    if (parts_ != nullptr) [[unlikely]]
      report({&output, 1});
    return output;
  }
  std::vector<Tensor> gives(std::vector<Tensor> outputs) const {
    if (parts_ != nullptr) [[unlikely]]
      report(outputs);
    return outputs;
  }
  /// Whether somebody listens, for results of other kinds.
  bool active() const { return parts_ != nullptr; }

 private:
  void begin(const char* name, std::vector<TracedInput> inputs, Attributes attributes);
  void report(std::span<const Tensor> outputs) const;
  void end();

  struct Parts;
  Parts* parts_ = nullptr;  ///< made when somebody listens
};

}  // namespace pleat
