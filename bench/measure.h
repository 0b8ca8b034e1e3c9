#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/bench/options.h"
#include "pleat/bench/record.h"
#include "pleat/core/tensor/tensor.h"

/// What the subcommands share that time single computations: operands, times interleaved, rates, errors.

namespace pleat::bench {

using Tensors = std::vector<Tensor>;

/// A computation with its operands in place.
struct Prepared {
  std::function<Tensors()> run;
  double bytes = 0;  ///< that one run must read and write at least; 0: not counted
};

/// One of several computations that are timed interleaved.
struct Case {
  Record record;  ///< subcommand, labels, and values that are known before
  DType dtype = float32;
  Precision precision = Precision::highest;
  std::function<Prepared()> prepare;
  std::function<void()> tune = {};           ///< is run once before the first call and timed apart
  std::function<Tensors()> exact = {};       ///< what is right, in float64 on the CPU; none: no error is told
  double flops = 0;                          ///< of one run; 0: not counted
  std::function<void(Record&)> finish = {};  ///< adds more to what was measured
};

/// Times cases interleaved. A record gets the values flops, bytes, gflops, gbytes, share_of_peak and
/// share_of_copy (of the measured ceilings), intensity (FLOP/byte), and with `check` error: the worst ‖result
/// - exact‖ / ‖exact‖ over all results. A case that throws (it does not support the problem, memory is short)
/// gives a record with the reason.
std::vector<Record> measure(const std::vector<Case>& cases, const CommonOptions& common, bool check);

double bytes_of(const Tensors& tensors);

/// |got - exact| / |exact| as vectors, in float64, on the CPU; |got| where `exact` is 0. Infinite when a
/// number is not finite. Throws ShapeError unless shapes are equal.
double relative_error(const Tensor& got, const Tensor& exact);

/// Type, memory format and place of operands. "": the format does not matter.
struct OperandKind {
  std::string dtype = "float32";
  std::string format = {};
  Device device = {};
};

/// Standard normal numbers; the same for the same seed on every device. The format is that of images (3 to 5
/// dimensions).
Tensor operand(const Shape& shape, const OperandKind& kind, uint64_t seed = 1);

/// Options for operands, each perhaps with several values. Formats may be "auto": that in which convolutions
/// of the type compute.
struct OperandOptions {
  std::vector<std::string> dtypes = {"float32"}, formats = {"auto"};
  std::string precision = "highest";

  /// All types in all formats.
  std::vector<OperandKind> kinds(Device device) const;
};

/// Adds --dtype, --format and --precision.
void add_operand_options(CLI::App& app, OperandOptions& options);

}  // namespace pleat::bench
