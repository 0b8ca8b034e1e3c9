// pleat-bench list: which implementations there are, what each can compute, and why not what it cannot; of
// convolutions also the memory of a forward pass, and on the CPU its error.
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/conv_work.h"
#include "pleat/bench/measure.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/conv/call.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

/// One of each kind of convolution, so that whatever an implementation refuses comes up.
std::vector<ops::ConvProblem> conv_problems() {
  std::vector<ops::ConvProblem> problems;
  for (const char* shape :
       {"n8 c64 k64 hw32 r3 s1 p1", "n8 c32 k32 w1024 r3 s1 p1", "n2 c16 k32 dhw16 r3 s1 p1",
        "n8 c64 k128 hw28 r1 s1 p0", "n8 c64 k128 hw32 r3 s2 p1", "n8 c64 k64 hw32 r3 s1 p2 dil2",
        "n8 c64 k64 hw32 r2 s1 pl0 ph1", "n8 c64 k64 hw32 r3 s1 p1 g4", "n8 c64 k64 hw32 r3 s1 p1 g64"})
    problems.push_back(parse_conv_shape(shape));
  for (const DType dtype : {float64, float16, bfloat16}) {
    problems.push_back(problems[0]);
    problems.back().dtype = dtype;
  }
  return problems;
}

std::vector<ops::BatchNormProblem> norm_problems() {
  std::vector<ops::BatchNormProblem> problems;
  for (const DType dtype : {float32, float64, float16, bfloat16})
    for (const MemoryFormat format : {MemoryFormat::channels_last, MemoryFormat::contiguous})
      for (const bool training : {true, false}) {
        const Tensor x = empty({8, 64, 32, 32}, {.dtype = dtype, .format = format});
        // Statistics to normalise by, where they are not those of the batch.
        const Tensor statistic = empty({64}, {.dtype = compute_dtype(dtype)});
        problems.push_back(
            ops::batch_norm_problem("batch_norm", x, {}, {}, statistic, statistic, {.training = training}));
      }
  return problems;
}

const std::vector<std::pair<std::string, ops::BatchNormPass>> norm_passes = {
    {"forward", ops::BatchNormPass::forward}, {"backward", ops::BatchNormPass::backward}};

/// Of each problem, the passes that an implementation computes, and why not the others.
template <class I, class Problem, class Passes>
std::vector<Record> block(const char* op, const I& implementation, Device device,
                          const std::vector<Problem>& problems, const Passes& all_passes) {
  std::vector<Record> block;
  for (Problem problem : problems) {
    problem.device = device;
    Record& record =
        block.emplace_back(Record{.subcommand = "list",
                                  .labels = {{"op", op},
                                             {"implementation", std::string(implementation.name())},
                                             {"device", device.is_cpu() ? "cpu" : "cuda"},
                                             {"problem", problem.describe()}}});
    std::vector<std::string> computed;
    std::set<std::string> reasons;
    for (const auto& [pass_name, pass] : all_passes)
      if (const std::string reason = implementation.unsupported(problem, pass); reason.empty())
        computed.push_back(pass_name);
      else
        reasons.insert(reason);
    record.set_detail("computes", reasons.empty()    ? "all passes"
                                  : computed.empty() ? "nothing"
                                                     : fmt::format("{}", fmt::join(computed, ", ")));
    if (!reasons.empty()) record.set_detail("reason", fmt::format("{}", fmt::join(reasons, "; ")));
    if constexpr (std::is_same_v<I, ops::ConvImplementation>) {
      if (!contains(computed, "forward")) continue;
      if (device.is_cpu()) {
        ops::ConvProblem one_image = problem;
        one_image.batch = 1;
        const ConvWork work(one_image, ops::ConvPass::forward);
        record.set_value("error", relative_error(work.run(std::string(implementation.name())), work.exact()));
      }
      if (device.is_cpu() || cuda::is_available())  // on CUDA a library needs a device to tell
        record.set_value("workspace_bytes",
                         static_cast<double>(implementation.workspace_bytes(
                             ops::solved_problem(problem, implementation), ops::ConvPass::forward)));
    }
  }
  return block;
}

class List : public Subcommand {
 public:
  List() : Subcommand("list", "the implementations, what each can compute, and why not the rest") {}

  void add_options(CLI::App& app) override {
    app.add_option("--shape", shapes_, "ask for these convolutions: \"n128 c64 k64 hw32 r3 s1 p1\"")
        ->allow_extra_args(false);
  }
  bool is_timed() const override { return false; }

  void run(const CommonOptions& common, Report& report) override {
    std::vector<ops::ConvProblem> problems;
    for (const std::string& shape : shapes_) problems.push_back(parse_conv_shape(shape));
    if (shapes_.empty()) problems = conv_problems();
    report.set_layout({.heading = {"op", "implementation", "device"},
                       .columns = {"problem", "computes", "forward_bytes", "error", "reason"}});
    std::vector<Device> devices{Device()};
    if (cuda::is_built()) devices.emplace_back(DeviceType::cuda);
    if (common.device != "auto") devices = {common.chosen_device()};
    for (const Device device : devices) {
      for (const ops::ConvImplementation* one : ops::all_conv_implementations())
        if (one->runs_on(device)) report.add(block("convolution", *one, device, problems, conv_passes));
      if (!shapes_.empty()) continue;
      for (const ops::BatchNormImplementation* one : ops::batch_norm_implementations())
        if (one->runs_on(device)) report.add(block("batch norm", *one, device, norm_problems(), norm_passes));
    }
    if (!cuda::is_available()) report.say("CUDA: " + cuda::unavailable_reason());
  }

 private:
  std::vector<std::string> shapes_;
};

}  // namespace

SubcommandPointer make_list() { return std::make_unique<List>(); }

}  // namespace pleat::bench
