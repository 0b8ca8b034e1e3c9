// pleat-bench conv: every implementation of convolutions, timed interleaved.
#include "pleat/ops/conv/conv.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>

#include "pleat/bench/case.h"
#include "pleat/bench/charts.h"
#include "pleat/bench/conv_shape.h"
#include "pleat/bench/conv_work.h"
#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/conv/tune/candidates.h"

namespace pleat::bench {
namespace {

using ops::ConvPass;

/// One of each kind: what a first look wants to know. `--quick` takes a smaller batch.
std::vector<NamedProblem> default_problems(bool quick) {
  const std::string n = quick ? "n2 " : "n32 ";
  return {{"3x3", parse_conv_shape(n + "c64 k64 hw32 r3 s1 p1")},
          {"3x3, few channels in", parse_conv_shape(n + "c3 k16 hw32 r3 s1 p1")},
          {"3x3, stride 2", parse_conv_shape(n + "c64 k128 hw32 r3 s2 p1")},
          {"1x1", parse_conv_shape(n + "c64 k256 hw28 r1 s1 p0")},
          {"depthwise", parse_conv_shape(n + "c96 k96 hw28 r3 s1 p1 g96")},
          {"1-D", parse_conv_shape(n + "c32 k32 w4096 r3 s1 p1")},
          {"3-D", parse_conv_shape(quick ? "n1 c16 k32 dhw16 r3 s1 p1" : "n2 c16 k32 dhw32 r3 s1 p1")}};
}

class Conv : public OperationSubcommand {
 public:
  Conv() : OperationSubcommand("conv", "convolutions by every implementation") {}

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
    add_operand_options(app, operands_, With::conv_format_and_precision);
    app.add_flag("--bias", bias_, "add a bias in the forward pass");
    app.add_flag("--tune", tune_,
                 "time the plans of each implementation that has some, and take the fastest");
    app.add_option("--roofline", roofline_,
                   "draw the results under the machine's ceilings into this SVG file")
        ->check(not_empty());
  }

  std::vector<OutputFile> files() const override {
    return {{"--roofline", roofline_, [this](const std::vector<Record>& records) {
               return roofline("Convolution under the machine's ceilings",
                               "operations without those on padding; input, weight and output once each",
                               records, "implementation", *ceilings_);
             }}};
  }
  std::string plot(const std::vector<Record>& records) const override { return conv_plot(records); }

 protected:
  Layout layout() const override {
    return {.heading = {"problem", "dtype", "precision", "format", "bias", "name"},
            .columns = {"pass", "implementation", "plan"},
            .competing = {"pass"}};
  }

  void begin(const CommonOptions& common, Report& report) override {
    ceilings_ = &ceilings(common.chosen_device());
    report.say(ceilings_text(*ceilings_));
    if (common.chosen_device().is_cpu() && operands_.precision != "highest")
      report.say("--precision changes nothing on the CPU: products of float32 are float32 there.");
  }

  void list(const CommonOptions& common, const Block& block) const override {
    const Device device = common.chosen_device();
    const std::vector<ConvPass> passes = chosen_passes();
    std::vector<std::string> known = ops::conv_implementations(device);
    known.emplace_back("all");
    for (const std::string& name : implementations_)
      check_known(fmt::format("--implementation: on {} there are", device), name.substr(0, name.find(':')),
                  known);
    const Precision precision = parse_precision(operands_.precision);
    const std::vector<NamedProblem> problems = chosen_problems(common.quick);
    check<UsageError>(!bias_ || std::find(passes.begin(), passes.end(), ConvPass::forward) != passes.end(),
                      "conv: --bias: is added in the forward pass, which --pass leaves out");
    for (const NamedProblem& named : problems)
      for (const OperandKind& kind : operands_.kinds(device)) {
        ops::ConvProblem problem = named.problem;
        problem.dtype = parse_dtype(kind.dtype);
        problem.device = device;
        problem.bias = bias_;
        problem.precision = problem.dtype == float32 && device.is_cuda() ? precision : Precision::highest;
        problem.format = kind.format == "auto" ? conv_format(device, problem.dtype, problem.precision)
                                               : parse_format(kind.format);
        for (const ConvPass pass : passes)
          block(cases_of(named.name, problem, pass, common), pass == passes.back());
      }
  }

 private:
  std::vector<ConvPass> chosen_passes() const {
    std::set<ConvPass> passes;
    for (const std::string& name : passes_) {
      const auto is_named = [&](const auto& known) { return name == "all" || name == known.first; };
      check<UsageError>(std::any_of(conv_passes.begin(), conv_passes.end(), is_named),
                        "--pass: must be forward, backward_input, backward_weight or all, got \"{}\"", name);
      for (const auto& known : conv_passes)
        if (is_named(known)) passes.insert(known.second);
    }
    return {passes.begin(), passes.end()};
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

  Case make(const std::string& problem_name, const ops::ConvProblem& problem, ConvPass pass,
            const std::string& implementation, const CommonOptions& common) const {
    Record::Texts labels{{"pass", std::string(ops::name(pass))}, {"implementation", implementation}};
    if (problem.precision != Precision::highest)
      labels.emplace_back("precision", text_of_precision(problem.precision));
    if (problem.bias) labels.emplace_back("bias", "bias");
    if (tune_) labels.emplace_back("tuned", "yes");
    if (common.cold_cache) labels.emplace_back("cache", "cold");
    if (!problem_name.empty()) labels.emplace_back("name", problem_name);
    Case one =
        make_case(name(), problem.describe(), labels,
                  {std::string(pleat::name(problem.dtype)), pleat::name(problem.format), problem.device});
    one.precision = problem.precision;
    one.flops = static_cast<double>(problem.flops());
    one.bytes = least_bytes(problem);
    return one;
  }

  std::vector<Case> cases_of(const std::string& problem_name, const ops::ConvProblem& problem, ConvPass pass,
                             const CommonOptions& common) const {
    std::shared_ptr<const ConvWork> work;
    try {
      work = std::make_shared<const ConvWork>(problem, pass);
    } catch (const OutOfMemoryError& error) {
      Case one = make(problem_name, problem, pass, "all", common);
      one.prepare = [error](const std::vector<Tensor>&) -> Compute { throw error; };
      return {one};
    }
    std::vector<std::string> names;
    for (const std::string& name : implementations_)
      for (const std::string& one : name == "all" ? work->supporting() : std::vector{name})
        if (std::find(names.begin(), names.end(), one) == names.end()) names.push_back(one);

    const auto exact = std::make_shared<Tensor>();  // one for all implementations
    std::vector<Case> cases;
    for (const std::string& name : names) {
      Case& one = cases.emplace_back(make(problem_name, problem, pass, name, common));
      const auto requested = std::make_shared<std::string>(name);  // after tuning with the fastest plan
      one.prepare = [work, requested](const std::vector<Tensor>&) -> Compute {
        if (const std::string reason = work->unsupported(*requested); !reason.empty())
          throw ValueError(reason);
        return [work, requested] { return std::vector<Tensor>{work->run(*requested)}; };
      };
      if (tune_ && work->unsupported(name).empty() && !work->plans(name).empty())
        one.tune = [work, requested, name] {
          const auto candidates = ops::conv_candidates(work->call(), name);
          *requested =
              ops::time_conv(work->call(), candidates, *ops::stopwatch_for(work->problem().device), {})
                  .front()
                  .implementation;
        };
      one.finish = [work, requested](Record& record) {
        work->describe(*requested, record);
        if (record.value("error"))
          record.set_detail("checked_against", work->exact_implementation() + " in float64");
      };
      one.exact = [work, exact] {
        if (!exact->defined()) *exact = work->exact();
        return std::vector<Tensor>{*exact};
      };
    }
    return cases;
  }

  std::vector<std::string> batches_;
  std::string file_, match_, roofline_;
  std::vector<std::string> passes_{"all"}, implementations_{"all"};
  bool bias_ = false, tune_ = false;
  const Ceilings* ceilings_ = nullptr;
};

}  // namespace

std::string conv_plot(const std::vector<Record>& records) {
  // What tells lines and bars of one problem and pass apart, or is said once above all of them.
  std::vector<std::string> kinds = {"implementation", "dtype", "precision", "format",
                                    "bias",           "tuned", "cache"};
  std::set<std::string> problems;
  std::set<int64_t> batches;
  std::vector<Record> by_batch = records;
  for (Record& record : by_batch) {
    ops::ConvProblem problem = parse_conv_shape(record.label("problem"));
    record.set_value("batch", static_cast<double>(problem.batch));
    batches.insert(problem.batch);
    problem.batch = 1;
    problems.insert(problem.describe().substr(3));  // behind "n1 "
  }
  if (problems.size() > 1 || batches.size() < 3)
    return time_bars(with_common_labels("Convolution", records, kinds), records, kinds, {"pass"});
  kinds.insert(kinds.begin(), "pass");
  return time_lines({.title = with_common_labels("Convolution " + *problems.begin(), records, kinds),
                     .x_value = "batch",
                     .x_axis = "batch size",
                     .series = kinds},
                    by_batch);
}

SubcommandPointer make_conv() { return std::make_unique<Conv>(); }

}  // namespace pleat::bench
