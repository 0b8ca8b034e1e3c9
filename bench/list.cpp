// pleat-bench list: which implementations there are, what each can compute, and why not what it cannot.
#include <algorithm>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/conv_work.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/conv/call.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

using NamedNorm = std::pair<std::string, ops::BatchNormProblem>;

/// One of each kind of convolution, so that whatever an implementation refuses comes up.
std::vector<NamedProblem> conv_problems() {
  std::vector<NamedProblem> problems{
      {"1-D", parse_conv_shape("n8 c32 k32 w1024 r3 s1 p1")},
      {"2-D", parse_conv_shape("n8 c64 k64 hw32 r3 s1 p1")},
      {"3-D", parse_conv_shape("n2 c16 k32 dhw16 r3 s1 p1")},
      {"1x1", parse_conv_shape("n8 c64 k128 hw28 r1 s1 p0")},
      {"stride 2", parse_conv_shape("n8 c64 k128 hw32 r3 s2 p1")},
      {"dilation 2", parse_conv_shape("n8 c64 k64 hw32 r3 s1 p2 dil2")},
      {"padding on one side", parse_conv_shape("n8 c64 k64 hw32 r2 s1 pl0 ph1")},
      {"groups", parse_conv_shape("n8 c64 k64 hw32 r3 s1 p1 g4")},
      {"depthwise", parse_conv_shape("n8 c64 k64 hw32 r3 s1 p1 g64")}};
  for (const DType dtype : {float64, float16, bfloat16}) {
    problems.push_back({std::string(name(dtype)), problems[1].problem});
    problems.back().problem.dtype = dtype;
  }
  return problems;
}

std::vector<NamedNorm> norm_problems() {
  constexpr MemoryFormat last = MemoryFormat::channels_last;
  std::vector<NamedNorm> problems;
  const auto add = [&](const std::string& name, DType dtype, MemoryFormat format, bool training, bool relu) {
    const Tensor x = empty({8, 64, 32, 32}, {.dtype = dtype, .format = format});
    // Statistics to normalise by, where they are not those of the batch.
    const Tensor statistic = empty({64}, {.dtype = compute_dtype(dtype)});
    problems.emplace_back(name, ops::batch_norm_problem("batch_norm", x, {}, {}, statistic, statistic,
                                                        {.training = training, .relu = relu}));
  };
  add("training", float32, last, true, false);
  add("evaluation", float32, last, false, false);
  add("contiguous", float32, MemoryFormat::contiguous, true, false);
  add("fused relu", float32, last, true, true);
  for (const DType dtype : {float64, float16, bfloat16})
    add(std::string(name(dtype)), dtype, last, true, false);
  return problems;
}

/// Which of the passes an implementation computes, and why not the others: `passes` has a reason for each of
/// these, which is empty for the former.
template <class Problem>
Record record_of(const char* op, std::string_view implementation, const std::string& name,
                 const Problem& problem, const std::vector<std::pair<std::string, std::string>>& passes) {
  Record record{.subcommand = "list",
                .labels = {{"op", op},
                           {"implementation", std::string(implementation)},
                           {"device", problem.device.is_cpu() ? "cpu" : "cuda"}}};
  if (!name.empty()) record.set_label("case", name);
  record.set_label("problem", problem.describe());
  std::vector<std::string> computed;
  std::set<std::string> reasons;
  for (const auto& [pass, reason] : passes)
    if (reason.empty())
      computed.push_back(pass);
    else
      reasons.insert(reason);
  record.set_detail("computes", reasons.empty()    ? "all passes"
                                : computed.empty() ? "nothing"
                                                   : fmt::format("{}", fmt::join(computed, ", ")));
  if (!reasons.empty()) record.set_detail("reason", fmt::format("{}", fmt::join(reasons, "; ")));
  return record;
}

std::vector<Record> conv_block(const ops::ConvImplementation& implementation, Device device,
                               const std::vector<NamedProblem>& problems) {
  std::vector<Record> block;
  for (auto [name, problem] : problems) {
    problem.device = device;
    std::vector<std::pair<std::string, std::string>> passes;
    for (const auto& [pass_name, pass] : conv_passes)
      passes.emplace_back(pass_name, implementation.unsupported(problem, pass));
    Record& record =
        block.emplace_back(record_of("convolution", implementation.name(), name, problem, passes));
    // On CUDA a library needs a device to tell.
    const bool can_tell = device.is_cpu() || cuda::is_available();
    if (constexpr auto forward = ops::ConvPass::forward;
        can_tell && implementation.unsupported(problem, forward).empty())
      record.set_value("workspace_bytes", static_cast<double>(implementation.workspace_bytes(
                                              ops::solved_problem(problem, implementation), forward)));
  }
  return block;
}

/// Empty for one that computes nothing on this device.
std::vector<Record> norm_block(const ops::BatchNormImplementation& implementation, Device device) {
  using ops::BatchNormPass;
  std::vector<Record> block;
  for (auto [name, problem] : norm_problems()) {
    problem.device = device;
    block.push_back(record_of("batch norm", implementation.name(), name, problem,
                              {{"forward", implementation.unsupported(problem, BatchNormPass::forward)},
                               {"backward", implementation.unsupported(problem, BatchNormPass::backward)}}));
  }
  const auto none = [](const Record& record) { return record.detail("computes") == "nothing"; };
  return std::all_of(block.begin(), block.end(), none) ? std::vector<Record>() : block;
}

class List : public Subcommand {
 public:
  List() : Subcommand("list", "the implementations, what each can compute, and why not the rest") {}

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
    std::vector<NamedProblem> problems;
    for (const std::string& shape : shapes_) {
      problems.push_back({"", parse_conv_shape(shape)});
      problems.back().problem.dtype = dtype;
    }
    if (shapes_.empty()) problems = conv_problems();
    report.set_layout({.heading = {"op", "implementation", "device"},
                       .columns = {"case", "problem", "computes", "forward_bytes", "reason"}});
    std::vector<Device> devices{Device()};
    if (cuda::is_built()) devices.emplace_back(DeviceType::cuda);
    if (common.device != "auto") devices = {common.chosen_device()};
    for (const Device device : devices) {
      for (const ops::ConvImplementation* one : ops::all_conv_implementations())
        if (one->runs_on(device)) report.add(conv_block(*one, device, problems));
      if (!shapes_.empty()) continue;
      for (const ops::BatchNormImplementation* one : ops::batch_norm_implementations())
        report.add(norm_block(*one, device));
    }
    if (!cuda::is_available()) report.say("CUDA: " + cuda::unavailable_reason());
  }

 private:
  std::vector<std::string> shapes_;
  std::string dtype_ = "float32";
};

}  // namespace

SubcommandPointer make_list() { return std::make_unique<List>(); }

}  // namespace pleat::bench
