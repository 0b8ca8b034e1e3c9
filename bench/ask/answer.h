#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pleat/bench/record.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"
#include "pleat/profile/timer.h"

/// What all questions of `pleat-bench ask` share: times of a computation that is done in several ways, and
/// the sentences that follow from them. Tables are those of report.h, charts those of charts.h.

namespace pleat::bench::ask {

using Strings = std::vector<std::string>;

struct AskOptions {
  Device device = {};
  bool quick = false;  ///< sizes and times for a first look
  benchmark::TimerOptions timer = {};
};

/// A way to compute something.
struct Way {
  std::string name;
  std::function<Tensor()> compute;
  std::vector<Tensor> inputs = {};  ///< whose gradients its backward pass computes
  bool tuned = false;               ///< its first runs search for the fastest plan: they are timed apart
};

/// Passes of a way: with nothing recorded; as in training; the backward pass alone.
inline const std::string forward = "forward", recorded = "forward, recorded", backward = "backward";

/// Records with the labels "problem" ("batch 128"), "way" ("direct", "by hand") and "pass" ("forward").
struct Times {
  std::vector<Record> records = {};

  /// Times these passes of all ways interleaved, so that what disturbs the machine disturbs all alike. Adds
  /// and returns the records, pass by pass; they stay where they are until something else is added.
  std::span<Record> measure(const AskOptions& options, const std::string& problem,
                            const std::vector<Way>& ways, const Strings& passes);
  void add(const std::string& problem, const std::string& way, const std::string& pass, const Time& time);
  /// Adds the pass `name`, these passes one after the other, which were measured of the same ways.
  void add_sum(const std::string& name, const Strings& passes);

  /// The records whose label is one of `texts`.
  Times only(const std::string& label, const Strings& texts) const;
  /// The texts of a label, in the order in which they came.
  Strings values(const std::string& label) const;
  /// A sentence for each text of the label `group` and each of these passes: records that differ in the label
  /// `of` beside the first of them, see comparison, and which takes least. The first way is what a user gets
  /// who asks for nothing.
  Strings compare(const std::string& group, const Strings& passes, const std::string& of) const;
};

/// What the command gives for a question.
struct Answer {
  Strings setup = {};       ///< what was computed on what, a line each
  Times times = {};         ///< every measurement; a table is made for each problem
  Strings notes = {};       ///< texts below the tables
  Strings conclusion = {};  ///< sentences that follow from the numbers
  std::string plot = {};    ///< a chart of them, as SVG
};

/// A time beside another, with the quartiles of the ratio, as part of a sentence: "takes 2.30 times as long
/// (2.10 to 2.50)"; "is level (0.98 to 1.06)" when medians are within 5 % of each other, which on a machine
/// with other work means nothing; "cannot be told apart in the noise (0.87 to 1.95)" when they are further
/// apart, but their quartiles overlap.
std::string comparison(const Time& time, const Time& other);
/// A sentence behind "- ", broken at spaces into lines of at most 100 columns.
std::string list_item(const std::string& sentence);

/// Of single runs, in seconds. Throws ValueError for none.
Time time_of(const std::vector<double>& runs);
/// So many times as long.
Time scaled(Time time, double factor);

/// A random gradient of a result, in the format of the result, as the next layer would give it.
Tensor gradient_for(const Tensor& y);
/// The backward pass of y alone, from gradient_for(y) to `inputs`; may be called again and again.
std::function<void()> backward_of(const Tensor& y, const std::vector<Tensor>& inputs);
/// Implementations that are made for speed, not the reference, and compute all passes of a convolution, in the
/// order of the library's list.
Strings fast_implementations(const Tensor& x, const Tensor& w, const ConvOptions& options);

}  // namespace pleat::bench::ask
