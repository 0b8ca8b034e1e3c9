// Functions of the lines along a dimension: scans, softmax, sorting.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat::test {
namespace {

using Along = std::function<Outputs(const Tensor&, int64_t dim)>;
using Line = std::function<Numbers(const Numbers&)>;

struct Lines {
  const char* name;
  Along call;
  std::vector<Line> lines;
  const char* variant = "";
  Tensor x = normal({3, 4, 5, 2});
  Types types = all_types;
  std::vector<ResultType> results = {floating_type};
  int order = 2;
  Tensor small = normal({2, 3, 2, 1});
  const char* recorded = "";
};

void add_rows(std::vector<OpCase>& cases, const Lines& f) {
  for (const int64_t dim : {0, 1, -1}) {
    std::vector<Reference> references;
    for (const Line& line : f.lines) references.push_back(along(dim, line));
    OpCase c{.name = f.name,
             .inputs = {f.x},
             .call = [call = f.call, dim](const Tensors& x) { return call(x[0], dim); },
             .reference = all_of(references),
             .variant = std::string(f.variant) + "dim " + std::to_string(dim),
             .types = f.types,
             .results = f.results,
             .order = f.order,
             .large = {normal({40, 60, 40})},
             .recorded = f.recorded,
             .refused = {{{normal({2, 3})},
                          [call = f.call](const Tensors& x) { return call(x[0], 2); },
                          "dimension 2 is outside"}}};
    if (f.order > 0) c.smooth = {{f.small}};
    cases.push_back(std::move(c));
  }
}

Numbers reversed(Numbers x) {
  std::reverse(x.begin(), x.end());
  return x;
}

Numbers running_sum(const Numbers& x) {
  Numbers y(x.size());
  std::partial_sum(x.begin(), x.end(), y.begin());
  return y;
}

Numbers running_product(const Numbers& x) {
  Numbers y(x.size());
  std::partial_sum(x.begin(), x.end(), y.begin(), std::multiplies<>());
  return y;
}

Numbers softmax_of(const Numbers& x) {
  Numbers y = x;
  double sum = 0;
  for (double& n : y) sum += n = std::exp(n);
  for (double& n : y) n /= sum;
  return y;
}

Numbers log_softmax_of(const Numbers& x) {
  Numbers y = softmax_of(x);
  for (double& n : y) n = std::log(n);
  return y;
}

/// The places of a line's elements in order; equal ones keep theirs.
std::vector<std::size_t> order_of(const Numbers& x, bool descending) {
  std::vector<std::size_t> places(x.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return descending ? x[a] > x[b] : x[a] < x[b]; });
  return places;
}

/// The first `count` numbers of a line in order.
Line in_order(bool descending, std::size_t count = SIZE_MAX) {
  return [=](const Numbers& x) {
    Numbers y;
    for (const std::size_t place : order_of(x, descending))
      if (y.size() < count) y.push_back(x[place]);
    return y;
  };
}

/// And their places.
Line places_in_order(bool descending, std::size_t count = SIZE_MAX) {
  return [=](const Numbers& x) {
    Numbers y;
    for (const std::size_t place : order_of(x, descending))
      if (y.size() < count) y.push_back(static_cast<double>(place));
    return y;
  };
}

Numbers shifted_line(const Numbers& x, int by, double fill) {
  Numbers y(x.size(), fill);
  const auto n = static_cast<int>(x.size());
  for (int i = 0; i < n; ++i)
    if (i - by >= 0 && i - by < n) y[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(i - by)];
  return y;
}

/// y[i] = a[i] y[i - 1] + b[i] along dimension 1 of [N, L, M].
Arrays recurrence(const Arrays& x, bool reverse) {
  const Array &a = x[0], &b = x[1];
  Array y = b;
  const int64_t length = a.shape[1];
  y = computed(a.shape, [&](const Index& at) {
    double value = 0;
    for (int64_t i = 0; i < length; ++i) {
      const Index here{at[0], reverse ? length - 1 - i : i, at[2]};
      Index factor = here;
      if (reverse && i > 0) ++factor[1];
      value = a(factor) * value + b(here);
      if (here[1] == at[1]) break;
    }
    return value;
  });
  return {y};
}

OpCase make_linear_scan(bool reverse) {
  return {.name = "linear_scan",
          .inputs = {uniform({3, 4, 5}, -1, 1), normal({3, 4, 5}, 2)},
          .call = [reverse](const Tensors& x) { return linear_scan(x[0], x[1], 1, reverse); },
          .reference = [reverse](const Arrays& x) { return recurrence(x, reverse); },
          .variant = reverse ? "reverse" : "",
          .smooth = {{uniform({2, 3, 1}, -1, 1), normal({2, 3, 1}, 2)}},
          .slack = 2,
          .large = {uniform({40, 60, 40}, -1, 1), normal({40, 60, 40}, 2)}};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  const auto add = [&](const Lines& f) { add_rows(cases, f); };
  add({.name = "cumsum",
       .call = [](const Tensor& x, int64_t dim) { return cumsum(x, dim); },
       .lines = {running_sum},
       .results = {sum_type}});
  add({.name = "cumsum",
       .call = [](const Tensor& x, int64_t dim) { return cumsum(x, dim, true); },
       .lines = {[](const Numbers& x) { return reversed(running_sum(reversed(x))); }},
       .variant = "reverse, ",
       .results = {sum_type}});
  add({.name = "cumprod",
       .call = [](const Tensor& x, int64_t dim) { return cumprod(x, dim); },
       .lines = {running_product},
       .results = {sum_type}});
  add({.name = "cumprod",
       .call = [](const Tensor& x, int64_t dim) { return cumprod(x, dim, true); },
       .lines = {[](const Numbers& x) { return reversed(running_product(reversed(x))); }},
       .variant = "reverse, ",
       .results = {sum_type}});
  for (const int64_t times : {1, 2}) {
    const Line differences = [times](Numbers x) {
      for (int64_t k = 0; k < times; ++k) {
        for (std::size_t i = 0; i + 1 < x.size(); ++i) x[i] = x[i + 1] - x[i];
        x.pop_back();
      }
      return x;
    };
    add({.name = "diff",
         .call = [times](const Tensor& x, int64_t dim) { return diff(x, times, dim); },
         .lines = {differences},
         .variant = times == 1 ? "" : "twice, ",
         .x = normal({3, 4, 3, 4}),
         .types = number_types,
         .results = {same_type},
         .small = normal({3, 3, 1, 4}),
         .recorded = "-"});
  }
  add({.name = "shifted",
       .call = [](const Tensor& x, int64_t dim) { return shifted(x, dim, 1, 0.5); },
       .lines = {[](const Numbers& x) { return shifted_line(x, 1, 0.5); }},
       .results = {same_type}});
  add({.name = "shifted",
       .call = [](const Tensor& x, int64_t dim) { return shifted(x, dim, -2, 0); },
       .lines = {[](const Numbers& x) { return shifted_line(x, -2, 0); }},
       .variant = "back, ",
       .results = {same_type}});
  add({.name = "softmax",
       .call = [](const Tensor& x, int64_t dim) { return softmax(x, dim); },
       .lines = {softmax_of}});
  add({.name = "log_softmax",
       .call = [](const Tensor& x, int64_t dim) { return log_softmax(x, dim); },
       .lines = {log_softmax_of}});
  add({.name = "softmin",
       .call = [](const Tensor& x, int64_t dim) { return softmin(x, dim); },
       .lines = {[](Numbers x) {
         for (double& n : x) n = -n;
         return softmax_of(x);
       }},
       .recorded = "-"});
  for (const bool descending : {false, true}) {
    const char* variant = descending ? "descending, " : "";
    add({.name = "sort",
         .call = [=](const Tensor& x,
                     int64_t dim) { return sort(x, {.dim = dim, .descending = descending}); },
         .lines = {in_order(descending), places_in_order(descending)},
         .variant = variant,
         .results = {same_type, index_type}});
    add({.name = "argsort",
         .call = [=](const Tensor& x,
                     int64_t dim) { return argsort(x, {.dim = dim, .descending = descending}); },
         .lines = {places_in_order(descending)},
         .variant = variant,
         .x = ops::cast(integers({3, 4, 40}, 0, 9), float64),  // with equal ones
         .results = {index_type},
         .order = 0});
    add({.name = "topk",
         .call = [=](const Tensor& x,
                     int64_t dim) { return topk(x, 2, {.dim = dim, .largest = descending}); },
         .lines = {in_order(descending, 2), places_in_order(descending, 2)},
         .variant = descending ? "" : "smallest, ",
         .results = {same_type, index_type},
         .small = normal({2, 3, 2, 2})});
  }
  cases.push_back(make_linear_scan(false));
  cases.push_back(make_linear_scan(true));
  return cases;
}

}  // namespace

const std::vector<OpCase>& scan_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
