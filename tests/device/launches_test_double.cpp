// How many launches, library calls and waits a step of training takes on CUDA: found by counting, on its
// double.

#include <optional>
#include <string>

#include "pleat/autograd/autocast.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/graph/cuda_graph.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/models/make_classifier.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/double.h"

using namespace pleat;

namespace {

struct StepCounts {
  cuda_double::Counts eager, replayed;
};

/// Of a step that others like it have gone before, by itself and in a graph; float16 with a scaled loss.
StepCounts step_counts(const std::string& model, std::optional<DType> half) {
  const Device device(DeviceType::cuda);
  nn::Sequential net = models::make_classifier(model, {.num_classes = 10});
  net.to(device);
  optim::SGD sgd(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  optim::GradScaler scaler{{.enabled = half == float16}};
  const Tensor x = randn({2, 3, 32, 32}, {.device = device});
  const Tensor target = zeros({2}, {.dtype = int64, .device = device});
  const auto step = [&] {
    Tensor loss;
    {
      const Autocast types{half.value_or(bfloat16), {.enabled = half.has_value()}};
      loss = cross_entropy(net(x), target, {.check_target = false});
    }
    sgd.zero_grad();
    scaler.scale(loss).backward();
    scaler.step(sgd);
    scaler.update();
  };
  const auto last_of = [](int count, const auto& run) {
    for (int i = 0; i < count; ++i) {
      cuda_double::reset_counts();
      run();
    }
    return cuda_double::counts();
  };
  StepCounts counts{.eager = last_of(3, step), .replayed = {}};
  CudaGraph graph{step, {.warmup = 0}};
  counts.replayed = last_of(3, [&] { graph.replay(); });
  return counts;
}

}  // namespace

TEST_CASE("cuda: batch norm counts its batches without launches or waiting", "[cuda]") {
  const Device device(DeviceType::cuda);
  const Tensor x = randn({4, 8, 6, 6}, {.device = device});
  for (const std::optional<double> momentum : {std::optional<double>(0.1), std::optional<double>()}) {
    nn::BatchNorm2d norm{{.num_features = 8, .momentum = momentum}};
    norm.to(device);
    norm(x);
    cuda_double::reset_counts();
    norm(x);
    const cuda_double::Counts counts = cuda_double::counts();
    // The average of all batches reads the count everywhere before one more launch changes it.
    CHECK(counts.launches == (momentum ? 2 : 3));
    CHECK(counts.synchronisations == 0);
    CHECK(norm.num_batches_tracked.item<int64_t>() == 2);
  }
}

TEST_CASE("cuda: a step of training takes few launches and waits for nothing", "[cuda]") {
  struct Expected {
    std::string model;
    std::optional<DType> half;
    int64_t launches, calls_of_libraries;
  };
  for (const Expected& expected :
       {Expected{"resnet20", std::nullopt, 93, 65}, Expected{"resnet20", bfloat16, 98, 65},
        Expected{"resnet20", float16, 104, 65}, Expected{"small", std::nullopt, 24, 11},
        Expected{"small", bfloat16, 30, 11}, Expected{"small", float16, 36, 11}}) {
    CAPTURE(expected.model, expected.half ? name(*expected.half) : "float32");
    const auto [eager, replayed] = step_counts(expected.model, expected.half);
    CHECK(eager.launches == expected.launches);
    CHECK(eager.calls_of_libraries == expected.calls_of_libraries);
    CHECK(eager.fills == (expected.half == float16 ? 1 : 0));  // of what says whether all is finite
    CHECK(replayed.graph_launches == 1);
    CHECK(replayed.launches + replayed.calls_of_libraries + replayed.fills == 0);
    // Of the optimiser's table, and now and then of the scaler's factor.
    CHECK(replayed.copies >= 1);
    CHECK(replayed.copies <= (expected.half == float16 ? 2 : 1));
    for (const cuda_double::Counts& counts : {eager, replayed}) {
      CHECK(counts.synchronisations == 0);
      CHECK(counts.blocking_copies == 0);
      CHECK(counts.allocations == 0);
    }
  }
}
