// Losses that are 0 beyond a margin, and those of three tensors.

#include <algorithm>
#include <cmath>

#include "pleat/nn/loss.h"
#include "pleat/op_cases/op_case.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

/// Numbers that are no variables, in a floating type.
Tensor beside(const Tensor& x, const Numbers& numbers, const Shape& shape) {
  return ops::to_device(ops::cast(from_vector(numbers, shape, Device()), floating_type(x.dtype())),
                        x.device());
}

/// 1 and -1 in turn.
Tensor signs(const Shape& shape, const Tensor& x) {
  Numbers numbers(static_cast<std::size_t>(count(shape)), 1);
  for (std::size_t i = 1; i < numbers.size(); i += 2) numbers[i] = -1;
  return beside(x, numbers, shape);
}
double sign_at(int64_t i) { return i % 2 == 0 ? 1 : -1; }

double mean_of(const Numbers& losses) {
  double sum = 0;
  for (const double n : losses) sum += n;
  return sum / static_cast<double>(losses.size());
}

/// The mean of a loss for each of `n` rows.
Reference mean_over_rows(int64_t n, const std::function<double(const Arrays&, int64_t row)>& loss) {
  return [=](const Arrays& x) {
    Numbers losses;
    for (int64_t i = 0; i < n; ++i) losses.push_back(loss(x, i));
    return Arrays{{{}, {mean_of(losses)}}};
  };
}

double distance_of(const Array& a, const Array& b, int64_t row, double p) {
  double sum = 0;
  for (int64_t d = 0; d < a.size(-1); ++d) sum += std::pow(std::abs(a({row, d}) - b({row, d}) + 1e-6), p);
  return std::pow(sum, 1 / p);
}

OpCase ranking() {
  return {.name = "margin_ranking_loss",
          .inputs = {normal({6}, 5), normal({6}, 7)},
          .call = [](T x) { return margin_ranking_loss(x[0], x[1], signs({6}, x[0]), {.margin = 0.5}); },
          .reference = mean_over_rows(6,
                                      [](const Arrays& x, int64_t i) {
                                        return std::max(0.0, 0.5 - sign_at(i) * (x[0]({i}) - x[1]({i})));
                                      }),
          .slack = 32,  // half types are rounded several times
          .recorded = "-",
          .refused = {{{normal({3}), normal({2})},
                       [](T x) { return margin_ranking_loss(x[0], x[1], x[0]); },
                       "margin_ranking_loss: "},
                      {{normal({3}), normal({3})},
                       [](T x) { return margin_ranking_loss(x[0], x[1], x[0], {.margin = infinity}); },
                       "margin_ranking_loss: margin must be finite, got inf"}}};
}

OpCase cosine_embedding() {
  return {.name = "cosine_embedding_loss",
          .inputs = {normal({6, 3}), normal({6, 3}, 2)},
          .call = [](T x) { return cosine_embedding_loss(x[0], x[1], signs({6}, x[0]), {.margin = -0.5}); },
          .reference = mean_over_rows(6,
                                      [](const Arrays& x, int64_t i) {
                                        double ab = 0, aa = 1e-12, bb = 1e-12;
                                        for (int64_t d = 0; d < 3; ++d) {
                                          ab += x[0]({i, d}) * x[1]({i, d});
                                          aa += x[0]({i, d}) * x[0]({i, d});
                                          bb += x[1]({i, d}) * x[1]({i, d});
                                        }
                                        const double cosine = ab / std::sqrt(aa * bb);
                                        return i % 2 == 0 ? 1 - cosine : std::max(0.0, cosine + 0.5);
                                      }),
          .slack = 32,  // half types are rounded several times
          .recorded = "-",
          .refused = {{{normal({3, 2}), normal({3, 4})},
                       [](T x) { return cosine_embedding_loss(x[0], x[1], signs({3}, x[0])); },
                       "cosine_embedding_loss: input and target must have one shape"},
                      {{normal({3, 2}), normal({3, 2})},
                       [](T x) { return cosine_embedding_loss(x[0], x[1], x[0]); },
                       "cosine_embedding_loss: needs inputs [N, D] and targets [N], or [D] and []"}}};
}

OpCase hinge_embedding() {
  return {.name = "hinge_embedding_loss",
          .inputs = {normal({6})},
          .call = [](T x) { return hinge_embedding_loss(x[0], signs({6}, x[0]), {.margin = 0.75}); },
          .reference = mean_over_rows(6,
                                      [](const Arrays& x, int64_t i) {
                                        return i % 2 == 0 ? x[0]({i}) : std::max(0.0, 0.75 - x[0]({i}));
                                      }),
          .slack = 32,  // half types are rounded several times
          .refused = {{{normal({3}), normal({2})},
                       [](T x) { return hinge_embedding_loss(x[0], x[1]); },
                       "hinge_embedding_loss: input and target must have one shape"}}};
}

OpCase multilabel(bool weighted) {
  return {.name = "multilabel_soft_margin_loss",
          .inputs = {normal({6, 4}), uniform({6, 4}, 0.1, 1, 2)},
          .call =
              [=](T x) {
                const Tensor weight = weighted ? beside(x[0], {0.5, 1, 1.5, 2}, {4}) : Tensor();
                return multilabel_soft_margin_loss(x[0], x[1], {.weight = weight});
              },
          .reference =
              mean_over_rows(6,
                             [=](const Arrays& x, int64_t i) {
                               Numbers losses;
                               for (int64_t c = 0; c < 4; ++c) {
                                 const double logit = x[0]({i, c}), t = x[1]({i, c});
                                 const double weight = weighted ? 0.5 + 0.5 * static_cast<double>(c) : 1;
                                 losses.push_back(weight * (std::log1p(std::exp(-logit)) + (1 - t) * logit));
                               }
                               return mean_of(losses);
                             }),
          .variant = weighted ? "weighted" : "",
          .slack = 32,  // half types are rounded several times
          .recorded = "-",
          .refused = {{{normal({3, 2}), normal({3, 2}), normal({3})},
                       [](T x) { return multilabel_soft_margin_loss(x[0], x[1], {.weight = x[2]}); },
                       "multilabel_soft_margin_loss: the weight must be [2], one number for each class"}}};
}

OpCase multi_margin(int64_t p, bool weighted) {
  return {.name = "multi_margin_loss",
          .inputs = {normal({6, 4}), integers({6}, 0, 4)},
          .call =
              [=](T x) {
                const Tensor weight = weighted ? beside(x[0], {0.5, 1, 1.5, 2}, {4}) : Tensor();
                return multi_margin_loss(x[0], x[1], {.p = p, .margin = 0.75, .weight = weight});
              },
          .reference = mean_over_rows(6,
                                      [=](const Arrays& x, int64_t i) {
                                        const auto t = static_cast<int64_t>(x[1]({i}));
                                        Numbers terms;
                                        for (int64_t c = 0; c < 4; ++c) {
                                          const double above = 0.75 - x[0]({i, t}) + x[0]({i, c});
                                          const double term = c == t || above < 0 ? 0 : above;
                                          terms.push_back(p == 2 ? term * term : term);
                                        }
                                        return mean_of(terms) *
                                               (weighted ? 0.5 + 0.5 * static_cast<double>(t) : 1);
                                      }),
          .variant = "p " + std::to_string(p) + (weighted ? " weighted" : ""),
          .slack = 32,  // half types are rounded several times
          .recorded = "-",
          .refused = {{{normal({3, 2}), integers({2}, 0, 2)},
                       [](T x) { return multi_margin_loss(x[0], x[1]); },
                       "multi_margin_loss: needs an input [N, C] and targets [N], or [C] and []"},
                      {{normal({3, 2}), integers({3}, 2, 4)},
                       [](T x) { return multi_margin_loss(x[0], x[1]); },
                       "is outside"},
                      {{normal({3, 2}), normal({3})},
                       [](T x) { return multi_margin_loss(x[0], x[1]); },
                       "multi_margin_loss: the target must hold class indices"},
                      {{normal({3, 2}), integers({3}, 0, 2)},
                       [](T x) { return multi_margin_loss(x[0], x[1], {.p = 3}); },
                       "multi_margin_loss: p must be 1 or 2, got 3"}}};
}

OpCase triplet(double p, bool swap) {
  return {
      .name = "triplet_margin_loss",
      .inputs = {normal({6, 3}), normal({6, 3}, 2), normal({6, 3}, 3)},
      .call = [=](T x) { return triplet_margin_loss(x[0], x[1], x[2], {.margin = 2, .p = p, .swap = swap}); },
      .reference = mean_over_rows(6,
                                  [=](const Arrays& x, int64_t i) {
                                    double far = distance_of(x[0], x[2], i, p);
                                    if (swap) far = std::min(far, distance_of(x[1], x[2], i, p));
                                    return std::max(0.0, distance_of(x[0], x[1], i, p) - far + 2);
                                  }),
      .variant = "p " + std::to_string(p) + (swap ? " swap" : ""),
      .slack = 32,  // half types are rounded several times
      .recorded = "-",
      .refused = {{{normal({3, 2}), normal({3, 4}), normal({3, 2})},
                   [](T x) { return triplet_margin_loss(x[0], x[1], x[2]); },
                   "triplet_margin_loss: "}}};
}

/// The place of a tensor of this shape that is seen at a place of what it is broadcast to.
Index seen(const Index& at, const Shape& shape) {
  Index place(at.end() - std::ssize(shape), at.end());
  for (std::size_t d = 0; d < place.size(); ++d) place[d] = shape[d] == 1 ? 0 : place[d];
  return place;
}

OpCase gaussian(bool full, const Shape& target, const Shape& var) {
  return {.name = "gaussian_nll_loss",
          .inputs = {normal({4, 3}), normal(target, 2), uniform(var, 0.5, 2, 3)},
          .call = [=](T x) { return gaussian_nll_loss(x[0], x[1], x[2], {.full = full}); },
          .reference =
              [=](const Arrays& x) {
                const Array losses = computed({4, 3}, [&](const Index& at) {
                  const double d = x[0](at) - x[1](seen(at, target));
                  const double v = x[2](var == Shape{4} ? Index{at[0]} : seen(at, var));
                  return (std::log(v) + d * d / v + (full ? std::log(2 * 3.14159265358979323846) : 0)) / 2;
                });
                return Arrays{{{}, {mean_of(losses.elements)}}};
              },
          .variant = to_string(target) + to_string(var) + (full ? " full" : ""),
          .slack = 32,  // half types are rounded several times
          .recorded = "-",
          .refused = {{{normal({3, 2}), normal({3, 2}), uniform({2}, 1, 2)},
                       [](T x) { return gaussian_nll_loss(x[0], x[1], x[2]); },
                       "gaussian_nll_loss: var must be one number, or have the input's shape"},
                      {{normal({3}), normal({3}), uniform({3}, -2, -1)},
                       [](T x) { return gaussian_nll_loss(x[0], x[1], x[2]); },
                       "gaussian_nll_loss: a variance is negative"}}};
}

OpCase dice() {
  return {.name = "dice_loss",
          .inputs = {uniform({3, 2, 4}, 0.1, 1), uniform({3, 2, 4}, 0.1, 1, 2)},
          .call = [](T x) { return dice_loss(x[0], x[1]); },
          .reference = mean_over_rows(3,
                                      [](const Arrays& x, int64_t i) {
                                        double common = 0, all = 0;
                                        for (int64_t c = 0; c < 2; ++c)
                                          for (int64_t d = 0; d < 4; ++d) {
                                            const double p = x[0]({i, c, d}), t = x[1]({i, c, d});
                                            common += p * t;
                                            all += p + t;
                                          }
                                        return 1 - (2 * common + 1) / (all + 1);
                                      }),
          .types = all_types,
          .results = {floating_type},
          .slack = 32,  // half types are rounded several times
          .recorded = "-",
          .refused = {{{normal({3}), normal({3})},
                       [](T x) { return dice_loss(x[0], x[1]); },
                       "dice_loss: input and target must be [N, ...]"},
                      {{normal({3, 2}), normal({3, 2})},
                       [](T x) { return dice_loss(x[0], x[1], {.smooth = -1}); },
                       "dice_loss: smooth must be at least 0"}}};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases = {ranking(),
                               cosine_embedding(),
                               hinge_embedding(),
                               multilabel(false),
                               multilabel(true),
                               multi_margin(1, false),
                               multi_margin(2, true),
                               triplet(2, false),
                               triplet(1, false),
                               triplet(2, true),
                               gaussian(false, {4, 3}, {4, 3}),
                               gaussian(true, {4, 3}, {4, 1}),
                               gaussian(false, {4, 1}, {4}),
                               gaussian(false, {3}, {1, 3}),
                               gaussian(false, {}, {}),
                               dice()};
  for (OpCase& c : cases)
    if (c.name != "multi_margin_loss") {
      c.types = all_types;
      c.results = {floating_type};
    }
  return cases;
}

}  // namespace

const std::vector<OpCase>& margin_loss_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
