#include "pleat/nn/distributions.h"

#include <cmath>
#include <limits>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::distributions;
using Catch::Matchers::Contains;
using pleat::test::relative_error;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor t(const std::vector<double>& values) { return from_vector(values); }

double error_of(const Tensor& got, const std::vector<double>& wanted) {
  return relative_error(flatten(got), from_vector(wanted));
}

Normal normal() { return {t({0.5, -1, 2}), t({0.5, 1, 3})}; }
Beta beta() { return {t({0.5, 2, 5}), t({0.7, 3, 1})}; }
Categorical masked() { return Categorical{{.logits = reshape(t({0.1, -2, 1.5, 0, 0, -infinity}), {2, 3})}}; }
Categorical by_probs() { return Categorical{{.probs = reshape(t({1, 2, 1, 3, 1, 0}), {2, 3})}}; }
Bernoulli bernoulli_probs() { return Bernoulli{{.probs = t({0.2, 0.9, 0.5})}}; }
Bernoulli bernoulli_logits() { return Bernoulli{{.logits = t({-30, 0.3, 2})}}; }

/// Mean and variance over the first dimension are within 5 standard errors of the distribution's.
template <class D>
void check_moments(const D& distribution, const Tensor& draws) {
  const double count = static_cast<double>(draws.size(0));
  const Tensor deviation =
      abs(mean(draws, {0}) - distribution.mean()) / sqrt(distribution.variance() / count);
  CHECK(max(deviation).item<double>() < 5);
  const Tensor centred = square(draws - distribution.mean());
  const Tensor spread = abs(mean(centred, {0}) - distribution.variance());
  CHECK(max(spread - 5 * sqrt(var(centred, {0}) / count)).item<double>() < 1e-9);
}

}  // namespace

// Values of PyTorch 2.15 in float64.
TEST_CASE("distributions: probabilities, entropies, moments and divergences are PyTorch's") {
  const Normal n = normal();
  CHECK(error_of(n.log_prob(t({1, 0.25, -4})), {-0.725791352644727, -1.70018853320467, -4.01755082187278}) <
        1e-13);
  CHECK(error_of(n.entropy(), {0.725791352644727, 1.41893853320467, 2.51755082187278}) < 1e-13);
  CHECK(error_of(n.variance(), {0.25, 1, 9}) < 1e-13);
  const Normal wide{t({0}), t({2})};
  CHECK(error_of(kl_divergence(n, wide), {0.948794361119891, 0.443147180559945, 0.719534891891836}) < 1e-13);
  const Independent vector{n};
  CHECK(vector.log_prob(t({1, 0.25, -4})).shape() == Shape{});
  CHECK(error_of(vector.log_prob(t({1, 0.25, -4})), {-6.44353070772218}) < 1e-13);
  CHECK(error_of(vector.entropy(), {4.66228070772218}) < 1e-13);
  CHECK(error_of(kl_divergence(vector, Independent{Normal{zeros({3}, float64), t({2, 2, 2})}}),
                 {2.11147643357167}) < 1e-13);

  CHECK(error_of(masked().log_prob(tensor({2, 1})), {-0.244352520513699, -0.693147180559945}) < 1e-13);
  CHECK(error_of(masked().entropy(), {0.597523406982102, 0.693147180559945}) < 1e-13);
  CHECK(error_of(masked().probs, {0.1931375749358, 0.0236509375880808, 0.783211487476119, 0.5, 0.5, 0}) <
        1e-13);
  CHECK(error_of(by_probs().log_prob(tensor({{0, 0}, {1, 2}})),
                 {-1.38629436111989, -0.287682072451781, -0.693147180559945, -36.0436533891172}) < 1e-13);
  CHECK(error_of(by_probs().entropy(), {1.03972077083992, 0.562335144618808}) < 1e-13);
  CHECK(error_of(kl_divergence(masked(), by_probs()), {0.772377373431011, 0.14384103622589}) < 1e-13);
  const Tensor reverse = kl_divergence(Categorical{{.probs = t({0.2, 0.3, 0.5})}}, masked());
  CHECK(reverse[0].item<double>() == Approx(0.544699506449125).epsilon(1e-13));
  CHECK(reverse[1].item<double>() == infinity);

  CHECK(error_of(bernoulli_probs().log_prob(t({1, 0, 1})),
                 {-1.6094379124341, -2.30258509299405, -0.693147180559945}) < 1e-13);
  CHECK(error_of(bernoulli_logits().log_prob(tensor({1, 0, 1})),
                 {-30.0000000000001, -0.854355244468527, -0.126928011042972}) < 1e-13);
  CHECK(error_of(bernoulli_probs().entropy(), {0.500402423538188, 0.325082973391448, 0.693147180559945}) <
        1e-13);
  CHECK(error_of(bernoulli_logits().entropy(), {2.89901436190121e-12, 0.682022489425029, 0.365333855087208}) <
        1e-13);
  CHECK(error_of(bernoulli_probs().variance(), {0.16, 0.09, 0.25}) < 1e-13);
  CHECK(error_of(kl_divergence(bernoulli_probs(), bernoulli_logits()),
                 {5.49959757646189, 0.259272271077079, 0.433780830483027}) < 1e-13);

  CHECK(error_of(beta().log_prob(t({0.3, 0.9, 0.01})),
                 {-0.209617394115095, -2.22562405185792, -16.8112428315183}) < 1e-13);
  CHECK(error_of(beta().entropy(), {-0.197923882386659, -0.234906649788, -0.809437912434101}) < 1e-13);
  CHECK(error_of(beta().mean(), {0.416666666666667, 0.4, 0.833333333333333}) < 1e-13);
  CHECK(error_of(beta().variance(), {0.110479797979798, 0.04, 0.0198412698412698}) < 1e-13);
  CHECK(error_of(kl_divergence(beta(), Beta{t({1, 2.5, 9}), t({1, 0.3, 12})}),
                 {0.197923882386659, 2.31535138975792, 13.2973988669664}) < 1e-13);
}

TEST_CASE("lgamma, digamma and polygamma from 0 to far out") {
  const Tensor x = t({1e-3, 0.1, 1, 1.5, 2, 7.99, 8.01, 50, 1e10});
  CHECK(max(abs(lgamma(x) - t({6.90717888538385, 2.25271265173421, 0, -0.120782237635245, 0, 8.50501160608848,
                               8.54532442974773, 144.565743946345, 220258509288.811})) /
            maximum(abs(lgamma(x)), ones({9}, float64)))
            .item<double>() < 2e-14);
  const auto each_error = [](const Tensor& got, const std::vector<double>& wanted) {
    return max(abs(got / t(wanted) - 1)).item<double>();
  };
  CHECK(each_error(digamma(x), {-1000.57557193181, -10.4237549404111, -0.577215664901533, 0.0364899739785762,
                                0.422784335098467, 2.01430922204622, 2.01697196390652, 3.90198967342789,
                                23.0258509298905}) < 2e-14);
  CHECK(each_error(polygamma(1, x), {1000001.64253319, 101.433299149895, 1.64493406684823, 0.934802200544679,
                                     0.644934066848226, 0.133314245661463, 0.132960253654594,
                                     0.0202013332266971, 1.00000000005e-10}) < 1e-9);
  CHECK(each_error(polygamma(3, x), {6000000000006.47, 60004.5128767902, 6.49393940226683, 1.40909103400244,
                                     0.493939402266829, 0.00471797733216924, 0.00468060121115311,
                                     1.64863987206821e-05, 2.0000000003e-30}) < 1e-13);
  CHECK(each_error(polygamma(1, t({1, 2})), {1.6449340668482264, 0.6449340668482264}) < 1e-15);
  for (const DType dtype : {float32, float64}) {
    const Tensor edges = tensor({0.0, infinity}).to(dtype);
    CHECK(lgamma(edges).to_vector<double>() == std::vector<double>{infinity, infinity});
    CHECK(digamma(edges).to_vector<double>() == std::vector<double>{-infinity, infinity});
    CHECK(polygamma(1, edges).to_vector<double>() == std::vector<double>{infinity, 0});
    for (const double bad : {-0.5, -infinity, std::nan("")}) {
      const Tensor y = tensor({bad}).to(dtype);
      CHECK(std::isnan(lgamma(y).item<double>()));
      CHECK(std::isnan(digamma(y).item<double>()));
      CHECK(std::isnan(polygamma(2, y).item<double>()));
    }
  }
  CHECK_THROWS_WITH(polygamma(-1, x), Contains("n must be in [0, 20]"));
}

TEST_CASE("distributions: gradients in parameters and values, by differences") {
  const auto check = [](const TensorFunction& f, const std::vector<Tensor>& in) {
    CHECK(gradcheck(f, in));
    CHECK(gradgradcheck(f, in));
  };
  const Tensor a = t({0.5, 2}), b = t({0.8, 3}), x = t({0.3, 0.6}), other = t({1.5, 0.4});
  using In = const std::vector<Tensor>&;
  check([](In in) { return Normal(in[0], in[1]).log_prob(in[2]); }, {a, b, x});
  check([](In in) { return Normal(in[0], in[1]).entropy(); }, {a, b});
  check([](In in) { return kl_divergence(Normal(in[0], in[1]), Normal(in[2], in[3])); }, {a, b, x, other});
  check([](In in) { return Beta(in[0], in[1]).log_prob(in[2]); }, {a, b, x});
  check([](In in) { return Beta(in[0], in[1]).entropy(); }, {a, b});
  check([](In in) { return kl_divergence(Beta(in[0], in[1]), Beta(in[2], in[3])); }, {a, b, x, other});
  for (const bool probs : {false, true}) {
    const auto options = [probs](const Tensor& given) {
      return probs ? ProbabilityOptions{.probs = given} : ProbabilityOptions{.logits = given};
    };
    const Tensor p = t({0.2, 0.7, 0.4}), q = t({0.5, 0.3, 0.1});
    check([&](In in) { return Categorical(options(in[0])).log_prob(tensor({2})); }, {p});
    check([&](In in) { return Categorical(options(in[0])).entropy(); }, {p});
    check([&](In in) { return kl_divergence(Categorical(options(in[0])), Categorical(options(in[1]))); },
          {p, q});
    check([&](In in) { return Bernoulli(options(in[0])).log_prob(t({1, 0, 1})); }, {p});
    check([&](In in) { return Bernoulli(options(in[0])).entropy(); }, {p});
    check([&](In in) { return kl_divergence(Bernoulli(options(in[0])), Bernoulli(options(in[1]))); }, {p, q});
  }
  const auto draw = [](In in) {
    Generator generator(4);
    return Normal(in[0], in[1]).rsample({3}, generator);
  };
  check(draw, {a, b});
  CHECK_FALSE(Normal(a.detach().set_requires_grad(), b).sample({2}).requires_grad());
}

TEST_CASE("distributions: gradients are finite where an action is masked out") {
  const Tensor logits = t({0.5, -infinity, 1});
  logits.set_requires_grad();
  const Categorical policy{{.logits = logits}};
  sum(policy.entropy() + kl_divergence(policy, Categorical{{.logits = logits.detach()}})).backward();
  CHECK(all(abs(logits.grad()) < infinity).item<bool>());
  CHECK(logits.grad()[1].item<double>() == 0);
}

TEST_CASE("distributions: samples have the moments, the shapes, and repeat by their generator") {
  const int64_t count = 40000;
  Generator generator(11);
  check_moments(normal(), normal().sample({count}, generator));
  check_moments(normal(), normal().rsample({count}, generator));
  check_moments(beta(), beta().sample({count}, generator));
  const Beta small{t({0.05, 30}), t({0.1, 0.02})};
  check_moments(small, small.sample({count}, generator));
  check_moments(bernoulli_probs(), bernoulli_probs().sample({count}, generator));
  const Tensor drawn = by_probs().sample({200, 200}, generator);
  CHECK(drawn.shape() == Shape{200, 200, 2});
  CHECK(drawn.dtype() == int64);
  for (int64_t k = 0; k < 3; ++k)
    CHECK(max(abs(mean((drawn == k).to(float64), {0, 1}) - select(by_probs().probs, 1, k))).item<double>() <
          0.0125);
  CHECK(max(select(drawn, 2, 1)).item<int64_t>() == 1);
  CHECK(by_probs().sample({0, 4}).shape() == Shape{0, 4, 2});
  CHECK(Categorical{{.probs = t({1, 1})}}.sample().shape() == Shape{});
  CHECK(Independent{normal()}.sample({2}).shape() == Shape{2, 3});
  CHECK(Normal{t({0, 1}), reshape(t({1, 2, 3}), {3, 1})}.sample({5}).shape() == Shape{5, 3, 2});
  CHECK(min(small.sample({1000})).item<double>() > 0);
  CHECK(max(small.sample({1000})).item<double>() < 1);
  Generator first(3), second(3);
  CHECK(beta().sample({7}, first).to_vector<double>() == beta().sample({7}, second).to_vector<double>());
  CHECK(Normal{zeros({2}), ones({2})}.sample().dtype() == float32);
}

TEST_CASE("distributions: parameters and values outside of their ranges are errors") {
  const Tensor one = ones({2}), zero = zeros({2}), bad = tensor({1.0, std::nan("")});
  CHECK_THROWS_WITH(Normal(zero, zero), Contains("Normal: scale must be above 0 and finite"));
  CHECK_THROWS_WITH(Normal(bad, one), Contains("Normal: loc must be a number"));
  CHECK_THROWS_AS(Normal(zero, ones({3})), ShapeError);
  CHECK_THROWS_AS(Normal(zero, ones({2}, float64)), DTypeError);
  CHECK_THROWS_AS(Normal(tensor({1, 2}), tensor({1, 2})), DTypeError);
  CHECK_THROWS_WITH(Beta(zero, one), Contains("Beta: concentration1 must be above 0"));
  CHECK_THROWS_WITH(Beta(one, -one), Contains("Beta: concentration0 must be above 0"));
  CHECK_THROWS_WITH(Beta(one, one).log_prob(2 * one), Contains("Beta: the value must be in [0, 1]"));
  CHECK_THROWS_WITH(Categorical{{}}, Contains("needs probs or logits, one of the two"));
  CHECK_THROWS_AS((Categorical{{.probs = one, .logits = one}}), ValueError);
  CHECK_THROWS_WITH(Categorical{{.probs = -one}},
                    Contains("probs must be at least 0 and finite, with a sum above 0"));
  CHECK_THROWS_WITH(Categorical{{.probs = zero}}, Contains("with a sum above 0"));
  CHECK_THROWS_AS(Categorical{{.logits = bad}}, ValueError);
  CHECK_THROWS_AS(Categorical{{.logits = tensor({-infinity, -infinity})}}, ValueError);
  CHECK_THROWS_AS(Categorical{{.logits = tensor(1.0)}}, ShapeError);
  CHECK_THROWS_AS(Categorical{{.logits = one}}.log_prob(tensor({2})), IndexError);
  CHECK_THROWS_AS(Categorical{{.logits = one}}.log_prob(one), DTypeError);
  CHECK_THROWS_WITH(Bernoulli{{.probs = 2 * one}}, Contains("probs must be in [0, 1]"));
  CHECK_THROWS_AS(Bernoulli{{.logits = bad}}, ValueError);
  CHECK_THROWS_WITH(Bernoulli{{.probs = one}}.log_prob(one / 2), Contains("the value must be 0 or 1"));
  CHECK_THROWS_WITH(Independent{Normal(tensor(0.0), tensor(1.0))}.entropy(),
                    Contains("the batch must have a dimension"));
  CHECK_THROWS_AS(Normal(zero.to(float16), one.to(float16)), DTypeError);
}
