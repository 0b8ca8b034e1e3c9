// pleat-bench conv: every implementation of convolutions, timed interleaved.
#include <memory>

#include <CLI/CLI.hpp>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/conv_work.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/measure.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/conv/conv_kernels.h"

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

class Conv : public Subcommand {
 public:
  Conv() : Subcommand("conv", "convolutions by every implementation") {}

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
    app.add_flag("--check", check_, "the error against float64, beside the time");
    app.add_flag("--bias", bias_, "add a bias in the forward pass");
    app.add_flag("--tune", tune_,
                 "time the plans of each implementation that has some, and take the fastest");
  }

  void run(const CommonOptions& common, Report& report) override {
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
    const std::vector<NamedProblem> problems = chosen_problems(common.quick);

    report.set_layout({.heading = {"problem", "dtype", "precision", "format", "bias", "name"},
                       .columns = {"pass", "implementation", "plan", "median", "quartiles", "runs",
                                   "first_call", "gflops", "gflops_valid", "share_of_peak", "gbytes",
                                   "share_of_copy", "workspace_bytes", "error", "bad_error"},
                       .competing = {"pass"}});
    report.say(ceilings_text(ceilings(device)));
    if (device.is_cpu() && operands_.precision != "highest")
      report.say("--precision changes nothing on the CPU: products of float32 are float32 there.");
    for (const NamedProblem& named : problems)
      for (const OperandKind& kind : operands_.kinds(device)) {
        ops::ConvProblem problem = named.problem;
        problem.dtype = dtypes.at(kind.dtype);
        problem.device = device;
        problem.bias = bias_;
        if (problem.dtype == float32 && device.is_cuda())
          problem.precision = precisions.at(operands_.precision);
        problem.format = kind.format == "auto" ? conv_format(device, problem.dtype, problem.precision)
                                               : formats.at(kind.format);
        std::vector<Record> table;
        for (const ConvPass pass : passes)
          for (Record& record : measure(cases_of(named.name, problem, pass, common), common, check_))
            table.push_back(std::move(record));
        report.add(table);
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
        for (const std::string& one :
             name == "all" || name == "plans" ? work->supporting(name == "plans") : std::vector{name})
          if (!contains(names, one)) names.push_back(one);
    } catch (const OutOfMemoryError& error) {
      failure = error.what();
      names = {"all"};
    }

    const auto exact = std::make_shared<Tensor>();  // one for all implementations
    std::vector<Case> cases;
    for (const std::string& name : names) {
      Case& one = cases.emplace_back(Case{
          .record = {.subcommand = this->name(), .labels = labels(problem_name, problem, pass, name, common)},
          .dtype = problem.dtype,
          .precision = problem.precision,
          .prepare = {}});
      one.flops = static_cast<double>(problem.flops());
      const auto requested = std::make_shared<std::string>(name);  // after tuning with the fastest plan
      one.prepare = [work, failure, requested] {
        if (work == nullptr) throw OutOfMemoryError(failure);
        if (const std::string reason = work->unsupported(*requested); !reason.empty())
          throw ValueError(reason);
        return Prepared{[work, requested] { return Tensors{work->run(*requested)}; }, work->bytes()};
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
      one.exact = [work, exact] {
        if (!exact->defined()) *exact = work->exact();
        return Tensors{*exact};
      };
    }
    return cases;
  }

  Record::Texts labels(const std::string& problem_name, const ops::ConvProblem& problem, ConvPass pass,
                       const std::string& implementation, const CommonOptions& common) const {
    Record::Texts labels{
        {"problem", problem.describe()},         {"pass", std::string(ops::name(pass))},
        {"implementation", implementation},      {"dtype", std::string(pleat::name(problem.dtype))},
        {"format", pleat::name(problem.format)}, {"device", pleat::name(problem.device)}};
    if (problem.precision != Precision::highest) labels.emplace_back("precision", operands_.precision);
    if (problem.bias) labels.emplace_back("bias", "bias");
    if (tune_) labels.emplace_back("tuned", "yes");
    if (common.cold_cache) labels.emplace_back("cache", "cold");
    if (!problem_name.empty()) labels.emplace_back("name", problem_name);
    return labels;
  }

  std::vector<std::string> shapes_, batches_, passes_{"all"}, implementations_{"all"};
  std::string file_, match_;
  OperandOptions operands_;
  bool check_ = false, bias_ = false, tune_ = false;
};

}  // namespace

SubcommandPointer make_conv() { return std::make_unique<Conv>(); }

}  // namespace pleat::bench
