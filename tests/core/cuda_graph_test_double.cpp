#include <functional>
#include <memory>
#include <vector>

#include "pleat/core/cuda_graph.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/double.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

const Device gpu = DeviceType::cuda;

nn::Sequential make_net() {
  return nn::Sequential{nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = 3, .padding = 1}},
                        nn::BatchNorm2d{{.num_features = 4}},
                        nn::ReLU{},
                        nn::Dropout{{.p = 0.3}},
                        nn::AdaptiveAvgPool2d{{.output_size = 2}},
                        nn::Flatten{},
                        nn::Linear{{.in_features = 16, .out_features = 5}}};
}

/// A small network, whose dropout draws random numbers, and a step on a batch that lies always in the same
/// place.
struct Training {
  using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

  explicit Training(const MakeOptimizer& make) : net((manual_seed(3), make_net())) {
    net.to(gpu);
    optimizer = make(net.parameters());
  }

  void load(int batch) {
    Generator numbers(static_cast<uint64_t>(batch));
    copy_(x, randn({4, 3, 8, 8}, {}, numbers));
    copy_(y, randint(0, 5, {4}, numbers));
  }

  void step() {
    loss = cross_entropy(net(x), y, {.check_target = false});
    optimizer->zero_grad();
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), {.max_norm = 1});
    optimizer->step();
  }

  std::vector<double> state() const {
    std::vector<double> all;
    for (const auto& [name, tensor] : net.state_dict())
      for (const double value : tensor.to_vector<double>()) all.push_back(value);
    all.push_back(loss.item<double>());
    return all;
  }

  nn::Sequential net;
  std::unique_ptr<optim::Optimizer> optimizer;
  Tensor x = zeros({4, 3, 8, 8}, {.device = gpu});
  Tensor y = zeros({4}, {.dtype = int64, .device = gpu});
  Tensor loss;
};

std::unique_ptr<optim::Optimizer> sgd(const std::vector<Tensor>& parameters) {
  return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
}

std::string said_by(const std::function<void()>& step) {
  try {
    const CudaGraph graph{step};
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("cuda: a step that is replayed gives the bits of one that is not", "[core][cuda][graph]") {
  const auto make = GENERATE(
      Training::MakeOptimizer(sgd), Training::MakeOptimizer([](const std::vector<Tensor>& parameters) {
        return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01});
      }),
      Training::MakeOptimizer([](const std::vector<Tensor>& parameters) {
        return std::make_unique<optim::RMSprop>(parameters,
                                                optim::RMSpropOptions{.lr = 0.01, .momentum = 0.5});
      }));
  Training eager(make);
  Training replayed(make);
  // Both draw from the thread's generator; each starts where the other did.
  manual_seed(5);
  optim::Schedule eager_rate(*eager.optimizer, optim::CosineAnnealingLR{.steps = 8});
  for (int batch = 0; batch < 6; ++batch) {
    eager.load(batch);
    eager.step();
    eager_rate.step();
  }
  manual_seed(5);
  optim::Schedule rate(*replayed.optimizer, optim::CosineAnnealingLR{.steps = 8});
  replayed.load(0);
  CudaGraph graph{[&] { replayed.step(); }};
  rate.step();
  for (int batch = 1; batch < 6; ++batch) {
    replayed.load(batch);
    graph.replay();
    rate.step();
  }
  CHECK(replayed.state() == eager.state());
  CHECK(default_generator().draws() > 0);
}

TEST_CASE("cuda: a replay is one call, and the host waits for nothing", "[core][cuda][graph]") {
  Training training(sgd);
  CudaGraph graph{[&] { training.step(); }};
  cuda::synchronize(gpu);
  cuda_double::reset_counts();
  for (int i = 0; i < 3; ++i) graph.replay();
  const cuda_double::Counts counts = cuda_double::counts();
  CHECK(counts.graph_launches == 3);
  CHECK(counts.launches == 0);
  CHECK(counts.calls_of_libraries == 0);
  CHECK(counts.synchronisations == 0);
  CHECK(counts.blocking_copies == 0);
  CHECK(counts.allocations == 0);
}

TEST_CASE("cuda: what cannot be in a graph is refused with its name, and the device goes on",
          "[core][cuda][graph]") {
  const Tensor x = ones({4, 4}, {.device = gpu});
  CHECK_THAT(said_by([&] { sum(x).item(); }),
             Contains("item") && Contains("cannot be captured: it makes the host wait"));
  CHECK_THAT(said_by([&] { x.to("cpu"); }), Contains("to cannot be captured"));
  CHECK_THAT(said_by([&] { cuda::synchronize(gpu); }), Contains("synchronize cannot be captured"));
  CHECK_THAT(said_by([&] { copy_(x, ones({4, 4})); }), Contains("cannot be captured"));
  CHECK_THAT(said_by([&] { rand({3}); }),
             Contains("fill_uniform_ cannot be captured: random numbers made on the CPU"));
  CHECK_THAT(said_by([&] { randperm(3, gpu); }), Contains("randperm cannot be captured"));
  CHECK_THAT(said_by([&] { nonzero(x); }), Contains("nonzero cannot be captured"));
  CHECK_THAT(said_by([&] { index_select(x, 0, zeros({1}, {.dtype = int64, .device = gpu})); }),
             Contains("index_select cannot be captured"));
  CHECK_THAT(said_by([&] { const CudaGraph inner{[] {}}; }), Contains("CudaGraph cannot be captured"));
  CHECK_THAT(said_by([&] { ones({2}, {.device = Device(DeviceType::cuda, 1)}); }),
             Contains("works on another GPU than the graph"));
  const Tensor weight = ones({4}, {.device = gpu}).set_requires_grad(true);
  CHECK_THAT(said_by([&] { sum(weight * weight).backward(); }),
             Contains("backward cannot be captured: it adds to gradients"));
  optim::SGD fresh({weight}, {.lr = 0.1, .momentum = 0.9});
  CHECK_THROWS_WITH((CudaGraph{[&] {
                                 fresh.zero_grad();
                                 sum(weight * weight).backward();
                                 fresh.step();
                               },
                               {.warmup = 0}}),
                    Contains("SGD.step cannot be captured: its state is made at the first step"));
  CHECK(sum(x).item<double>() == 16);
  CHECK_THROWS_WITH(CudaGraph({}), Contains("there is no function to capture"));
  CHECK_THROWS_WITH((CudaGraph{[] {}, {.warmup = -1}}), Contains("warmup must be at least 0, got -1"));
}

TEST_CASE("cuda: steps without the graph may come between replays", "[core][cuda][graph]") {
  Training eager(sgd), mixed(sgd);
  manual_seed(5);
  for (int batch = 0; batch < 5; ++batch) {
    eager.load(batch);
    eager.step();
  }
  manual_seed(5);
  mixed.load(0);
  CudaGraph graph{[&] { mixed.step(); }};
  const Tensor loss_of_graph = mixed.loss;
  for (int batch = 1; batch < 5; ++batch) {
    mixed.load(batch);
    if (batch == 2)
      mixed.step();
    else
      graph.replay();
    if (batch == 3) mixed.optimizer->zero_grad();
  }
  mixed.loss = loss_of_graph;
  CHECK(mixed.state() == eager.state());
}

TEST_CASE("cuda: a graph without a warm-up, behind a step that made what is made once",
          "[core][cuda][graph]") {
  Training eager(sgd), training(sgd);
  for (Training* each : {&eager, &training}) {
    manual_seed(5);
    each->load(0);
    each->step();
  }
  eager.load(1);
  eager.step();
  manual_seed(5);
  default_generator().set_draws(1);
  training.load(1);
  CudaGraph graph{[&] { training.step(); }, {.warmup = 0}};
  graph.replay();
  CHECK(training.state() == eager.state());
}

TEST_CASE("cuda: replays in two streams follow one another", "[core][cuda][graph]") {
  Training eager(sgd), replayed(sgd);
  manual_seed(5);
  eager.load(0);
  for (int step = 0; step < 3; ++step) eager.step();
  manual_seed(5);
  replayed.load(0);
  CudaGraph graph{[&] { replayed.step(); }};
  graph.replay();
  {
    const cuda::StreamGuard other(cuda::Stream({.device = gpu}));
    graph.replay();
    cuda::current_stream(gpu).synchronize();
  }
  CHECK(replayed.state() == eager.state());
}

TEST_CASE("cuda: a replay says when its optimiser is gone", "[core][cuda][graph]") {
  auto training = std::make_unique<Training>(sgd);
  CudaGraph graph{[&training = *training] { training.step(); }};
  graph.replay();
  training.reset();
  CHECK_THROWS_WITH(graph.replay(), Contains("its optimiser is gone"));
}

TEST_CASE("cuda: a graph's memory stays its own", "[core][cuda][graph]") {
  Training training(sgd);
  CudaGraph graph{[&] { training.step(); }};
  graph.replay();
  const double first = training.loss.item<double>();
  // What the graph uses between its first and last kernel is free in the meantime, for nobody else.
  empty_cache(gpu);
  std::vector<Tensor> others;
  for (int i = 0; i < 50; ++i) others.push_back(full({1 << (i % 12)}, 7, {.device = gpu}));
  graph.replay();
  CHECK(training.loss.item<double>() != first);
  for (const Tensor& other : others) CHECK(ops::all(other == 7).item<bool>());
}
