// Reductions.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::test {
namespace {

using Reduce = std::function<Outputs(const Tensor&, const Dims&, bool keepdim)>;
using Fold = std::function<double(const Numbers&)>;

double sum_of(const Numbers& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double mean_of(const Numbers& x) { return sum_of(x) / static_cast<double>(x.size()); }
double product_of(const Numbers& x) { return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>()); }
double largest(const Numbers& x) { return *std::max_element(x.begin(), x.end()); }
double smallest(const Numbers& x) { return *std::min_element(x.begin(), x.end()); }
double variance_of(const Numbers& x, double correction) {
  const double mean = mean_of(x);
  double sum = 0;
  for (const double n : x) sum += (n - mean) * (n - mean);
  return sum / (static_cast<double>(x.size()) - correction);
}
double logsumexp_of(const Numbers& x) {
  double sum = 0;
  for (const double n : x) sum += std::exp(n);
  return std::log(sum);
}
double norm_of(const Numbers& x, double p) {
  double sum = 0, high = 0, low = infinity;
  for (const double n : x) {
    sum += std::pow(std::abs(n), p);
    high = std::max(high, std::abs(n));
    low = std::min(low, std::abs(n));
  }
  return p == infinity ? high : p == -infinity ? low : std::pow(sum, 1 / p);
}

/// What rows of a function have in common.
struct Reduced {
  const char* name;
  Reduce call;
  std::vector<Fold> folds;
  Tensor x = normal({3, 4, 5, 2});
  Types types = all_types;
  std::vector<ResultType> results = {floating_type};
  int order = 2;
  const char* variant = "";
  double slack = 1;
};

/// Over everything, rows, columns, and what lies between; the dimension is kept by every other row.
void add_rows(std::vector<OpCase>& cases, const Reduced& r) {
  bool keepdim = false;
  for (const Index& dims : std::vector<Index>{{}, {-1}, {0}, {0, 2, 3}, {1}, {1, 3}}) {
    const bool keep = keepdim;
    keepdim = !keepdim;
    std::vector<Reference> references;
    for (const Fold& fold : r.folds) references.push_back(over(dims, keep, fold));
    OpCase c{.name = r.name,
             .inputs = {r.x},
             .call = [call = r.call, dims, keep](const Tensors& x) { return call(x[0], dims, keep); },
             .reference = all_of(references),
             .variant = std::string(r.variant) + "dims " + to_string(dims),
             .types = r.types,
             .results = r.results,
             .order = r.order,
             .slack = r.slack};
    if (r.order > 0) c.smooth = {{ops::copy(slice(slice(r.x, 1, 0, 2), 2, 0, 2))}};
    static const Tensor large = normal({30, 70, 11, 10});
    c.large = {large};
    cases.push_back(std::move(c));
  }
}

double first_of(const Numbers& x, double value) {
  return static_cast<double>(std::find(x.begin(), x.end(), value) - x.begin());
}

/// Along one dimension: values and their places.
OpCase with_indices(const char* name, const std::function<Outputs(const Tensor&, int64_t)>& call, int64_t dim,
                    double (*best)(const Numbers&)) {
  return {
      .name = name,
      .inputs = {normal({3, 4, 5})},
      .call = [call, dim](const Tensors& x) { return call(x[0], dim); },
      .reference = all_of({over({dim}, false, best),
                           over({dim}, false, [best](const Numbers& x) { return first_of(x, best(x)); })}),
      .variant = "dim " + std::to_string(dim),
      .types = all_types,
      .results = {same_type, index_type},
      .smooth = {{normal({2, 3, 2})}},
      .large = {normal({300, 257, 2})}};
}

OpCase place(const char* name, const Function& call, const Index& dims, bool keepdim,
             double (*best)(const Numbers&), const char* variant) {
  return {.name = name,
          .inputs = {ops::cast(integers({3, 4, 5}, 0, 4), float64)},  // with equal ones
          .call = call,
          .reference = over(dims, keepdim, [best](const Numbers& x) { return first_of(x, best(x)); }),
          .variant = variant,
          .types = all_types,
          .results = {index_type},
          .order = 0};
}

OpCase logic(const char* name, const Function& call, const Index& dims, bool keepdim, bool all) {
  return {.name = name,
          .inputs = {ops::cast(integers({3, 2, 4}, 0, 2), float64)},
          .call = call,
          .reference = over(dims, keepdim,
                            [all](const Numbers& x) { return all ? smallest(x) != 0 : largest(x) != 0; }),
          .variant = "dims " + to_string(dims),
          .types = all_types,
          .results = {truth_type},
          .order = 0};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  const auto add = [&](const Reduced& r) { add_rows(cases, r); };
  const auto sums = [](auto function) {
    return [function](const Tensor& x, const Dims& dims, bool keepdim) {
      return Outputs(function(x, dims, keepdim));
    };
  };
  add({.name = "sum",
       .call = sums([](auto& x, auto& d, bool k) { return sum(x, d, k); }),
       .folds = {sum_of},
       .results = {sum_type}});
  add({.name = "count_nonzero",
       .call = sums([](auto& x, auto& d, bool k) { return count_nonzero(x, d, k); }),
       .folds = {[](const Numbers& x) {
         return static_cast<double>(x.size()) - static_cast<double>(std::count(x.begin(), x.end(), 0.0));
       }},
       .x = ops::cast(integers({3, 4, 5, 2}, 0, 3), float64),
       .results = {index_type},
       .order = 0});
  add({.name = "mean",
       .call = sums([](auto& x, auto& d, bool k) { return mean(x, d, k); }),
       .folds = {mean_of}});
  add({.name = "prod",
       .call = sums([](auto& x, auto& d, bool k) { return prod(x, d, k); }),
       .folds = {product_of},
       .x = uniform({2, 3, 2, 2}, 0.5, 1.5),
       .results = {sum_type}});
  for (const double correction : {0.0, 1.0}) {
    const VarOptions options{.correction = correction};
    const auto with = [options](bool keepdim) {
      VarOptions result = options;
      result.keepdim = keepdim;
      return result;
    };
    const Fold variance = [correction](const Numbers& x) { return variance_of(x, correction); };
    const Fold spread = [correction](const Numbers& x) { return std::sqrt(variance_of(x, correction)); };
    const char* variant = correction == 0 ? "correction 0, " : "";
    add({.name = "var",
         .call = sums([with](auto& x, auto& d, bool k) { return var(x, d, with(k)); }),
         .folds = {variance},
         .variant = variant});
    add({.name = "stddev",
         .call = sums([with](auto& x, auto& d, bool k) { return stddev(x, d, with(k)); }),
         .folds = {spread},
         .variant = variant});
    add({.name = "var_mean",
         .call = sums([with](auto& x, auto& d, bool k) { return var_mean(x, d, with(k)); }),
         .folds = {variance, mean_of},
         .x = uniform({3, 4, 5, 2}, 2, 4),
         .variant = variant});
  }
  for (const double p : {1.0, 2.0, 3.0, 1.5, -2.0, infinity, -infinity}) {
    const std::string variant = "p " + std::to_string(p) + ", ";
    add({.name = "norm",
         .call = sums([p](auto& x, auto& d, bool k) { return norm(x, d, {.p = p, .keepdim = k}); }),
         .folds = {[p](const Numbers& x) { return norm_of(x, p); }},
         .x = p < 0 ? uniform({3, 4, 5, 2}, 0.5, 2) : normal({3, 4, 5, 2}),
         .variant = variant.c_str()});
  }
  add({.name = "logsumexp",
       .call = sums([](auto& x, auto& d, bool k) { return logsumexp(x, d, k); }),
       .folds = {logsumexp_of}});
  add({.name = "max",
       .call = sums([](auto& x, auto& d, bool k) { return max(x, d, k); }),
       .folds = {largest},
       .results = {same_type}});
  add({.name = "min",
       .call = sums([](auto& x, auto& d, bool k) { return min(x, d, k); }),
       .folds = {smallest},
       .results = {same_type}});
  for (const int64_t dim : {0, 1, -1}) {
    cases.push_back(with_indices(
        "max_with_indices", [](const Tensor& x, int64_t d) { return max_with_indices(x, d); }, dim, largest));
    cases.push_back(with_indices(
        "min_with_indices", [](const Tensor& x, int64_t d) { return min_with_indices(x, d); }, dim,
        smallest));
  }
  const std::vector<OpCase> others = {
      place(
          "argmax", [](const Tensors& x) { return argmax(x[0], 1); }, {1}, false, largest, "dim 1"),
      place(
          "argmax", [](const Tensors& x) { return argmax(x[0]); }, {}, false, largest, "of all"),
      place(
          "argmin", [](const Tensors& x) { return argmin(x[0], -1, true); }, {2}, true, smallest,
          "dim -1, keepdim"),
      logic(
          "any", [](const Tensors& x) { return any(x[0], {1}); }, {1}, false, false),
      logic(
          "any", [](const Tensors& x) { return any(x[0]); }, {}, false, false),
      logic(
          "all", [](const Tensors& x) { return all(x[0], {1}); }, {1}, false, true),
      logic(
          "all",
          [](const Tensors& x) {
            return all(x[0], {0, 2}, true);
          },
          {0, 2}, true, true),
      {.name = "sum_to",
       .inputs = {normal({2, 3, 4})},
       .call =
           [](const Tensors& x) {
             return sum_to(x[0], {3, 1});
           },
       .reference =
           [](const Arrays& x) {
             Array y = reduced(x[0], {0, 2}, true, sum_of);
             y.shape = {3, 1};
             return Arrays{y};
           },
       .types = all_types,
       .results = {sum_type},
       .smooth = {{normal({2, 3, 2})}},
       .recorded = "sum",
       .refused = {{{normal({2, 3, 4})},
                    [](const Tensors& x) {
                      return sum_to(x[0], {2, 4});
                    },
                    "sum_to"}}},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  cases.front().refused = {
      {{normal({2, 3})}, [](const Tensors& x) { return sum(x[0], 2); }, "sum: "},
      {{normal({2, 3})},
       [](const Tensors& x) {
         return sum(x[0], {0, 0});
       },
       "sum: "},
      {{normal({2, 3})},
       [](const Tensors& x) { return norm(x[0], 1, {.dim = 0}); },
       "norm: dimensions are named"},
      {{zeros({0, 3}, {.device = Device()})}, [](const Tensors& x) { return max(x[0]); }, "max: "},
      {{zeros({0, 3}, {.device = Device()})}, [](const Tensors& x) { return argmin(x[0], 0); }, "argmin: "}};
  return cases;
}

}  // namespace

const std::vector<OpCase>& reduce_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
