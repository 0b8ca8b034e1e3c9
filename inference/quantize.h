// Private header: not installed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "pleat/inference/functions.h"
#include "pleat/onnx/trace.h"
#include "pleat/ops/matmul/linear_activation.h"
#include "pleat/ops/quantized/quantized_conv.h"

/// Which values of a plan are held as uint8, and how: found by running it on examples.

namespace pleat::inference {

/// The values that a step of a plan reads and writes.
struct StepValues {
  bool is_int8;                    ///< takes uint8 and float32, and writes what is wanted
  const onnx::Call* call;          ///< that is made again; of a step that computes in int8 the first one
  std::vector<int> reads, writes;  ///< -1: none
};

/// A step that computes in int8.
struct QuantizedStep {
  std::size_t call;  ///< its first
  Tensor weight, bias;
  ConvOptions options;
  int input, addend, output;
  LinearActivationPtr activation;
  Bounds limits;  ///< in place of the activation
};

class Quantizer {
 public:
  /// Runs of plans of alike traces, each example twice: first for the ranges of values, then for how often
  /// they have which numbers.
  void begin(const onnx::Trace& trace);
  void observe(const std::vector<Tensor>& values);
  void next_run() { seen_.clear(); }
  void begin_counting() { counts_ = true; }
  /// From here on plans compute in int8.
  void finish();
  /// How the values of a trace are held, each group's as one of them; from there on as after `finish`.
  const std::vector<std::optional<ops::Quantization>>& quantizations() const { return quantizations_; }
  void restore(const onnx::Trace& trace, const std::vector<std::optional<ops::Quantization>>& values);
  /// What was made is made again.
  void forget_made() { made_.clear(); }

  /// Whether plans of this trace do: values have the same places.
  bool fits(const onnx::Trace& trace) const { return finished_ && way_of(trace) == way_; }
  /// Why a product or convolution is left in float32; null where it is not.
  const char* refusal(int input, const Tensor& weight) const;
  /// Whether each value is held as uint8.
  std::vector<bool> uint8_values(const std::vector<StepValues>& steps, const onnx::Trace& trace) const;
  /// What computes a step; engines' plans share it.
  std::shared_ptr<const ops::QuantizedConv> make(const QuantizedStep& step, const std::vector<bool>& is_uint8,
                                                 SharedBlocks& shared);
  /// The call as it is made of values that are uint8.
  static Run run_of_uint8(const onnx::Trace& trace, const onnx::Call& call);

 private:
  struct Histogram {
    double least = 0, most = 0;  ///< 0 is among them
    std::vector<double> counts;
    ops::Quantization quantization() const;
  };
  using Key = std::tuple<std::size_t, int, int, bool, bool>;

  static std::vector<std::string> way_of(const onnx::Trace& trace);
  std::size_t group_of(std::size_t value) const;

  std::vector<std::string> way_;     ///< calls with their values
  std::vector<std::size_t> groups_;  ///< of each value: another of those that share a range
  std::vector<Histogram> histograms_;
  std::vector<std::optional<ops::Quantization>> quantizations_;  ///< of groups
  std::vector<bool> seen_;                                       ///< of values, in this run
  bool counts_ = false, finished_ = false;
  std::map<Key, std::shared_ptr<const ops::QuantizedConv>> made_;
};

}  // namespace pleat::inference
