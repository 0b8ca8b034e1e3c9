// Elements that meet in one place, and places named by vectors of indices.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/index/scatter.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

const std::vector<std::pair<ScatterReduction, const char*>> reductions = {{ScatterReduction::sum, "sum"},
                                                                          {ScatterReduction::prod, "prod"},
                                                                          {ScatterReduction::mean, "mean"},
                                                                          {ScatterReduction::amax, "amax"},
                                                                          {ScatterReduction::amin, "amin"}};

double reduced(ScatterReduction reduction, const Numbers& n) {
  switch (reduction) {
    case ScatterReduction::sum:
      return std::accumulate(n.begin(), n.end(), 0.0);
    case ScatterReduction::mean:
      return std::accumulate(n.begin(), n.end(), 0.0) / static_cast<double>(n.size());
    case ScatterReduction::prod:
      return std::accumulate(n.begin(), n.end(), 1.0, std::multiplies<>());
    case ScatterReduction::amax:
      return *std::max_element(n.begin(), n.end());
    case ScatterReduction::amin:
      break;
  }
  return *std::min_element(n.begin(), n.end());
}

/// x[0] with the elements of x[2] reduced into where `place` says.
Reference meeting(ScatterReduction reduction, bool include_self,
                  const std::function<Index(const Index& at, const Array& index)>& place) {
  return [=](const Arrays& x) {
    std::map<Index, Numbers> met;
    (void)computed(x[2].shape, [&](const Index& at) {
      met[place(at, x[1])].push_back(x[2](at));
      return 0.0;
    });
    Array y = x[0];
    for (auto& [at, numbers] : met) {
      if (include_self) numbers.insert(numbers.begin(), x[0](at));
      y(at) = reduced(reduction, numbers);
    }
    return Arrays{y};
  };
}

Index along_2(const Index& at, const Array& index) {
  Index to = at;
  to[2] = static_cast<int64_t>(index(at));
  return to;
}
Index along_0(const Index& at, const Array& index) { return {static_cast<int64_t>(index(at))}; }

OpCase reducing(ScatterReduction reduction, const std::string& name, bool include_self) {
  const ScatterReduceOptions options{.reduce = reduction, .include_self = include_self};
  // Means of integers are rounded down: of numbers that are not negative, as the test cuts them.
  const auto numbers = [&](const Shape& shape, uint64_t seed) {
    return reduction == ScatterReduction::mean ? uniform(shape, 0, 9, seed) : normal(shape, seed);
  };
  return {
      .name = "scatter_reduce",
      .inputs = {numbers({2, 3, 4, 5}, 1), integers({2, 3, 6, 5}, 0, 3), numbers({2, 3, 6, 5}, 2)},
      .call = [options](T x) { return scatter_reduce(x[0], 2, x[1], x[2], options); },
      .reference = meeting(reduction, include_self, along_2),
      .variant = name + (include_self ? "" : ", without self"),
      .types = number_types,
      .smooth = {{normal({2, 1, 4, 1}), integers({2, 1, 6, 1}, 0, 3), normal({2, 1, 6, 1}, 2)}},
      .slack = 4,
      .large = {numbers({30, 40, 50, 2}, 1), integers({30, 40, 60, 2}, 0, 50), numbers({30, 40, 60, 2}, 2)},
      .in_place = {"scatter_reduce_",
                   [options](T x) { return scatter_reduce_(x[0], 2, x[1], x[2], options); }}};
}

/// Along a line so long that on a GPU its elements are sorted by where they go, and with factors of 0: some
/// places get one, some several.
OpCase long_line(ScatterReduction reduction, const std::string& name) {
  OpCase c = reducing(reduction, name, true);
  c.variant = name + ", a long line with zeros";
  const auto with_zeros = [](int64_t n) {
    const Tensor values = uniform({n}, 0.5, 1.5, 3), keep = uniform({n}, 0, 1, 4);
    Numbers numbers = values.to_vector<double>();
    const Numbers kept = keep.to_vector<double>();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (kept[i] < 0.25) numbers[i] = 0;
    return from_vector(numbers, {n}, Device());
  };
  c.inputs = {uniform({9}, 1, 2), integers({40}, 0, 9), with_zeros(40)};
  c.smooth = {{uniform({4}, 1, 2), integers({9}, 0, 4), with_zeros(9)}};
  c.call = [reduction](T x) { return scatter_reduce(x[0], 0, x[1], x[2], {.reduce = reduction}); };
  c.reference = meeting(reduction, true, along_0);
  c.in_place = {};
  c.large = {};
  return c;
}

std::vector<OpCase> make_reduce() {
  std::vector<OpCase> cases;
  for (const auto& [reduction, name] : reductions)
    for (const bool include_self : {true, false}) cases.push_back(reducing(reduction, name, include_self));
  cases.push_back(long_line(ScatterReduction::prod, "prod"));
  const auto sum = [](T x) { return scatter_reduce(x[0], 1, x[1], x[2], {.reduce = ScatterReduction::sum}); };
  const Tensor small = normal({3, 4});
  cases.front().refused = {
      {{small, integers({3, 2}, 4, 9), normal({3, 2})}, sum, "scatter_reduce: index"},
      {{small, integers({3, 2}, 0, 4), normal({3, 1})},
       sum,
       "scatter_reduce: the source must have the index's"},
      {{small, integers({4, 2}, 0, 4), normal({4, 2})},
       sum,
       "scatter_reduce: the index [4, 2] must not exceed"},
      {{small, integers({2}, 0, 4), normal({2})}, sum, "scatter_reduce: the index must have the rank"},
      {{small, integers({3, 2}, 0, 4), normal({3, 2}).to(float32)},
       sum,
       "scatter_reduce: the source must be"},
      {{small, normal({3, 2}), normal({3, 2})}, sum, "scatter_reduce: indices must be integers"}};
  return cases;
}

/// x[0] with the elements of x[2] written where `place` says; of several the last stands.
Reference written(const std::function<Index(const Index& at, const Array& index)>& place) {
  return [=](const Arrays& x) {
    Array y = x[0];
    (void)computed(x[2].shape, [&](const Index& at) {
      y(place(at, x[1])) = x[2](at);
      return 0.0;
    });
    return Arrays{y};
  };
}

/// Where the vector of indices at the beginning of `at` leads, behind `batch` sizes that both share.
Index led(const Index& at, const Array& indices, std::size_t batch) {
  const auto rank = static_cast<std::size_t>(indices.rank()) - 1;
  Index to(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(batch));
  Index vector(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rank));
  vector.push_back(0);
  for (int64_t j = 0; j < indices.size(-1); ++j) {
    vector.back() = j;
    to.push_back(static_cast<int64_t>(indices(vector)));
  }
  to.insert(to.end(), at.begin() + static_cast<std::ptrdiff_t>(rank), at.end());
  return to;
}

OpCase gathering(const char* variant, const Tensors& inputs, int64_t batch_dims, const Shape& result) {
  return {.name = "gather_nd",
          .inputs = inputs,
          .call = [=](T x) { return gather_nd(x[0], x[1], {.batch_dims = batch_dims}); },
          .reference =
              [=](const Arrays& x) {
                return Arrays{computed(result, [&](const Index& at) {
                  return x[0](led(at, x[1], static_cast<std::size_t>(batch_dims)));
                })};
              },
          .variant = variant,
          .types = all_types};
}

OpCase scattering(const std::string& variant, std::optional<ScatterReduction> reduction) {
  // Without a reduction each place is named once.
  const Tensor indices =
      reduction ? integers({2, 3, 2}, 0, 3)
                : from_vector<int64_t>({0, 1, 2, 2, 1, 0, 0, 0, 2, 1, 1, 2}, {2, 3, 2}, Device());
  const auto place = [](const Index& at, const Array& index) { return led(at, index, 0); };
  const bool positive = reduction == ScatterReduction::mean;
  return {.name = "scatter_nd",
          .inputs = {positive ? uniform({3, 3, 4}, 0, 9) : normal({3, 3, 4}), indices,
                     positive ? uniform({2, 3, 4}, 0, 9, 2) : normal({2, 3, 4}, 2)},
          .call = [=](T x) { return scatter_nd(x[0], x[1], x[2], {.reduction = reduction}); },
          .reference = reduction ? meeting(*reduction, true, place) : written(place),
          .variant = variant,
          .types = reduction ? number_types : all_types,
          .smooth = {{normal({3, 3, 1}), indices, normal({2, 3, 1}, 2)}},
          .slack = 4};
}

std::vector<OpCase> make_nd() {
  const Tensor small = normal({3, 4});
  OpCase gather_case = gathering("", {normal({2, 3, 4, 5}), integers({6, 2}, 0, 2)}, 0, {6, 4, 5});
  gather_case.refused = {{{small, integers({2, 2}, 3, 4)},
                          [](T x) { return gather_nd(x[0], x[1]); },
                          "gather_nd: index 3 at [0] is outside [-3, 3), dimension 0 of [3, 4]"},
                         {{small, integers({2, 3}, 0, 2)},
                          [](T x) { return gather_nd(x[0], x[1]); },
                          "gather_nd: the indices must be vectors [..., k] for 1 to 2 dimensions of the "
                          "tensor [3, 4], got [2, 3]"},
                         {{small, integers({2, 0}, 0, 2)},
                          [](T x) { return gather_nd(x[0], x[1]); },
                          "gather_nd: the indices must"},
                         {{small, normal({2, 2})},
                          [](T x) { return gather_nd(x[0], x[1]); },
                          "gather_nd: indices must be integers"},
                         {{small, integers({2, 1}, 0, 2)},
                          [](T x) { return gather_nd(x[0], x[1], {.batch_dims = 1}); },
                          "gather_nd: tensor and indices must have the same first 1 sizes"},
                         {{small, integers({3, 1}, 0, 2)},
                          [](T x) { return gather_nd(x[0], x[1], {.batch_dims = 2}); },
                          "gather_nd: batch_dims must be at least 0 and below 2"}};
  OpCase scatter_case = scattering("", {});
  scatter_case.refused = {
      {{small, integers({2, 2}, 3, 4), normal({2})},
       [](T x) { return scatter_nd(x[0], x[1], x[2]); },
       "scatter_nd: index 3 at [0] is outside [-3, 3)"},
      {{small, integers({2, 1}, 0, 3), normal({2, 3})},
       [](T x) { return scatter_nd(x[0], x[1], x[2]); },
       "scatter_nd: the updates must be [2, 4], got [2, 3]"},
      {{small, integers({2, 1}, 0, 3), normal({2, 4}).to(float32)},
       [](T x) { return scatter_nd(x[0], x[1], x[2]); },
       "scatter_nd: the updates must be float64 like the tensor, got float32"},
      {{coins({3}), integers({2, 1}, 0, 3), coins({2})},
       [](T x) { return scatter_nd(x[0], x[1], x[2], {.reduction = ScatterReduction::sum}); },
       "scatter_nd: a reduction needs numbers, got bool"}};
  std::vector<OpCase> cases = {
      gather_case,
      gathering("all dimensions, from the end",
                {normal({3, 4}), from_vector<int64_t>({-1, 0, 2, -4, 1, 3}, {3, 2}, Device())}, 0, {3}),
      gathering("batch_dims", {normal({2, 3, 4, 5}), integers({2, 3, 6, 1}, 0, 4)}, 2, {2, 3, 6, 5}),
      scatter_case};
  // The reference knows no places from the end.
  cases[1].reference = [](const Arrays& x) {
    return Arrays{computed({3}, [&](const Index& at) {
      const auto from_start = [&](int64_t j) {
        const auto i = static_cast<int64_t>(x[1]({at[0], j}));
        return i < 0 ? i + x[0].size(j) : i;
      };
      return x[0]({from_start(0), from_start(1)});
    })};
  };
  for (const auto& [reduction, name] : reductions) cases.push_back(scattering(name, reduction));
  return cases;
}

}  // namespace

const std::vector<OpCase>& scatter_ops() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all = make_reduce();
    for (OpCase& c : make_nd()) all.push_back(std::move(c));
    return all;
  }();
  return cases;
}

}  // namespace pleat::test
