// Functions against the values and gradients of PyTorch in tests/fixtures/activations.json and
// functions.json.

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/quantile.h"
#include "pleat/ops/index/scatter.h"
#include "pleat/ops/matmul/distance.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"

using namespace pleat;
using test::Json;

namespace {

using Inputs = std::map<std::string, Tensor>;
using Function = std::function<Tensor(const Inputs&, const Json& options)>;

template <class F>
Function of_x(F f) {
  return [f](const Inputs& in, const Json& o) {
    if constexpr (std::is_invocable_v<F, const Tensor&>)
      return f(in.at("x"));
    else
      return f(in.at("x"), o);
  };
}

ScatterReduceOptions scatter_options(const Json& o) {
  static const std::map<std::string, ScatterReduction> reductions = {{"sum", ScatterReduction::sum},
                                                                     {"prod", ScatterReduction::prod},
                                                                     {"mean", ScatterReduction::mean},
                                                                     {"amax", ScatterReduction::amax},
                                                                     {"amin", ScatterReduction::amin}};
  return {.reduce = reductions.at(o["reduce"]), .include_self = o["include_self"].get<bool>()};
}

QuantileInterpolation interpolation_of(const Json& o) {
  static const std::map<std::string, QuantileInterpolation> all = {
      {"linear", QuantileInterpolation::linear},
      {"lower", QuantileInterpolation::lower},
      {"higher", QuantileInterpolation::higher},
      {"midpoint", QuantileInterpolation::midpoint},
      {"nearest", QuantileInterpolation::nearest}};
  return all.at(o["interpolation"]);
}

/// max_unpool1d to 3d.
Function unpooling(Tensor (*unpool)(const Tensor&, const Tensor&, const MaxUnpoolOptions&)) {
  return [unpool](const Inputs& in, const Json& o) {
    return unpool(in.at("x"), in.at("indices"),
                  {.kernel_size = o["kernel_size"].get<int64_t>(),
                   .stride = o["stride"].get<int64_t>(),
                   .padding = o["padding"].get<int64_t>(),
                   .output_size = o["output_size"].get<std::vector<int64_t>>()});
  };
}

const std::map<std::string, Function>& functions() {
  using X = const Tensor&;
  using O = const Json&;
  static const std::map<std::string, Function> table = {
      {"selu", of_x(selu)},
      {"celu", of_x([](X x, O o) { return celu(x, o["alpha"].get<double>()); })},
      {"glu", of_x([](X x, O o) { return glu(x, o["dim"].get<int64_t>()); })},
      {"softsign", of_x(softsign)},
      {"hardshrink", of_x([](X x, O o) { return hardshrink(x, o["lambd"].get<double>()); })},
      {"softshrink", of_x([](X x, O o) { return softshrink(x, o["lambd"].get<double>()); })},
      {"tanhshrink", of_x(tanhshrink)},
      {"threshold",
       of_x([](X x, O o) { return threshold(x, o["threshold"].get<double>(), o["value"].get<double>()); })},
      {"softmin", of_x([](X x, O o) { return softmin(x, o["dim"].get<int64_t>()); })},
      {"rms_norm",
       [](const Inputs& in, O o) {
         const auto shape = o["normalized_shape"].get<std::vector<int64_t>>();
         RmsNormOptions options{.normalized_shape = shape};
         if (!o["eps"].is_null()) options.eps = o["eps"].get<double>();
         return rms_norm(in.at("x"), in.contains("weight") ? in.at("weight") : Tensor(), options);
       }},
      {"local_response_norm", of_x([](X x, O o) {
         return local_response_norm(
             x, {.size = o["size"].get<int64_t>(), .alpha = o["alpha"], .beta = o["beta"], .k = o["k"]});
       })},
      {"normalize",
       of_x([](X x, O o) { return normalize(x, {.p = o["p"], .dim = o["dim"], .eps = o["eps"]}); })},
      {"cosine_similarity",
       [](const Inputs& in, O o) {
         return cosine_similarity(in.at("x1"), in.at("x2"), {.dim = o["dim"], .eps = o["eps"]});
       }},
      {"pairwise_distance",
       [](const Inputs& in, O o) {
         return pairwise_distance(in.at("x1"), in.at("x2"),
                                  {.p = o["p"], .eps = o["eps"], .keepdim = o["keepdim"]});
       }},
      {"scatter_reduce",
       [](const Inputs& in, O o) {
         return scatter_reduce(in.at("x"), o["dim"].get<int64_t>(), in.at("index"), in.at("source"),
                               scatter_options(o));
       }},
      {"logit", of_x([](X x, O o) {
         return logit(x, {.eps = o["eps"].is_null() ? std::nullopt : std::optional(o["eps"].get<double>())});
       })},
      {"xlogy", [](const Inputs& in, O) { return xlogy(in.at("x1"), in.at("x2")); }},
      {"addcmul",
       [](const Inputs& in, O o) {
         return addcmul(in.at("x"), in.at("x1"), in.at("x2"), o["value"].get<double>());
       }},
      {"addcdiv",
       [](const Inputs& in, O o) {
         return addcdiv(in.at("x"), in.at("x1"), in.at("x2"), o["value"].get<double>());
       }},
      {"nan_to_num", of_x([](X x, O o) {
         return nan_to_num(
             x, {.nan = o["nan"], .posinf = o["posinf"].get<double>(), .neginf = o["neginf"].get<double>()});
       })},
      {"cdist", [](const Inputs& in, O o) { return cdist(in.at("x1"), in.at("x2"), {.p = o["p"]}); }},
      {"dist", [](const Inputs& in, O o) { return distance(in.at("x1"), in.at("x2"), {.p = o["p"]}); }},
      {"median",
       of_x([](X x, O o) { return median(x, {.dim = o["dim"].get<int64_t>(), .keepdim = o["keepdim"]}); })},
      {"quantile", of_x([](X x, O o) {
         return quantile(
             x, o["q"].get<double>(),
             {.dim = o["dim"].get<int64_t>(), .keepdim = o["keepdim"], .interpolation = interpolation_of(o)});
       })},
      {"diff", of_x([](X x, O o) { return diff(x, o["n"].get<int64_t>(), o["dim"].get<int64_t>()); })},
      {"rot90",
       of_x([](X x, O o) { return rot90(x, o["k"].get<int64_t>(), o["dims"].get<std::vector<int64_t>>()); })},
      {"movedim", of_x([](X x, O o) {
         return movedim(x, o["source"].get<std::vector<int64_t>>(),
                        o["destination"].get<std::vector<int64_t>>());
       })},
      {"searchsorted", [](const Inputs& in,
                          O o) { return searchsorted(in.at("x"), in.at("values"), {.right = o["right"]}); }},
      {"bincount",
       [](const Inputs& in, O o) {
         const auto weights = in.find("weights");
         return bincount(in.at("x"), {.weights = weights == in.end() ? Tensor() : weights->second,
                                      .minlength = o["minlength"]});
       }},
      {"max_unpool1d", unpooling(max_unpool1d)},
      {"max_unpool2d", unpooling(max_unpool2d)},
      {"max_unpool3d", unpooling(max_unpool3d)},
      {"hardtanh",
       of_x([](X x, O o) { return hardtanh(x, o["min_val"].get<double>(), o["max_val"].get<double>()); })},
  };
  return table;
}

void check_close(const Tensor& got, const Tensor& right) {
  REQUIRE(got.shape() == right.shape());
  const auto a = got.to_vector<double>(), b = right.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= 1e-12 * (1 + std::abs(b[i])));
}

}  // namespace

TEST_CASE("functions agree with PyTorch's recorded values and gradients") {
  for (const char* file : {"activations", "functions"})
    for (const Json& c : test::fixture(file).at("cases")) {
      INFO(c.at("name").get<std::string>());
      const auto function = functions().find(c.at("op"));
      REQUIRE(function != functions().end());
      Inputs inputs = test::tensors_from(c.at("inputs"));
      const Json grads = c.value("grads", Json::object());  // none of indices
      for (const auto& [name, gradient] : grads.items()) inputs.at(name).set_requires_grad();
      const Tensor y = function->second(inputs, c.at("options"));
      check_close(y, test::tensor_from(c.at("outputs").at("y")));
      if (grads.empty()) continue;
      y.backward(test::tensor_from(c.at("grad_output")));
      for (const auto& [name, gradient] : grads.items())
        check_close(inputs.at(name).grad(), test::tensor_from(gradient));
    }
}
