// What is done with the weights of a network beside training it: averages, the best, transfer.
#include <cmath>
#include <limits>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

nn::Linear one_weight(double value) {
  nn::Linear net{{.in_features = 1, .out_features = 1, .bias = false}};
  const NoGrad off_the_tape;
  fill_(net.weight, value);
  return net;
}

void set(nn::Linear& net, double value) {
  const NoGrad off_the_tape;
  fill_(net.weight, value);
}

}  // namespace

TEST_CASE("averages of weights", "[train]") {
  nn::Linear net = one_weight(1);
  const auto averaged = [](const train::WeightAverage& average) {
    return average.weights().at("weight").item();
  };
  SECTION("exponential") {
    train::WeightAverage average(net, {.decay = 0.9, .warm_up = false});
    set(net, 2);
    average.update();
    CHECK(averaged(average) == Approx(0.9 * 1 + 0.1 * 2));
  }
  SECTION("the first decays are smaller") {
    train::WeightAverage average(net, {.decay = 0.9});
    set(net, 2);
    average.update();
    CHECK(averaged(average) == Approx(0.1 * 1 + 0.9 * 2));
    set(net, 3);
    average.update();
    CHECK(averaged(average) == Approx(2 / 11.0 * 1.9 + 9 / 11.0 * 3));
  }
  SECTION("the plain mean") {
    train::WeightAverage average(net);
    for (const double value : {2.0, 4.0, 9.0}) {
      set(net, value);
      average.update();
    }
    CHECK(averaged(average) == Approx(5));
    CHECK(average.updates() == 3);
    {
      const train::WeightAverage::Use use(average);
      CHECK(net.weight.item() == Approx(5));
      CHECK_THROWS_WITH(average.update(), Contains("has the averages now"));
      CHECK_THROWS_WITH(train::WeightAverage::Use(average), Contains("already"));
    }
    CHECK(net.weight.item() == 9);

    train::WeightAverage other(net);
    other.load_state_dict(nn::clone(average.state_dict()));
    CHECK(averaged(other) == Approx(5));
    set(net, 13);
    other.update();
    CHECK(averaged(other) == Approx(7));
  }
  CHECK_THROWS_WITH(train::WeightAverage(net, {.decay = 1}), Contains("below 1, got 1"));
}

TEST_CASE("an average has buffers, too, and the numbers of the last update", "[train]") {
  nn::BatchNorm1d net{{.num_features = 2}};
  train::WeightAverage average(net, {.decay = 0.5, .warm_up = false});
  (void)net(randn({8, 2}));
  average.update();
  CHECK(average.weights().at("num_batches_tracked").item<int64_t>() == 1);
  CHECK(allclose(average.weights().at("running_var"), (net.running_var + 1) / 2));
}

TEST_CASE("batch norms get the mean of their statistics anew", "[train]") {
  manual_seed(2);
  nn::Sequential net{nn::BatchNorm1d{{.num_features = 2}}, nn::Linear{{.in_features = 2, .out_features = 1}}};
  (void)net(randn({8, 2}) + 100);
  net.eval();
  const Tensor x = randn({12, 2});
  data::DataLoader loader(data::TensorDataset(x), {.batch_size = 4, .device = default_device()});
  train::update_batch_norm(net, loader);
  const nn::StateDict state = net.state_dict();
  CHECK(allclose(state.at("0.running_mean"), mean(x, {0})));
  CHECK(state.at("0.num_batches_tracked").item<int64_t>() == 3);
  CHECK_FALSE(net.training());
}

// Which of two metrics is the better one has no default.
static_assert(!std::is_default_constructible_v<train::BestWeightsOptions>);
static_assert(!std::is_default_constructible_v<train::CheckpointsOptions>);
static_assert(!std::is_default_constructible_v<optim::ReduceLROnPlateauOptions>);
static_assert(!std::is_constructible_v<train::BestWeights, const nn::Module&>);
static_assert(!std::is_constructible_v<train::Checkpoints, std::filesystem::path>);
static_assert(!std::is_constructible_v<optim::ReduceLROnPlateau, optim::SGD&>);

TEST_CASE("the best weights are kept, and no improvement ends a training", "[train]") {
  nn::Linear net = one_weight(0);
  train::BestWeights best(net, {.maximize = true, .min_delta = 0.1, .patience = 2});
  CHECK_THROWS_AS(best.restore(), Error);
  CHECK_THROWS_AS(best.best(), Error);
  const auto epoch = [&](double metric) {
    set(net, metric);
    return best.update(metric);
  };
  CHECK_FALSE(epoch(std::numeric_limits<double>::quiet_NaN()));
  CHECK(epoch(1));
  CHECK_FALSE(epoch(1.05));
  CHECK(epoch(2));
  CHECK_FALSE(epoch(1));
  CHECK_FALSE(epoch(std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(best.should_stop());
  CHECK_FALSE(epoch(2));
  CHECK(best.should_stop());

  train::BestWeights other(net, {.maximize = true, .patience = 2});
  other.load_state_dict(nn::clone(best.state_dict()));
  CHECK(other.should_stop());
  CHECK(other.best() == 2);
  set(net, 7);
  other.restore();
  CHECK(net.weight.item() == 2);
  train::BestWeights none(net, {.maximize = true});
  none.load_state_dict(train::BestWeights(net, {.maximize = true}).state_dict());
  CHECK_THROWS_AS(none.best(), Error);
  CHECK_THROWS_AS(train::BestWeights(net, {.maximize = true, .patience = -1}), ValueError);
}

TEST_CASE("weights are transferred where names and shapes fit", "[train]") {
  nn::Sequential from{nn::Linear{{.in_features = 3, .out_features = 4}}, nn::ReLU{},
                      nn::Linear{{.in_features = 4, .out_features = 10}}};
  nn::Sequential to{nn::Linear{{.in_features = 3, .out_features = 4}}, nn::ReLU{},
                    nn::Linear{{.in_features = 4, .out_features = 2}}, nn::PReLU{}};
  nn::StateDict state;
  for (const auto& [name, tensor] : from.state_dict()) state.emplace("net." + name, tensor);
  state.emplace("extra", zeros({1}));
  const Tensor head = to.state_dict().at("2.weight").clone();
  const train::TransferReport report = train::transfer(to, state, {.rename = {{"net.", ""}}});
  CHECK(report.copied == std::vector<std::string>{"0.bias", "0.weight"});
  CHECK(report.text() ==
        "copied       2\n"
        "other shape  2:\n"
        "  2.bias: [2] in the network, [10] in the state\n"
        "  2.weight: [2, 4] in the network, [10, 4] in the state\n"
        "missing      1:\n"
        "  3.weight\n"
        "unexpected   1:\n"
        "  extra\n");
  CHECK(report.missing == std::vector<std::string>{"3.weight"});
  CHECK(report.unexpected == std::vector<std::string>{"extra"});
  CHECK(report.other_shape ==
        std::vector<std::string>{"2.bias: [2] in the network, [10] in the state",
                                 "2.weight: [2, 4] in the network, [10, 4] in the state"});
  CHECK(array_equal(to.state_dict().at("0.weight"), from.state_dict().at("0.weight")));
  CHECK(array_equal(to.state_dict().at("2.weight"), head));
  CHECK_THROWS_WITH(train::transfer(to, state), Contains("transfer: the state does not fit"));
  CHECK_THROWS_WITH(train::transfer(to, {{"a.x", head}, {"b.x", head}}, {.rename = {{"a.", ""}, {"b.", ""}}}),
                    Contains("two tensors of the state become x"));
}

TEST_CASE("a search for a learning rate leaves the training as it was", "[train]") {
  manual_seed(4);
  const Tensor x = randn({64, 3}), y = sum(x, {1}, true);
  nn::Sequential net{nn::Linear{{.in_features = 3, .out_features = 8}}, nn::Tanh{}, nn::Dropout{{.p = 0.1}},
                     nn::Linear{{.in_features = 8, .out_features = 1}}};
  optim::Adam adam{net.parameters(), {.lr = 0.01}};
  const auto step = [&] {
    const Tensor loss = mse_loss(net(x), y);
    adam.zero_grad();
    loss.backward();
    adam.step();
    return loss.item();
  };
  (void)step();
  const nn::StateDict weights = nn::clone(net.state_dict()), state = adam.state_dict();
  const uint64_t draws = default_generator().draws();
  const train::LearningRates found = train::find_learning_rate(net, adam, step, {.from = 1e-5, .steps = 60});
  CHECK(found.rates.size() == found.losses.size());
  CHECK(found.rates.size() > 10);
  CHECK(found.suggestion > 1e-4);
  CHECK(found.suggestion < 1);
  CHECK(found.plot().find("<polyline") != std::string::npos);
  for (const auto& [name, tensor] : net.state_dict()) CHECK(array_equal(tensor, weights.at(name)));
  for (const auto& [name, tensor] : adam.state_dict()) CHECK(array_equal(tensor, state.at(name)));
  CHECK(default_generator().draws() == draws);
  CHECK_THROWS_WITH(train::find_learning_rate(net, adam, step, {.from = 1, .to = 1}),
                    Contains("above 0 to a larger"));
  CHECK_THROWS_AS(train::find_learning_rate(net, adam, step, {.steps = 1}), ValueError);
  CHECK_THROWS_AS(train::find_learning_rate(net, adam, [] { return std::nan(""); }), NumericError);
}
