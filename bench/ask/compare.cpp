// Ways to compute the same beside each other: the times of their rounds in pairs, the sentences of the
// conclusion, and what the profiler counts of each.
#include "pleat/bench/ask/compare.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/bench/options.h"
#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/profile/profiler.h"

namespace pleat::bench::ask {
namespace {

constexpr double level_within = 1.05;
constexpr double confidence = 0.99;
constexpr double widest = 1.5;           // high / low of an interval from which something follows
constexpr double apart = 1.25;           // by which the fastest rounds may miss the interval
constexpr double alike = 1.1;            // counts whose ratio is less explain nothing
constexpr std::size_t most_rounds = 10;  // times those at first
constexpr double longest = 40;           // times min_run_time, after which no rounds are added

/// The k of ratio(): at least 1.
std::size_t rank_of_bound(std::size_t n) {
  // 2 P(B(n, 1/2) < k), summed up by k.
  double term = std::pow(0.5, static_cast<double>(n)), miss = 0;
  for (std::size_t k = 1; k <= n / 2; ++k) {
    miss += 2 * term;
    if (miss > 1 - confidence) return std::max<std::size_t>(k - 1, 1);
    term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
  }
  return std::max<std::size_t>(n / 2, 1);
}

/// What one run of a computation does, as the profiler records it: calls of functions that compute (on a GPU
/// kernels), operations of convolutions and products, bytes of all operands and of all memory that is taken.
void count_work(Record& record, const std::function<void()>& run) {
  profile::Profiler profiler{{.with_memory = true, .with_flops = true}};
  run();
  profiler.stop();
  const profile::Profile& profile = profiler.profile();
  double calls = 0, flops = 0, bytes = 0;
  for (const profile::Event& event : profile.events) {
    // Memory belongs to the innermost range, so that nothing is counted twice.
    bytes += static_cast<double>(std::max<int64_t>(0, event.self_cpu_memory) +
                                 std::max<int64_t>(0, event.self_cuda_memory));
    flops += event.flops;
    const bool inside = event.parent != profile::none && profile.events[event.parent].kind == RangeKind::op;
    if (event.kind != RangeKind::op || inside) continue;
    ++calls;
    for (const profile::TensorInfo& x : event.inputs)
      if (x.defined) bytes += static_cast<double>(count(x.shape) * size_of(x.dtype));
  }
  if (!profile.activities.empty()) calls = static_cast<double>(profile.activities.size());
  record.set_value("calls", calls);
  record.set_value("flops", flops);
  record.set_value("bytes", bytes);
}

std::string text_of_work(const Record& record) {
  return fmt::format("{} makes {} call{}, {:.3g} MFLOP of products, moves {}", record.label("way"),
                     *record.value("calls"), *record.value("calls") == 1 ? "" : "s",
                     1e-6 * *record.value("flops"),
                     text_of_bytes(static_cast<int64_t>(*record.value("bytes"))));
}

/// "direct takes least, 185 µs"; "direct; unfold take least, 185 µs": those that no other is known to beat.
std::string which_take_least(const std::vector<Record>& records) {
  Strings names;
  double least = 0;
  for (const Record& record : records) {
    const auto beats = [&](const Record& other) {
      const Ratio beside = ratio(*record.time, *other.time);
      return beside.verdict() == Verdict::differs && beside.median > 1;
    };
    if (std::any_of(records.begin(), records.end(), beats)) continue;
    names.push_back(record.label("way"));
    least = least == 0 ? record.time->median() : std::min(least, record.time->median());
  }
  if (names.empty()) return "Which takes least changes from round to round";
  return fmt::format("{} {} least, {}", fmt::join(names, "; "), names.size() == 1 ? "takes" : "take",
                     benchmark::format_time(least, 3));
}

template <class Records>
auto by_median(Records& records) {
  return std::minmax_element(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.time->median() < b.time->median();
  });
}

}  // namespace

Verdict Ratio::verdict() const {
  if (low >= 1 / level_within && high <= level_within) return Verdict::level;
  if (low <= 1 && high >= 1) return Verdict::undecided;
  const bool agree = fastest >= low / apart && fastest <= high * apart;
  return agree && high <= widest * low ? Verdict::differs : Verdict::disturbed;
}

std::string Ratio::text() const {
  const Verdict what = verdict();
  if (what == Verdict::disturbed)
    return fmt::format("was disturbed ({:.2f} to {:.2f}; fastest rounds {:.2f})", low, high, fastest);
  return fmt::format("{} ({:.2f} to {:.2f})",
                     what == Verdict::level ? "is level"
                     : what == Verdict::undecided
                         ? "cannot be told apart in the noise"
                         : "takes " + benchmark::format_significant(median, 3) + " times as long",
                     low, high);
}

Ratio ratio(const benchmark::Measurement& time, const benchmark::Measurement& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(time.times.size(), other.times.size()); ++i)
    ratios.push_back(time.times[i] / other.times[i]);
  check<ValueError>(!ratios.empty(), "ratio: both times must have rounds, got {} and {}", time.times.size(),
                    other.times.size());
  std::sort(ratios.begin(), ratios.end());
  const std::size_t k = rank_of_bound(ratios.size());
  return {benchmark::quantile(ratios, 0.5), ratios[k - 1], ratios[ratios.size() - k],
          std::ranges::min(time.times) / std::ranges::min(other.times)};
}

bool wants_more(const std::vector<benchmark::Measurement>& measured, const benchmark::TimerOptions& options) {
  double spent = 0;
  bool undecided = false;
  for (const benchmark::Measurement& one : measured) {
    for (const double seconds : one.wall_times) spent += seconds * static_cast<double>(one.block_size);
    const Verdict verdict = ratio(one, measured[0]).verdict();
    undecided |= verdict == Verdict::undecided || verdict == Verdict::disturbed;
  }
  return undecided && spent < longest * options.min_run_time &&
         measured[0].times.size() < most_rounds * static_cast<std::size_t>(options.min_blocks);
}

void Compare::measure(const std::string& problem, const std::vector<Way>& ways, const Strings& passes) {
  for (const std::string& pass : passes) {
    empty_cache(options.device);  // what earlier sizes have left would take the room that these need
    std::vector<benchmark::Subject> subjects;
    for (const Way& way : ways) {
      std::function<void()> run = way.compute;
      if (pass == forward) run = [compute = way.compute] { (void)no_grad(compute); };
      if (pass == backward) run = backward_of(way.compute(), way.inputs);
      subjects.push_back({run, way.tuned ? run : nullptr});
    }
    benchmark::TimerOptions timer = options.timer;
    timer.on_progress = progress_bar(problem + ", " + pass);
    timer.wants_more = [&](const auto& measured) { return wants_more(measured, options.timer); };
    const auto measured = benchmark::Timer(timer).measure_in_turns(subjects);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      add(problem, ways[i].name, pass, measured[i]);
      count_work(records.back(), subjects[i].run);
    }
  }
}

void Compare::measure_pieces(const std::string& way, const std::vector<Way>& pieces, const Strings& passes) {
  problems_of_pieces_.push_back(way);
  measure(way, pieces, passes);
}

void Compare::add(const std::string& problem, const std::string& way, const std::string& pass,
                  const benchmark::Measurement& time) {
  Record record{
      .subcommand = "ask",
      .labels = {{"problem", problem}, {"pass", pass}, {"way", way}, {"device", name(options.device)}},
      .time = time};
  const auto first = std::find_if(records.begin(), records.end(), [&](const Record& one) {
    return one.label("problem") == problem && one.label("pass") == pass;
  });
  if (first != records.end()) {
    const Ratio beside = ratio(time, *first->time);
    record.set_detail("beside", fmt::format("{:.2f} ({:.2f} to {:.2f}){}", beside.median, beside.low,
                                            beside.high, beside.verdict() == Verdict::disturbed ? " ~" : ""));
  }
  records.push_back(std::move(record));
}

std::vector<std::vector<Record>> Compare::blocks() const {
  std::vector<std::vector<Record>> all;
  for (const Record& record : records) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const std::vector<Record>& block) {
      return block[0].label("problem") == record.label("problem") &&
             block[0].label("pass") == record.label("pass");
    });
    if (same == all.end())
      all.push_back({record});
    else
      same->push_back(record);
  }
  return all;
}

Strings Compare::conclusion() const {
  Strings sentences;
  const Record* misleading = nullptr;
  for (const std::vector<Record>& block : blocks()) {
    const std::string of = block[0].label("problem") + ", " + block[0].label("pass");
    if (contains(problems_of_pieces_, block[0].label("problem"))) {
      double all = 0;
      for (const Record& piece : block) all += piece.time->median();
      const Record& largest = *by_median(block).second;
      sentences.push_back(fmt::format("{}: {} takes {:.0f} % of the time of all pieces.", of,
                                      largest.label("way"), 100 * largest.time->median() / all));
      continue;
    }
    Strings parts;
    for (std::size_t i = 1; i < block.size(); ++i)
      parts.push_back(block[i].label("way") + ' ' + ratio(*block[i].time, *block[0].time).text());
    if (!parts.empty())
      sentences.push_back(fmt::format("{}, beside {}: {}. {}.", of, block[0].label("way"),
                                      fmt::join(parts, "; "), which_take_least(block)));
  }
  const auto falsified = [](const Record& record) { return record.time->first_call / record.time->median(); };
  for (const Record& record : records)
    if (misleading == nullptr || falsified(record) > falsified(*misleading)) misleading = &record;
  if (misleading != nullptr)
    sentences.push_back(
        fmt::format("Timing the first call alone would mislead most about {}, {}, {}: {} instead of {}.",
                    misleading->label("problem"), misleading->label("pass"), misleading->label("way"),
                    benchmark::format_time(misleading->time->first_call, 3),
                    benchmark::format_time(misleading->time->median(), 3)));
  return sentences;
}

Strings Compare::reasons() const {
  struct {
    const char *name, *words;
  } constexpr counters[] = {
      {"bytes", "the memory traffic"}, {"flops", "the arithmetic"}, {"calls", "as many calls"}};
  Strings sentences;
  for (const std::vector<Record>& block : blocks()) {
    const auto [fast, slow] = by_median(block);
    const Verdict longer = ratio(*slow->time, *fast->time).verdict();
    const bool counted = slow->value("calls") && fast->value("calls");
    if (!counted || longer == Verdict::level || contains(problems_of_pieces_, fast->label("problem")))
      continue;
    double most = alike;
    std::string cause = "no more work, but done in another way or another order of memory";
    for (const auto& counter : counters)
      if (const double less = *fast->value(counter.name), more = *slow->value(counter.name);
          less > 0 && more > most * less) {
        most = more / less;
        cause = fmt::format("{:.3g} times {}", most, counter.words);
      }
    sentences.push_back(fmt::format("{}, {}: {}; {}: {}{}.", fast->label("problem"), fast->label("pass"),
                                    text_of_work(*slow), text_of_work(*fast), cause,
                                    longer == Verdict::differs ? "" : "; that it takes longer is not sure"));
  }
  return sentences;
}

Tensor gradient_for(const Tensor& y) {
  return ops::to_format(randn(y.shape(), {.device = y.device()}), y.memory_format());
}

std::function<void()> backward_of(const Tensor& y, const std::vector<Tensor>& inputs) {
  return [=, dy = gradient_for(y)] { (void)grad({y}, inputs, {dy}, {.retain_graph = true}); };
}

Strings fast_implementations(const Tensor& x, const Tensor& w, const ConvOptions& options) {
  const ops::ConvProblem problem = ops::forward_call(x, w, {}, options).problem;
  Strings names = ops::conv_implementations(x.device());
  std::erase_if(names, [&](const std::string& name) {
    const auto lacks = [&](ops::ConvPass pass) { return ops::all_conv_implementations().find(problem, pass, name) == nullptr; };
    return name == "reference" || lacks(ops::ConvPass::forward) || lacks(ops::ConvPass::backward_input) ||
           lacks(ops::ConvPass::backward_weight);
  });
  return names;
}

}  // namespace pleat::bench::ask
