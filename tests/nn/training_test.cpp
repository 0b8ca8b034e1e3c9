// Modules, optimisers and schedules together: small networks learn.

#include <array>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/muon.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

constexpr int64_t side = 8;
constexpr int64_t batch_size = 32;

struct Bars {
  std::vector<Tensor> images;  // batches [32, 1, 8, 8]
  std::vector<Tensor> labels;  // [32]
};

/// Images of a bar of four pixels that is horizontal, vertical, falling or rising, at any place, black or
/// white at random: since pixels have a mean of 0 in every class, no linear function of them tells the
/// classes apart.
Bars make_bars(int64_t batches, uint64_t seed) {
  const std::vector<std::array<int64_t, 2>> directions = {{0, 1}, {1, 0}, {1, 1}, {-1, 1}};
  Generator generator(seed);
  Bars bars;
  for (int64_t b = 0; b < batches; ++b) {
    const Tensor images = empty({batch_size, 1, side, side}, "cpu");
    fill_normal_(images, 0, 0.3, generator);
    const auto choice = [&](int64_t n) {
      return randint(0, n, {batch_size}, generator).to_vector<int64_t>();
    };
    const auto labels = choice(4);
    const auto rows = choice(side - 3);
    const auto columns = choice(side - 3);
    const auto signs = choice(2);
    for (std::size_t i = 0; i < batch_size; ++i) {
      const auto [dy, dx] = directions[static_cast<std::size_t>(labels[i])];
      float* image = images.data<float>() + static_cast<int64_t>(i) * side * side;
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t row = rows[i] + (dy < 0 ? 3 - k : dy * k);
        image[row * side + columns[i] + dx * k] += signs[i] == 0 ? 1.5F : -1.5F;
      }
    }
    bars.images.push_back(images.to(default_device()));
    bars.labels.push_back(from_vector(labels));
  }
  return bars;
}

Tensor cross_entropy_of(const Tensor& logits, const Tensor& labels) {
  return -mean(gather(log_softmax(logits, 1), 1, reshape(labels, {-1, 1})));
}

double accuracy(nn::Module& net, const Bars& bars) {
  const NoGrad guard;
  net.eval();
  int64_t right = 0;
  for (std::size_t b = 0; b < bars.images.size(); ++b) {
    const auto found = argmax(net(bars.images[b]), 1).to_vector<int64_t>();
    const auto wanted = bars.labels[b].to_vector<int64_t>();
    for (std::size_t i = 0; i < found.size(); ++i) right += found[i] == wanted[i] ? 1 : 0;
  }
  net.train();
  return static_cast<double>(right) / static_cast<double>(bars.images.size() * batch_size);
}

nn::Sequential small_network() {
  return nn::Sequential{nn::Conv2d{{.in_channels = 1, .out_channels = 16, .kernel_size = 3, .bias = false}},
                        nn::BatchNorm2d{{.num_features = 16}},
                        nn::ReLU{},
                        nn::Conv2d{{.in_channels = 16, .out_channels = 16, .kernel_size = 3, .padding = 1}},
                        nn::ReLU{},
                        nn::AdaptiveMaxPool2d{{.output_size = 1}},
                        nn::Flatten{},
                        nn::Linear{{.in_features = 16, .out_features = 4}}};
}

void train_epochs(nn::Module& net, const Bars& bars, int epochs, optim::Optimizer& optimizer,
                  optim::Schedule* schedule = nullptr) {
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (std::size_t b = 0; b < bars.images.size(); ++b) {
      optimizer.zero_grad();
      cross_entropy_of(net(bars.images[b]), bars.labels[b]).backward();
      optim::clip_grad_norm_(net.parameters(), {.max_norm = 5});
      optimizer.step();
      if (schedule != nullptr) schedule->step();
    }
}

}  // namespace

TEST_CASE("a small convolutional network learns what a linear model cannot", "[nn][training][cpu]") {
  const Bars training = make_bars(30, 1);
  const Bars test = make_bars(15, 2);

  manual_seed(3);
  nn::Sequential net = small_network();
  optim::SGD sgd{net.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true}};
  optim::Schedule schedule{sgd, optim::OneCycleLR{.max_lr = 0.1, .total_steps = 6 * 30}};
  train_epochs(net, training, 6, sgd, &schedule);
  CHECK(accuracy(net, test) > 0.97);

  nn::Sequential linear{nn::Flatten{}, nn::Linear{{.in_features = side * side, .out_features = 4}}};
  optim::Adam adam{linear.parameters(), {.lr = 1e-2}};
  train_epochs(linear, training, 6, adam);
  CHECK(accuracy(linear, test) < 0.5);
}

TEST_CASE("Muon for the filters and AdamW for the rest learn it, too", "[nn][training][cpu]") {
  const Bars training = make_bars(30, 1);
  manual_seed(3);
  nn::Sequential net = small_network();
  std::vector<Tensor> filters, others;
  for (const Tensor& parameter : net.parameters())
    (parameter.rank() == 4 ? filters : others).push_back(parameter);
  optim::Muon muon{filters};
  optim::AdamW adam{others, {.lr = 1e-2}};
  for (int epoch = 0; epoch < 4; ++epoch)
    for (std::size_t b = 0; b < training.images.size(); ++b) {
      net.zero_grad();
      cross_entropy_of(net(training.images[b]), training.labels[b]).backward();
      muon.step();
      adam.step();
    }
  CHECK(accuracy(net, make_bars(15, 2)) > 0.97);
}

TEST_CASE("in mixed precision the network learns as well as in float32", "[nn][training][amp][cpu]") {
  const Bars training = make_bars(30, 1);
  const Bars test = make_bars(15, 2);
  for (const DType half : {bfloat16, float16}) {
    CAPTURE(name(half));
    manual_seed(3);
    nn::Sequential net = small_network();
    optim::SGD sgd{net.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true}};
    optim::Schedule schedule{sgd, optim::OneCycleLR{.max_lr = 0.1, .total_steps = 6 * 30}};
    optim::GradScaler scaler{{.growth_interval = 50, .enabled = half == float16}};
    int steps = 0;
    for (int epoch = 0; epoch < 6; ++epoch)
      for (std::size_t b = 0; b < training.images.size(); ++b) {
        Tensor loss;
        {
          const Autocast guard{half};
          const Tensor logits = net(training.images[b]);
          REQUIRE(logits.dtype() == half);
          loss = cross_entropy(logits, training.labels[b]);
        }
        REQUIRE(loss.dtype() == float32);
        sgd.zero_grad();
        scaler.scale(loss).backward();
        scaler.unscale_(sgd);
        optim::clip_grad_norm_(net.parameters(), {.max_norm = 5});
        steps += scaler.step(sgd) ? 1 : 0;
        scaler.update();
        schedule.step();
      }
    for (const auto& [key, tensor] : net.state_dict())
      CHECK((tensor.dtype() == float32 || !is_floating(tensor.dtype())));
    // The scale starts too high, finds its place, and seldom tries a higher one.
    CHECK(steps > 6 * 30 - 20);
    CHECK(accuracy(net, test) > 0.97);
  }
}

TEST_CASE("the same seed gives the same bits, for any number of threads and after a checkpoint",
          "[nn][training]") {
  const Bars bars = make_bars(4, 5);
  const int threads = num_threads();
  std::vector<nn::StateDict> results;
  for (const int n : {1, 2, 3}) {
    set_num_threads(n);
    manual_seed(7);
    nn::Sequential net = small_network();
    optim::Adam adam{net.parameters(), {.lr = 1e-2}};
    train_epochs(net, bars, 1, adam);
    if (n == 3) {
      // Saved and taken up again by another network and optimiser.
      const nn::StateDict weights = nn::clone(net.state_dict());
      const nn::StateDict state = adam.state_dict();
      nn::Sequential other = small_network();
      optim::Adam resumed{other.parameters(), {.lr = 5}};
      other.load_state_dict(weights);
      resumed.load_state_dict(state);
      train_epochs(other, bars, 1, resumed);
      results.push_back(other.state_dict());
    } else {
      train_epochs(net, bars, 1, adam);
      results.push_back(net.state_dict());
    }
  }
  set_num_threads(threads);
  for (const auto& [name, tensor] : results[0]) {
    CAPTURE(name);
    CHECK((tensor.to_vector() == results[1].at(name).to_vector()));
    CHECK((tensor.to_vector() == results[2].at(name).to_vector()));
  }
}

TEST_CASE("a network works in float64 and in either memory format", "[nn][training]") {
  const Bars bars = make_bars(1, 9);
  manual_seed(8);
  nn::Sequential net = small_network();
  const Tensor x = bars.images[0];
  net.eval();
  const Tensor y = net(x);
  net.to(float64);
  const Tensor exact = net(x.to(float64));
  CHECK(exact.dtype() == float64);
  net.to(MemoryFormat::contiguous);
  CHECK(net.get<nn::Conv2d>(3).weight.is_contiguous());
  const Tensor contiguous = net(x.to(float64).to(MemoryFormat::channels_last));
  const auto a = y.to_vector<double>();
  const auto b = exact.to_vector<double>();
  const auto c = contiguous.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i] == Approx(b[i]).epsilon(1e-5).margin(1e-6));
    CHECK(c[i] == Approx(b[i]).epsilon(1e-12).margin(1e-13));
  }
  sum(contiguous).backward();
  CHECK(net.parameters()[0].grad().dtype() == float64);
}
