// In which memory format networks compute on CUDA, and how often they change it (docs/cuda.md, "Formats").

#include <optional>
#include <string>
#include <vector>

#include "pleat/autograd/autocast.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/models/make_classifier.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/loss.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;

namespace {

constexpr auto contiguous = MemoryFormat::contiguous;
constexpr auto channels_last = MemoryFormat::channels_last;
const Device gpu(DeviceType::cuda);

struct Expected {
  DType dtype;
  Precision precision;
  MemoryFormat format;
};
const std::vector<Expected> rule = {
    {float64, Precision::highest, contiguous},    {float32, Precision::highest, contiguous},
    {float32, Precision::high, channels_last},    {float32, Precision::medium, channels_last},
    {float16, Precision::highest, channels_last}, {bfloat16, Precision::highest, channels_last}};

}  // namespace

TEST_CASE("cuda: convolutions compute in the format of their type", "[cuda][conv]") {
  if (pleat_test::lacks_gpus(1)) return;
  for (const auto& [dtype, precision, format] : rule)
    for (const std::string& implementation : ops::conv_implementations(gpu))
      for (const MemoryFormat given : {contiguous, channels_last})
        for (const int64_t groups : {int64_t{1}, int64_t{4}}) {
          if (implementation == "reference") continue;              // keeps its input's
          if (implementation == "direct" && groups == 1) continue;  // depthwise alone
          CAPTURE(implementation, name(dtype), static_cast<int>(precision), name(given), groups);
          const Tensor x = randn({2, 4, 6, 5}, {.device = gpu}).to(dtype).to(given).set_requires_grad();
          const Tensor w =
              randn({8, 4 / groups, 3, 3}, {.device = gpu}).to(dtype).to(given).set_requires_grad();
          ConvOptions options{
              .padding = 1, .groups = groups, .implementation = implementation, .precision = precision};
          CHECK(conv2d(x, w, {}, options).memory_format() == format);
          sum(conv2d(x, w, {}, options)).backward();
          CHECK(x.grad().shape() == x.shape());
          for (const MemoryFormat asked : {contiguous, channels_last}) {
            options.format = asked;
            CHECK(conv2d(x, w, {}, options).memory_format() == asked);
            options.format.reset();
            const ConvPolicy policy({.format = asked});
            CHECK(conv2d(x, w, {}, options).memory_format() == asked);
          }
        }
}

TEST_CASE("cuda: a module's weights come to lie as convolutions read them", "[cuda][conv]") {
  if (pleat_test::lacks_gpus(1)) return;
  for (const auto& [dtype, precision, format] : rule) {
    CAPTURE(name(dtype), static_cast<int>(precision));
    const PrecisionScope scope(precision);
    nn::Conv2d conv{{.in_channels = 4, .out_channels = 8, .kernel_size = 3}};
    conv.to(dtype);
    const Tensor before = conv.weight.clone();
    conv.to(gpu);
    CHECK(conv.weight.memory_format() == format);
    CHECK(conv.weight.to("cpu").to(float64).to_vector<double>() == before.to(float64).to_vector<double>());
    conv.to("cpu");
    CHECK(conv.weight.memory_format() == channels_last);
  }
}

TEST_CASE("cuda: a network changes its format once", "[cuda][conv]") {
  if (pleat_test::lacks_gpus(1)) return;
  for (const std::string model : {"small", "resnet20"})
    for (const auto& [dtype, precision, format] : rule) {
      if (dtype == float64) continue;
      CAPTURE(model, name(dtype), static_cast<int>(precision));
      const PrecisionScope scope(precision);
      nn::Sequential net = models::make_classifier(model, {.num_classes = 10});
      net.to(gpu);
      const Tensor images = randn({2, 3, 32, 32}, {.device = gpu});
      const Tensor target = zeros({2}, {.dtype = int64, .device = gpu});
      const auto step = [&, half = is_half(dtype), type = dtype] {
        Tensor loss;
        {
          const Autocast types{half ? type : bfloat16, {.enabled = half}};
          loss = cross_entropy(net(images), target, {.check_target = false});
        }
        loss.backward();
      };
      step();  // the leaves of a scope are known from the one before
      profile::Profiler profiler;
      step();
      profiler.stop();
      int64_t changes = 0;
      for (const profile::KeyAverage& row : profiler.profile().key_averages().rows)
        if (row.name == "cast" || row.name == "to_format") changes += row.calls;
      // The batch; with half types logits and weights, too, with their gradients.
      CHECK(changes <= (is_half(dtype) ? 5 : format == contiguous ? 0 : 1));
    }
}
