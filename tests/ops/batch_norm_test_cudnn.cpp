#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/transfer.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/norm/batch_norm.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

/// What cuDNN's batch norm alone has: limits that its documentation gives, and a variance that is worked out
/// from a reciprocal in float32. All else is tested beside the other implementations.

using namespace pleat;
using namespace pleat::test;
using Catch::Matchers::Contains;
using ops::BatchNormPass;

TEST_CASE("batch_norm: cuDNN says what it cannot compute", "[batch_norm]") {
  const auto& all = ops::batch_norm_implementations();
  const auto found =
      std::find_if(all.begin(), all.end(), [](const auto* one) { return one->name() == "cudnn"; });
  REQUIRE(found != all.end());
  const auto reason = [&](ops::ChannelView view, bool training, double eps, BatchNormPass pass) {
    return (*found)->unsupported(
        {.view = view, .device = Device(DeviceType::cuda), .training = training, .eps = eps}, pass);
  };
  const BatchNormPass forward = BatchNormPass::forward, backward = BatchNormPass::backward;
  const ops::ChannelView some{.images = 8, .channels = 16, .pixels = 49};
  for (const double eps : {0.0, 1e-5}) {
    CHECK(reason(some, true, eps, forward).empty());
    CHECK(reason(some, false, eps, forward).empty());
    CHECK(reason(some, true, eps, backward).empty());
  }
  CHECK_THAT(reason(some, true, -1e-9, forward), Contains("an eps of at least 0"));
  CHECK_THAT(reason(some, false, 1e-5, backward), Contains("no backward pass of evaluation"));
  CHECK_THAT(reason({65536, 1, 1}, false, 1e-5, forward), Contains("at most 65535 images"));
  CHECK(reason({65536, 1, 1}, true, 1e-5, forward).empty());
  CHECK_THAT(reason({880802, 1, 1}, true, 1e-5, backward), Contains("at most 880801 images"));
  CHECK_THAT(reason({1 << 10, 1 << 11, 1 << 10}, true, 1e-5, forward), Contains("elements in 32 bits"));
}

TEST_CASE("cuda: cuDNN's batch norm of channels that hardly vary", "[batch_norm][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  // The second channel is constant, the third spreads over 1e-3 around 2.
  const std::vector<double> middle{0, 3, 2}, spread{1, 0, 1e-3};
  std::vector<double> values;
  for (std::size_t i = 0; i < 4 * 3 * 25; ++i)
    values.push_back(middle[i / 25 % 3] + spread[i / 25 % 3] * std::sin(static_cast<double>(i * i)));
  for (const DType dtype : {float64, float32})
    for (const std::string layout : {"contiguous", "channels_last"})
      for (const double eps : {1e-3, 1e-5}) {
        CAPTURE(name(dtype), layout, eps);
        const auto run = [&](Device device, const std::string& implementation) {
          const Tensor x =
              ops::to_device(laid_out(ops::cast(from_vector(values, {4, 3, 5, 5}), dtype), layout), device);
          const Tensor mean = zeros({3}, {.dtype = dtype, .device = device});
          const Tensor variance = zeros({3}, {.dtype = dtype, .device = device});
          const Tensor y =
              ops::batch_norm_forward(
                  x, {}, {}, mean, variance,
                  {.training = true, .momentum = 1, .eps = eps, .implementation = implementation})
                  .y;
          return std::vector{mean.to_vector<double>(), variance.to_vector<double>(), y.to_vector<double>()};
        };
        const auto got = run("cuda", "cudnn"), wanted = run("cpu", "reference");
        const double rounding = dtype == float64 ? 1e-14 : 1e-6;
        for (std::size_t c = 0; c < 3; ++c) {
          CAPTURE(c);
          CHECK(std::abs(got[0][c] - wanted[0][c]) <= 4 * rounding);
          CHECK(got[1][c] >= 0);
          // Of the sum with eps, as float32 has its root: where a channel varies less, its variance is less
          // exact.
          CHECK(std::abs(got[1][c] - wanted[1][c]) <= rounding * (wanted[1][c] + eps));
        }
        for (std::size_t i = 0; i < values.size(); ++i)
          CHECK(std::abs(got[2][i] - wanted[2][i]) <= 1e3 * rounding);
      }
}
