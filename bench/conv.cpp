// pleat-bench conv: every implementation of convolutions, timed in turns.
#include "pleat/ops/conv/conv.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/candidate.h"
#include "pleat/bench/ceilings.h"
#include "pleat/bench/conv_plot.h"
#include "pleat/bench/conv_shape.h"
#include "pleat/bench/conv_work.h"
#include "pleat/bench/parse.h"
#include "pleat/bench/plot/plot.h"
#include "pleat/bench/relative_error.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/conv/tune/tune_race.h"
#include "pleat/profile/timer.h"

namespace pleat::bench {
namespace {

using ops::ConvPass;

/// One of each kind: what a first look wants to know. `--quick` takes a smaller batch.
std::vector<NamedProblem> default_problems(bool quick) {
  std::vector<NamedProblem> problems;
  const std::string n = quick ? "n2 " : "n32 ";
  for (const auto& [name, shape] : std::vector<std::pair<std::string, std::string>>{
           {"3x3", n + "c64 k64 hw32 r3 s1 p1"},
           {"3x3, few channels in", n + "c3 k16 hw32 r3 s1 p1"},
           {"3x3, stride 2", n + "c64 k128 hw32 r3 s2 p1"},
           {"1x1", n + "c64 k256 hw28 r1 s1 p0"},
           {"depthwise", n + "c96 k96 hw28 r3 s1 p1 g96"},
           {"1-D", n + "c32 k32 w4096 r3 s1 p1"},
           {"3-D", quick ? "n1 c16 k32 dhw16 r3 s1 p1" : "n2 c16 k32 dhw32 r3 s1 p1"}})
    problems.push_back({name, parse_conv_shape(shape)});
  return problems;
}

std::vector<ConvPass> parse_passes(const std::vector<std::string>& names) {
  std::vector<ConvPass> passes;
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight})
    for (const std::string& name : names)
      if (name == "all" || name == ops::name(pass)) {
        passes.push_back(pass);
        break;
      }
  for (const std::string& name : names)
    check<UsageError>(
        name == "all" || name == "forward" || name == "backward_input" || name == "backward_weight",
        "--pass: must be forward, backward_input, backward_weight or all, got \"{}\"", name);
  return passes;
}

/// An implementation on its way through a measurement.
struct Entrant {
  std::string name;
  std::string wish;  ///< the name, after tuning with the plan that won
  std::string failure = {};
};

class Conv : public Subcommand {
 public:
  std::string name() const override { return "conv"; }
  std::string summary() const override { return "convolutions by every implementation"; }

  void add_options(CLI::App& app) override {
    app.add_option("--shape", shapes_,
                   "a problem: \"n128 c64 k64 hw32 r3 s1 p1\"; may be given several times")
        ->allow_extra_args(false);
    app.add_option("--shapes", file_, "problems from a CSV file, one a row: n, g, ic, oc, id, ih, iw, kd ...")
        ->check(not_empty());
    app.add_option("--match", match_, "of the file only problems whose name contains this")
        ->check(not_empty())
        ->needs("--shapes");
    add_list(app, "--batch", batches_, "instead of the batch sizes in the shapes");
    add_list(app, "--pass", passes_, "forward, backward_input, backward_weight or all");
    add_list(app, "--implementation", implementations_,
             "all (the reference only where there is no other), names, or names with a plan (name:plan)");
    add_dtype_option(app, operands_);
    add_precision_option(app, operands_);
    add_conv_format_option(app, operands_);
    app.add_flag("--bias", bias_, "add a bias in the forward pass");
    app.add_flag("--tune", tune_,
                 "time the plans of each implementation that has some, and take the fastest");
    add_check_option(app, operands_);
    app.add_option("--roofline", roofline_,
                   "draw the results under the machine's ceilings into this SVG file")
        ->check(not_empty());
  }

  void run(const CommonOptions& common, Report& report) override {
    const Device device = common.chosen_device();
    const std::vector<ConvPass> passes = parse_passes(passes_);
    check_implementations(device);
    std::vector<DType> dtypes;
    for (const std::string& dtype : operands_.dtypes) dtypes.push_back(parse_dtype(dtype));
    const Precision precision = operands_.chosen_precision();
    const std::vector<NamedProblem> problems = chosen_problems(common.quick);
    check<UsageError>(!bias_ || std::find(passes.begin(), passes.end(), ConvPass::forward) != passes.end(),
                      "conv: --bias: is added in the forward pass, which --pass leaves out");

    report.set_layout(layout());
    ceilings_ = &ceilings(device);
    report.say(ceilings_text(*ceilings_));
    if (device.is_cpu() && precision != Precision::highest)
      report.say("--precision changes nothing on the CPU: products of float32 are float32 there.");
    for (const NamedProblem& named : problems)
      for (const DType dtype : dtypes)
        for (const std::string& format : operands_.formats) {
          ops::ConvProblem problem = named.problem;
          problem.dtype = dtype;
          problem.device = device;
          problem.bias = bias_;
          problem.precision = dtype == float32 && device.is_cuda() ? precision : Precision::highest;
          problem.format =
              format == "auto" ? conv_format(device, dtype, problem.precision) : parse_format(format);
          std::vector<Record> block;
          for (const ConvPass pass : passes) {
            const std::vector<Record> records = measure(named.name, problem, pass, common);
            block.insert(block.end(), records.begin(), records.end());
          }
          report.add(block);
        }
    if (!roofline_.empty()) plot::write(roofline_, roofline_plot(report.records(), *ceilings_));
  }

  std::vector<OutputFile> files() const override { return {{"--roofline", roofline_}}; }
  bool has_plot() const override { return true; }
  std::string plot(const std::vector<Record>& records) const override { return time_plot(records); }

 private:
  static Layout layout() {
    return {.heading = {"problem", "dtype", "precision", "format", "bias", "name"},
            .columns = {label_column("pass", "pass"), label_column("implementation", "implementation"),
                        detail_column("plan", "plan"), median_column(), quartiles_column(), runs_column(),
                        first_call_column(), value_column("GFLOP/s", "gflops"),
                        value_column("valid", "gflops_valid"), percent_column("of peak", "share_of_peak"),
                        value_column("GB/s", "gbytes"), percent_column("of copy", "share_of_copy"),
                        bytes_column("workspace", "workspace_bytes"), exponent_column("error", "error")},
            .race = {"pass"}};
  }

  void check_implementations(Device device) const {
    const std::vector<std::string> known = ops::conv_implementations(device);
    for (const std::string& name : implementations_)
      check<UsageError>(
          name == "all" ||
              std::find(known.begin(), known.end(), name.substr(0, name.find(':'))) != known.end(),
          "--implementation: on {} there are {} (or all), got \"{}\"", device, fmt::join(known, ", "), name);
  }

  std::vector<NamedProblem> chosen_problems(bool quick) const {
    std::vector<NamedProblem> problems;
    for (const std::string& shape : shapes_) problems.push_back({"", parse_conv_shape(shape)});
    if (!file_.empty()) {
      const std::vector<NamedProblem> rows = read_conv_shapes(file_);
      std::copy_if(rows.begin(), rows.end(), std::back_inserter(problems),
                   [&](const NamedProblem& row) { return row.name.find(match_) != std::string::npos; });
      check<UsageError>(!problems.empty(), "--match: no problem of {} has a name that contains \"{}\"", file_,
                        match_);
    }
    if (shapes_.empty() && file_.empty()) problems = default_problems(quick);
    if (batches_.empty()) return problems;
    std::vector<NamedProblem> with_batches;
    for (const NamedProblem& named : problems)
      for (const std::string& batch : batches_) {
        with_batches.push_back(named);
        with_batches.back().problem.batch = parse_count("conv: --batch", batch);
      }
    return with_batches;
  }

  std::vector<std::string> entrants_of(const ConvWork& work) const {
    std::vector<std::string> names;
    for (const std::string& name : implementations_) {
      const std::vector<std::string> these = name == "all" ? work.supporting() : std::vector{name};
      for (const std::string& one : these)
        if (std::find(names.begin(), names.end(), one) == names.end()) names.push_back(one);
    }
    return names;
  }

  Record empty_record(const std::string& problem_name, const ops::ConvProblem& problem, ConvPass pass,
                      const std::string& implementation, bool cold) const {
    Record record{.subcommand = "conv", .labels = {{"problem", problem.describe()}}};
    record.set_label("pass", std::string(ops::name(pass)));
    record.set_label("implementation", implementation);
    record.set_label("dtype", std::string(pleat::name(problem.dtype)));
    if (problem.precision != Precision::highest)
      record.set_label("precision", text_of_precision(problem.precision));
    record.set_label("format", pleat::name(problem.format));
    if (problem.bias) record.set_label("bias", "bias");
    if (tune_) record.set_label("tuned", "yes");
    if (cold) record.set_label("cache", "cold");
    record.set_label("device", pleat::name(problem.device));
    if (!problem_name.empty()) record.set_label("name", problem_name);
    return record;
  }

  std::vector<Record> measure(const std::string& problem_name, const ops::ConvProblem& problem, ConvPass pass,
                              const CommonOptions& common) const {
    std::unique_ptr<ConvWork> work;
    try {
      work = std::make_unique<ConvWork>(problem, pass);
    } catch (const OutOfMemoryError& error) {
      Record record = empty_record(problem_name, problem, pass, "all", common.cold_cache);
      record.failure = error.what();
      return {record};
    }
    std::vector<Entrant> entrants;
    std::vector<Record> records;
    for (const std::string& name : entrants_of(*work)) {
      entrants.push_back({name, name, work->unsupported(name)});
      records.push_back(empty_record(problem_name, problem, pass, name, common.cold_cache));
    }
    const std::vector<std::size_t> ran = time(*work, entrants, records, common);
    Tensor exact;
    for (const std::size_t i : ran) add_numbers(records[i], *work, entrants[i].wish);
    if (operands_.check && !ran.empty()) {
      try {
        exact = work->exact();
        for (const std::size_t i : ran)
          records[i].set_value("error", relative_error(work->run(entrants[i].wish), exact));
        for (const std::size_t i : ran)
          records[i].set_detail("checked_against", work->double_implementation() + " in float64");
      } catch (const OutOfMemoryError& error) {
        for (const std::size_t i : ran) records[i].set_detail("not_checked", error.what());
      }
    }
    for (std::size_t i = 0; i < entrants.size(); ++i) records[i].failure = entrants[i].failure;
    return records;
  }

  /// Times all that can run, in turns, and returns which did.
  std::vector<std::size_t> time(const ConvWork& work, std::vector<Entrant>& entrants,
                                std::vector<Record>& records, const CommonOptions& common) const {
    std::vector<benchmark::Subject> subjects;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      Entrant& entrant = entrants[i];
      if (!entrant.failure.empty()) continue;
      benchmark::Subject subject;
      // One that fails (out of memory) leaves the others alone.
      subject.run = [&work, &entrant] { attempt(entrant, [&] { (void)work.run(entrant.wish); }); };
      if (tune_ && !work.plans(entrant.name).empty())
        subject.tune = [&work, &entrant] {
          attempt(entrant, [&] { entrant.wish = fastest_plan(work, entrant.name); });
        };
      subjects.push_back(std::move(subject));
      places.push_back(i);
    }
    const std::vector<benchmark::Measurement> measured =
        benchmark::Timer(common.timer()).measure_in_turns(subjects);
    std::vector<std::size_t> ran;
    for (std::size_t s = 0; s < measured.size(); ++s) {
      if (!entrants[places[s]].failure.empty()) continue;
      records[places[s]].time = Time(measured[s]);
      ran.push_back(places[s]);
    }
    return ran;
  }

  template <class Action>
  static void attempt(Entrant& entrant, const Action& action) {
    if (!entrant.failure.empty()) return;
    try {
      action();
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      entrant.failure = error.what();
    }
  }

  static std::string fastest_plan(const ConvWork& work, const std::string& name) {
    const auto candidates = ops::conv_candidates(work.call(), name);
    return ops::race(work.call(), candidates, *ops::stopwatch_for(work.problem().device), {})
        .front()
        .implementation;
  }

  void add_numbers(Record& record, const ConvWork& work, const std::string& wish) const {
    const double seconds = record.time->median;
    const auto flops = static_cast<double>(work.problem().flops());
    const double valid = valid_flops(work.problem());
    const double bytes = least_bytes(work.problem());
    record.set_value("flops", flops);
    record.set_value("flops_valid", valid);
    record.set_value("bytes", bytes);
    record.set_value("gflops", flops / seconds / 1e9);
    record.set_value("gflops_valid", valid / seconds / 1e9);
    record.set_value("gbytes", bytes / seconds / 1e9);
    const auto peak = ceilings_->peak(work.problem().dtype, work.problem().precision);
    if (peak.has_value()) {
      record.set_value("share_of_peak", flops / seconds / 1e9 / *peak);
      record.set_value("share_of_peak_valid", valid / seconds / 1e9 / *peak);
    }
    record.set_value("share_of_copy", bytes / seconds / 1e9 / ceilings_->copy_bandwidth());
    record.set_value("workspace_bytes", static_cast<double>(work.workspace_bytes(wish)));
    const std::size_t colon = wish.find(':');
    const std::vector<std::string> plans =
        colon == std::string::npos ? work.plans(wish) : std::vector<std::string>{};
    if (colon != std::string::npos)
      record.set_detail("plan", wish.substr(colon + 1));
    else if (!plans.empty())
      record.set_detail("plan", plans.front());
    record.set_detail("solved_as", work.solved_as(wish));
  }

  std::vector<std::string> shapes_;
  std::string file_;
  std::string match_;
  std::vector<std::string> batches_;
  std::vector<std::string> passes_{"all"};
  std::vector<std::string> implementations_{"all"};
  OperandOptions operands_;
  bool bias_ = false;
  bool tune_ = false;
  std::string roofline_;
  const Ceilings* ceilings_ = nullptr;
};

}  // namespace

SubcommandPointer make_conv() { return std::make_unique<Conv>(); }

}  // namespace pleat::bench
