// Places in an order, and numbers at them.

#include <algorithm>
#include <cmath>

#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/multinomial.h"
#include "pleat/ops/index/quantile.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

double middle_of(Numbers x) {
  std::sort(x.begin(), x.end());
  return x[(x.size() - 1) / 2];
}

double quantile_of(Numbers x, double q, QuantileInterpolation interpolation) {
  std::sort(x.begin(), x.end());
  const double place = q * static_cast<double>(x.size() - 1);
  const double low = x[static_cast<std::size_t>(std::floor(place))],
               high = x[static_cast<std::size_t>(std::ceil(place))];
  switch (interpolation) {
    case QuantileInterpolation::lower:
      return low;
    case QuantileInterpolation::higher:
      return high;
    case QuantileInterpolation::midpoint:
      return (low + high) / 2;
    case QuantileInterpolation::nearest:
      return x[static_cast<std::size_t>(std::nearbyint(place))];
    default:
      return low + (place - std::floor(place)) * (high - low);
  }
}

OpCase quantile_case(double q, QuantileInterpolation interpolation, std::optional<int64_t> dim,
                     bool keepdim) {
  return {.name = "quantile",
          .inputs = {normal({3, 4, 6})},
          .call =
              [=](T x) {
                return quantile(x[0], q, {.dim = dim, .keepdim = keepdim, .interpolation = interpolation});
              },
          .reference =
              [=](const Arrays& x) {
                return Arrays{reduced(x[0], dim ? Index{*dim} : Index{}, keepdim, [=](const Numbers& line) {
                  return quantile_of(line, q, interpolation);
                })};
              },
          .variant = std::to_string(q) + ", " + std::to_string(static_cast<int>(interpolation)) +
                     (dim ? ", dim " + std::to_string(*dim) : "") + (keepdim ? ", keepdim" : ""),
          .types = all_types,
          .results = {floating_type},
          .smooth = {{normal({2, 3, 4})}},
          .slack = 2,
          .refused = {{{normal({2, 3})}, [](T x) { return quantile(x[0], 1.5); }, "quantile: q must be in"},
                      {{normal({2, 3})}, [](T x) { return quantile(x[0], 0.5, {.dim = 2}); }, "quantile: "},
                      {{normal({2, 0})}, [](T x) { return quantile(x[0], 0.5); }, "quantile: needs at"}}};
}

/// Of values in the lines of what is sorted, or in one line.
OpCase searching(const std::string& variant, const Tensor& sorted, const Tensor& values, bool right) {
  return {.name = "searchsorted",
          .inputs = {sorted, values},
          .call = [right](T x) { return searchsorted(x[0], x[1], {.right = right}); },
          .reference =
              [right](const Arrays& x) {
                return Arrays{computed(x[1].shape, [&](const Index& at) {
                  int64_t place = 0;
                  for (Index i = x[0].rank() == 1 ? Index{0} : at; place < x[0].size(-1); ++place) {
                    i.back() = place;
                    if (right ? x[0](i) > x[1](at) : x[0](i) >= x[1](at)) break;
                  }
                  return static_cast<double>(place);
                })};
              },
          .variant = variant,
          .types = number_types,
          .results = {index_type},
          .order = 0,
          .refused = {{{normal({2, 3}), normal({3, 3})},
                       [](T x) { return searchsorted(x[0], x[1]); },
                       "searchsorted: what is sorted must be [N]"},
                      {{normal({}), normal({3})},
                       [](T x) { return searchsorted(x[0], x[1]); },
                       "searchsorted: what"},
                      {{normal({3}), integers({3}, 0, 3)},
                       [](T x) { return searchsorted(x[0], x[1]); },
                       "must be of one type"}}};
}

Tensor whole(const Shape& shape, uint64_t seed) { return ops::cast(integers(shape, 0, 9, seed), float64); }

OpCase counting(bool weighted) {
  const Tensor counted = integers({20}, 0, 7);
  return {
      .name = "bincount",
      .inputs = weighted ? Tensors{counted, normal({20}, 2)} : Tensors{counted},
      .call =
          [weighted](T x) { return bincount(x[0], {.weights = weighted ? x[1] : Tensor(), .minlength = 9}); },
      .reference =
          [weighted](const Arrays& x) {
            Array counts{{9}, Numbers(9)};
            for (int64_t i = 0; i < 20; ++i)
              counts({static_cast<int64_t>(x[0]({i}))}) += weighted ? x[1]({i}) : 1;
            return Arrays{counts};
          },
      .variant = weighted ? "weighted" : "",
      .types = weighted ? number_types : Types{.floating = false, .integers = true},
      .results = {weighted ? same_type : index_type},
      .order = 0,
      .slack = 4,
      .refused = {{{normal({3})}, [](T x) { return bincount(x[0]); }, "bincount: needs integers"},
                  {{integers({2, 2}, 0, 3)}, [](T x) { return bincount(x[0]); }, "bincount: needs a"},
                  {{integers({3}, -5, -1)}, [](T x) { return bincount(x[0]); }, "bincount: integers must"},
                  {{integers({3}, 0, 3)},
                   [](T x) { return bincount(x[0], {.minlength = -1}); },
                   "bincount: minlength must"},
                  {{integers({3}, 0, 3), normal({2})},
                   [](T x) { return bincount(x[0], {.weights = x[1]}); },
                   "bincount: the weights must"}}};
}

/// Where one weight of each row is not 0 chance has no part; multinomial_test.cpp has the rest.
OpCase drawing(bool replacement) {
  return {
      .name = "multinomial",
      .inputs = {from_vector(std::vector<double>{0, 2, 0, 0, 0, 0, 0, 0.5, 1, 0, 0, 0}, {3, 4}, Device())},
      .call = [=](T x) { return multinomial(x[0], 1, {.replacement = replacement}); },
      .reference =
          [](const Arrays& x) {
            return Arrays{computed({x[0].shape[0], 1}, [&](const Index& at) {
              int64_t place = 0;
              while (x[0]({at[0], place}) == 0) ++place;
              return static_cast<double>(place);
            })};
          },
      .variant = replacement ? "with replacement" : "",
      .results = {index_type},
      .order = 0,
      .refused = {{{normal({2, 3, 4})}, [](T x) { return multinomial(x[0], 1); }, "multinomial: the weights"},
                  {{integers({3}, 1, 3)}, [](T x) { return multinomial(x[0], 1); }, "must be floating"}}};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  for (const std::optional<int64_t> dim : {std::optional<int64_t>{}, {0}, {1}, {-1}})
    for (const bool keepdim : {false, true})
      cases.push_back(
          {.name = "median",
           .inputs = {normal({3, 4, 5})},
           .call = [=](T x) { return median(x[0], {.dim = dim, .keepdim = keepdim}); },
           .reference = over(dim ? Index{*dim} : Index{}, keepdim, middle_of),
           .variant = (dim ? "dim " + std::to_string(*dim) : "") + (keepdim ? ", keepdim" : ""),
           .types = all_types,
           .smooth = {{normal({2, 3, 4})}},
           .refused = {{{normal({0, 3})}, [](T x) { return median(x[0]); }, "median: needs at"}}});
  using enum QuantileInterpolation;
  for (const QuantileInterpolation interpolation : {linear, lower, higher, midpoint, nearest})
    for (const double q : {0.0, 0.37, 1.0}) cases.push_back(quantile_case(q, interpolation, 1, false));
  cases.push_back(quantile_case(0.6, linear, {}, true));
  cases.push_back(quantile_case(0.25, linear, -1, true));
  const Tensor sorted = sort(whole({7}, 1)).values, lines = sort(whole({2, 3, 7}, 2)).values;
  for (const bool right : {false, true}) {
    const std::string side = right ? ", right" : "";
    cases.push_back(searching("a line" + side, sorted, whole({2, 3, 4}, 3), right));
    cases.push_back(searching("lines" + side, lines, whole({2, 3, 4}, 4), right));
  }
  cases.push_back(drawing(false));
  cases.push_back(drawing(true));
  cases.push_back(counting(false));
  cases.push_back(counting(true));
  return cases;
}

}  // namespace

const std::vector<OpCase>& search_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
