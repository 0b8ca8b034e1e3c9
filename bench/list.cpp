// pleat-bench list: which implementations there are, what each can compute, and why not what it cannot.
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/parse.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/create.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/norm/implementation.h"

namespace pleat::bench {
namespace {

struct ConvProbe {
  std::string name;
  ops::ConvProblem problem;
};

/// One of each kind of convolution, so that whatever an implementation refuses comes up.
std::vector<ConvProbe> conv_probes() {
  std::vector<ConvProbe> probes;
  for (const auto& [name, shape] : std::vector<std::pair<std::string, std::string>>{
           {"1-D", "n8 c32 k32 w1024 r3 s1 p1"},
           {"2-D", "n8 c64 k64 hw32 r3 s1 p1"},
           {"3-D", "n2 c16 k32 dhw16 r3 s1 p1"},
           {"1x1", "n8 c64 k128 hw28 r1 s1 p0"},
           {"stride 2", "n8 c64 k128 hw32 r3 s2 p1"},
           {"dilation 2", "n8 c64 k64 hw32 r3 s1 p2 dil2"},
           {"padding on one side", "n8 c64 k64 hw32 r2 s1 pl0 ph1"},
           {"groups", "n8 c64 k64 hw32 r3 s1 p1 g4"},
           {"depthwise", "n8 c64 k64 hw32 r3 s1 p1 g64"}})
    probes.push_back({name, parse_conv_shape(shape)});
  const ops::ConvProblem plain = probes[1].problem;
  for (const DType dtype : {float64, float16, bfloat16}) {
    probes.push_back({std::string(name(dtype)), plain});
    probes.back().problem.dtype = dtype;
  }
  return probes;
}

struct NormProbe {
  std::string name;
  ops::BatchNormProblem problem;
};

std::vector<NormProbe> norm_probes() {
  std::vector<NormProbe> probes;
  const auto add = [&](const std::string& name, DType dtype, MemoryFormat format, bool training, bool relu) {
    const Tensor x = empty({8, 64, 32, 32}, {.dtype = dtype, .format = format});
    // Statistics to normalise by, where they are not those of the batch.
    const Tensor statistic = empty({64}, {.dtype = compute_dtype(dtype)});
    probes.push_back({name, ops::batch_norm_problem("batch_norm", x, {}, {}, statistic, statistic,
                                                    {.training = training, .relu = relu})});
  };
  add("training", float32, MemoryFormat::channels_last, true, false);
  add("evaluation", float32, MemoryFormat::channels_last, false, false);
  add("contiguous", float32, MemoryFormat::contiguous, true, false);
  add("fused relu", float32, MemoryFormat::channels_last, true, true);
  for (const DType dtype : {float64, float16, bfloat16})
    add(std::string(pleat::name(dtype)), dtype, MemoryFormat::channels_last, true, false);
  return probes;
}

/// What an implementation says to each pass, in words: which passes it computes, and why not the others.
class Answers {
 public:
  void add(const std::string& pass, const std::string& reason) {
    ++asked_;
    if (reason.empty())
      able_.push_back(pass);
    else
      reasons_.insert(reason);
  }
  void put_into(Record& record) const {
    record.set_detail("computes", able_.size() == asked_ ? "all passes"
                                  : able_.empty()        ? "nothing"
                                                         : fmt::format("{}", fmt::join(able_, ", ")));
    if (!reasons_.empty()) record.set_detail("reason", fmt::format("{}", fmt::join(reasons_, "; ")));
  }

 private:
  std::size_t asked_ = 0;
  std::vector<std::string> able_;
  std::set<std::string> reasons_;
};

class List : public Subcommand {
 public:
  std::string name() const override { return "list"; }
  std::string summary() const override {
    return "the implementations, what each can compute, and why not the rest";
  }

  void add_options(CLI::App& app) override {
    app.add_option("--shape", shapes_, "ask for these convolutions: \"n128 c64 k64 hw32 r3 s1 p1\"")
        ->allow_extra_args(false);
    app.add_option("--dtype", dtype_, "of these shapes")
        ->check(not_empty())
        ->capture_default_str()
        ->needs("--shape");
  }
  bool is_timed() const override { return false; }

  void run(const CommonOptions& common, Report& report) override {
    const DType dtype = parse_dtype(dtype_);
    std::vector<ConvProbe> probes;
    for (const std::string& shape : shapes_) {
      probes.push_back({"", parse_conv_shape(shape)});
      probes.back().problem.dtype = dtype;
    }
    const bool own = !probes.empty();
    if (!own) probes = conv_probes();
    report.set_layout({.heading = {"op", "implementation", "device"},
                       .columns = {label_column("case", "case"), label_column("problem", "problem"),
                                   detail_column("computes", "computes"),
                                   bytes_column("workspace of forward", "workspace_bytes"),
                                   detail_column("reason", "reason")}});
    std::vector<Device> devices{Device()};
    if (cuda::is_built()) devices.emplace_back(DeviceType::cuda);
    if (common.device != "auto") devices = {common.chosen_device()};
    for (const Device device : devices) {
      for (const ops::ConvImplementation* one : ops::all_conv_implementations())
        if (one->runs_on(device)) report.add(conv_block(*one, device, probes));
      if (own) continue;
      for (const ops::BatchNormImplementation* one : ops::batch_norm_implementations())
        report.add(norm_block(*one, device));
    }
    if (!cuda::is_available()) report.say("CUDA: " + cuda::unavailable_reason());
  }

 private:
  static std::vector<Record> conv_block(const ops::ConvImplementation& implementation, Device device,
                                        const std::vector<ConvProbe>& probes) {
    std::vector<Record> block;
    for (const ConvProbe& probe : probes) {
      ops::ConvProblem problem = probe.problem;
      problem.device = device;
      Record record =
          empty_record("convolution", implementation.name(), device, probe.name, problem.describe());
      Answers answers;
      for (const auto pass :
           {ops::ConvPass::forward, ops::ConvPass::backward_input, ops::ConvPass::backward_weight})
        answers.add(std::string(ops::name(pass)), implementation.unsupported(problem, pass));
      answers.put_into(record);
      // On CUDA the answer of a library needs a device to ask.
      const bool can_ask = device.is_cpu() || cuda::is_available();
      if (can_ask && implementation.unsupported(problem, ops::ConvPass::forward).empty())
        record.set_value("workspace_bytes",
                         static_cast<double>(implementation.workspace_bytes(
                             ops::solved_problem(problem, implementation), ops::ConvPass::forward)));
      block.push_back(std::move(record));
    }
    return block;
  }

  static std::vector<Record> norm_block(const ops::BatchNormImplementation& implementation, Device device) {
    std::vector<Record> block;
    bool any = false;
    for (const NormProbe& probe : norm_probes()) {
      ops::BatchNormProblem problem = probe.problem;
      problem.device = device;
      Record record =
          empty_record("batch norm", implementation.name(), device, probe.name, problem.describe());
      Answers answers;
      for (const auto& [pass, pass_name] : {std::pair(ops::BatchNormPass::forward, "forward"),
                                            std::pair(ops::BatchNormPass::backward, "backward")}) {
        const std::string reason = implementation.unsupported(problem, pass);
        any = any || reason.empty();
        answers.add(pass_name, reason);
      }
      answers.put_into(record);
      block.push_back(std::move(record));
    }
    // One that is for other devices has nothing to say of this one.
    return any ? block : std::vector<Record>();
  }

  static Record empty_record(const std::string& op, std::string_view implementation, Device device,
                             const std::string& probe, const std::string& problem) {
    Record record{.subcommand = "list",
                  .labels = {{"op", op},
                             {"implementation", std::string(implementation)},
                             {"device", device.is_cpu() ? "cpu" : "cuda"}}};
    if (!probe.empty()) record.set_label("case", probe);
    record.set_label("problem", problem);
    return record;
  }

  std::vector<std::string> shapes_;
  std::string dtype_ = "float32";
};

}  // namespace

SubcommandPointer make_list() { return std::make_unique<List>(); }

}  // namespace pleat::bench
