#include "pleat/train/finite.h"

#include <cmath>
#include <limits>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/train/classification.h"

using namespace pleat;
using namespace pleat::train;

using Catch::Matchers::Contains;

TEST_CASE("a loss that is not finite names place, rate and function", "[train]") {
  manual_seed(1);
  nn::Linear net{{.in_features = 3, .out_features = 2}};
  const data::Batch batch{randn({4, 3}), zeros({4}).to(int64)};
  const StepPlace place{.epoch = 2, .step = 17, .lr = 0.5};
  const Tensor fine =
      finite_loss(place, batch, net, [&] { return cross_entropy(net(batch.inputs), batch.targets); });
  CHECK(std::isfinite(fine.item()));

  const auto loss_of = [&](const std::function<Tensor()>& compute) {
    return finite_loss(place, batch, net, compute);
  };
  CHECK_THROWS_WITH(
      loss_of([&] { return mean(log(net(batch.inputs) * 0.0 - 1.0)); }),
      Contains("the loss is nan in epoch 2, step 17, with learning rate 0.5; first log gave nan in [4, 2]"));
  CHECK_THROWS_WITH(loss_of([&] {
                      const Tensor huge = exp(net(batch.inputs) * 0.0 + 1000.0);
                      return mean(huge - huge);
                    }),
                    Contains("the loss is nan") && Contains("first exp gave inf"));
}

TEST_CASE("the bad step is repeated with the same random numbers and parameters", "[train]") {
  manual_seed(1);
  nn::Linear net{{.in_features = 3, .out_features = 2}};
  const data::Batch batch{randn({4, 3}), {}};
  std::vector<std::vector<float>> drawn;
  const std::vector<float> before = net.weight.to_vector();
  const auto compute = [&] {
    drawn.push_back(rand({4}).to_vector());
    return sum(net(batch.inputs)) / 0.0 * 0.0;
  };
  CHECK_THROWS_AS(finite_loss({1, 1, 0.1}, batch, net, compute), NotFiniteError);
  REQUIRE(drawn.size() == 2);
  CHECK(drawn[0] == drawn[1]);
  CHECK(net.weight.to_vector() == before);
}

TEST_CASE("bad data and bad parameters are named", "[examples][cpu]") {
  nn::Linear net{{.in_features = 3, .out_features = 2}};
  const float infinity = std::numeric_limits<float>::infinity();
  const auto loss_of = [&](const data::Batch& batch) {
    return finite_loss({1, 1, 0.1}, batch, net, [&] { return mean(net(batch.inputs)); });
  };
  CHECK_THROWS_WITH(loss_of({full({4, 3}, infinity), {}}),
                    Contains("the data of this batch are not finite themselves"));
  CHECK_NOTHROW(check_finite(net, "now"));
  {
    const NoGrad guard;
    fill_(net.weight, std::nan(""));
  }
  CHECK_THROWS_WITH(loss_of({zeros({4, 3}), {}}),
                    Contains("weight was not finite any more when the step began"));
  CHECK_THROWS_WITH(check_finite(net, "after epoch 3"), Contains("weight is not finite after epoch 3"));
  data::DataLoader loader{data::TensorDataset{zeros({8, 3}), zeros({8}).to(int64)}, {.batch_size = 4}};
  CHECK_THROWS_WITH(evaluate(net, loader, 3),
                    Contains("the test loss is not finite after epoch 3; first linear gave nan in [4, 2]"));
  CHECK_THROWS_WITH(evaluate(net, loader),
                    Contains("the test loss is not finite; first linear gave nan in [4, 2]"));
}
