#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pleat/bench/ask/ratio.h"
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
  std::string problem = {};         ///< what is computed; ways of the same problem are compared
  std::string piece = {};           ///< which piece of it; empty: the whole
};

/// The ways, all of this problem.
std::vector<Way> of_problem(const std::string& problem, std::vector<Way> ways);

/// Passes of a way: with nothing recorded; as in training; the backward pass alone.
inline const std::string forward = "forward", recorded = "forward, recorded", backward = "backward";

/// Records with the labels "problem" ("batch 128"), "way" ("direct", "by hand"), "pass" ("forward") and,
/// where they are a piece of a way, "piece" ("unfold"). Those with the same problem, pass and piece compute
/// the same; the first way is what a user gets who asks for nothing, and the others are set beside it.
struct Times {
  std::vector<Record> records = {};

  /// Times these passes of all ways, those of a pass in turns, so that what disturbs the machine disturbs all
  /// alike, and more rounds as long as `wants_more` says so of the ways of a problem. Adds and returns the
  /// records, pass by pass; they stay where they are until something else is added.
  std::span<Record> measure(const AskOptions& options, const std::vector<Way>& ways, const Strings& passes);
  void add(const std::string& problem, const std::string& way, const std::string& pass, const Time& time,
           const std::string& piece = {});
  /// Adds the pass `name`, these passes one after the other, which were measured of the same whole ways.
  void add_sum(const std::string& name, const Strings& passes);

  /// The records whose label is one of `texts`.
  Times only(const std::string& label, const Strings& texts) const;
  /// The texts of a label, in the order in which they came.
  Strings values(const std::string& label) const;
  /// A sentence for each text of the label `group` and each of these passes: records that differ in the label
  /// `of` beside the first of them, and which takes least: more than one where no other is known to take
  /// less.
  Strings compare(const std::string& group, const Strings& passes, const std::string& of) const;
  /// Why, for each problem and pass: what the slowest way does more than the fastest.
  Strings reasons() const;
  /// A sentence: which piece takes most of the time of all, which are those of a way and pass.
  std::string largest_piece() const;
  /// The detail "beside": the ratio to the first way of the same problem, pass and piece.
  void set_ratios();
  /// A table of medians: a line for each text of the label `row`, a column for each of the label `column`.
  /// What is no piece is the whole.
  std::string side_by_side(const std::string& title, const std::string& row, const std::string& column) const;
};

/// Whether more rounds are worth their time: some measurement cannot be told apart yet from the first with
/// its label, or was disturbed, there are less than ten times `min_blocks`, and their wall times add up to
/// less than 40 times `min_run_time`.
bool wants_more(const std::vector<benchmark::Measurement>& measured, const benchmark::TimerOptions& options);

/// What the command gives for a question.
struct Answer {
  Strings setup = {};       ///< what was computed on what, a line each
  Times times = {};         ///< every measurement; a table is made for each problem
  Strings notes = {};       ///< texts below the tables
  Strings conclusion = {};  ///< sentences that follow from the numbers
  std::string plot = {};    ///< a chart of them, as SVG
};

/// A random gradient of a result, in the format of the result, as the next layer would give it.
Tensor gradient_for(const Tensor& y);
/// The backward pass of y alone, from gradient_for(y) to `inputs`; may be called again and again.
std::function<void()> backward_of(const Tensor& y, const std::vector<Tensor>& inputs);
/// Implementations that are made for speed, not the reference, and compute all passes of a convolution, in
/// the order of the library's list.
Strings fast_implementations(const Tensor& x, const Tensor& w, const ConvOptions& options);

}  // namespace pleat::bench::ask
