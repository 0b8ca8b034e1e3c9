// Products.

#include <algorithm>
#include <cmath>
#include <map>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/attention/attention.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

double sum_over(int64_t n, const std::function<double(int64_t)>& f) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += f(k);
  return sum;
}

/// NumPy's matmul: vectors count as a row or a column, batches broadcast.
Array product_of(Array a, Array b) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a.shape.insert(a.shape.begin(), 1);
  if (column) b.shape.push_back(1);
  Shape shape(static_cast<std::size_t>(std::max(a.rank(), b.rank())), 1);
  for (const Array* x : {&a, &b})
    for (int64_t d = 3; d <= x->rank(); ++d) {
      int64_t& size = shape[shape.size() - static_cast<std::size_t>(d)];
      if (x->size(-d) != 1) size = x->size(-d);
    }
  shape[shape.size() - 2] = a.size(-2);
  shape[shape.size() - 1] = b.size(-1);
  Array y = computed(shape, [&](const Index& at) {
    return sum_over(a.size(-1), [&](int64_t k) {
      Index of_a = at, of_b = at;
      of_a.back() = k;
      of_b[at.size() - 2] = k;
      return a.broadcast(of_a) * b.broadcast(of_b);
    });
  });
  if (column) y.shape.pop_back();
  if (row) y.shape.erase(y.shape.end() - (column ? 1 : 2));
  return y;
}

OpCase product(const Shape& a, const Shape& b) {
  return {.name = "matmul",
          .inputs = {normal(a), normal(b, 2)},
          .call = [](T x) { return matmul(x[0], x[1]); },
          .reference = [](const Arrays& x) { return Arrays{product_of(x[0], x[1])}; },
          .variant = to_string(a) + " " + to_string(b),
          .types = number_types,
          .slack = 2};
}

/// Each letter is a dimension; those that the result lacks are summed over.
Array einsum_of(const std::vector<std::string>& operands, const std::string& result, const Arrays& x) {
  std::map<char, int64_t> sizes;
  for (std::size_t k = 0; k < operands.size(); ++k)
    for (std::size_t d = 0; d < operands[k].size(); ++d) {
      int64_t& size = sizes[operands[k][d]];
      size = std::max(size, x[k].shape[d]);
    }
  Shape shape, summed;
  std::string inner;
  for (const char letter : result) shape.push_back(sizes[letter]);
  for (const auto& [letter, size] : sizes)
    if (result.find(letter) == std::string::npos) {
      inner += letter;
      summed.push_back(size);
    }
  return computed(shape, [&](const Index& outer) {
    double sum = 0;
    (void)computed(summed, [&](const Index& at) {
      double term = 1;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        Index index;
        for (const char letter : operands[k]) {
          const std::size_t d = result.find(letter);
          index.push_back(d != std::string::npos ? outer[d] : at[inner.find(letter)]);
        }
        term *= x[k].broadcast(index);
      }
      sum += term;
      return 0.0;
    });
    return sum;
  });
}

OpCase summation(const std::string& equation, const std::vector<Shape>& shapes,
                 const std::vector<std::string>& operands, const std::string& result) {
  Tensors inputs;
  for (std::size_t k = 0; k < shapes.size(); ++k) inputs.push_back(normal(shapes[k], k + 1));
  return {.name = "einsum",
          .inputs = inputs,
          .call = [equation](T x) { return einsum(equation, x); },
          .reference = [=](const Arrays& x) { return Arrays{einsum_of(operands, result, x)}; },
          .variant = equation,
          .types = number_types,
          .slack = 4};
}

/// A sum along a dimension makes integers int64.
OpCase summed(OpCase c) {
  c.types = all_types;
  c.results = {sum_type};
  return c;
}

Array linear_of(const Arrays& x) {
  const Array& w = x[1];
  Shape shape = x[0].shape;
  shape.back() = w.shape[0];
  return computed(shape, [&](Index at) {
    const int64_t o = at.back();
    return x[2]({o}) + sum_over(w.shape[1], [&](int64_t k) {
             at.back() = k;
             return x[0](at) * w({o, k});
           });
  });
}

OpCase addition(const Shape& input) {
  return {.name = "addmm",
          .inputs = {normal(input), normal({2, 3}, 2), normal({3, 4}, 3)},
          .call = [](T x) { return addmm(x[0], x[1], x[2], {.beta = 3, .alpha = -2}); },
          .reference =
              [](const Arrays& x) {
                const Array product = product_of(x[1], x[2]);
                return Arrays{computed(product.shape, [&](const Index& at) {
                  return 3 * x[0].broadcast(at) - 2 * product(at);
                })};
              },
          .variant = to_string(input),
          .types = number_types,
          .slack = 4,
          .refused = {{{normal(input), normal({2, 3}), normal({2, 4})},
                       [](T x) { return addmm(x[0], x[1], x[2]); },
                       "addmm: "}}};
}

OpCase affine(const Shape& x) {
  return {.name = "linear",
          .inputs = {normal(x), normal({2, 3}, 2), normal({2}, 3)},
          .call = [](T t) { return linear(t[0], t[1], t[2]); },
          .reference = [](const Arrays& t) { return Arrays{linear_of(t)}; },
          .variant = to_string(x),
          .types = number_types,
          .slack = 4,
          .refused = {{{normal(x), normal({2, 5})}, [](T t) { return linear(t[0], t[1]); }, "linear: "}}};
}

OpCase activated(const char* variant, Activation activation, double (*reference)(double)) {
  return {.name = "linear_act",
          .inputs = {normal({4, 3}), normal({5, 3}, 2), normal({5}, 3)},
          .call = [activation](T t) { return linear_act(t[0], t[1], t[2], activation); },
          .reference =
              [reference](const Arrays& x) {
                Array y = linear_of(x);
                std::ranges::transform(y.elements, y.elements.begin(), reference);
                return Arrays{y};
              },
          .variant = variant,
          .slack = 8,
          .refused = {{{normal({4, 3}), normal({2, 5})},
                       [activation](T t) { return linear_act(t[0], t[1], {}, activation); },
                       "linear: "},
                      {{normal({4, 3}), normal({2, 3})},
                       [](T t) { return linear_act(t[0], t[1], {}, static_cast<Activation>(77)); },
                       "linear_act: there is no activation 77"}}};
}

/// softmax(query key^T / 2 + mask) value; a query without a key gives 0. A mask of truth is 0 or 1.
Array attention_of(const Arrays& x, bool is_causal, bool adds) {
  const int64_t keys = x[1].size(-2), width = x[0].size(-1);
  Shape shape = x[0].shape;
  shape.back() = x[2].size(-1);
  return computed(shape, [&](const Index& at) {
    const auto of_key = [&](const Array& from, int64_t j, int64_t column) {
      Index place = at;
      place[at.size() - 2] = j;
      place.back() = column;
      return from.broadcast(place);
    };
    const auto weight = [&](int64_t j) {
      Index place = at;
      place.back() = j;
      const double said = x.size() > 3 ? x[3].broadcast(place) : adds ? 0 : 1;
      if ((is_causal && j > at[at.size() - 2]) || (!adds && said == 0)) return 0.0;
      const double score = sum_over(width, [&](int64_t k) {
        place.back() = k;
        return x[0](place) * of_key(x[1], j, k);
      });
      return std::exp(score / 2 + (adds ? said : 0));
    };
    const double all = sum_over(keys, weight);
    return all == 0 ? 0
                    : sum_over(keys, [&](int64_t j) { return weight(j) * of_key(x[2], j, at.back()); }) / all;
  });
}

/// Of queries [2, 3, 5, 4], keys and values of which some are shared.
OpCase attention(const std::string& variant, const AttentionOptions& options, const Tensors& mask = {}) {
  Tensors inputs = {normal({2, 3, 5, 4}), normal({2, 1, 6, 4}, 2), normal({3, 6, 2}, 3)};
  inputs.insert(inputs.end(), mask.begin(), mask.end());
  const bool adds = !mask.empty() && is_floating(mask[0].dtype());
  return {.name = "scaled_dot_product_attention",
          .inputs = inputs,
          .call =
              [options](T x) {
                AttentionOptions with_mask = options;
                if (x.size() > 3) with_mask.mask = x[3];
                return scaled_dot_product_attention(x[0], x[1], x[2], with_mask);
              },
          .reference = [=](const Arrays& x) { return Arrays{attention_of(x, options.is_causal, adds)}; },
          .variant = variant,
          .slack = 8};
}

std::vector<OpCase> attentions() {
  const Tensor meets =
      logical_and(coins({5, 6}), not_equal(unsqueeze(arange(5, {.device = Device()}), 1), 2));
  std::vector<OpCase> cases = {attention("", {}), attention("causal", {.is_causal = true}),
                               attention("scale", {.scale = 0.5}), attention("mask", {}, {meets}),
                               recorded_as("-", attention("mask to add", {}, {normal({3, 1, 6}, 4)}))};
  for (OpCase& c : cases) {
    if (c.inputs.size() > 3) continue;
    c.large = {normal({2, 2, 150, 20}), normal({2, 2, 130, 20}, 2), normal({2, 2, 130, 24}, 3)};
  }
  const auto call = [](const AttentionOptions& options) {
    return [options](T x) { return scaled_dot_product_attention(x[0], x[1], x[2], options); };
  };
  const auto masked = [](bool is_causal) {
    return [is_causal](T x) {
      return scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3], .is_causal = is_causal});
    };
  };
  const Tensors fitting = {normal({2, 5, 4}), normal({2, 6, 4}), normal({2, 6, 2})};
  const auto with = [&](const Tensor& mask) { return Tensors{fitting[0], fitting[1], fitting[2], mask}; };
  const std::string op = "scaled_dot_product_attention: ";
  cases[0].refused = {{{normal({4}), normal({6, 4}), normal({6, 2})}, call({}), op + "needs a query"},
                      {{normal({5, 4}), normal({6, 3}), normal({6, 2})}, call({}), op + "needs a query"},
                      {{normal({5, 4}), normal({6, 4}), normal({5, 2})}, call({}), op + "needs a query"},
                      {{normal({2, 5, 4}), normal({3, 6, 4}), normal({6, 2})}, call({}), op},
                      {with(coins({5, 6})), masked(true), op + "takes a mask or is_causal"},
                      {with(coins({2, 4, 6})), masked(false), op + "the mask must broadcast"},
                      {with(coins({1, 1, 5, 6})), masked(false), op + "the mask must broadcast"},
                      {with(integers({5, 6}, 0, 2)), masked(false), op + "the mask must be bool"},
                      {fitting, call({.scale = infinity}), op + "scale must be finite"},
                      {fitting, call({.dropout = 1.5}), op + "dropout must be in [0, 1]"}};
  return cases;
}

OpCase vectors(const char* name, Tensor (*function)(const Tensor&, const Tensor&), int64_t n, int64_t m,
               const Reference& reference, std::vector<Refusal> refused) {
  return {.name = name,
          .inputs = {normal({n}), normal({m}, 2)},
          .call = [function](T x) { return function(x[0], x[1]); },
          .reference = reference,
          .types = number_types,
          .slack = 2,
          .large = {normal({8 * n}), normal({8 * m}, 2)},
          .refused = std::move(refused)};
}

/// Along a dimension that is counted from the end.
OpCase crossed(const Shape& a, const Shape& b, int64_t dim, const Shape& shape) {
  return {
      .name = "cross",
      .inputs = {normal(a), normal(b, 2)},
      .call = [dim](T x) { return cross(x[0], x[1], dim); },
      .reference =
          [=](const Arrays& x) {
            return Arrays{computed(shape, [&](Index at) {
              int64_t& i = at[static_cast<std::size_t>(dim + static_cast<int64_t>(shape.size()))];
              const int64_t next = (i + 1) % 3, last = (i + 2) % 3;
              i = next;
              const double p = x[0].broadcast(at), s = x[1].broadcast(at);
              i = last;
              return p * x[1].broadcast(at) - x[0].broadcast(at) * s;
            })};
          },
      .variant = to_string(a) + " " + to_string(b),
      .types = number_types,
      .slack = 8,  // half types are rounded three times
      .refused = {{{normal({3, 2}), normal({3, 2})},
                   [](T x) { return cross(x[0], x[1]); },
                   "cross: both need 3 elements along dimension -1, got"},
                  {{normal({3}), normal({1})}, [](T x) { return cross(x[0], x[1]); }, "cross: both need 3"},
                  {{normal({3}), normal({3, 3})},
                   [](T x) { return cross(x[0], x[1], 0); },
                   "cross: both need 3"},
                  {{normal({3}), normal({3})}, [](T x) { return cross(x[0], x[1], 1); }, "dimension 1 is"}}};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  const std::vector<std::pair<Shape, Shape>> shapes = {{{2, 3}, {3, 2}},
                                                       {{3}, {3}},
                                                       {{2, 3}, {3}},
                                                       {{3}, {3, 2}},
                                                       {{2, 2, 3}, {3}},
                                                       {{3}, {2, 3, 2}},
                                                       {{2, 2, 3}, {3, 2}},
                                                       {{2, 3}, {2, 3, 2}},
                                                       {{2, 1, 2, 3}, {2, 3, 1}},
                                                       {{1, 2, 3}, {2, 3, 2}},
                                                       {{2, 3}, {2, 2, 3, 2}},
                                                       {{2, 2, 2, 3}, {3, 2}},
                                                       {{2, 1, 2, 3}, {1, 3, 3, 2}},
                                                       {{3, 1, 2, 2}, {3, 2, 2, 1}},
                                                       {{2, 2, 2, 3}, {3}},
                                                       {{2, 1, 2, 3}, {1, 2, 1, 3, 2}}};
  for (const auto& [a, b] : shapes) cases.push_back(product(a, b));
  cases.front().large = {normal({130, 70}), normal({70, 90}, 2)};
  cases.front().refused = {
      {{normal({2, 3}), normal({2, 3})}, [](T x) { return matmul(x[0], x[1]); }, "matmul: "},
      {{normal({}), normal({2})}, [](T x) { return matmul(x[0], x[1]); }, "matmul: "},
      {{normal({2, 2, 3}), normal({3, 3, 2})}, [](T x) { return matmul(x[0], x[1]); }, "matmul: "}};
  for (const Shape& input : {Shape{2, 4}, Shape{4}, Shape{2, 1}}) cases.push_back(addition(input));
  for (const Shape& x : {Shape{3}, Shape{4, 3}, Shape{2, 2, 3}}) cases.push_back(affine(x));
  cases.back().large = {normal({20, 30, 40}), normal({70, 40}, 2), normal({70}, 3)};
  cases.push_back({.name = "linear",
                   .inputs = {normal({2, 3}), normal({2, 3}, 2)},
                   .call = [](T t) { return linear(t[0], t[1]); },
                   .reference =
                       [](const Arrays& x) {
                         return Arrays{linear_of({x[0], x[1], {{2}, {0, 0}}})};
                       },
                   .variant = "no bias",
                   .types = number_types,
                   .slack = 4});
  cases.push_back(
      activated("gelu", Activation::gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }));
  cases.push_back(activated("silu", Activation::silu, [](double x) { return x / (1 + std::exp(-x)); }));
  cases.push_back(activated("tanh", Activation::tanh, [](double x) { return std::tanh(x); }));
  const std::vector<OpCase> sums = {
      summation("ij,jk->ki", {{2, 3}, {3, 2}}, {"ij", "jk"}, "ki"),
      summation("bij,bjk->bik", {{2, 2, 3}, {2, 3, 2}}, {"bij", "bjk"}, "bik"),
      summation("ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 2}}, {"ij", "jk", "kl"}, "il"),
      summation("ii,j->ij", {{2, 2}, {3}}, {"ii", "j"}, "ij"),
      summation("...i,...i->...", {{2, 1, 3}, {2, 3}}, {"abi", "bi"}, "ab"),
      summation("i,i,i->i", {{3}, {3}, {3}}, {"i", "i", "i"}, "i"),
      summed(summation("...i,...i->i", {{2, 1, 3}, {2, 3}}, {"abi", "bi"}, "i")),
      summed(summation("i...->i", {{2, 3}}, {"ia"}, "i")),
      summation("ij,ij->ij", {{2, 3}, {1, 3}}, {"ij", "ij"}, "ij"),
      summation("bik,bjk,j->ij", {{2, 4, 5}, {2, 3, 5}, {3}}, {"bik", "bjk", "j"}, "ij"),
  };
  cases.insert(cases.end(), sums.begin(), sums.end());
  cases.back().smooth = {{normal({2, 2, 2}), normal({2, 3, 2}, 2), normal({3}, 3)}};
  cases.back().refused = {{{normal({2, 3})}, [](T x) { return einsum("ijk->i", x); }, "einsum"},
                          {{normal({2, 3})}, [](T x) { return einsum("ij->k", x); }, "einsum"}};
  cases.push_back(recorded_as(
      "matmul",
      vectors("dot", dot, 30, 30, [](const Arrays& x) { return Arrays{product_of(x[0], x[1])}; },
              {{{normal({2}), normal({3})}, [](T x) { return dot(x[0], x[1]); }, "dot: needs two vectors"},
               {{normal({2, 2}), normal({2, 2})},
                [](T x) { return dot(x[0], x[1]); },
                "dot: needs two vectors of one size, got [2, 2]"}})));
  cases.push_back(vectors("outer", outer, 7, 30,
                          [](const Arrays& x) {
                            return Arrays{computed({x[0].size(0), x[1].size(0)}, [&](const Index& at) {
                              return x[0]({at[0]}) * x[1]({at[1]});
                            })};
                          },
                          {{{normal({2, 2}), normal({2})},
                            [](T x) { return outer(x[0], x[1]); },
                            "outer: needs two vectors, got [2, 2]"}}));
  cases.push_back(crossed({4, 3}, {4, 3}, -1, {4, 3}));
  cases.push_back(crossed({3, 1}, {2, 3, 4}, -2, {2, 3, 4}));
  for (const OpCase& c : attentions()) cases.push_back(c);
  return cases;
}

}  // namespace

const std::vector<OpCase>& matmul_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
