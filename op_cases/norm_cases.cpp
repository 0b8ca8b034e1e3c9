// Normalisations.

#include <algorithm>
#include <cmath>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/matmul/distance.h"
#include "pleat/ops/norm/norm.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

/// (x - mean) / sqrt(variance + 1e-5), mean and variance over the elements of x that `group` gives the same
/// name, then times weight[at] plus bias[at].
Array normalised(const Arrays& x, const std::function<Index(const Index&)>& group,
                 const std::function<Index(const Index&)>& parameter) {
  const auto in_group = [&](const Index& name) {
    double sum = 0, squares = 0, count = 0;
    (void)computed(x[0].shape, [&](const Index& at) {
      if (group(at) != name) return 0.0;
      sum += x[0](at);
      ++count;
      return 0.0;
    });
    const double mean = sum / count;
    (void)computed(x[0].shape, [&](const Index& at) {
      if (group(at) == name) squares += (x[0](at) - mean) * (x[0](at) - mean);
      return 0.0;
    });
    return std::pair(mean, squares / count);
  };
  return computed(x[0].shape, [&](const Index& at) {
    const auto [mean, variance] = in_group(group(at));
    const Index p = parameter(at);
    return (x[0](at) - mean) / std::sqrt(variance + 1e-5) * x[1](p) + x[2](p);
  });
}

Index channel(const Index& at) { return {at[1]}; }
Index instance(const Index& at) { return {at[0], at[1]}; }

Tensors with_parameters(const Shape& shape, const Shape& parameters) {
  return {normal(shape), normal(parameters, 2), normal(parameters, 3)};
}

/// In training: the batch's statistics normalise, and move the running ones.
OpCase batch_norm_case(bool training, bool relu, const Shape& shape) {
  const auto running = [](T x) {
    return std::pair(constant(normal({3}, 4), x[1]), constant(uniform({3}, 0.5, 2, 5), x[1]));
  };
  return {.name = "batch_norm",
          .inputs = with_parameters(shape, {3}),
          .call =
              [=](T x) {
                const auto [mean, variance] = running(x);
                const Tensor y =
                    batch_norm(x[0], x[1], x[2], mean, variance,
                               {.training = training, .bounds = relu ? Bounds{.min = 0} : Bounds()});
                return Tensors{y, mean, variance};
              },
          .values_in = "ops/norm_test.cpp",
          .variant =
              std::string(training ? "training " : "evaluation ") + (relu ? "relu " : "") + to_string(shape),
          .smooth = {with_parameters(shape.size() == 3 ? Shape{3, 3, 2} : Shape{2, 3, 1, 2}, {3})},
          .slack = 8,
          .refused = {{{normal(shape), normal({4}, 2), normal({4}, 3)},
                       [](T x) { return batch_norm(x[0], x[1], x[2], {}, {}, {.training = true}); },
                       "batch_norm: "}}};
}

OpCase rms_norm_case(bool weighted, const Shape& shape, const Shape& row) {
  const std::size_t outer = shape.size() - row.size();
  const auto inputs = [=](const Shape& of) {
    Tensors x{normal(of)};
    if (weighted) x.push_back(normal(row, 2));
    return x;
  };
  return {.name = "rms_norm",
          .inputs = inputs(shape),
          .call =
              [=](T x) {
                return rms_norm(x[0], weighted ? x[1] : Tensor(), {.normalized_shape = row, .eps = 1e-5});
              },
          .reference =
              [=](const Arrays& x) {
                return Arrays{computed(shape, [&](const Index& at) {
                  double squares = 0, values = 0;
                  (void)computed(row, [&](const Index& in_row) {
                    Index other(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(outer));
                    other.insert(other.end(), in_row.begin(), in_row.end());
                    squares += x[0](other) * x[0](other);
                    ++values;
                    return 0.0;
                  });
                  const Index place(at.begin() + static_cast<std::ptrdiff_t>(outer), at.end());
                  return x[0](at) / std::sqrt(squares / values + 1e-5) * (weighted ? x[1](place) : 1);
                })};
              },
          .variant = to_string(shape) + (weighted ? "" : " no weight"),
          .slack = 2,
          .large = {normal(row.size() == 1 ? Shape{30000, 5} : Shape{30000, 2, 3}), normal(row, 2)},
          .refused = {{{normal({4, 3}), normal({4})},
                       [](T x) { return rms_norm(x[0], x[1], {.normalized_shape = 4}); },
                       "rms_norm: input must end in the dimensions [4], got [4, 3]"},
                      {{normal({4, 3}), normal({4})},
                       [](T x) { return rms_norm(x[0], x[1], {.normalized_shape = 3}); },
                       "rms_norm: weight must be [3], got [4]"},
                      {{normal({4, 3})},
                       [](T x) { return rms_norm(x[0], {}, {.normalized_shape = 3, .eps = 0}); },
                       "rms_norm: eps must be above 0, got 0"}}};
}

OpCase response_norm_case(const Shape& shape, int64_t size) {
  return {
      .name = "local_response_norm",
      .inputs = {normal(shape)},
      .call =
          [=](T x) { return local_response_norm(x[0], {.size = size, .alpha = 0.5, .beta = 0.75, .k = 2}); },
      .reference =
          [=](const Arrays& x) {
            return Arrays{computed(shape, [&](const Index& at) {
              double squares = 0;
              for (int64_t c = at[1] - size / 2; c < at[1] - size / 2 + size; ++c) {
                Index other = at;
                other[1] = c;
                if (c >= 0 && c < shape[1]) squares += x[0](other) * x[0](other);
              }
              return x[0](at) / std::pow(2 + 0.5 * squares / static_cast<double>(size), 0.75);
            })};
          },
      .variant = "size " + std::to_string(size),
      .smooth = {{normal({2, 3, 2})}},
      .slack = 8,
      .large = {normal({8, 16, 40, 40})},
      .recorded = "-",
      .refused = {{{normal({2, 3})},
                   [](T x) { return local_response_norm(x[0], {.size = 2}); },
                   "local_response_norm: input must be [N, C, spatial...], got [2, 3]"},
                  {{normal({2, 3, 4})},
                   [](T x) { return local_response_norm(x[0], {.size = 0}); },
                   "local_response_norm: size must be at least 1, got 0"}}};
}

double length_of(const Numbers& x, double p) {
  double sum = 0;
  for (const double n : x) sum += std::pow(std::abs(n), p);
  return std::pow(sum, 1 / p);
}

OpCase normalize_case(double p, int64_t dim) {
  return {.name = "normalize",
          .inputs = {normal({3, 4, 5})},
          .call = [=](T x) { return normalize(x[0], {.p = p, .dim = dim}); },
          .reference = along(dim,
                             [p](Numbers x) {
                               const double length = std::max(length_of(x, p), 1e-12);
                               for (double& n : x) n /= length;
                               return x;
                             }),
          .variant = "p " + std::to_string(p) + " dim " + std::to_string(dim),
          .types = all_types,
          .results = {floating_type},
          .smooth = {{uniform({2, 3, 2}, 0.5, 2)}},
          .slack = 4,
          .large = {normal({300, 40, 10})},
          .recorded = "-",
          .refused = {{{normal({2})}, [](T x) { return normalize(x[0]); }, "dimension 1 is outside"},
                      {{normal({2, 2})},
                       [](T x) { return normalize(x[0], {.eps = -1}); },
                       "normalize: eps must be at least 0 and finite, got -1"}}};
}

/// f(difference or products of two lines) along a dimension of the shape that both broadcast to.
Reference of_two_lines(const Shape& shape, std::size_t dim,
                       const std::function<double(const Numbers&, const Numbers&)>& f) {
  return [=](const Arrays& x) {
    Shape rest = shape;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(dim));
    return Arrays{computed(rest, [&](const Index& at) {
      Numbers a, b;
      for (int64_t i = 0; i < shape[dim]; ++i) {
        Index place = at;
        place.insert(place.begin() + static_cast<std::ptrdiff_t>(dim), i);
        a.push_back(x[0].broadcast(place));
        b.push_back(x[1].broadcast(place));
      }
      return f(a, b);
    })};
  };
}

OpCase similarity_case(const Shape& a, const Shape& b, const Shape& shape, int64_t dim) {
  return {.name = "cosine_similarity",
          .inputs = {normal(a), normal(b, 2)},
          .call = [=](T x) { return cosine_similarity(x[0], x[1], {.dim = dim}); },
          .reference = of_two_lines(shape, static_cast<std::size_t>(dim),
                                    [](const Numbers& p, const Numbers& q) {
                                      double sum = 0;
                                      for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] * q[i];
                                      return sum / std::max(length_of(p, 2), 1e-8) /
                                             std::max(length_of(q, 2), 1e-8);
                                    }),
          .variant = to_string(a) + " " + to_string(b),
          .types = all_types,
          .results = {floating_type},
          .slack = 16,  // terms cancel, and half types are rounded several times
          .recorded = "-",
          .refused = {{{normal({2, 3}), normal({2, 4})},
                       [](T x) { return cosine_similarity(x[0], x[1]); },
                       "cosine_similarity: "},
                      {{normal({2, 3}), normal({3})},
                       [](T x) { return cosine_similarity(x[0], x[1], {.dim = 2}); },
                       "dimension 2 is outside"},
                      {{normal({2, 3}), normal({2, 3})},
                       [](T x) { return cosine_similarity(x[0], x[1], {.eps = 0}); },
                       "cosine_similarity: eps must be above 0 and finite, got 0"}}};
}

OpCase distance_case(double p, const Shape& a, const Shape& b, const Shape& shape) {
  return {.name = "pairwise_distance",
          .inputs = {normal(a), normal(b, 2)},
          .call = [=](T x) { return pairwise_distance(x[0], x[1], {.p = p, .eps = 1e-3}); },
          .reference = of_two_lines(shape, shape.size() - 1,
                                    [p](Numbers x, const Numbers& y) {
                                      for (std::size_t i = 0; i < x.size(); ++i) x[i] += 1e-3 - y[i];
                                      return length_of(x, p);
                                    }),
          .variant = "p " + std::to_string(p),
          .types = all_types,
          .results = {floating_type},
          .slack = 8,  // differences of half types are rounded
          .recorded = "-",
          .refused = {{{normal({2, 3}), normal({2, 4})},
                       [](T x) { return pairwise_distance(x[0], x[1]); },
                       "pairwise_distance: "}}};
}

/// Of all pairs of rows, and of all elements.
std::vector<OpCase> distances(double p) {
  const Tensors rows{normal({2, 3, 5}), normal({4, 5}, 2)};
  const auto pairs = [p](T x) { return cdist(x[0], x[1], {.p = p}); };
  const auto all = [p](T x) { return distance(x[0], x[1], {.p = p}); };
  const auto row_length = [p](const Arrays& x, int64_t n, int64_t i, int64_t j) {
    Numbers line;
    for (int64_t k = 0; k < 5; ++k) line.push_back(x[0]({n, i, k}) - x[1]({j, k}));
    return length_of(line, p);
  };
  const auto row_lengths = [=](const Arrays& x) {
    return Arrays{computed({2, 3, 4}, [&](const Index& at) { return row_length(x, at[0], at[1], at[2]); })};
  };
  const auto length = [p](const Arrays& x) {
    Numbers line;
    (void)computed(x[0].shape, [&](const Index& at) {
      line.push_back(x[0](at) - x[1].broadcast(at));
      return 0.0;
    });
    return Arrays{{{}, {length_of(line, p)}}};
  };
  OpCase each{.name = "cdist",
              .inputs = rows,
              .call = pairs,
              .reference = row_lengths,
              .variant = "p " + std::to_string(p),
              .types = all_types,
              .results = {floating_type},
              .slack = 8,
              .recorded = "-",
              .refused = {{{normal({2, 3}), normal({2, 4})}, pairs, "cdist: needs rows of one length"},
                          {{normal({3}), normal({2, 3})}, pairs, "cdist: needs rows of one length"}}};
  OpCase together = each;
  together.name = "distance";
  together.inputs = {normal({2, 3, 5}), normal({3, 1}, 2)};
  together.call = all;
  together.reference = length;
  together.refused = {{{normal({2, 3}), normal({2, 4})}, all, "distance: "}};
  return {each, together};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  for (const double p : {1.0, 2.0, 3.0})
    for (OpCase& c : distances(p)) cases.push_back(std::move(c));
  for (const bool training : {true, false})
    for (const bool relu : {false, true})
      for (const Shape& shape : {Shape{2, 3, 9}, Shape{2, 3, 7, 6}, Shape{2, 3, 3, 2, 4}})
        cases.push_back(batch_norm_case(training, relu, shape));
  cases.push_back({.name = "batch_norm",
                   .inputs = with_parameters({2, 3, 7, 6}, {3}),
                   .call = [](T x) { return batch_norm(x[0], x[1], x[2], {}, {}, {.training = true}); },
                   .reference = [](const Arrays& x) { return Arrays{normalised(x, channel, channel)}; },
                   .variant = "no running statistics",
                   .smooth = {with_parameters({2, 3, 2}, {3})},
                   .slack = 8,
                   .large = {normal({8, 16, 40, 40}), normal({16}, 2), normal({16}, 3)}});
  cases.push_back(
      {.name = "group_norm",
       .inputs = with_parameters({2, 6, 3, 4}, {6}),
       .call = [](T x) { return group_norm(x[0], x[1], x[2], {.num_groups = 3}); },
       .reference =
           [](const Arrays& x) {
             return Arrays{normalised(
                 x,
                 [](const Index& at) {
                   return Index{at[0], at[1] / 2};
                 },
                 channel)};
           },
       .smooth = {with_parameters({2, 6, 2}, {6})},
       .slack = 8,
       .large = {normal({8, 18, 40, 40}), normal({18}, 2), normal({18}, 3)},
       .refused = {{with_parameters({2, 4, 3}, {4}),
                    [](T x) { return group_norm(x[0], x[1], x[2], {.num_groups = 3}); }, "group_norm: "}}});
  cases.push_back(
      {.name = "instance_norm",
       .inputs = with_parameters({2, 3, 7, 6}, {3}),
       .call = [](T x) { return instance_norm(x[0], x[1], x[2], {}, {}); },
       .reference = [](const Arrays& x) { return Arrays{normalised(x, instance, channel)}; },
       .smooth = {with_parameters({2, 3, 3}, {3})},
       .slack = 8,
       .refused = {{with_parameters({2, 3}, {3}), [](T x) { return instance_norm(x[0], x[1], x[2], {}, {}); },
                    "instance_norm: "}}});
  cases.push_back(
      {.name = "layer_norm",
       .inputs = with_parameters({4, 3, 5}, {3, 5}),
       .call = [](T x) { return layer_norm(x[0], x[1], x[2], {.normalized_shape = x[1].shape()}); },
       .reference =
           [](const Arrays& x) {
             return Arrays{normalised(
                 x, [](const Index& at) { return Index{at[0]}; },
                 [](const Index& at) {
                   return Index{at[1], at[2]};
                 })};
           },
       .smooth = {with_parameters({2, 3, 2}, {3, 2})},
       .slack = 8,
       .large = {normal({300, 30, 10}), normal({30, 10}, 2), normal({30, 10}, 3)},
       .refused = {{with_parameters({4, 3, 5}, {5}),
                    [](T x) {
                      return layer_norm(x[0], x[1], x[2], {.normalized_shape = {3, 5}});
                    },
                    "layer_norm: "}}});
  for (const bool weighted : {true, false}) {
    cases.push_back(rms_norm_case(weighted, {4, 3, 5}, {5}));
    cases.push_back(rms_norm_case(weighted, {4, 2, 3}, {2, 3}));
  }
  for (const int64_t size : {1, 2, 3, 5}) cases.push_back(response_norm_case({2, 4, 3, 2}, size));
  cases.push_back(normalize_case(2, 1));
  cases.push_back(normalize_case(1, -1));
  cases.push_back(normalize_case(3, 0));
  cases.push_back(similarity_case({3, 4}, {3, 4}, {3, 4}, 1));
  cases.push_back(similarity_case({2, 4, 3}, {4, 1}, {2, 4, 3}, 1));
  cases.push_back(distance_case(2, {3, 4}, {3, 4}, {3, 4}));
  cases.push_back(distance_case(1, {2, 3, 4}, {3, 4}, {2, 3, 4}));
  cases.push_back(distance_case(3, {3, 4}, {4}, {3, 4}));
  return cases;
}

}  // namespace

const std::vector<OpCase>& norm_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
