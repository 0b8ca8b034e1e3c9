#include "pleat/ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "pleat/autograd/copy.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/loss.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/matmul/distance.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor leaf(const Tensor& x) { return x.set_requires_grad(); }

Tensor random(Shape shape) {
  Generator generator(11);
  const Tensor x = empty(std::move(shape), {.dtype = float64});
  fill_uniform_(x, -2, 2, generator);
  return x;
}

/// A reduction as plain loops: the elements that make each result, in row-major order of both.
std::vector<std::vector<double>> groups(const Tensor& x, const Dims& dims) {
  std::vector<bool> reduced(x.shape().size(), dims.empty());
  for (const int64_t dim : dims)
    if (x.rank() > 0) reduced[static_cast<std::size_t>(normalize_dim(dim, x.rank(), "test"))] = true;
  int64_t outputs = 1;
  for (std::size_t d = 0; d < reduced.size(); ++d)
    if (!reduced[d]) outputs *= x.shape()[d];
  std::vector<std::vector<double>> result(static_cast<std::size_t>(outputs));
  const std::vector<double> values = x.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t output = 0;
    int64_t step = 1;
    for (std::size_t d = reduced.size(); d-- > 0;) {
      if (!reduced[d]) {
        output += rest % x.shape()[d] * step;
        step *= x.shape()[d];
      }
      rest /= x.shape()[d];
    }
    result[static_cast<std::size_t>(output)].push_back(values[i]);
  }
  return result;
}

using Reference = std::function<double(const std::vector<double>&)>;

double sum_of(const std::vector<double>& v) {
  long double total = 0;
  for (const double value : v) total += value;
  return static_cast<double>(total);
}
double var_of(const std::vector<double>& v, double correction) {
  const double mean = sum_of(v) / static_cast<double>(v.size());
  std::vector<double> squares;
  for (const double value : v) squares.push_back((value - mean) * (value - mean));
  return sum_of(squares) / (static_cast<double>(v.size()) - correction);
}
double norm_of(const std::vector<double>& v, double p) {
  std::vector<double> powers;
  for (const double value : v)
    powers.push_back(std::isinf(p) ? std::abs(value) : std::pow(std::abs(value), p));
  if (p == infinity) return *std::max_element(powers.begin(), powers.end());
  if (p == -infinity) return *std::min_element(powers.begin(), powers.end());
  if (p == 0) return static_cast<double>(std::count_if(v.begin(), v.end(), [](double a) { return a != 0; }));
  return std::pow(sum_of(powers), 1 / p);
}
double mean_of(const std::vector<double>& v) { return sum_of(v) / static_cast<double>(v.size()); }

/// One table of layouts serves every reduction: shapes above and below each block size, gaps, transpositions,
/// channels_last, expanded and single dimensions.
struct Layout {
  const char* name;
  Tensor x;
  std::vector<Dims> dims;
};

std::vector<Layout> layouts(DType dtype) {
  Generator generator(7);
  const auto random = [&](Shape shape) {
    const Tensor x = empty(std::move(shape), {.dtype = float64});
    fill_uniform_(x, dtype == uint8 || dtype == boolean ? 0 : -1.5, 3, generator);
    return ops::cast(x, dtype);
  };
  const Tensor cube = random({6, 5, 7});
  return {
      {"one number", random({}), {{}, {0}}},
      {"one row", random({70001}), {{}}},
      {"a matrix", random({130, 300}), {{}, {0}, {1}, {0, 1}}},
      {"a tall matrix", random({5000, 3}), {{0}, {1}, {}}},
      {"a tall matrix whose rows do not fit", random({3001, 20}), {{0}, {1}}},
      {"long columns", random({1500, 130}), {{0}}},
      {"transposed", transpose(random({40, 90}), 0, 1), {{}, {0}, {1}}},
      {"every second column", slice(random({40, 90}), 1, 1, 90, 2), {{}, {0}, {1}}},
      {"a cube", cube, {{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}}},
      {"a cube turned", permute(cube, {2, 0, 1}), {{}, {0}, {1}, {2}, {0, 2}, {-1, 0}}},
      {"expanded", expand(random({3, 1, 4}), {3, 50, 4}), {{}, {0}, {1}, {2}, {1, 2}}},
      {"images", random({3, 4, 17, 16}), {{0, 2, 3}, {1}, {2, 3}, {0}, {1, 2, 3}}},
      {"channels_last images",
       ops::to_format(random({3, 4, 17, 16}), MemoryFormat::channels_last),
       {{0, 2, 3}, {1}, {2, 3}, {0}, {1, 2, 3}}},
      {"three long rows", random({3, 20011}), {{1}, {0}}},
      {"large images", random({9, 2, 40, 41}), {{0, 2, 3}, {1}, {2, 3}}},
      {"large channels_last images",
       ops::to_format(random({9, 2, 40, 41}), MemoryFormat::channels_last),
       {{0, 2, 3}, {0, 3}}},
      {"large images with gaps", slice(random({9, 2, 40, 82}), 3, 1, 82, 2), {{0, 2, 3}, {}}},
      {"short rows", random({300, 49}), {{1}, {0}}},
      {"shorter rows", random({5, 140, 9}), {{2}, {0, 2}, {1, 2}}},
      {"small planes", random({6, 40, 5, 7}), {{2, 3}, {0, 2, 3}, {3}, {1, 3}}},
      {"sizes of one", random({1, 4, 1, 1, 5}), {{0}, {2, 3}, {1}, {0, 4}, {}}},
  };
}

using Reduction = std::function<Tensor(const Tensor&, const Dims&, bool)>;

/// Groups of a size outside [fewest, most] are left out.
void check_everywhere(const Reduction& reduction, const Reference& reference, DType dtype, double tolerance,
                      std::size_t most = 1 << 30, std::size_t fewest = 0) {
  for (const Layout& layout : layouts(dtype))
    for (const Dims& dims : layout.dims) {
      INFO(layout.name << " " << to_string(Shape(dims)) << " " << name(dtype));
      const Tensor y = reduction(layout.x, dims, false);
      const auto expected = groups(layout.x, dims);
      const std::vector<double> got = y.to_vector<double>();
      REQUIRE(got.size() == expected.size());
      if (expected[0].size() > most || expected[0].size() < fewest) continue;
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double right = reference(expected[i]);
        const double error = std::abs(got[i] - right) / std::max(1.0, std::abs(right));
        worst = error <= worst ? worst : error;  // keeps a NaN
      }
      CHECK(worst <= tolerance);
      const Tensor kept = reduction(layout.x, dims, true);
      CHECK(kept.rank() == layout.x.rank());
      CHECK(kept.to_vector<double>() == got);
    }
}

double tolerance_of(DType dtype) { return dtype == float64 ? 1e-14 : dtype == float32 ? 1e-7 : 4e-3; }

}  // namespace

TEST_CASE("gradients where a function has a corner") {
  const Tensor zero = leaf(zeros({3}));
  (norm(zero) + stddev(zero) + norm(zero, {}, {.p = 3})).backward();
  CHECK(zero.grad().to_vector() == std::vector<float>{0, 0, 0});
  const Tensor count = leaf(ones({3}));
  (norm(count, {}, {.p = 0}) + sum(count)).backward();
  CHECK(count.grad().to_vector() == std::vector<float>{1, 1, 1});
  const Tensor lost = leaf(full({2}, -infinity));
  logsumexp(lost).backward();
  CHECK(lost.grad().to_vector() == std::vector<float>{0, 0});
  for (const Tensor& x : {tensor({{0.0, 2.0, 3.0}, {1.0, 2.0, 4.0}}, float64),
                          tensor({{0.0, 2.0, 0.0}}, float64), tensor({{0.0, 0.0, 0.0}}, float64)}) {
    CHECK(gradcheck([](const std::vector<Tensor>& t) { return prod(t[0], 1); }, {x}));
    CHECK(gradgradcheck([](const std::vector<Tensor>& t) { return prod(t[0], 1); }, {x}));
  }
  const Tensor with_zeros = tensor({0.5, 0.0, 2.0, 0.0, 3.0}, float64);
  CHECK(gradcheck([](const std::vector<Tensor>& t) { return cumprod(t[0], 0); }, {with_zeros}));
  CHECK(gradgradcheck([](const std::vector<Tensor>& t) { return cumprod(t[0], 0); }, {with_zeros}));
}

TEST_CASE("equal maxima share a gradient; with indices the first gets it") {
  const Tensor x = leaf(tensor({{1.0, 3.0, 3.0}, {2.0, 2.0, 2.0}}));
  sum(max(x, 1) * tensor({4.0, 6.0})).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{0, 2, 2, 2, 2, 2});
  const Tensor y = leaf(tensor({{1.0, 3.0, 3.0}, {2.0, 2.0, 2.0}}));
  const ValuesIndices best = max_with_indices(y, 1);
  CHECK(best.indices.to_vector<int64_t>() == std::vector<int64_t>{1, 0});
  CHECK_FALSE(best.indices.requires_grad());
  sum(best.values * tensor({4.0, 6.0})).backward();
  CHECK(y.grad().to_vector() == std::vector<float>{0, 4, 0, 6, 0, 0});
  CHECK_FALSE(argmax(y).requires_grad());
}

TEST_CASE("gradients of reductions of one number and of an empty batch") {
  const Tensor x = leaf(scalar(3.0));
  (sum(x) + mean(x, 0) + max(x) + max_with_indices(x, 0).values).backward();
  CHECK(x.grad().item() == 4);
  const Tensor empty_batch = leaf(zeros({0, 3}));
  sum(sum(empty_batch, 1) + mean(empty_batch, 1) + max(empty_batch, 1)).backward();
  CHECK(empty_batch.grad().shape() == Shape{0, 3});
}

TEST_CASE("sum_to undoes broadcasting") {
  const Tensor x = ones({2, 3, 4});
  CHECK(sum_to(x, {3, 1}).to_vector() == std::vector<float>{8, 8, 8});
  CHECK(sum_to(x, {}).item() == 24);
  CHECK(sum_to(x, {2, 3, 4}).shape() == Shape{2, 3, 4});
  CHECK_THROWS_WITH(sum_to(x, {2, 4}), Contains("sum_to"));
  CHECK(gradcheck([](const std::vector<Tensor>& t) { return sum_to(t[0], {3, 1}); }, {random({2, 3, 2})}));
}

TEST_CASE("options by name mean what they say") {
  const Tensor x = random({3, 4, 5});
  const auto same = [](const Tensor& got, const Tensor& wanted) {
    CHECK(got.shape() == wanted.shape());
    CHECK(array_equal(got, wanted));
  };
  same(norm(x, {.p = 1}), norm(x, {}, {.p = 1}));
  same(norm(x, {.dim = 1, .p = 1, .keepdim = true}), norm(x, 1, {.p = 1, .keepdim = true}));
  same(norm(x, {1}), norm(x, 1));
  same(var(x, {.correction = 0}), var(x, {}, {.correction = 0}));
  same(var(x, {.dim = {0, 2}, .correction = 0}), var(x, {0, 2}, {.correction = 0}));
  same(stddev(x, {.dim = 1, .keepdim = true}), stddev(x, 1, {.keepdim = true}));
  same(var_mean(x, {.correction = 0}).var, var_mean(x, {}, {.correction = 0}).var);
  same(var_mean(x, {.dim = 1}).mean, var_mean(x, 1).mean);
  // Other functions, which a GPU adds up in another order.
  CHECK(allclose(norm(x, {.p = 1}), sum(abs(x))));
  CHECK(allclose(var_mean(x, {.dim = 1}).mean, mean(x, 1)));
  same(sum(x, {.keepdim = true}), sum(x, {}, true));
  same(sum(x, {.dim = {0, 1}}), sum(x, {0, 1}));
  same(sum(x, {1}), sum(x, 1));
  same(sum(x, {}), sum(x));
  same(sum(x, std::vector<int>{0, 1}), sum(x, {0, 1}));
  same(mean(x, {.keepdim = true}), mean(x, {}, true));
  same(prod(x, {.dim = -1, .keepdim = true}), prod(x, -1, true));
  same(logsumexp(x, {.dim = 1}), logsumexp(x, 1));
  same(max(x, {.keepdim = true}), max(x, {}, true));
  same(min(x, {.dim = {1, 2}}), min(x, {1, 2}));
  same(any(x > 1, {.keepdim = true}), any(x > 1, {}, true));
  same(all(x > 1, {.dim = 0}), all(x > 1, 0));
  same(argmax(x, {.dim = 1, .keepdim = true}), argmax(x, 1, true));
  same(argmin(x, {.keepdim = true}), argmin(x, {}, true));
  const ReduceOptions options{.dim = 2, .keepdim = true};
  same(sum(x, options), sum(x, 2, true));

  CHECK_THROWS_WITH(norm(x, 1, {.dim = 2, .p = 1}),
                    Contains("norm: dimensions are named twice, [1] and .dim = [2]"));
  CHECK_THROWS_AS(var(x, 1, {.dim = 2}), ValueError);
  CHECK(gradcheck([](const std::vector<Tensor>& t) { return norm(t[0], {.dim = 1, .p = 3}); }, {x}));
}

TEST_CASE("what has room is found where its square has none") {
  // Of numbers that are all `size` times those of x, a length is so many times that of x, and a direction the
  // same.
  const std::vector<std::pair<DType, std::vector<double>>> sizes = {
      {float16, {16384, 0x1p-10}},
      {bfloat16, {0x1p125, 0x1p-120}},
      {float32, {0x1p125, 0x1p70, 0x1p-80, 0x1p-126}},
      {float64, {0x1p1020, 0x1p600, 0x1p-1000}}};
  const Tensor x = tensor({{-0.5, 1.0, 0.25, 0.75}, {1.0, 1.0, -1.0, 0.5}}, float64);
  const Tensor other = tensor({{1.0, 1.0, 0.5, -0.5}, {0.25, 1.0, 1.0, 1.0}}, float64);
  for (const auto& [dtype, factors] : sizes)
    for (const double size : factors) {
      CAPTURE(name(dtype), size);
      const double tolerance = dtype == bfloat16 ? 8e-3 : dtype == float16 ? 1e-3 : 1e-6;
      const auto scaled = [size, dtype = dtype](const Tensor& t) { return (t * size).to(dtype); };
      const auto check = [&](const char* what, const Tensor& got, const Tensor& wanted,
                             double roundings = 1) {
        CAPTURE(what, got, wanted);
        CHECK(max(abs(got.to(float64) - wanted)).item() <= roundings * tolerance * max(abs(wanted)).item());
      };
      for (const double p : {1.0, 1.5, 2.0, 3.0, 20.0, -2.0, infinity, -infinity}) {
        CAPTURE(p);
        const Tensor xs = leaf(scaled(x)), plain = leaf(x.clone());
        const Tensor y = norm(xs, 1, {.p = p}), wanted = norm(plain, 1, {.p = p});
        check("norm", y.to(float64) / size, wanted);
        sum(y.to(float64)).backward();
        sum(wanted).backward();
        check("its gradient", xs.grad(), plain.grad(), std::isinf(p) ? 1 : 1 + std::abs(p));
      }
      if (dtype != float64) check("stddev", stddev(scaled(x), 1).to(float64) / size, stddev(x, 1));
      if (size > 1) {  // small ones have the eps of these functions as their length
        check("normalize", normalize(scaled(x)), normalize(x));
        check("cosine_similarity", cosine_similarity(scaled(x), scaled(other)), cosine_similarity(x, other));
      }
      check("pairwise_distance", pairwise_distance(scaled(x), scaled(other), {.eps = 0}).to(float64) / size,
            pairwise_distance(x, other, {.eps = 0}));
      check("cdist", cdist(scaled(x), scaled(other)).to(float64) / size, cdist(x, other));
      check("hypot", hypot(scaled(x), scaled(other)).to(float64) / size, hypot(x, other));
    }
  // The length has no room in float16, the direction has.
  const Tensor large = full({1000}, 60000, float16);
  CHECK(normalize(large, {.dim = 0}).to_vector()[0] == Approx(1 / std::sqrt(1000.0)).epsilon(1e-3));
  CHECK(cosine_similarity(large, large, {.dim = 0}).item() == Approx(1).epsilon(1e-3));
  const Tensor unlike = tensor({{60000.0, 60000.0}}, float16), target = tensor({1.0});
  CHECK(cosine_embedding_loss(unlike, tensor({{0.0, 60000.0}}, float16), target).item() ==
        Approx(1 - std::sqrt(0.5)).epsilon(1e-3));
  CHECK(local_response_norm(full({1, 1, 1}, 300, float16), {.size = 1, .alpha = 1, .beta = 0.5}).item() ==
        Approx(1).epsilon(1e-3));
}

TEST_CASE("sum and mean are right in every layout and type") {
  for (const DType dtype : {float64, float32, float16, bfloat16}) {
    // Of float32 the rounding of fours, each of which is below 12.
    const double tolerance = dtype == float32 ? 2e-6 : tolerance_of(dtype);
    check_everywhere([](auto& x, auto& dims, bool keep) { return sum(x, dims, keep); }, sum_of, dtype,
                     tolerance);
    check_everywhere([](auto& x, auto& dims, bool keep) { return mean(x, dims, keep); }, mean_of, dtype,
                     tolerance);
  }
  for (const DType dtype : {boolean, uint8, int32, int64})
    check_everywhere([](auto& x, auto& dims, bool keep) { return sum(x, dims, keep); }, sum_of, dtype, 0);
  CHECK(sum(tensor({true, true, false})).dtype() == int64);
  CHECK(mean(tensor({1, 2})).dtype() == float32);
  CHECK(mean(tensor({true, true, false, false})).item() == 0.5);
  CHECK(sum(full({3}, 2000000000, {.dtype = int32})).item<int64_t>() == 6000000000);
}

TEST_CASE("max and min are right in every layout and type") {
  const auto largest = [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); };
  const auto smallest = [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); };
  for (const DType dtype : {float64, float32, float16, bfloat16, int64, int32, uint8, boolean}) {
    check_everywhere([](auto& x, auto& dims, bool keep) { return max(x, dims, keep); }, largest, dtype, 0);
    check_everywhere([](auto& x, auto& dims, bool keep) { return min(x, dims, keep); }, smallest, dtype, 0);
    CHECK(max(zeros({2}, {.dtype = dtype})).dtype() == dtype);
  }
}

TEST_CASE("argmax and argmin give the first of equal elements") {
  const auto first_largest = [](const std::vector<double>& v) {
    return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin());
  };
  const auto first_smallest = [](const std::vector<double>& v) {
    return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
  };
  // int32 values are few, so that almost every group has ties.
  for (const DType dtype : {float64, float32, bfloat16, int32})
    for (const Layout& layout : layouts(dtype))
      for (const Dims& dims : layout.dims) {
        if (dims.size() > 1) continue;
        const auto dim = dims.empty() ? std::optional<int64_t>() : dims[0];
        INFO(layout.name << " " << to_string(Shape(dims)) << " " << name(dtype));
        std::vector<double> largest;
        std::vector<double> smallest;
        for (const auto& group : groups(layout.x, dims)) {
          largest.push_back(first_largest(group));
          smallest.push_back(first_smallest(group));
        }
        CHECK(argmax(layout.x, dim).to_vector<double>() == largest);
        CHECK(argmin(layout.x, dim, true).to_vector<double>() == smallest);
        if (!dim) continue;
        CHECK(max_with_indices(layout.x, *dim).values.to_vector<double>() ==
              max(layout.x, *dim).to_vector<double>());
        CHECK(min_with_indices(layout.x, *dim, true).values.shape() == min(layout.x, *dim, true).shape());
      }
}

TEST_CASE("prod, norm, logsumexp, any and all are right in every layout") {
  for (const DType dtype : {float64, float32}) {
    // Of 70,000 numbers around 1 the product leaves the range: there the reference does, too, or is 0.
    const double tolerance = 100 * tolerance_of(dtype);
    check_everywhere([](auto& x, auto& dims, bool keep) { return prod(x, dims, keep); },
                     [](const std::vector<double>& v) {
                       return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
                     },
                     dtype, tolerance, 40);
    for (const double p : {2.0, 1.0, 0.0, 3.5, -1.0, infinity, -infinity})
      check_everywhere(
          [&](auto& x, auto& dims, bool keep) { return norm(x, dims, {.p = p, .keepdim = keep}); },
          [&](const std::vector<double>& v) { return norm_of(v, p); }, dtype, tolerance);
    check_everywhere([](auto& x, auto& dims, bool keep) { return logsumexp(x, dims, keep); },
                     [](const std::vector<double>& v) {
                       double total = 0;
                       for (const double value : v) total += std::exp(value);
                       return std::log(total);
                     },
                     dtype, tolerance);
  }
  for (const DType dtype : {float32, float16, int32, uint8, boolean}) {
    check_everywhere([](auto& x, auto& dims, bool keep) { return any(x, dims, keep); },
                     [](const std::vector<double>& v) {
                       return std::any_of(v.begin(), v.end(), [](double a) { return a != 0; });
                     },
                     dtype, 0);
    check_everywhere([](auto& x, auto& dims, bool keep) { return all(x, dims, keep); },
                     [](const std::vector<double>& v) {
                       return std::all_of(v.begin(), v.end(), [](double a) { return a != 0; });
                     },
                     dtype, 0);
  }
  CHECK(all(ones({70000})).item<bool>());
  CHECK_FALSE(any(zeros({300, 200})).item<bool>());
  CHECK(any(tensor({nan_value})).dtype() == boolean);
  CHECK(prod(tensor({2, 3, 4})).dtype() == int64);
  CHECK(norm(tensor({3, 4})).dtype() == float32);
  CHECK_THROWS_WITH(norm(ones({2}), {}, {.p = nan_value}), Contains("p must be a number"));
}

TEST_CASE("var, stddev and var_mean are right in every layout and type") {
  for (const double correction : {1.0, 0.0})
    for (const DType dtype : {float64, float32, float16}) {
      const auto reference = [&](const std::vector<double>& v) { return var_of(v, correction); };
      const auto root = [&](const std::vector<double>& v) { return std::sqrt(var_of(v, correction)); };
      const auto options = [&](bool keep) { return VarOptions{.correction = correction, .keepdim = keep}; };
      const double tolerance = 10 * tolerance_of(dtype);
      check_everywhere([&](auto& x, auto& dims, bool keep) { return var(x, dims, options(keep)); }, reference,
                       dtype, tolerance, 1 << 30, 2);
      check_everywhere([&](auto& x, auto& dims, bool keep) { return stddev(x, dims, options(keep)); }, root,
                       dtype, tolerance, 1 << 30, 2);
      check_everywhere([&](auto& x, auto& dims, bool keep) { return var_mean(x, dims, options(keep)).mean; },
                       mean_of, dtype, tolerance);
    }
  CHECK(std::isnan(var(scalar(1.0)).item()));
  CHECK(var(scalar(1.0), {}, {.correction = 0}).item() == 0);
  CHECK_THROWS_WITH(var(ones({2}), {}, {.correction = nan_value}),
                    Contains("correction must be a finite number"));
}

TEST_CASE("a large mean costs the variance no digits") {
  Generator generator(3);
  const Tensor noise = empty({400000}, {.dtype = float64});
  fill_normal_(noise, 0, 1, generator);
  for (const double mean : {0.0, 1e4, -1e6}) {
    const Tensor x = ops::cast(add(noise, scalar(mean, float64)), float32);
    const double right = var_of(x.to_vector<double>(), 1);
    CHECK(std::abs(var(x).item<double>() / right - 1) < 1e-6);
    const Tensor matrix = reshape(x, {100000, 4});
    const std::vector<double> columns = var(matrix, 0).to_vector<double>();
    const auto expected = groups(matrix, 0);
    for (std::size_t c = 0; c < 4; ++c) CHECK(std::abs(columns[c] / var_of(expected[c], 1) - 1) < 1e-6);
  }
}

TEST_CASE("logsumexp stands large and infinite numbers") {
  CHECK(logsumexp(tensor({1000.0, 1000.0})).item() == Approx(1000 + std::log(2.0)));
  CHECK(logsumexp(tensor({-infinity, -infinity})).item() == -infinity);
  CHECK(logsumexp(tensor({-infinity, 0.0})).item() == 0);
  CHECK(logsumexp(tensor({infinity, 0.0, -infinity})).item() == infinity);
  CHECK(std::isnan(logsumexp(tensor({infinity, nan_value})).item()));
  CHECK(logsumexp(full({40000, 3}, -1000), 0).to_vector()[1] == Approx(-1000 + std::log(40000.0)));
}

TEST_CASE("a NaN wins every choice, the first one its index") {
  for (const int64_t n : {5, 40, 3000, 70000}) {
    const Tensor x = arange(0, n, 1, {.dtype = float32});
    for (const int64_t place : {n / 2, n - 1}) ops::fill(select(x, 0, place), nan_value);
    CHECK(std::isnan(max(x).item()));
    CHECK(std::isnan(min(x).item()));
    CHECK(argmax(x).item<int64_t>() == n / 2);
    CHECK(argmin(x).item<int64_t>() == n / 2);
    const Tensor columns = ops::to_format(expand(reshape(x, {n, 1}), {n, 3}), MemoryFormat::contiguous);
    CHECK(argmin(columns, 0).to_vector<int64_t>() == std::vector<int64_t>(3, n / 2));
    CHECK(std::isnan(max(columns, 0).to_vector()[2]));
    const Tensor leaf = x.detach().set_requires_grad();
    max(leaf, 0).backward();
    CHECK(leaf.grad().to_vector()[static_cast<std::size_t>(n / 2)] == 0.5);
    CHECK(sum(leaf.grad()).item() == 1);
  }
}

TEST_CASE("sums of ten million float32 stay exact") {
  const Tensor x = full({10000000}, 0.1);
  const double right = 10000000.0 * static_cast<double>(0.1F);
  CHECK(std::abs(sum(x).item<double>() / right - 1) < 1e-7);
  CHECK(std::abs(mean(x).item<double>() / static_cast<double>(0.1F) - 1) < 1e-7);
  const Tensor matrix = reshape(x, {1000000, 10});
  for (const double column : sum(matrix, 0).to_vector<double>())
    CHECK(std::abs(column / right * 10 - 1) < 1e-7);
  const Tensor wide = full({1000000}, 0.1, {.dtype = float64});
  CHECK(std::abs(sum(wide).item<double>() / 100000.0 - 1) < 1e-14);
}

TEST_CASE("sums of many rows of any length take each element once") {
  for (const DType dtype : {float64, float32, float16})
    for (int64_t n = 1; n < 300; n += n < 70 ? 1 : 23) {
      INFO(dtype << ", rows of " << n);
      // Row r of r % 7, but the last element of 1: exact in any order, and in half types.
      const Tensor column = reshape(remainder(arange(19), 7), {19, 1});
      const Tensor x = ops::to_format(expand(column, {19, n}), MemoryFormat::contiguous);
      ops::fill(select(x, 1, n - 1), 1);
      const auto sums = sum(x.to(dtype), 1).to_vector<double>();
      for (int64_t r = 0; r < 19; ++r)
        CHECK(sums[static_cast<std::size_t>(r)] == static_cast<double>((n - 1) * (r % 7) + 1));
    }
}

TEST_CASE("a sum of float32 leaves the range only where its result does") {
  const float most = std::numeric_limits<float>::max();
  for (const int64_t n : {4, 40, 300, 5000}) {
    const Tensor row = zeros({n});
    for (const int64_t place : {0, 1}) ops::fill(select(row, 0, place), most);
    for (const int64_t place : {2, 3}) ops::fill(select(row, 0, place), -most);
    CHECK(sum(row).item() == 0);
    const Tensor rows = ops::to_format(expand(row, {40, n}), MemoryFormat::contiguous);
    CHECK(mean(rows, 1).to_vector() == std::vector<float>(40, 0));
    const Tensor columns = ops::to_format(transpose(rows, 0, 1), MemoryFormat::contiguous);
    CHECK(sum(columns, 0).to_vector() == std::vector<float>(40, 0));
    ops::fill(select(columns, 1, 7), most);
    CHECK(sum(columns, 0).to_vector()[7] == infinity);
    CHECK(sum(columns, 0).to_vector()[8] == 0);
    ops::fill(select(row, 0, n - 1), -infinity);
    CHECK(sum(row).item() == -infinity);
    ops::fill(select(row, 0, 1), infinity);
    CHECK(std::isnan(sum(row).item()));
  }
}

TEST_CASE("reductions of nothing", "[cpu]") {
  const Tensor nothing = zeros({0, 3});
  CHECK(sum(nothing).item() == 0);
  CHECK(sum(nothing, 0).to_vector() == std::vector<float>{0, 0, 0});
  CHECK(sum(nothing, 1).shape() == Shape{0});
  CHECK(std::isnan(mean(nothing).item()));
  CHECK(std::isnan(var(nothing).item()));
  CHECK(prod(nothing).item() == 1);
  CHECK(norm(nothing).item() == 0);
  CHECK(norm(nothing, {}, {.p = infinity}).item() == 0);
  CHECK(logsumexp(nothing, 0).to_vector() == std::vector<float>(3, -static_cast<float>(infinity)));
  CHECK_FALSE(any(nothing).item<bool>());
  CHECK(all(nothing).item<bool>());
  CHECK(max(nothing, 1).shape() == Shape{0});
  CHECK_THROWS_AS(max(nothing), ShapeError);
  CHECK_THROWS_WITH(max(nothing),
                    "max: needs at least one element to choose from, got [0, 3] float32 cpu reduced to []");
  CHECK_THROWS_WITH(min(nothing, 0), Contains("min: needs at least one element"));
  CHECK_THROWS_WITH(argmax(nothing, 0), Contains("argmax: needs at least one element"));
  CHECK_THROWS_WITH(argmin(nothing), Contains("argmin: needs at least one element"));
}

TEST_CASE("bad dimensions of a reduction are explained", "[cpu]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(sum(x, 2), IndexError);
  CHECK_THROWS_WITH(sum(x, 2), Contains("sum"));
  CHECK_THROWS_AS(mean(x, {0, -2}), ValueError);
  CHECK_THROWS_WITH(mean(x, {0, -2}), "mean: dimension 0 of [2, 3] float32 cpu is named twice");
  CHECK_THROWS_WITH(argmax(x, -3), Contains("argmax"));
}

TEST_CASE("results lie in memory as their input does") {
  const Tensor x = ops::to_format(rand({2, 3, 4, 5}), MemoryFormat::channels_last);
  CHECK(max(x, 0, true).strides() == Strides{60, 1, 15, 3});
  CHECK(sum(x, 0).strides() == Strides{1, 15, 3});
  CHECK(sum(slice(x, 1, 0, 3, 2), 0).is_contiguous());
}

TEST_CASE("means of more elements than a half type can count have gradients") {
  for (const DType dtype : {float16, bfloat16}) {
    const Tensor x = ones({70'000}, {.dtype = dtype}).set_requires_grad();
    mean(x).backward();
    CHECK(x.grad().to_vector()[0] == Approx(1.0 / 70'000).epsilon(0.01));
    x.set_grad({});
    var_mean(x).mean.backward();
    CHECK(x.grad().to_vector()[69'999] == Approx(1.0 / 70'000).epsilon(0.01));
  }
}
