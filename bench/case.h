#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pleat/bench/charts.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/tensor/tensor.h"

/// What the subcommands for single operations share: a description of what is timed, and everything that
/// follows from it: operands, times, rates, errors, tables.

namespace pleat::bench {

using Tensors = std::vector<Tensor>;
/// A computation with its operands in place; returns what it computes.
using Compute = std::function<Tensors()>;
/// Prepares a computation on operands of any type and device. What it does besides is not timed.
using Prepare = std::function<Compute(const Tensors& operands)>;
/// For a function of the operands that needs no preparation.
Prepare function_of(std::function<Tensors(const Tensors&)> function);

/// One of several computations that are timed interleaved.
struct Case {
  Record record;  ///< subcommand, labels, and values that are known before
  DType dtype = float32;
  Tensors operands = {};
  Prepare prepare;
  std::function<void()> tune = {};  ///< is run once before the first call and timed apart
  /// What is right, for the error, of the operands in float64 on the CPU. None: `prepare`.
  Prepare reference = {};
  double flops = 0;  ///< of one run; 0: not counted
  /// That one run must read and write at least; 0: not counted; none: those of all operands and results.
  std::optional<double> bytes = {};
  Precision precision = Precision::highest;
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

/// In that type, unless x is of integers or truth values; the format is that of images (3 to 5 dimensions).
Tensor as_kind(const Tensor& x, const OperandKind& kind);
/// Standard normal numbers; the same for the same seed on every device.
Tensor operand(const Shape& shape, const OperandKind& kind, uint64_t seed = 1);

/// Options for operands, each perhaps with several values. A subcommand sets what they are by default.
struct OperandOptions {
  std::vector<std::string> dtypes = {"float32"};
  /// "": no --format; "auto": for convolutions, which choose one themselves where none is named.
  std::vector<std::string> formats = {""};
  std::string precision = {};  ///< "": no --precision
  bool check = false;

  /// All types in all formats.
  std::vector<OperandKind> kinds(Device device) const;
};

/// Adds --dtype and --check, and --format and --precision where the options have a default for them.
void add_operand_options(CLI::App& app, OperandOptions& options);

/// A case with the labels problem, `labels`, dtype, format and device.
Case make_case(const std::string& subcommand, const std::string& problem, const Record::Texts& labels,
               const OperandKind& kind);

/// The option by which a subcommand takes shapes, and what it takes without.
struct ShapeOption {
  std::string name = "--shape", description = {};
  std::vector<std::string> usual = {}, quick = {};
  std::string must_have = {};  ///< "3 to 5 sizes, N,C,spatial...": what `fits` wants of the number of sizes
  bool (*fits)(std::size_t sizes) = [](std::size_t) { return true; };
};

/// A subcommand that lists cases, block by block. All else is done here.
class OperationSubcommand : public Subcommand {
 public:
  OperationSubcommand(std::string name, std::string summary, ShapeOption shape = {})
      : Subcommand(std::move(name), std::move(summary)), shape_(std::move(shape)) {}
  /// --shape, --pass where there are several passes, and those for operands.
  void add_options(CLI::App& app) override;
  void run(const CommonOptions& common, Report& report) final;
  bool has_plot() const override { return true; }
  std::string plot(const std::vector<Record>& records) const override { return time_bars(chart_, records); }

 protected:
  /// Says something above all tables.
  virtual void begin(const CommonOptions&, Report&) {}
  /// Calls `block` for one list of cases after the other: the cases of each are timed interleaved; lists up
  /// to one that `ends_table` are shown together. Throws UsageError before the first. By default a table for
  /// each shape and pass.
  using Block = std::function<void(const std::vector<Case>&, bool ends_table)>;
  virtual void list(const CommonOptions& common, const Block& block) const;
  /// Throws UsageError for options that make no sense together, or with a shape.
  virtual void check_options(const std::vector<Shape>&) const {}
  /// Of a shape and a pass, on operands of each of these kinds.
  virtual std::vector<Case> cases(const Shape&, const std::string& /*pass*/,
                                  const std::vector<OperandKind>&) const {
    return {};
  }
  /// Takes records out of a block that are not to be shown.
  virtual void filter(std::vector<Record>&) const {}

  /// Its own columns, labels by which cases compete, and the heading: see Layout. Without a heading it is the
  /// problem, and types and formats get columns.
  Layout layout_;
  TimeChart chart_;  ///< what --plot draws
  ShapeOption shape_;
  std::vector<std::string> shapes_;         ///< as they were given
  std::vector<std::string> passes_ = {""};  ///< at first all that there are
  OperandOptions operands_;
};

}  // namespace pleat::bench
