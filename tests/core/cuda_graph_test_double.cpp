#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "pleat/core/graph/cuda_graph.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/double.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

const Device gpu = DeviceType::cuda;
constexpr double infinity = std::numeric_limits<double>::infinity();

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
/// With `half` it computes in that type, and scales the loss.
struct Training {
  using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

  explicit Training(const MakeOptimizer& make, std::optional<DType> half_ = {})
      : net((manual_seed(3), make_net())), half(half_) {
    if (half) scaler.emplace(optim::GradScalerOptions{.init_scale = 1024, .growth_interval = 3});
    net.to(gpu);
    optimizer = make(net.parameters());
  }

  void load(int batch) {
    Generator numbers(static_cast<uint64_t>(batch));
    copy_(x, randn({4, 3, 8, 8}, {}, numbers));
    copy_(y, randint(0, 5, {4}, numbers));
  }

  void step() {
    {
      const Autocast types{half.value_or(float16), {.enabled = half.has_value()}};
      loss = cross_entropy(net(x), y, {.check_target = false});
    }
    optimizer->zero_grad();
    if (!half) {
      loss.backward();
      optim::clip_grad_norm_(net.parameters(), {.max_norm = 1});
      optimizer->step();
      return;
    }
    scaler->scale(loss).backward();
    scaler->unscale_(*optimizer);
    optim::clip_grad_norm_(net.parameters(), {.max_norm = 1});
    made = scaler->step(*optimizer);
    scaler->update();
  }

  std::vector<double> state() const {
    std::vector<double> all;
    for (const auto& [name, tensor] : net.state_dict())
      for (const double value : tensor.to_vector<double>()) all.push_back(value);
    all.push_back(loss.item<double>());
    for (const auto& [name, tensor] : optimizer->state_dict())
      for (const double value : tensor.to_vector<double>()) all.push_back(value);
    if (scaler)
      for (const auto& [name, tensor] : scaler->state_dict()) all.push_back(tensor.item<double>());
    return all;
  }

  nn::Sequential net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<DType> half;
  std::optional<optim::GradScaler> scaler;
  std::optional<optim::StepMade> made;
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

TEST_CASE("cuda: a scaled step that is replayed gives the bits of one that is not, made or left out",
          "[core][cuda][graph]") {
  const auto make = GENERATE(
      Training::MakeOptimizer(sgd), Training::MakeOptimizer([](const std::vector<Tensor>& parameters) {
        return std::make_unique<optim::SGD>(parameters,
                                            optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
      }),
      Training::MakeOptimizer([](const std::vector<Tensor>& parameters) {
        return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01});
      }),
      Training::MakeOptimizer([](const std::vector<Tensor>& parameters) {
        return std::make_unique<optim::Adagrad>(parameters,
                                                optim::AdagradOptions{.lr = 0.1, .lr_decay = 0.1});
      }));
  // The first step that is left out may be the very first.
  const int left_out = GENERATE(0, 3);
  Training eager(make, float16);
  Training replayed(make, float16);
  const auto load = [&](Training& training, int batch) {
    training.load(batch);
    if (batch == left_out || batch == 7) copy_(training.x, training.x * infinity);
  };
  // What is not finite must not stay in the running statistics.
  for (Training* each : {&eager, &replayed}) each->net[1].eval();
  constexpr int batches = 12;
  std::vector<bool> made;
  manual_seed(5);
  for (int batch = 0; batch < batches; ++batch) {
    load(eager, batch);
    eager.step();
    made.push_back(*eager.made);
    CHECK(made.back() == (batch != left_out && batch != 7));
  }
  CHECK(eager.scaler->scale() != 1024);
  manual_seed(5);
  load(replayed, 0);
  CudaGraph graph{[&] { replayed.step(); }};
  for (int batch = 1; batch < batches; ++batch) {
    load(replayed, batch);
    graph.replay();
    CHECK(*replayed.made == made[static_cast<std::size_t>(batch)]);
  }
  CHECK(replayed.state() == eager.state());
}

TEST_CASE("cuda: scaled steps, plain ones and checkpoints may come between replays", "[core][cuda][graph]") {
  const Training::MakeOptimizer adam = [](const std::vector<Tensor>& parameters) {
    return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 0.01});
  };
  Training eager(adam, float16), mixed(adam, float16);
  const auto between = [](Training& training, int batch) {
    if (batch == 2) training.step();
    if (batch == 3) training.optimizer->step();
    if (batch == 4) {
      training.optimizer->load_state_dict(training.optimizer->state_dict());
      nn::StateDict state = training.scaler->state_dict();
      state["growth_interval"] = scalar(2, int64);
      training.scaler->load_state_dict(state);
    }
    if (batch == 5) training.scaler->update(256);
  };
  manual_seed(5);
  eager.load(0);
  for (int batch = 0; batch < 9; ++batch) {
    eager.load(batch);
    eager.step();
    if (batch > 0) between(eager, batch);
  }
  manual_seed(5);
  mixed.load(0);
  CudaGraph graph{[&] { mixed.step(); }};
  const Tensor loss_of_graph = mixed.loss;
  for (int batch = 1; batch < 9; ++batch) {
    mixed.load(batch);
    graph.replay();
    between(mixed, batch);
  }
  mixed.loss = loss_of_graph;
  CHECK(mixed.state() == eager.state());
}

TEST_CASE("cuda: replays with a scaler that never makes a step say so soon", "[core][cuda][graph]") {
  Training training(sgd, float16);
  training.load(0);
  CudaGraph graph{[&] { training.step(); }};
  copy_(training.x, training.x * (infinity - infinity));
  const auto train = [&] {
    for (int i = 0; i < 1000; ++i) {
      graph.replay();
      if (i % 10 == 0) cuda::synchronize(gpu);
    }
  };
  CHECK_THROWS_AS(train(), NumericError);
}

TEST_CASE("cuda: a replay is one call, and the host waits for nothing", "[core][cuda][graph]") {
  Training training(sgd, GENERATE(std::optional<DType>(), std::optional<DType>(float16)));
  CudaGraph graph{[&] { training.step(); }};
  // The second has memory for what it looks at beside the graph.
  for (int i = 0; i < 2; ++i) graph.replay();
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
  CHECK_THAT(said_by([&] { x.to("cpu"); }), Contains("to_device cannot be captured"));
  CHECK_THAT(said_by([&] { cuda::synchronize(gpu); }), Contains("synchronize cannot be captured"));
  CHECK_THAT(said_by([&] { copy_(x, ones({4, 4})); }), Contains("cannot be captured"));
  CHECK_THAT(said_by([&] { rand({3}); }),
             Contains("fill_uniform_ cannot be captured: random numbers made on the CPU"));
  CHECK_THAT(said_by([&] { randperm(3, gpu); }), Contains("randperm cannot be captured"));
  CHECK_THAT(said_by([&] { sort(x, {.dim = 1}); }),
             Contains("sort cannot be captured: it makes the host wait"));
  CHECK_THAT(said_by([&] { empty_cache(gpu); }), Contains("empty_cache cannot be captured"));
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
  optim::GradScaler scaler;
  CHECK_THROWS_WITH((CudaGraph{[&] { scaler.scale(sum(weight)); }, {.warmup = 0}}),
                    Contains("GradScaler cannot be captured: its scale is brought to the GPU at the first"));
  CHECK_THROWS_WITH((CudaGraph{[&] {
                      fresh.zero_grad();
                      scaler.scale(sum(weight * weight)).backward();
                      const bool made = scaler.step(fresh);
                      scaler.update();
                      CHECK(made);
                    }}),
                    Contains("GradScaler.step cannot be captured: it makes the host wait"));
  CHECK_THAT(said_by([&] { scaler.scale(); }), Contains("GradScaler.scale cannot be captured"));
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
  for (const Tensor& other : others) CHECK(all(other == 7).item<bool>());
}

TEST_CASE("cuda: a capture gives no memory back, however little may be cached", "[core][cuda][graph]") {
  empty_cache(gpu);
  set_cache_limit(64 << 20, gpu);
  { const Tensor cached = zeros({50 << 18}, {.device = gpu}); }
  Tensor result;
  {
    CudaGraph graph{[&] {
                      const Tensor a = ones({20 << 18}, {.device = gpu});
                      result = sum(a);
                    },
                    {.warmup = 0}};
    CHECK(allocator_statistics(gpu).cached <= 64 << 20);
    graph.replay();
    CHECK(result.item<double>() == 20 << 18);
  }
  set_cache_limit(0, gpu);
  result = {};
  CHECK(allocator_statistics(gpu).cached < 2 << 20);  // what no tensor uses of segments in use
  set_cache_limit(std::numeric_limits<int64_t>::max(), gpu);
}
