#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/bench/options.h"
#include "pleat/bench/record.h"
#include "pleat/bench/table.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/tensor.h"

namespace CLI {
class App;
}

/// What the subcommands for single operations share: operands, timing in turns, rates, errors.

namespace pleat::bench {

/// Types and formats of operands, each perhaps several.
struct OperandOptions {
  std::vector<std::string> dtypes = {"float32"};
  std::vector<std::string> formats = {"contiguous"};
  std::string precision = "highest";
  bool check = false;

  Precision chosen_precision() const;
};

void add_dtype_option(CLI::App& app, OperandOptions& options);
void add_format_option(CLI::App& app, OperandOptions& options);
/// The same for programs of convolutions, which choose a format themselves where none is named.
void add_conv_format_option(CLI::App& app, OperandOptions& options);
void add_precision_option(CLI::App& app, OperandOptions& options);
void add_check_option(CLI::App& app, OperandOptions& options);

/// Standard normal numbers in a memory format; the same for the same seed on every device.
Tensor operand(const Shape& shape, DType dtype, Device device, const std::string& format = "contiguous",
               uint64_t seed = 1);

/// A computation with its operands in place; returns what it computes.
using Compute = std::function<std::vector<Tensor>()>;
/// Prepares a computation on operands of any type and device. What it does besides is not timed.
using Prepare = std::function<Compute(const std::vector<Tensor>& operands)>;

/// One of those who compete in computing the same.
struct Candidate {
  Record::Texts labels;
  std::vector<Tensor> operands;
  Prepare prepare;
  Prepare reference = {};  ///< for the error: computed in float64 on the CPU; none: `prepare`
  double flops = 0;        ///< of one run; 0: not counted
  double bytes = 0;        ///< that one run must read and write at least
  Precision precision = Precision::highest;
};

/// Times candidates in turns. A record has the values flops, bytes, gflops, gbytes, share_of_peak and
/// share_of_copy (of the measured ceilings), intensity (FLOP/byte), and with `check` error: the worst ‖result
/// - reference‖ / ‖reference‖ over all results. A candidate that throws (it does not support the problem,
/// memory is short) gives a record with the reason.
std::vector<Record> measure(const std::string& subcommand, const std::vector<Candidate>& candidates,
                            const CommonOptions& common, bool check);

/// Columns for what `measure` finds; those without a value are left out of tables.
std::vector<Column> measured_columns();

}  // namespace pleat::bench
