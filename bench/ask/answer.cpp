#include "pleat/bench/ask/answer.h"

#include <algorithm>

#include <fmt/format.h>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/bench/options.h"
#include "pleat/core/base/format.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/train/terminal.h"

namespace pleat::bench::ask {
namespace {

constexpr double Time::*seconds[] = {&Time::median, &Time::lower_quartile, &Time::upper_quartile,
                                     &Time::mean,   &Time::wall_median,    &Time::first_call};

}  // namespace

std::span<Record> Times::measure(const AskOptions& options, const std::string& problem,
                                 const std::vector<Way>& ways, const Strings& passes) {
  empty_cache(options.device);  // what earlier sizes have left would take the room that these need
  std::vector<benchmark::Subject> subjects;
  for (const std::string& pass : passes)
    for (const Way& way : ways) {
      std::function<void()> run = way.compute;
      if (pass == forward) run = [compute = way.compute] { (void)no_grad(compute); };
      if (pass == backward) run = backward_of(way.compute(), way.inputs);
      subjects.push_back({run, way.tuned ? run : nullptr, problem, way.name, pass});
    }
  const std::size_t before = records.size();
  for (const benchmark::Measurement& one : benchmark::Timer(options.timer).measure_in_turns(subjects)) {
    add(one.label, one.sub_label, one.description, Time(one));
    records.back().set_label("device", name(one.device));
  }
  return std::span(records).subspan(before);
}

void Times::add(const std::string& problem, const std::string& way, const std::string& pass,
                const Time& time) {
  Record& record = records.emplace_back();
  record.labels = {{"problem", problem}, {"way", way}, {"pass", pass}};
  record.time = time;
}

void Times::add_sum(const std::string& name, const Strings& passes) {
  std::vector<Record> sums = only("pass", {passes.at(0)}).records;
  for (Record& sum : sums) sum.set_label("pass", name);
  for (std::size_t pass = 1; pass < passes.size(); ++pass) {
    const std::vector<Record> more = only("pass", {passes[pass]}).records;
    for (std::size_t i = 0; i < sums.size(); ++i)
      for (double Time::*member : seconds) *sums[i].time.*member += *more.at(i).time.*member;
  }
  records.insert(records.end(), sums.begin(), sums.end());
}

Times Times::only(const std::string& label, const Strings& texts) const {
  Times chosen;
  for (const Record& record : records)
    if (contains(texts, record.label(label))) chosen.records.push_back(record);
  return chosen;
}

Strings Times::values(const std::string& label) const {
  Strings texts;
  for (const Record& record : records)
    if (!contains(texts, record.label(label))) texts.push_back(record.label(label));
  return texts;
}

Strings Times::compare(const std::string& group, const Strings& passes, const std::string& of) const {
  Strings sentences;
  for (const std::string& text : values(group))
    for (const std::string& pass : passes) {
      const std::vector<Record> found = only(group, {text}).only("pass", {pass}).records;
      if (found.size() < 2) continue;
      Strings others;
      for (std::size_t i = 1; i < found.size(); ++i)
        others.push_back(found[i].label(of) + ' ' + comparison(*found[i].time, *found[0].time));
      const Record& least =
          *std::min_element(found.begin(), found.end(),
                            [](const Record& a, const Record& b) { return a.time->median < b.time->median; });
      others.push_back(least.label(of) + " takes least, " + benchmark::format_time(least.time->median, 3));
      sentences.push_back(
          fmt::format("{}, {}, beside {}: {}.", text, pass, found[0].label(of), fmt::join(others, "; ")));
    }
  return sentences;
}

std::string comparison(const Time& time, const Time& other) {
  const double ratio = time.median / other.median;
  const double low = time.lower_quartile / other.upper_quartile;
  const double high = time.upper_quartile / other.lower_quartile;
  const std::string quartiles = fmt::format(" ({:.2f} to {:.2f})", low, high);
  if (std::max(ratio, 1 / ratio) <= 1.05) return "is level" + quartiles;
  if (low <= 1 && high >= 1) return "cannot be told apart in the noise" + quartiles;
  return fmt::format("takes {} times as long", benchmark::format_significant(ratio, 3)) + quartiles;
}

std::string list_item(const std::string& sentence) {
  std::string item = "- ";
  for (const char c : train::wrapped(sentence, 98)) item += c == '\n' ? "\n  " : std::string(1, c);
  return item;
}

Time time_of(const std::vector<double>& runs) {
  benchmark::Measurement measured;
  measured.times = measured.wall_times = runs;
  Time time(measured);
  time.first_call = runs.front();
  return time;
}

Time scaled(Time time, double factor) {
  for (double Time::*member : seconds) time.*member *= factor;
  return time;
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
    const auto lacks = [&](ops::ConvPass pass) { return ops::find_conv(problem, pass, name) == nullptr; };
    return name == "reference" || lacks(ops::ConvPass::forward) || lacks(ops::ConvPass::backward_input) ||
           lacks(ops::ConvPass::backward_weight);
  });
  return names;
}

}  // namespace pleat::bench::ask
