#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/kernels/cuda_handles.h"
#include "pleat/ops/conv/cuda/cudnn_plan.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"

/// cuDNN searches plans for a GPU that it only has the description of: graphs, engines, their notes and names
/// are tested where no GPU is. What plans compute is tested in conv_plans_test.cpp, on one.

using namespace pleat;
using namespace pleat::ops;

namespace {

#if CUDNN_VERSION >= 90800
constexpr const char* h200 =
    R"({"deviceName": "NVIDIA H200", "totalGlobalMem": 150000000000, "cudaDeviceId": 0, "pciDeviceId": 0, "deviceVer": 900,
"driverVer": 13000, "multiProcessorCount": 132, "warpSize": 32, "maxGridSize": [2147483647, 65535, 65535],
"maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
"regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
"maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "l2CacheSize": 62914560,
"smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "isTccDriver": 0, "supportCoopLaunch": 1})";

/// Nothing, with the test marked as skipped, when this cuDNN does not take the description: its form is not
/// documented.
std::optional<CudnnTarget> described_gpu() {
  auto device = std::make_shared<CudnnDescriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const std::string text = h200;
  device->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              static_cast<int64_t>(text.size()) + 1, text.c_str());
  if (device->try_finalize() != CUDNN_STATUS_SUCCESS) {
    pleat_test::skip("cuDNN " + std::to_string(cuda::cudnn_version()) +
                     " takes no such description of a GPU");
    return std::nullopt;
  }
  return CudnnTarget{[](CudnnDescriptor&) {},
                     [device](CudnnDescriptor& d) { d.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device); },
                     [device](CudnnDescriptor& d) { d.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device); }};
}
#else
std::optional<CudnnTarget> described_gpu() {
  pleat_test::skip("needs cuDNN 9.8 or newer");
  return std::nullopt;
}
#endif

CudnnKey key(DType dtype, MemoryFormat format, ConvPass pass, const Spatial& input, const Spatial& kernel,
             int64_t batch) {
  ConvProblem p;
  p.spatial_dims = 3;
  p.batch = batch;
  p.in_channels = 16;
  p.out_channels = 32;
  p.input = input;
  p.kernel = kernel;
  for (std::size_t d = 0; d < 3; ++d) {
    p.padding_low[d] = p.padding_high[d] = kernel[d] / 2;
    p.output[d] = input[d];
  }
  p.dtype = dtype;
  p.format = format;
  p.bias = pass == ConvPass::forward;
  p.device = DeviceType::cuda;
  return {p, pass, false, int64_t{1} << 30, ""};
}

constexpr auto nhwc = MemoryFormat::channels_last;
constexpr auto nchw = MemoryFormat::contiguous;
constexpr Spatial image{1, 14, 14};
constexpr Spatial video{6, 14, 14};
constexpr Spatial flat{1, 3, 3};
constexpr Spatial deep{3, 3, 3};

bool ends(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

TEST_CASE("cuDNN has plans for every type, format and pass in two and three dimensions", "[conv]") {
  const auto target = described_gpu();
  if (!target) return;
  for (const DType dtype : {float32, float16, bfloat16, float64})
    for (const MemoryFormat format : {nhwc, nchw}) {
      if (dtype == float64 && format == nhwc) continue;  // never asked for
      for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight})
        for (const CudnnKey& one :
             {key(dtype, format, pass, image, flat, 4), key(dtype, format, pass, video, flat, 1),
              key(dtype, format, pass, video, deep, 4)}) {
          INFO(one.describe());
          CHECK_FALSE(cudnn_plan_names(one, *target).empty());
        }
    }
}

TEST_CASE("releases of cuDNN with known faults in three dimensions are not asked for those", "[conv]") {
  ConvProblem deep_problem = key(bfloat16, nhwc, ConvPass::forward, video, deep, 4).problem;
  CHECK(known_fault(deep_problem, 90700).empty());
  CHECK(known_fault(deep_problem, 90800) ==
        "cuDNN 9.8.0 is known to compute convolutions of three dimensions wrongly in bfloat16");
  CHECK_FALSE(known_fault(deep_problem, 91002).empty());
  CHECK(known_fault(deep_problem, 91100).empty());
  deep_problem.dtype = float32;
  CHECK(known_fault(deep_problem, 91200).empty());
  deep_problem.precision = Precision::high;
  CHECK(known_fault(deep_problem, 91200) ==
        "cuDNN 9.12.0 is known to compute convolutions of three dimensions wrongly in TF32");
  CHECK(known_fault(deep_problem, 91600).empty());
  CHECK(known_fault(key(bfloat16, nhwc, ConvPass::forward, image, flat, 4).problem, 90800).empty());
}

TEST_CASE("a plan's name finds it again, and none other", "[conv]") {
  const auto target = described_gpu();
  if (!target) return;
  CudnnKey one = key(float32, nhwc, ConvPass::forward, image, flat, 4);
  const auto names = cudnn_plan_names(one, *target);
  REQUIRE(names.size() > 1);
  auto sorted = names;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  for (const std::string& name : names) {
    one.plan = name;
    CHECK(cudnn_plan_names(one, *target) == std::vector<std::string>{name});
  }
  one.plan = "eng123456";
  CHECK(cudnn_plan_names(one, *target).empty());
}

TEST_CASE("plans are bounded by precision, determinism and workspace", "[conv]") {
  const auto target = described_gpu();
  if (!target) return;
  const auto contains = [](const std::vector<std::string>& all, const std::vector<std::string>& part) {
    return std::all_of(part.begin(), part.end(), [&](const std::string& name) {
      return std::find(all.begin(), all.end(), name) != all.end();
    });
  };
  const CudnnKey exact = key(float32, nhwc, ConvPass::backward_weight, image, flat, 4);
  CudnnKey rounded = exact;
  rounded.problem.precision = Precision::high;
  const auto exact_names = cudnn_plan_names(exact, *target);
  const auto rounded_names = cudnn_plan_names(rounded, *target);
  CHECK(exact_names.size() < rounded_names.size());
  CHECK(contains(rounded_names, exact_names));
  CudnnKey same = rounded;
  same.deterministic = true;
  const auto same_names = cudnn_plan_names(same, *target);
  CHECK(same_names.size() < rounded_names.size());
  CHECK(contains(rounded_names, same_names));
  CudnnKey small = rounded;
  small.workspace_limit = 0;
  const auto small_names = cudnn_plan_names(small, *target);
  CHECK(small_names.size() < rounded_names.size());
  CHECK(contains(rounded_names, small_names));
}

TEST_CASE("a bias is added in the graph or after it; the depth of one contiguous video is its batch",
          "[conv]") {
  const auto target = described_gpu();
  if (!target) return;
  const auto fused = [](const std::string& name) { return name.find("+add") == std::string::npos; };
  const auto names = cudnn_plan_names(key(float32, nhwc, ConvPass::forward, image, flat, 4), *target);
  CHECK(std::any_of(names.begin(), names.end(), fused));
  CHECK_FALSE(std::all_of(names.begin(), names.end(), fused));

  const auto joined = [](const std::string& name) { return !ends(name, "+depth"); };
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight}) {
    const CudnnKey one = key(float32, nchw, pass, video, flat, 1);
    CHECK(depth_is_batch(one.problem));
    const auto all = cudnn_plan_names(one, *target);
    REQUIRE_FALSE(all.empty());
    CHECK(joined(all.front()));
    CHECK_FALSE(std::all_of(all.begin(), all.end(), joined));
    CHECK_FALSE(depth_is_batch(key(float32, nchw, pass, video, flat, 2).problem));
    CHECK_FALSE(depth_is_batch(key(float32, nchw, pass, video, deep, 1).problem));
    CHECK_FALSE(depth_is_batch(key(float32, nhwc, pass, video, flat, 1).problem));
  }
}
