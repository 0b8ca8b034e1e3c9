// pleat-bench step: a training step of a network.
#include <CLI/CLI.hpp>

#include "pleat/bench/machine.h"
#include "pleat/bench/measure.h"
#include "pleat/bench/network_step.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

/// Operations that the ranges inside of `work` state: those of convolutions and matrix products.
double flops_of(const std::function<void()>& work) {
  profile::Profiler profiler({.activities = profile::Activities::cpu, .with_flops = true});
  work();
  profiler.stop();
  double flops = 0;
  for (const profile::KeyAverage& row : profiler.profile().key_averages().rows) flops += row.flops;
  return flops;
}

class Step : public Subcommand {
 public:
  Step() : Subcommand("step", "a training step of a network: forward, loss, backward, optimiser") {}

  void add_options(CLI::App& app) override {
    add_list(app, "--model", models_, "networks, separated by commas", network_names());
    add_list(app, "--batch-size", batch_sizes_, "samples a step, several separated by commas");
    add_list(app, "--implementation", implementations_,
             "of all convolutions, several separated by commas; auto: what Pleat chooses");
    add_operand_options(app, operands_);
    app.get_option("--dtype")->description("types, separated by commas; half types: mixed precision");
  }

  void run(const CommonOptions& common, Report& report) override {
    const Device device = common.chosen_device();
    for (const std::string& name : implementations_)
      if (name != "auto")
        check_known("step: --implementation: must be auto or one of", name,
                    ops::conv_implementations(device));
    std::vector<int64_t> batch_sizes;
    for (const std::string& size : batch_sizes_)
      batch_sizes.push_back(parse_count("step: --batch-size", size));
    if (batch_sizes.empty()) batch_sizes = {common.quick ? 16 : 128};
    report.set_layout({.columns = {"problem", "median", "quartiles", "runs", "first_call", "gflops",
                                   "share_of_peak", "images_per_s"}});
    report.say(ceilings_text(ceilings(device)));
    const DefaultDevice guard(device);
    const PrecisionScope scope(precisions.at(operands_.precision));
    for (const std::string& model : models_)
      for (const OperandKind& kind : operands_.kinds(device))
        for (const int64_t batch_size : batch_sizes) {
          std::vector<Case> cases;
          for (const std::string& implementation : implementations_)
            cases.push_back(case_of(model, batch_size, kind, implementation));
          report.add(measure(cases, common, false));
        }
  }

 private:
  Case case_of(const std::string& model, int64_t batch, const OperandKind& kind,
               const std::string& implementation) const {
    // Whatever is not as usual is named.
    std::string problem = fmt::format("{} n{} {}", model, batch, kind.dtype);
    if (kind.format != "auto") problem += " " + kind.format;
    if (operands_.precision != "highest") problem += " precision " + operands_.precision;
    if (implementation != "auto") problem += " " + implementation;
    ConvPolicyOptions conv{.implementation = implementation == "auto" ? "" : implementation};
    if (kind.device.is_cuda() && kind.format != "auto") conv.format = formats.at(kind.format);
    Case one{.record = {.subcommand = name(),
                        .labels = {{"problem", problem}, {"device", pleat::name(kind.device)}}},
             .dtype = dtypes.at(kind.dtype),
             .precision = precisions.at(operands_.precision),
             .prepare = {}};
    const auto run = std::make_shared<std::function<void()>>();
    one.prepare = [=] {
      *run = [conv, step = make_network_step(model, batch, kind.format, dtypes.at(kind.dtype))] {
        const ConvPolicy policy(conv);
        step.run();
      };
      return Prepared{[run] { return (*run)(), Tensors(); }};
    };
    one.finish = [run, batch, peak = ceilings(kind.device).peak(one.dtype, one.precision)](Record& record) {
      const double seconds = record.time->median(), gflops = 1e-9 * flops_of(*run) / seconds;
      if (gflops > 0) record.set_value("gflops", gflops);
      if (gflops > 0 && peak) record.set_value("share_of_peak", gflops / *peak);
      record.set_value("images_per_s", static_cast<double>(batch) / seconds);
    };
    return one;
  }

  std::vector<std::string> models_ = {"resnet20"}, batch_sizes_, implementations_ = {"auto"};
  OperandOptions operands_;
};

}  // namespace

SubcommandPointer make_step() { return std::make_unique<Step>(); }

}  // namespace pleat::bench
