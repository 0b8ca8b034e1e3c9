#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/bench/record.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"
#include "pleat/profile/timer.h"

/// What all questions of `pleat-bench ask` share: a computation that is done in several ways, timed in turns,
/// and the sentences that follow from the times.

namespace pleat::bench::ask {

using Strings = std::vector<std::string>;

/// What a ratio of times says.
enum class Verdict : unsigned char {
  level,      ///< within 5 % of each other
  differs,    ///< one takes longer
  undecided,  ///< it may be either: there were too few rounds for this noise
  disturbed  ///< one takes longer, but how much its rounds do not tell: they scatter by half and more, or the
             ///< fastest of them, which other work disturbs least, tell another story
};

/// How many times as long one takes as another that was timed in turns with it, round by round: the median of
/// the ratios of rounds, and between which it lies with 99 % confidence. What slows the machine down for a
/// while slows both, and so does not widen the interval.
struct Ratio {
  double median = 1, low = 1, high = 1;
  double fastest = 1;  ///< of the fastest round of each

  Verdict verdict() const;
  /// As part of a sentence: "takes 2.30 times as long (2.10 to 2.50)", "is level (0.98 to 1.04)", "cannot be
  /// told apart in the noise (0.87 to 1.95)", "was disturbed (1.53 to 10.42; fastest rounds 1.31)".
  std::string text() const;
};

/// Of two times whose `times` with the same index were measured together; those that only one has do not
/// count. The interval is the distribution-free one of a median: from the k-th smallest to the k-th largest
/// of n ratios, which miss it with probability 2 P(B(n, 1/2) < k) at most (H. A. David, H. N. Nagaraja, Order
/// Statistics, 2003, section 7.1); below 8 rounds, from the smallest to the largest, with less confidence.
/// Throws ValueError when one has no rounds.
Ratio ratio(const benchmark::Measurement& time, const benchmark::Measurement& other);

/// A way to compute something, or a piece of one.
struct Way {
  std::string name;
  std::function<Tensor()> compute;
  std::vector<Tensor> inputs = {};  ///< whose gradients its backward pass computes
  bool tuned = false;               ///< its first runs search for the fastest plan: they are timed apart
};

/// Passes of a way: with nothing recorded; as in training; the backward pass alone.
inline const std::string forward = "forward", recorded = "forward, recorded", backward = "backward";

struct AskOptions {
  Device device = {};
  bool quick = false;  ///< sizes and times for a first look
  benchmark::TimerOptions timer = {};
};

class Compare {
 public:
  explicit Compare(AskOptions how) : options(std::move(how)) {}

  const AskOptions options;
  Strings setup = {};  ///< what is computed on what, a line each
  /// Labels problem, way and pass; those with the same problem and pass are compared with the first of them,
  /// which is what a user gets who asks for nothing. Values calls, flops and bytes, as the profiler counts.
  std::vector<Record> records = {};

  /// Times these passes of all ways, those of a pass in turns, and more rounds as long as wants_more.
  void measure(const std::string& problem, const std::vector<Way>& ways, const Strings& passes);
  /// The same of pieces of one way, which are not compared: the largest is named.
  void measure_pieces(const std::string& way, const std::vector<Way>& pieces, const Strings& passes);
  void add(const std::string& problem, const std::string& way, const std::string& pass,
           const benchmark::Measurement& time);

  /// Of each problem and pass: its records in the order of measuring.
  std::vector<std::vector<Record>> blocks() const;
  /// What the times say: all ways beside the first, which takes least, the largest of pieces, and which first
  /// call misleads most.
  Strings conclusion() const;
  /// Why, for each problem and pass: what the slowest way does more than the fastest.
  Strings reasons() const;

 private:
  std::vector<std::string> problems_of_pieces_ = {};
};

/// Whether more rounds are worth their time: some measurement cannot be told apart yet from the first, or was
/// disturbed, there are less than ten times `min_blocks`, and their wall times add up to less than 40 times
/// `min_run_time`.
bool wants_more(const std::vector<benchmark::Measurement>& measured, const benchmark::TimerOptions& options);

/// A random gradient of a result, in the format of the result, as the next layer would give it.
Tensor gradient_for(const Tensor& y);
/// The backward pass of y alone, from gradient_for(y) to `inputs`; may be called again and again.
std::function<void()> backward_of(const Tensor& y, const std::vector<Tensor>& inputs);
/// Implementations that are made for speed, not the reference, and compute all passes of a convolution, in
/// the order of the library's list.
Strings fast_implementations(const Tensor& x, const Tensor& w, const ConvOptions& options);

}  // namespace pleat::bench::ask
