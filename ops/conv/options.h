#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/policy.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/shape.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Zeros around the input: one number, one for each spatial dimension, a {low, high} pair for each, or
/// "same" (the output has the input's size; needs stride 1) or "valid" (none).
class Padding {
 public:
  using Sides = std::pair<int64_t, int64_t>;
  using List = SmallVector<Sides, 3>;

  template <std::convertible_to<Integer>... T>
  requires(sizeof...(T) > 0) Padding(T... each) : Padding(PerDim(each...)) {}
  template <ListOf<Integer> R>
  Padding(const R& each) {
    for (const int64_t width : PerDim(each)) sides_.emplace_back(width, width);
  }
  Padding(Sides one) : sides_{one} {}
  Padding(Sides first, Sides second) : sides_{first, second} {}
  Padding(Sides first, Sides second, Sides third) : sides_{first, second, third} {}
  template <detail::OneOf<List, std::vector<Sides>> V>
  Padding(V sides) : sides_(std::move(sides)) {}
  template <std::convertible_to<std::string> S>
  Padding(S mode) : mode_(std::move(mode)) {}

  /// "same", "valid" or empty.
  const std::string& mode() const { return mode_; }
  const List& sides() const { return sides_; }

 private:
  std::string mode_;
  List sides_;
};

struct ConvOptions {
  PerDim stride = 1;
  Padding padding = 0;
  PerDim dilation = 1;
  int64_t groups = 1;
  /// Name of the implementation for all passes ("unfold", "reference"; ops::conv_implementations() lists
  /// them), or with one of its plans as ops::tune_conv names them ("cudnn:eng37_k2=5"); empty: what the
  /// ConvPolicy in force says, else the fastest.
  std::string implementation = {};
  /// The same for one backward pass alone.
  std::string backward_input_implementation = {};
  std::string backward_weight_implementation = {};
  /// Format of each pass's result; empty: what the ConvPolicy in force says, else what the implementation
  /// writes best. One that can write a format that is asked for does; the result of others is converted.
  std::optional<MemoryFormat> format = {};
  /// Of float32 on CUDA (core/base/precision.h); empty: what the ConvPolicy in force says, else
  /// float32_precision().
  std::optional<Precision> precision = {};
};

struct ConvTransposeOptions {
  PerDim stride = 1;
  Padding padding = 0;        ///< taken off the output: the padding of the convolution whose gradient this is
  PerDim output_padding = 0;  ///< added to the output at the high side; below stride or dilation
  PerDim dilation = 1;
  int64_t groups = 1;
  std::string implementation = {};
  std::optional<MemoryFormat> format = {};  ///< as in ConvOptions
  std::optional<Precision> precision = {};  ///< as in ConvOptions
};

/// What convolutions in a scope do where their call does not say it.
struct ConvPolicyOptions {
  std::string implementation = {};
  std::string backward_input_implementation = {};
  std::string backward_weight_implementation = {};
  std::optional<MemoryFormat> format = {};
  std::optional<Precision> precision = {};
  /// Only what gives the same bits at each run. All of Pleat's own implementations do; some of cuDNN's do
  /// not.
  bool deterministic = false;
  /// Times every implementation at the first use of a problem and pass, then takes the fastest
  /// (ops/conv/tune/tune.h); a named implementation leaves its plans to choose from. With `deterministic`
  /// nothing is timed at first use, and what tune_conv or a file has found is used.
  bool benchmark = false;
  /// Bytes that cuDNN may use beside the operands, and that `unfold` on CUDA may unfold at once.
  int64_t workspace_limit = int64_t{1} << 30;
};

/// Sets them for a scope: `ConvPolicy guard{{.implementation = "reference"}};`
using ConvPolicy = Policy<ConvPolicyOptions>;

/// The format in which convolutions of this type compute on a device unless options or policy ask for
/// another, and so the one in which their operands are best laid (docs/cuda.md, "Formats"). On the CPU, and
/// on CUDA for half types and for float32 that tensor cores may round: channels_last. Else contiguous.
MemoryFormat conv_format(Device device, DType dtype, Precision precision);

/// The format of results of a call whose options say `asked`: that, else the policy's, if it has one.
std::optional<MemoryFormat> conv_result_format(std::optional<MemoryFormat> asked);

/// The precision of a call whose options say `asked`: that, else the policy's, else float32_precision().
Precision conv_precision(std::optional<Precision> asked);

}  // namespace pleat
