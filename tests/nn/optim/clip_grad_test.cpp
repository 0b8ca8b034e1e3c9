#include "pleat/nn/optim/clip_grad.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using test::Json;

namespace {

Tensor with_grad(const Tensor& grad) {
  const Tensor param = zeros(grad.shape(), {.dtype = grad.dtype()}).set_requires_grad();
  param.set_grad(grad);
  return param;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("clipping follows the recorded cases") {
  for (const std::string op : {"clip_grad_norm_", "clip_grad_value_"})
    for (const Json& entry : test::fixture_cases("optimizers", op))
      for (const DType dtype : {float64, float32}) {
        CAPTURE(entry.at("name").get<std::string>());
        const Json& o = entry.at("options");
        std::vector<Tensor> params = {zeros({3}).set_requires_grad()};  // one without a gradient
        for (const auto& [name, grad] : test::tensors_from(entry.at("inputs")))
          params.push_back(with_grad(grad.to(dtype)));
        const auto wanted = test::tensors_from(entry.at("outputs"));
        const double tolerance = dtype == float64 ? 1e-14 : 1e-6;
        if (op == "clip_grad_norm_") {
          const double p = o.at("norm_type").is_string() ? infinity : o.at("norm_type").get<double>();
          const Tensor norm =
              optim::clip_grad_norm_(params, {.max_norm = o.at("max_norm").get<double>(), .norm_type = p});
          CHECK(norm.dtype() == float64);
          CHECK(norm.item() == Approx(wanted.at("total_norm").item()).epsilon(tolerance));
        } else {
          optim::clip_grad_value_(params, {.clip_value = o.at("clip_value").get<double>()});
        }
        CHECK(test::relative_error(params[1].grad(), wanted.at("g0")) < tolerance);
        CHECK(test::relative_error(params[2].grad(), wanted.at("g1")) < tolerance);
      }
}

TEST_CASE("a norm larger than its type can hold is found") {
  const Tensor p = with_grad(full({1000}, 60000.0, {.dtype = float16}));
  CHECK(optim::clip_grad_norm_({p}, {.max_norm = 1}).item() ==
        Approx(60000 * std::sqrt(1000.0)).epsilon(1e-3));
  CHECK(p.grad().to_vector()[0] == Approx(1 / std::sqrt(1000.0)).epsilon(0.02));
}

TEST_CASE("gradients of all sizes that a type has are scaled to the largest norm") {
  for (const DType dtype : {float16, bfloat16, float32, float64})
    for (const double size : dtype == float16   ? std::vector<double>{60000, 1e-4}
                             : dtype == float64 ? std::vector<double>{5e307, 1e200, 1e-200}
                                                : std::vector<double>{3e38, 1e38, 1e20, 1e-30})
      for (const double p : {1.0, 2.0, 3.0, 40.0, infinity}) {
        CAPTURE(name(dtype), size, p);
        const Tensor grad = (tensor({-0.25, 0.5, 1.0, 0.75}, float64) * size).to(dtype);
        const Tensor before = grad.to(float64) / size;
        const Tensor param = with_grad(grad);
        const double got = optim::clip_grad_norm_({param}, {.max_norm = 1, .norm_type = p}).item();
        CHECK(got / size == Approx(norm(before, {}, {.p = p}).item()).epsilon(1e-12));
        const Tensor wanted = got > 1 ? before / (got / size) : before;
        CHECK(test::relative_error(param.grad().to(float64) / (got > 1 ? 1 : size), wanted) <
              (dtype == bfloat16  ? 5e-3
               : dtype == float16 ? 1e-3
                                  : 1e-6));
      }
}

TEST_CASE("gradients that are not finite stay, or are an error") {
  for (const double bad : {infinity, std::numeric_limits<double>::quiet_NaN()})
    for (const double p : {2.0, infinity}) {
      const std::vector<Tensor> params = {with_grad(tensor({1.0, bad})), with_grad(tensor({2.0}))};
      CHECK_FALSE(std::isfinite(optim::clip_grad_norm_(params, {.max_norm = 1, .norm_type = p}).item()));
      CHECK(params[1].grad().item() == 2);
      CHECK_THROWS_AS(
          optim::clip_grad_norm_(params, {.max_norm = 1, .norm_type = p, .error_if_nonfinite = true}),
          NumericError);
    }
  CHECK_THROWS_WITH(optim::clip_grad_norm_({}, {.max_norm = -1}),
                    "clip_grad_norm_: max_norm must be at least 0, got -1");
  CHECK_THROWS_AS(optim::clip_grad_norm_({}, {.max_norm = 1, .norm_type = 0}), ValueError);
  CHECK_THROWS_AS(optim::clip_grad_value_({}, {.clip_value = -1}), ValueError);
}

TEST_CASE("a norm over blocks, types and strides is that of one vector, for any number of threads") {
  // More than a block's elements, a few, none, and some with gaps.
  std::vector<Tensor> params = {with_grad(randn({20011})),
                                with_grad(randn({3})),
                                with_grad(zeros({0})),
                                with_grad(randn({9, 1000}, {.dtype = float64})),
                                with_grad(randn({40, 30}).to(bfloat16)),
                                with_grad(randn({64}).as_strided({7, 5}, {9, 2}, 0))};
  std::vector<Tensor> grads;
  for (const Tensor& param : params) grads.push_back(param.grad().to(float64).clone());
  const int threads = num_threads();
  for (const double p : {0.5, 1.0, 2.0, 3.0, infinity}) {
    CAPTURE(p);
    double wanted = 0;
    for (const Tensor& grad : grads)
      for (const double x : grad.to_vector<double>())
        wanted = std::isinf(p) ? std::max(wanted, std::fabs(x)) : wanted + std::pow(std::fabs(x), p);
    if (!std::isinf(p)) wanted = std::pow(wanted, 1 / p);
    std::vector<double> norms;
    for (const int n : {1, 2, 3}) {
      set_num_threads(n);
      norms.push_back(optim::clip_grad_norm_(params, {.max_norm = 1e9, .norm_type = p}).item());
    }
    set_num_threads(threads);
    CHECK(norms[0] == Approx(wanted).epsilon(1e-12));
    CHECK(norms[1] == norms[0]);
    CHECK(norms[2] == norms[0]);
  }
  // Nothing was larger than the limit, so nothing has changed.
  for (std::size_t i = 0; i < params.size(); ++i)
    CHECK((params[i].grad().to_vector<double>() == grads[i].to_vector<double>()));
}
