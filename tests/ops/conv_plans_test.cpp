#include <algorithm>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/conv/tune/tune.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

/// Every plan that cuDNN offers, against the reference on the CPU.

using namespace pleat;
using namespace pleat::ops;
using Catch::Matchers::Contains;
using pleat::test::relative_error;

namespace {

bool lacks_cudnn() {
  if (pleat_test::lacks_gpus()) return true;
  const auto names = conv_implementations("cuda");
  if (std::find(names.begin(), names.end(), "cudnn") != names.end()) return false;
  pleat_test::skip("needs cuDNN");
  return true;
}

Tensor on_gpu(const Tensor& t) { return t.to("cuda"); }

struct PlanCase {
  const char* name;
  Shape x, w;
  ConvOptions options;
};

const std::vector<PlanCase>& plan_cases() {
  static const std::vector<PlanCase> cases = {
      {"plain", {4, 16, 14, 14}, {32, 16, 3, 3}, {.padding = 1}},
      {"strided", {4, 16, 14, 14}, {32, 16, 3, 3}, {.stride = 2, .padding = 1}},
      {"groups", {4, 16, 14, 14}, {32, 8, 3, 3}, {.padding = 1, .groups = 2}},
      {"one video", {1, 8, 6, 10, 10}, {16, 8, 1, 3, 3}, {.padding = {0, 1, 1}}},
      {"videos", {2, 8, 6, 10, 10}, {16, 8, 1, 3, 3}, {.padding = {0, 1, 1}}},
      {"three dimensions", {2, 8, 6, 10, 10}, {16, 8, 3, 3, 3}, {.padding = 1}}};
  return cases;
}

std::vector<std::string> plans_of(const ConvCall& call) {
  const auto cudnn = all_conv_implementations().find(call.problem, call.pass, "cudnn");
  REQUIRE(cudnn != nullptr);
  return cudnn->plans(solved_problem(call.problem, *cudnn), call.pass);
}

}  // namespace

TEST_CASE("every plan of cuDNN agrees with the reference, in both formats and with a bias", "[conv][cuda]") {
  if (lacks_cudnn()) return;
  Generator generator(4);
  for (const PlanCase& c : plan_cases())
    for (const DType dtype : {float32, float16, bfloat16, float64})
      for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
        INFO(c.name << ' ' << name(dtype)
                    << (format == MemoryFormat::contiguous ? " contiguous" : " channels_last"));
        const auto random = [&](const Shape& shape) {
          return ops::cast(randn(shape, {.dtype = float64}, generator), dtype);
        };
        const Tensor x = random(c.x), w = random(c.w), bias = random({c.w[0]});
        ConvOptions exact = c.options;
        exact.implementation = "reference";
        const auto wide = [](const Tensor& t) { return ops::cast(t, float64); };
        const Tensor y = conv_forward(wide(x), wide(w), wide(bias), exact);
        const Tensor dy = random(y.shape());
        const Tensor dx = conv_backward_input(wide(dy), wide(w), c.x, exact);
        const Tensor dw = conv_backward_weight(wide(dy), wide(x), c.w, exact);
        const double tolerance = dtype == float64   ? 1e-12
                                 : dtype == float32 ? 1e-4
                                 : dtype == float16 ? 2e-3
                                                    : 1e-2;
        const auto check_plans = [&](const ConvCall& call, const Tensor& expected) {
          const auto plans = plans_of(call);
          CHECK_FALSE(plans.empty());
          for (const std::string& plan : plans) {
            INFO(plan);
            const Tensor result = call.run(*call.implementation("cudnn:" + plan));
            CHECK(result.is_contiguous(format));
            CHECK(relative_error(result, expected) < tolerance);
          }
        };
        ConvOptions options = c.options;
        options.format = format;
        check_plans(forward_call(on_gpu(x), on_gpu(w), on_gpu(bias), options), y);
        check_plans(backward_input_call(on_gpu(dy), on_gpu(w), c.x, options), dx);
        check_plans(backward_weight_call(on_gpu(dy), on_gpu(x), c.w, options), dw);
      }
}

TEST_CASE("true float32 has no plan that rounds its inputs", "[conv][cuda]") {
  if (lacks_cudnn()) return;
  // 1 + 2^-12 is lost in TF32, whose mantissa has 10 bits.
  const Tensor x = full({2, 64, 8, 8}, 1.0 + 1.0 / 4096, {.device = "cuda"});
  const Tensor w = ones({64, 64, 1, 1}, {.device = "cuda"});
  const ConvCall call = forward_call(x, w, {}, {});
  for (const std::string& plan : plans_of(call)) {
    INFO(plan);
    const Tensor y = call.run(*call.implementation("cudnn:" + plan));
    CHECK(y.to("cpu").to_vector()[0] == Approx(64 + 64.0 / 4096).epsilon(1e-6));
  }
}

TEST_CASE("a plan that is not there is refused with its name", "[conv][cuda]") {
  if (lacks_cudnn()) return;
  const Tensor x = on_gpu(zeros({2, 4, 8, 8}));
  const Tensor w = on_gpu(zeros({4, 4, 3, 3}));
  CHECK_THROWS_WITH(conv_forward(x, w, {}, {.implementation = "cudnn:eng123456"}),
                    Contains("has no plan \"eng123456\" for the forward pass of n2 c4 k4 "));
  const int64_t limit = int64_t{1} << 20;
  const ConvPolicy policy{{.workspace_limit = limit}};
  for (const Timing& timing : tune_conv(x, w, {.implementation = "cudnn"}, {.samples = 1}))
    CHECK(timing.workspace_bytes <= limit);
}

TEST_CASE("tuning on a GPU times all plans and the other implementations", "[conv][cuda][tune]") {
  if (lacks_cudnn()) return;
  const Tensor x = on_gpu(randn({8, 16, 16, 16}));
  const Tensor w = on_gpu(randn({16, 16, 3, 3}));
  const auto timings = tune_conv(x, w, {.padding = 1}, {.warmups = 1, .samples = 3});
  const auto has = [&](const std::string& start) {
    return std::any_of(timings.begin(), timings.end(),
                       [&](const Timing& t) { return t.implementation.rfind(start, 0) == 0; });
  };
  CHECK(has("cudnn:eng"));
  CHECK(has("unfold"));
  CHECK_FALSE(has("reference"));
  const ConvPolicy policy{{.benchmark = true}};
  const Tensor y = conv_forward(x, w, {}, {.padding = 1});
  const Tensor expected = conv_forward(x, w, {}, {.padding = 1, .implementation = "reference"});
  CHECK(relative_error(y, expected) < 1e-4);
  Tuner::clear();
}
