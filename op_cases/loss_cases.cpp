// Losses.

#include <algorithm>
#include <cmath>

#include "pleat/nn/loss.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/loss/loss.h"

namespace pleat::test {
namespace {

using T = const Tensors&;
using Loss = std::function<Tensor(const Tensor&, const Tensor&, Reduction)>;

double sum_of(const Numbers& x) {
  double sum = 0;
  for (const double n : x) sum += n;
  return sum;
}

const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "none";
    case Reduction::mean:
      return "mean";
    case Reduction::sum:
      return "sum";
    default:
      return "batch_mean";
  }
}

/// Losses reduced; a mean is divided by `weight`.
Array reduce(const Array& losses, Reduction reduction, double weight) {
  if (reduction == Reduction::none) return losses;
  const double sum = sum_of(losses.elements);
  const double by = reduction == Reduction::mean         ? weight
                    : reduction == Reduction::batch_mean ? static_cast<double>(losses.shape[0])
                                                         : 1;
  return {{}, {sum / by}};
}

constexpr Reduction reductions[] = {Reduction::none, Reduction::mean, Reduction::sum, Reduction::batch_mean};

/// A loss of two tensors of one shape, by all reductions.
void add_rows(std::vector<OpCase>& cases, const char* name, const Loss& loss, const Tensors& inputs,
              double (*of_one)(double, double), const std::string& variant = "", Types types = all_types) {
  for (const Reduction reduction : reductions) {
    const auto call = [=](T x) { return loss(x[0], x[1], reduction); };
    cases.push_back({.name = name,
                     .inputs = inputs,
                     .call = call,
                     .reference =
                         [=](const Arrays& x) {
                           const Array losses = each(of_one)(x)[0];
                           return Arrays{
                               reduce(losses, reduction, static_cast<double>(losses.elements.size()))};
                         },
                     .variant = variant + name_of(reduction),
                     .types = types,
                     .results = {floating_type},
                     .slack = 8,
                     .refused = {{{normal({4, 5}), normal({4, 4}, 2)}, call, name}}});
    if (cases.back().name == "kl_div") cases.back().recorded = "-";
    if (reduction == Reduction::mean)
      cases.back().large = {normal({300, 257}), uniform({300, 257}, 0.1, 1, 2)};
  }
}

/// Of logits or log-probabilities [N, C, ...] and classes [N, ...].
struct ClassLoss {
  bool logits = true;
  Numbers weight = Numbers(5, 1.0);
  double ignored = -100;
  double smoothing = 0;
};

struct ClassLosses {
  Array losses;
  double weight = 0;  ///< of all targets
};

ClassLosses class_losses(const Array& x, const Array& target, const ClassLoss& loss) {
  ClassLosses result;
  result.losses = computed(target.shape, [&](const Index& at) {
    Index i = at;
    i.insert(i.begin() + 1, 0);
    Numbers scores;
    double total = 0;
    for (i[1] = 0; i[1] < x.shape[1]; ++i[1]) {
      scores.push_back(x(i));
      total += std::exp(x(i));
    }
    if (target(at) == loss.ignored) return 0.0;
    const auto t = static_cast<std::size_t>(target(at));
    result.weight += loss.weight[t];
    double sum = 0;
    for (std::size_t c = 0; c < scores.size(); ++c) {
      const double share =
          (c == t ? (1 - loss.smoothing) * loss.weight[t] : 0) + loss.smoothing / 5 * loss.weight[c];
      sum -= share * (scores[c] - (loss.logits ? std::log(total) : 0));
    }
    return sum;
  });
  return result;
}

OpCase class_case(const char* name, const std::string& variant, const Tensor& x, const Tensor& target,
                  const Function& call, const ClassLoss& loss, Reduction reduction) {
  return {.name = name,
          .inputs = {x, target},
          .call = call,
          .reference =
              [=](const Arrays& in) {
                ClassLoss rounded = loss;
                const ClassLosses found = class_losses(in[0], in[1], rounded);
                return Arrays{reduce(found.losses, reduction, found.weight)};
              },
          .variant = variant,
          .slack = 8};
}

/// Exact in every type.
const Numbers class_weights{0.5, 1, 1.5, 0.75, 1.25};
Tensor weight_like(const Tensor& x) {
  return ops::to_device(ops::cast(from_vector(class_weights, {5}, Device()), floating_type(x.dtype())),
                        x.device());
}

void add_class_rows(std::vector<OpCase>& cases, const Tensor& logits, const Tensor& target) {
  const std::string of = to_string(logits.shape());
  for (const Reduction reduction : reductions) {
    const std::string variant = of + " " + name_of(reduction);
    cases.push_back(class_case(
        "cross_entropy", "ignored " + variant, logits, target,
        [=](T x) { return cross_entropy(x[0], x[1], {.ignore_index = 2, .reduction = reduction}); },
        {.ignored = 2}, reduction));
    cases.push_back(class_case(
        "cross_entropy", "weighted, smoothed " + variant, logits, target,
        [=](T x) {
          return cross_entropy(
              x[0], x[1], {.weight = weight_like(x[0]), .label_smoothing = 0.25, .reduction = reduction});
        },
        {.weight = class_weights, .smoothing = 0.25}, reduction));
  }
  cases.push_back(class_case(
      "nll_loss", of, logits, target,
      [](T x) { return nll_loss(x[0], x[1], {.weight = weight_like(x[0]), .ignore_index = 2}); },
      {.logits = false, .weight = class_weights, .ignored = 2}, Reduction::mean));
  cases.push_back(class_case(
      "class_cross_entropies", of, logits, target,
      [](T x) { return class_cross_entropies(x[0], x[1], {}, {.label_smoothing = 0.25}); },
      {.smoothing = 0.25}, Reduction::none));
  cases.back().recorded = "cross_entropy";
  cases.push_back(class_case(
      "nll_losses", of, logits, target, [](T x) { return nll_losses(x[0], x[1], {}); }, {.logits = false},
      Reduction::none));
  cases.back().recorded = "nll_loss";
}

double squared(double x, double y) { return (x - y) * (x - y); }
double absolute(double x, double y) { return std::abs(x - y); }
double huber(double x, double y) {
  const double distance = std::abs(x - y);
  return distance < 0.75 ? distance * distance / 2 : 0.75 * (distance - 0.375);
}
double smooth_l1(double x, double y) { return huber(x, y) / 0.75; }
double cross(double x, double y) { return std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x))); }
double divergence(double x, double y) { return y * (std::log(y) - x); }
double log_divergence(double x, double y) { return std::exp(y) * (y - x); }

double at_least_100(double logarithm) { return std::max(logarithm, -100.0); }
double probability_cross(double p, double t) {
  return -(t * at_least_100(std::log(p)) + (1 - t) * at_least_100(std::log1p(-p)));
}
double poisson(double x, double t) { return std::exp(x) - t * x; }
double poisson_of_rates(double x, double t) {
  const double stirling = t > 1 ? t * std::log(t) - t + std::log(2 * 3.14159265358979323846 * t) / 2 : 0;
  return x - t * std::log(x + 0.25) + stirling;
}
double focal(double x, double t) {
  const double p = 1 / (1 + std::exp(-x));
  const double p_t = p * t + (1 - p) * (1 - t);
  return (0.75 * t + 0.25 * (1 - t)) * std::pow(1 - p_t, 1.5) * cross(x, t);
}
double unweighted_focal(double x, double t) {
  const double p = 1 / (1 + std::exp(-x));
  return std::pow(p * (1 - t) + (1 - p) * t, 2) * cross(x, t);
}
double soft_margin(double x, double t) { return std::log1p(std::exp(-t * x)); }

void add_likelihoods(std::vector<OpCase>& cases) {
  const Tensors logits{normal({4, 5}), uniform({4, 5}, 0.1, 1, 2)};
  add_rows(
      cases, "binary_cross_entropy",
      [](auto& x, auto& y, Reduction r) { return binary_cross_entropy(x, y, {.reduction = r}); },
      {uniform({4, 5}, 0.1, 0.9), uniform({4, 5}, 0.1, 1, 2)}, probability_cross);
  add_rows(
      cases, "poisson_nll_loss",
      [](auto& x, auto& y, Reduction r) { return poisson_nll_loss(x, y, {.reduction = r}); },
      {uniform({4, 5}, -1, -0.1), uniform({4, 5}, 1, 4, 2)}, poisson);
  add_rows(
      cases, "poisson_nll_loss",
      [](auto& x, auto& y, Reduction r) {
        return poisson_nll_loss(x, y, {.log_input = false, .full = true, .eps = 0.25, .reduction = r});
      },
      {uniform({4, 5}, 5, 9), uniform({4, 5}, 1.1, 4, 2)}, poisson_of_rates, "rates ");
  add_rows(
      cases, "sigmoid_focal_loss",
      [](auto& x, auto& y, Reduction r) {
        return sigmoid_focal_loss(x, y, {.alpha = 0.75, .gamma = 1.5, .reduction = r});
      },
      logits, focal);
  add_rows(
      cases, "sigmoid_focal_loss",
      [](auto& x, auto& y, Reduction r) { return sigmoid_focal_loss(x, y, {.alpha = -1, .reduction = r}); },
      logits, unweighted_focal, "unweighted ");
  add_rows(
      cases, "soft_margin_loss", [](auto& x, auto& y, Reduction r) { return soft_margin_loss(x, y, {r}); },
      {normal({4, 5}), normal({4, 5}, 2)}, soft_margin);
  for (OpCase& c : cases) {
    if (c.name == "poisson_nll_loss") {
      c.recorded = "-";
      c.slack = 32;  // half types are rounded several times
    }
    // Probabilities and rates; of others the logarithm is NaN, which equals nothing.
    if (!c.large.empty() && (c.name == "binary_cross_entropy" || c.variant.starts_with("rates")))
      c.large[0] = uniform({300, 257}, 0.1, 0.9);
  }
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  const Tensors distances{normal({4, 5}), normal({4, 5}, 2)};
  // Integers: no difference that uint8 cannot hold.
  const Tensors logarithms{uniform({4, 5}, -0.9, -0.1), uniform({4, 5}, -3, -1.1, 2)};
  const Tensors probabilities{normal({4, 5}), uniform({4, 5}, 0.1, 1, 2)};
  add_rows(
      cases, "mse_loss", [](auto& x, auto& y, Reduction r) { return mse_loss(x, y, {r}); }, distances,
      squared);
  add_rows(
      cases, "l1_loss", [](auto& x, auto& y, Reduction r) { return l1_loss(x, y, {r}); }, distances,
      absolute);
  add_rows(
      cases, "smooth_l1_loss",
      [](auto& x, auto& y, Reduction r) { return smooth_l1_loss(x, y, {.beta = 0.75, .reduction = r}); },
      distances, smooth_l1);
  add_rows(
      cases, "huber_loss",
      [](auto& x, auto& y, Reduction r) { return huber_loss(x, y, {.delta = 0.75, .reduction = r}); },
      distances, huber);
  add_rows(
      cases, "bce_with_logits",
      [](auto& x, auto& y, Reduction r) { return bce_with_logits(x, y, {.reduction = r}); }, probabilities,
      cross);
  add_rows(
      cases, "kl_div", [](auto& x, auto& y, Reduction r) { return kl_div(x, y, {.reduction = r}); },
      probabilities, divergence);
  add_rows(
      cases, "kl_div",
      [](auto& x, auto& y, Reduction r) { return kl_div(x, y, {.log_target = true, .reduction = r}); },
      logarithms, log_divergence, "log_target ");
  add_likelihoods(cases);
  cases.push_back({.name = "distance_losses",
                   .inputs = distances,
                   .call =
                       [](T x) {
                         return distance_losses("huber", x[0], x[1], {DistanceLoss::Kind::huber, 0.75});
                       },
                   .reference = each(huber),
                   .types = all_types,
                   .results = {floating_type},
                   .slack = 8,
                   .recorded = "huber"});
  cases.push_back({.name = "binary_cross_entropies",
                   .inputs = probabilities,
                   .call = [](T x) { return binary_cross_entropies(x[0], x[1], {}); },
                   .reference = each(cross),
                   .types = all_types,
                   .results = {floating_type},
                   .slack = 8,
                   .recorded = "bce_with_logits"});
  cases.push_back({.name = "bce_with_logits",
                   .inputs = probabilities,
                   .call =
                       [](T x) {
                         const Tensor weight = weight_like(x[0]);
                         return bce_with_logits(x[0], x[1], {.weight = weight, .pos_weight = weight});
                       },
                   .reference =
                       [](const Arrays& x) {
                         const Array losses = computed(x[0].shape, [&](const Index& at) {
                           const double weight = class_weights[static_cast<std::size_t>(at[1])];
                           const double y = x[1](at), log_p = -std::log1p(std::exp(-x[0](at)));
                           return -weight * (weight * y * log_p + (1 - y) * (log_p - x[0](at)));
                         });
                         return Arrays{reduce(losses, Reduction::mean, 20)};
                       },
                   .variant = "weighted",
                   .types = all_types,
                   .results = {floating_type},
                   .slack = 8});
  add_class_rows(cases, normal({6, 5}), integers({6}, 0, 5));
  add_class_rows(cases, normal({2, 5, 3, 2}), integers({2, 3, 2}, 0, 5));
  cases.push_back({.name = "cross_entropy",
                   .inputs = {normal({6, 5})},
                   .call =
                       [](T x) {
                         return cross_entropy(x[0], constant(uniform({6, 5}, 0.1, 0.3, 2), x[0]));
                       },
                   .values_in = "nn/loss_test.cpp",
                   .variant = "probabilities",
                   .slack = 8,
                   .recorded = "-",
                   .refused = {{{normal({6, 5}), integers({6}, 5, 9)},
                                [](T x) { return cross_entropy(x[0], x[1]); },
                                "cross_entropy: "},
                               {{normal({6, 5}), integers({5}, 0, 5)},
                                [](T x) { return cross_entropy(x[0], x[1]); },
                                "cross_entropy: "}}});
  return cases;
}

}  // namespace

const std::vector<OpCase>& loss_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
