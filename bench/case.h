#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/bench/subcommand.h"
#include "pleat/core/tensor/tensor.h"

/// What the subcommands for single operations share: a description of what is timed, and everything that
/// follows from it: operands, times, rates, errors, tables.

namespace pleat::bench {

/// A computation with its operands in place; returns what it computes.
using Compute = std::function<std::vector<Tensor>()>;
/// Prepares a computation on operands of any type and device. What it does besides is not timed.
using Prepare = std::function<Compute(const std::vector<Tensor>& operands)>;

/// One of several computations that are timed interleaved.
struct Case {
  Record record;  ///< subcommand, labels, and values that are known before
  DType dtype = float32;
  std::vector<Tensor> operands = {};
  Prepare prepare;
  std::function<void()> tune = {};  ///< is run once before the first call and timed apart
  /// For the error: what is right, in float64. None: `reference`, else `prepare`, of the operands in float64
  /// on the CPU.
  Compute exact = {};
  Prepare reference = {};
  double flops = 0;  ///< of one run; 0: not counted
  double bytes = 0;  ///< that one run must read and write at least
  Precision precision = Precision::highest;
  std::function<void(Record&)> finish = {};  ///< adds more to what was measured
};

/// Times cases interleaved. A record gets the values flops, bytes, gflops, gbytes, share_of_peak and
/// share_of_copy (of the measured ceilings), intensity (FLOP/byte), and with `check` error: the worst ‖result
/// - exact‖ / ‖exact‖ over all results. A case that throws (it does not support the problem, memory is short)
/// gives a record with the reason.
std::vector<Record> measure(const std::vector<Case>& cases, const CommonOptions& common, bool check);

/// The columns of these labels, and those for what `measure` finds.
std::vector<std::string> measured_columns(std::vector<std::string> labels);

/// |got - exact| / |exact| as vectors, in float64, on the CPU; |got| where `exact` is 0. Infinite when a
/// number is not finite. Throws ShapeError unless shapes are equal.
double relative_error(const Tensor& got, const Tensor& exact);

/// Type, memory format and place of operands. "": the format does not matter.
struct OperandKind {
  std::string dtype = "float32";
  std::string format = {};
  Device device = {};
};

/// Standard normal numbers; the same for the same seed on every device.
Tensor operand(const Shape& shape, const OperandKind& kind, uint64_t seed = 1);

/// Options for operands, each perhaps with several values.
struct OperandOptions {
  std::vector<std::string> dtypes = {"float32"};
  std::vector<std::string> formats = {""};
  std::string precision = "highest";
  bool check = false;

  /// All types in all formats.
  std::vector<OperandKind> kinds(Device device) const;
};

/// Adds --dtype and --check, and those that are wanted: --format; --format for programs of convolutions,
/// which choose one themselves where none is named ("auto"); --precision.
enum class With : unsigned char { format, precision, conv_format_and_precision };
void add_operand_options(CLI::App& app, OperandOptions& options, With with);

/// A case with the labels problem, `labels`, dtype, format and device.
Case make_case(const std::string& subcommand, const std::string& problem, const Record::Texts& labels,
               const OperandKind& kind);

/// A subcommand that lists cases, block by block. All else is done here.
class OperationSubcommand : public Subcommand {
 public:
  using Subcommand::Subcommand;
  void run(const CommonOptions& common, Report& report) final;
  bool has_plot() const override { return true; }

 protected:
  /// Its own columns, labels by which cases compete, and the heading: see Layout. Without a heading it is the
  /// problem, and types and formats get columns.
  virtual Layout layout() const { return {}; }
  /// Says something above all tables.
  virtual void begin(const CommonOptions&, Report&) {}
  /// Calls `block` for one list of cases after the other: the cases of each are timed interleaved; lists up
  /// to one that `ends_table` are shown together. Throws UsageError before the first.
  using Block = std::function<void(const std::vector<Case>&, bool ends_table)>;
  virtual void list(const CommonOptions& common, const Block& block) const = 0;
  /// Takes records out of a block that are not to be shown.
  virtual void filter(std::vector<Record>&) const {}

  /// The shapes that were given, else the `usual`, or `quick` ones. `option` names them in error messages.
  std::vector<Shape> shapes(const CommonOptions& common, const std::vector<std::string>& usual,
                            const std::vector<std::string>& quick,
                            const std::string& option = "--shape") const;

  std::vector<std::string> shapes_;
  OperandOptions operands_;
};

}  // namespace pleat::bench
