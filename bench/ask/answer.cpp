#include "pleat/bench/ask/answer.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/bench/ask/work.h"
#include "pleat/bench/options.h"
#include "pleat/bench/progress.h"
#include "pleat/bench/report.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/terminal.h"
#include "pleat/core/base/text_table.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv_kernels.h"

namespace pleat::bench::ask {
namespace {

constexpr std::size_t most_rounds = 10;  // times those at first
constexpr double longest = 40;           // times min_run_time, after which no rounds are added

/// What a bar says of ways: their problem.
std::string label_of(const std::vector<Way>& ways) {
  const bool one_problem =
      std::all_of(ways.begin(), ways.end(), [&](const Way& way) { return way.problem == ways[0].problem; });
  return one_problem ? ways.at(0).problem + ", " : "";
}

/// "direct takes least, 185 µs"; "direct; unfold take least, 185 µs": those that no other is known to beat.
std::string which_take_least(const std::vector<Record>& records, const std::string& of) {
  std::vector<const Record*> unbeaten;
  for (const Record& record : records)
    if (std::none_of(records.begin(), records.end(), [&](const Record& other) {
          const Ratio beside = ratio(*record.time, *other.time);
          return beside.verdict() == Verdict::differs && beside.median > 1;
        }))
      unbeaten.push_back(&record);
  if (unbeaten.empty()) return "Which takes least changes from round to round";
  Strings names;
  double least = std::numeric_limits<double>::infinity();
  for (const Record* one : unbeaten) {
    for (const Record* other : unbeaten)
      if (ratio(*one->time, *other->time).verdict() == Verdict::disturbed)
        return "Which takes least is not known: measure again when nothing else runs";
    names.push_back(one->label(of));
    least = std::min(least, one->time->median);
  }
  const char* const verb = names.size() == 1 ? "takes" : "take";
  return fmt::format("{} {} least, {}", fmt::join(names, "; "), verb, benchmark::format_time(least, 3));
}

/// "unfold takes 3.00 times as long (2.90 to 3.10); onednn is level (0.99 to 1.02)": records beside the first
/// of them, those that differ first; many with the same verdict share its words.
std::string beside_first(const std::vector<Record>& records, const std::string& of) {
  Strings parts;
  for (const Verdict verdict : {Verdict::differs, Verdict::disturbed, Verdict::level, Verdict::undecided}) {
    Strings names, texts;
    for (std::size_t i = 1; i < records.size(); ++i) {
      const Ratio beside = ratio(*records[i].time, *records[0].time);
      if (beside.verdict() != verdict) continue;
      names.push_back(fmt::format("{} ({:.2f} to {:.2f})", records[i].label(of), beside.low, beside.high));
      texts.push_back(records[i].label(of) + ' ' + beside.text());
    }
    if (verdict == Verdict::differs || verdict == Verdict::disturbed || texts.size() < 2)
      parts.insert(parts.end(), texts.begin(), texts.end());
    else
      parts.push_back(
          fmt::format("{} {}", fmt::join(names, "; "),
                      verdict == Verdict::level ? "are level" : "cannot be told apart in the noise"));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

bool wants_more(const std::vector<benchmark::Measurement>& measured, const benchmark::TimerOptions& options) {
  double spent = 0;
  bool undecided = false;
  std::map<std::string, Time> first;
  for (const benchmark::Measurement& one : measured) {
    for (const double seconds : one.wall_times) spent += seconds * static_cast<double>(one.block_size);
    const Time time(one);
    const auto& [place, is_first] = first.emplace(one.label, time);
    const Verdict verdict = is_first ? Verdict::level : ratio(time, place->second).verdict();
    undecided |= verdict == Verdict::undecided || verdict == Verdict::disturbed;
  }
  return undecided && spent < longest * options.min_run_time &&
         measured[0].times.size() < most_rounds * static_cast<std::size_t>(options.min_blocks);
}

std::vector<Way> of_problem(const std::string& problem, std::vector<Way> ways) {
  for (Way& way : ways) way.problem = problem;
  return ways;
}

std::span<Record> Times::measure(const AskOptions& options, const std::vector<Way>& ways,
                                 const Strings& passes) {
  const std::size_t before = records.size();
  for (const std::string& pass : passes) {
    empty_cache(options.device);  // what earlier sizes have left would take the room that these need
    std::vector<benchmark::Subject> subjects;
    for (const Way& way : ways) {
      std::function<void()> run = way.compute;
      if (pass == forward) run = [compute = way.compute] { (void)no_grad(compute); };
      if (pass == backward) run = backward_of(way.compute(), way.inputs);
      // Subjects with the same label are compared.
      subjects.push_back({run, way.tuned ? run : nullptr, way.problem + '\n' + way.piece});
    }
    benchmark::TimerOptions timer = options.timer;
    timer.on_progress = progress_bar(label_of(ways) + pass);
    timer.wants_more = [&](const auto& measured) { return wants_more(measured, options.timer); };
    const auto measured = benchmark::Timer(timer).measure_in_turns(subjects);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      add(ways[i].problem, ways[i].name, pass, Time(measured[i]), ways[i].piece);
      records.back().set_label("device", name(options.device));
      set_work(records.back(), work_of(subjects[i].run));
    }
  }
  return std::span(records).subspan(before);
}

void Times::add(const std::string& problem, const std::string& way, const std::string& pass, const Time& time,
                const std::string& piece) {
  Record& record = records.emplace_back();
  record.labels = {{"problem", problem}, {"way", way}, {"pass", pass}};
  if (!piece.empty()) record.set_label("piece", piece);
  record.time = time;
}

void Times::add_sum(const std::string& name, const Strings& passes) {
  const Times wholes = only("piece", {""});
  std::vector<Record> sums = wholes.only("pass", {passes.at(0)}).records;
  for (Record& sum : sums) sum.set_label("pass", name);
  for (std::size_t pass = 1; pass < passes.size(); ++pass) {
    const std::vector<Record> more = wholes.only("pass", {passes[pass]}).records;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i].time = added(*sums[i].time, *more.at(i).time);
      add_work(sums[i], more[i]);
    }
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
      const std::vector<Record> found = only(group, {text}).only("pass", {pass}).only("piece", {""}).records;
      if (found.size() < 2) continue;
      sentences.push_back(fmt::format("{}, {}, beside {}: {}. {}.", text, pass, found[0].label(of),
                                      beside_first(found, of), which_take_least(found, of)));
    }
  return sentences;
}

Strings Times::reasons() const {
  Strings sentences;
  for (const std::string& problem : values("problem"))
    for (const std::string& pass : values("pass")) {
      const std::vector<Record> found =
          only("problem", {problem}).only("pass", {pass}).only("piece", {""}).records;
      const auto [fast, slow] = std::minmax_element(
          found.begin(), found.end(),
          [](const Record& a, const Record& b) { return a.time->median < b.time->median; });
      if (const std::string reason = found.empty() ? "" : why(*slow, *fast); !reason.empty())
        sentences.push_back(fmt::format("{}, {}: {}", problem, pass, reason));
    }
  return sentences;
}

std::string Times::largest_piece() const {
  double all = 0;
  bool disturbed = false;
  for (const Record& piece : records) {
    all += piece.time->median;
    disturbed |= piece.time->has_wide_spread();
  }
  const Record& largest =
      *std::max_element(records.begin(), records.end(),
                        [](const Record& a, const Record& b) { return a.time->median < b.time->median; });
  return fmt::format("{}: {} takes {:.0f} % of the time of all pieces{}.",
                     label_text(largest, {"problem", "way", "pass"}), largest.label("piece"),
                     100 * largest.time->median / all, disturbed ? ", of which some were disturbed" : "");
}

void Times::set_ratios() {
  std::map<std::string, Time> first;
  for (Record& record : records) {
    const auto& [place, is_first] =
        first.emplace(label_text(record, {"problem", "pass", "piece"}, "\n"), *record.time);
    if (is_first) continue;
    const Ratio beside = ratio(*record.time, place->second);
    record.set_detail("beside", fmt::format("{:.2f} ({:.2f} to {:.2f}){}", beside.median, beside.low,
                                            beside.high, beside.verdict() == Verdict::disturbed ? " ~" : ""));
  }
}

std::string Times::side_by_side(const std::string& title, const std::string& row,
                                const std::string& column) const {
  Strings cells = values(column);
  std::vector<TextTable::Column> columns(cells.size() + 1);
  columns[0] = {.left = true, .wraps = 12};
  TextTable table(columns, "  ");
  table.add_text(title);
  cells.insert(cells.begin(), "");
  std::replace(cells.begin() + 1, cells.end(), std::string(), std::string("whole"));
  table.add(cells);
  for (const std::string& text : values(row)) {
    cells = {text};
    for (const std::string& other : values(column)) {
      const std::vector<Record> found = only(row, {text}).only(column, {other}).records;
      cells.push_back(found.empty() ? "" : benchmark::format_time(found[0].time->median));
    }
    table.add(cells);
  }
  table.fit(static_cast<std::size_t>(page_width()));
  return table.text();
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
