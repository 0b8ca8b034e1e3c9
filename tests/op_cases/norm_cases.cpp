// Normalisations.

#include <cmath>

#include "pleat/autograd/functions/norm.h"
#include "pleat/tests/op_cases/op_case.h"

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
          .values_in = "autograd/functions/norm_test.cpp",
          .variant =
              std::string(training ? "training " : "evaluation ") + (relu ? "relu " : "") + to_string(shape),
          .smooth = {with_parameters(shape.size() == 3 ? Shape{3, 3, 2} : Shape{2, 3, 1, 2}, {3})},
          .slack = 8,
          .refused = {{{normal(shape), normal({4}, 2), normal({4}, 3)},
                       [](T x) { return batch_norm(x[0], x[1], x[2], {}, {}, {.training = true}); },
                       "batch_norm: "}}};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
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
  return cases;
}

}  // namespace

const std::vector<OpCase>& norm_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
