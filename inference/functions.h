// Private header: not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "pleat/core/base/small_vector.h"
#include "pleat/core/tensor/number.h"
#include "pleat/onnx/trace.h"
#include "pleat/ops/conv/options.h"

/// How a traced call is made again.

namespace pleat::inference {

/// Undefined inputs are undefined tensors.
using Inputs = std::span<const Tensor* const>;
using Outputs = std::span<Tensor* const>;
using Run = std::function<void(Inputs, Outputs)>;

/// A call's options, and what the trace knows of its tensors.
class Options {
 public:
  Options(const onnx::Trace& trace, const onnx::Call& call) : trace_(trace), call_(call) {}

  std::size_t inputs() const { return call_.inputs.size(); }
  bool has(std::size_t i) const { return i < inputs() && call_.inputs[i] >= 0; }
  const Tensor& input(std::size_t i) const { return value(call_.inputs, i); }
  const Tensor& output() const { return value(call_.outputs, 0); }

  int64_t integer(std::string_view name) const { return integers(name).at(0); }
  bool flag(std::string_view name) const { return integer(name) != 0; }
  double number(std::string_view name) const;
  Scalar scalar(std::string_view name) const;
  std::string_view text(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name) const;
  /// So many.
  std::vector<int64_t> integers(std::string_view name, std::size_t count) const;
  /// One of those up to `last`.
  template <class Enum>
  Enum choice(std::string_view name, Enum last) const {
    const int64_t number = integer(name);
    check(number >= 0 && number <= static_cast<int64_t>(last), name);
    return static_cast<Enum>(number);
  }
  /// Throws ValueError where the option is not as its function has it: of a call from a file.
  void check(bool holds, std::string_view name) const;

 private:
  const Tensor& value(const std::vector<int>& values, std::size_t i) const;
  const Attribute::Value& get(std::string_view name) const;

  const onnx::Trace& trace_;
  const onnx::Call& call_;
};

/// Of a convolution, and of a transposed one.
ConvOptions conv_options(const Options& options);
ConvTransposeOptions conv_transpose_options(const Options& options);

/// Throws ValueError where the function is not known, or cannot be called in this form.
Run run_of(const onnx::Trace& trace, const onnx::Call& call);

/// Calls `run` with the tensors that `value` gives for numbers of values; those that are not negative. It
/// is given at least as many as any function looks for, so that a call from a file may have too few.
template <class Value>
void run_call(const Run& run, const std::vector<int>& inputs, const std::vector<int>& outputs,
              const Value& value) {
  static const auto& none = *new Tensor;
  Tensor unread;
  SmallVector<const Tensor*, 8> in;
  SmallVector<Tensor*, 8> out;
  for (const int v : inputs) in.push_back(v < 0 ? &none : &value(v));
  for (const int v : outputs) out.push_back(v < 0 ? &unread : &value(v));
  while (in.size() < 8) in.push_back(&none);
  while (out.size() < 3) out.push_back(&unread);
  run({in.data(), in.size()}, {out.data(), out.size()});
}

}  // namespace pleat::inference
