// pleat-bench conv: every implementation of convolutions, timed interleaved.
#include <memory>
#include <set>

#include <CLI/CLI.hpp>

#include "pleat/bench/case.h"
#include "pleat/bench/conv_shape.h"
#include "pleat/bench/conv_work.h"
#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/conv/conv_kernels.h"
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
  Conv() : OperationSubcommand("conv", "convolutions by every implementation") {
    operands_.formats = {"auto"};
    operands_.precision = "highest";
    passes_ = {"all"};
    layout_ = {.heading = {"problem", "dtype", "precision", "format", "bias", "name"},
               .columns = {"pass", "implementation", "plan"},
               .competing = {"pass"}};
  }

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
    add_list(app, "--pass", passes_, "which passes, separated by commas",
             {"forward", "backward_input", "backward_weight", "all"});
    add_list(app, "--implementation", implementations_,
             "all (the reference only where there is no other), plans (all, each with all its plans), names, "
             "or names with a plan (name:plan)");
    add_operand_options(app, operands_);
    app.add_flag("--bias", bias_, "add a bias in the forward pass");
    app.add_flag("--tune", tune_,
                 "time the plans of each implementation that has some, and take the fastest");
    app.add_option("--roofline", roofline_,
                   "draw the results under the machine's ceilings into this SVG file")
        ->check(not_empty());
  }

  std::vector<OutputFile> files() const override {
    return {{"--roofline", roofline_, [this](const Results& results) {
               return roofline("Convolution under the machine's ceilings",
                               "operations without those on padding; input, weight and output once each",
                               results.records, "implementation", *ceilings_);
             }}};
  }
  std::string plot(const std::vector<Record>& records) const override { return conv_plot(records); }

 protected:
  void begin(const CommonOptions& common, Report& report) override {
    ceilings_ = &ceilings(common.chosen_device());
    report.say(ceilings_text(*ceilings_));
    if (common.chosen_device().is_cpu() && operands_.precision != "highest")
      report.say("--precision changes nothing on the CPU: products of float32 are float32 there.");
  }

  void list(const CommonOptions& common, const Block& block) const override {
    const Device device = common.chosen_device();
    std::vector<ConvPass> passes;
    for (const auto& [name, pass] : conv_passes)
      if (contains(passes_, "all") || contains(passes_, name)) passes.push_back(pass);
    std::vector<std::string> known = ops::conv_implementations(device);
    known.insert(known.end(), {"all", "plans"});
    for (const std::string& name : implementations_)
      check_known(fmt::format("--implementation: on {} there are", device), name.substr(0, name.find(':')),
                  known);
    check<UsageError>(!bias_ || passes[0] == ConvPass::forward,
                      "conv: --bias: is added in the forward pass, which --pass leaves out");
    const Precision precision = precisions.at(operands_.precision);
    for (const NamedProblem& named : chosen_problems(common.quick))
      for (const OperandKind& kind : operands_.kinds(device)) {
        ops::ConvProblem problem = named.problem;
        problem.dtype = dtypes.at(kind.dtype);
        problem.device = device;
        problem.bias = bias_;
        problem.precision = problem.dtype == float32 && device.is_cuda() ? precision : Precision::highest;
        problem.format = kind.format == "auto" ? conv_format(device, problem.dtype, problem.precision)
                                               : formats.at(kind.format);
        for (const ConvPass pass : passes)
          block(cases_of(named.name, problem, pass, common), pass == passes.back());
      }
  }

 private:
  std::vector<NamedProblem> chosen_problems(bool quick) const {
    std::vector<NamedProblem> problems;
    for (const std::string& shape : shapes_) problems.push_back({"", parse_conv_shape(shape)});
    if (!file_.empty()) {
      for (NamedProblem& row : read_conv_shapes(file_))
        if (row.name.find(match_) != std::string::npos) problems.push_back(std::move(row));
      check<UsageError>(!problems.empty(), "--match: no problem of {} has a name that contains \"{}\"", file_,
                        match_);
    }
    if (shapes_.empty() && file_.empty()) problems = default_problems(quick);
    std::vector<NamedProblem> with_batches;
    for (NamedProblem& named : problems)
      for (const std::string& batch : batches_) {
        named.problem.batch = parse_count("conv: --batch", batch);
        with_batches.push_back(named);
      }
    return batches_.empty() ? problems : with_batches;
  }

  std::vector<Case> cases_of(const std::string& problem_name, const ops::ConvProblem& problem, ConvPass pass,
                             const CommonOptions& common) const {
    std::shared_ptr<const ConvWork> work;
    std::string failure;  // of what all implementations need
    std::vector<std::string> names;
    try {
      work = std::make_shared<const ConvWork>(problem, pass);
      for (const std::string& name : implementations_)
        for (const std::string& one : name == "all"     ? work->supporting()
                                      : name == "plans" ? work->supporting_plans()
                                                        : std::vector{name})
          if (!contains(names, one)) names.push_back(one);
    } catch (const OutOfMemoryError& error) {
      failure = error.what();
      names = {"all"};
    }

    const auto exact = std::make_shared<Tensor>();  // one for all implementations
    std::vector<Case> cases;
    for (const std::string& name : names) {
      Case& one = cases.emplace_back(
          make_case(this->name(), problem.describe(), labels(problem_name, problem, pass, name, common),
                    {std::string(pleat::name(problem.dtype)), pleat::name(problem.format), problem.device}));
      one.precision = problem.precision;
      one.flops = static_cast<double>(problem.flops());
      if (work) one.bytes = work->bytes();
      const auto requested = std::make_shared<std::string>(name);  // after tuning with the fastest plan
      one.prepare = [work, failure, requested](const Tensors&) -> Compute {
        if (work == nullptr) throw OutOfMemoryError(failure);
        if (const std::string reason = work->unsupported(*requested); !reason.empty())
          throw ValueError(reason);
        return [work, requested] { return Tensors{work->run(*requested)}; };
      };
      if (tune_ && work && !work->plans(name).empty())
        one.tune = [work, requested, name] {
          const auto candidates = ops::conv_candidates(work->call(), name);
          const auto stopwatch = ops::stopwatch_for(work->problem().device);
          *requested = ops::time_conv(work->call(), candidates, *stopwatch, {}).front().implementation;
        };
      one.finish = [work, requested](Record& record) {
        work->describe(*requested, record);
        if (record.value("error"))
          record.set_detail("checked_against", work->exact_implementation() + " in float64");
      };
      one.reference = function_of([work, exact](const Tensors&) {
        if (!exact->defined()) *exact = work->exact();
        return Tensors{*exact};
      });
    }
    return cases;
  }

  Record::Texts labels(const std::string& problem_name, const ops::ConvProblem& problem, ConvPass pass,
                       const std::string& implementation, const CommonOptions& common) const {
    Record::Texts labels{{"pass", std::string(ops::name(pass))}, {"implementation", implementation}};
    if (problem.precision != Precision::highest) labels.emplace_back("precision", operands_.precision);
    if (problem.bias) labels.emplace_back("bias", "bias");
    if (tune_) labels.emplace_back("tuned", "yes");
    if (common.cold_cache) labels.emplace_back("cache", "cold");
    if (!problem_name.empty()) labels.emplace_back("name", problem_name);
    return labels;
  }

  std::vector<std::string> batches_;
  std::string file_, match_, roofline_;
  std::vector<std::string> implementations_{"all"};
  bool bias_ = false, tune_ = false;
  const Ceilings* ceilings_ = nullptr;
};

}  // namespace

std::string conv_plot(const std::vector<Record>& records) {
  TimeChart chart{.title = "Convolution",
                  .series = {"implementation", "dtype", "precision", "format", "bias", "tuned", "cache"},
                  .groups = {"problem", "pass"},
                  .x_value = "batch",
                  .x_axis = "batch size"};
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
  if (problems.size() > 1 || batches.size() < 3) return time_bars(chart, records);
  chart.title += " " + *problems.begin();
  chart.series.insert(chart.series.begin(), "pass");
  return time_lines(chart, by_batch);
}

SubcommandPointer make_conv() { return std::make_unique<Conv>(); }

}  // namespace pleat::bench
