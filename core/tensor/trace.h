#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/tensor.h"

/// What is told of a function's call to those who watch: a profiler (core/base/record_function.h), which sees
/// when it begins and ends, and the ONNX export, which writes it down. Functions on the tape use
/// autograd/call.h, which is built on this.

namespace pleat {

/// A number, list or text beside the tensors of a call.
struct Attribute {
  using Value = std::variant<int64_t, double, std::string_view, std::vector<int64_t>>;

  Attribute(const char* attribute, Integer number);
  Attribute(const char* attribute, Flag flag);
  template <std::floating_point T>
  Attribute(const char* attribute, T number) : Attribute(double{number}, std::string_view(attribute)) {}
  template <std::derived_from<Number> T>
  Attribute(const char* attribute, const T& number)
      : Attribute(static_cast<const Number&>(number), std::string_view(attribute)) {}
  /// A text that lasts, such as a literal.
  Attribute(const char* attribute, const char* text);
  Attribute(const char* attribute, std::vector<int64_t> list);
  Attribute(const char* attribute, const Shape& list);

  std::string_view name;
  Value value;

 private:
  Attribute(double number, std::string_view attribute);
  Attribute(const Number& number, std::string_view attribute);
};
using Attributes = std::vector<Attribute>;

/// An input as it was before the call, which may have changed it in place; may be undefined.
struct TracedInput {
  explicit TracedInput(const Tensor& input) : tensor(input), version(input.defined() ? input.version() : 0) {}

  Tensor tensor;
  uint64_t version;
};

/// Is told of the calls in the thread that set it. What is called inside of a call belongs to it.
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

/// A call that is watched as one, whatever it is made of. Without a watcher it costs a look at two
/// pointers.
class TracedCall : detail::Range {
 public:
  using Inputs = std::initializer_list<std::reference_wrapper<const Tensor>>;

  TracedCall(const char* name, Inputs inputs, std::initializer_list<Attribute> attributes = {})
      : TracedCall(name) {
    if (is_watched()) [[unlikely]]
      begin(pointers(inputs), std::span(attributes.begin(), attributes.size()));
  }
  ~TracedCall() {
    if (traced_ != nullptr) [[unlikely]]
      end();
  }

  using detail::Range::active;
  /// Adds what `find()` returns to what a profiler shows, and calls it only for one.
  template <std::invocable<> F>
  void details(const F& find) const {
    if (active()) [[unlikely]]
      add(find());
  }

  /// Tells of the result, and returns it.
  const Tensor& gives(const Tensor& output) const {
    tell({&output, 1});
    return output;
  }
  std::vector<Tensor> gives(std::vector<Tensor> outputs) const {
    tell(outputs);
    return outputs;
  }

 protected:
  explicit TracedCall(const char* name) : name_(name) {}
  static bool is_watched() { return is_recording() || detail::call_observer != nullptr; }
  static std::vector<const Tensor*> pointers(Inputs inputs);
  void begin(std::span<const Tensor* const> inputs, std::span<const Attribute> attributes);
  const char* name() const { return name_; }

 private:
  struct Traced;
  void tell(std::span<const Tensor> outputs) const {
    if (traced_ != nullptr) [[unlikely]]
      report(outputs);
  }
  void report(std::span<const Tensor> outputs) const;
  void end();

  const char* name_;
  Traced* traced_ = nullptr;  ///< made for a CallObserver
};

}  // namespace pleat
