#include "pleat/train/step.h"

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

/// Trains a linear layer by SGD for a few batches; returns its weights.
std::vector<double> trained(const std::vector<data::Batch>& batches, train::StepOptions options) {
  manual_seed(1);
  nn::Linear net{{.in_features = 3, .out_features = 2}};
  optim::SGD sgd{net.parameters(), {.lr = 0.5}};
  train::Step step(
      net, sgd, [](const Tensor& y, const Tensor& t) { return cross_entropy(y, t); }, options);
  int64_t number = 0;
  for (const data::Batch& batch : batches) {
    step.run({1, ++number, 0.5}, batch);
    CHECK(step.updated() == (number % options.accumulate == 0));
    CHECK(step.output().shape() == Shape{batch.size(), 2});
  }
  CHECK(step.finish() == (number % options.accumulate != 0));
  CHECK(step.updated());
  return net.weight.to(float64).to_vector<double>();
}

}  // namespace

TEST_CASE("accumulated batches train as one large one", "[train]") {
  const Tensor x = randn({12, 3}), t = randint(0, 2, {12});
  const auto part = [&](int64_t first, int64_t size) {
    return data::Batch{narrow(x, 0, first, size), narrow(t, 0, first, size)};
  };
  const auto close = [](const std::vector<double>& a, const std::vector<double>& b, double margin = 1e-6) {
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(margin));
  };
  close(trained({part(0, 3), part(3, 3), part(6, 3), part(9, 3)}, {.accumulate = 4}),
        trained({part(0, 12)}, {}));
  // Of what is left at the end, the mean, too.
  close(trained({part(0, 4), part(4, 4), part(8, 4)}, {.accumulate = 2}),
        trained({part(0, 8), part(8, 4)}, {}));
  // With scaled losses, too.
  if (!default_device().is_cuda())
    close(trained({part(0, 4), part(4, 4), part(8, 4)}, {.autocast = float16, .accumulate = 2}),
          trained({part(0, 8), part(8, 4)}, {.autocast = float16}), 1e-3);
}

TEST_CASE("a network in evaluation mode is not trained, parts of it may be in that mode", "[train]") {
  nn::Sequential net{nn::Linear{{.in_features = 2, .out_features = 2}}, nn::BatchNorm1d{{.num_features = 2}}};
  optim::SGD sgd{net.parameters(), {.lr = 1}};
  train::Step step(net, sgd, [](const Tensor& y, const Tensor&) { return mean(y); });
  const data::Batch batch{ones({4, 2}), zeros({4})};
  net.eval();
  const std::vector<float> before = net[0].parameters()[0].to_vector<float>();
  CHECK_THROWS_WITH(step.run({}, batch), Catch::Matchers::Contains("call train() first"));
  CHECK(net[0].parameters()[0].to_vector<float>() == before);
  net.train();
  net[1].eval();
  step.run({}, batch);
  CHECK(net[0].parameters()[0].to_vector<float>() != before);
}

TEST_CASE("gradients of a step are clipped", "[train]") {
  nn::Linear net{{.in_features = 1, .out_features = 1, .bias = false}};
  optim::SGD sgd{net.parameters(), {.lr = 1}};
  train::Step step(net, sgd, [](const Tensor& y, const Tensor&) { return sum(y) * 100; },
                   {.clip_grad_norm = 0.25});
  const double before = net.weight.item();
  step.run({}, {ones({1, 1}), zeros({1})});
  CHECK(before - net.weight.item() == Approx(0.25));
  CHECK_THROWS_AS(train::Step(net, sgd, {}, {.accumulate = 0}), ValueError);
  CHECK_THROWS_AS(train::Step(net, sgd, {}, {.accumulate = 2, .cuda_graph = true}), ValueError);
}
