#include "pleat/dist/data_parallel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/checkpoint.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/dist/collectives.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/dist/world.h"
#include "pleat/tests/nn/module_cases.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using dist::DataParallel;
using test::part_of;
using test::relative_error;
using test::world;

namespace {

/// Of small buckets, so that even these networks have several.
constexpr dist::DataParallelOptions small_buckets{.bucket_megabytes = 0.002,
                                                  .first_bucket_megabytes = 0.0005};

/// The same numbers on all ranks.
Tensor same(const Shape& shape, uint64_t seed = 5) {
  Generator generator(seed);
  return randn(shape, float64, generator);
}

struct Net : nn::Module {
  nn::Conv2d conv1{{.in_channels = 3, .out_channels = 8, .kernel_size = 3}};
  nn::Conv2d conv2{{.in_channels = 8, .out_channels = 8, .kernel_size = 3, .padding = 1}};
  nn::Linear fc1{{.in_features = 8, .out_features = 16}};
  nn::Linear fc2{{.in_features = 16, .out_features = 16}};
  nn::Linear fc3{{.in_features = 16, .out_features = 5}};
  nn::Linear unused{{.in_features = 16, .out_features = 5}};
  bool twice = false;         ///< whether fc2 is called twice
  bool checkpointed = false;  ///< whether its middle is computed again in backward

  Tensor middle(const Tensor& x) { return relu(fc2(relu(fc1(x)))); }
  Tensor forward(const Tensor& x) override {
    Tensor y = mean(relu(conv2(relu(conv1(x)))), {2, 3});
    y = checkpointed ? checkpoint([this](const Tensor& t) { return middle(t); }, y) : middle(y);
    if (twice) y = fc2(y);
    return fc3(y);
  }
  void members(nn::Members& m) override {
    m("conv1", conv1);
    m("conv2", conv2);
    m("fc1", fc1);
    m("fc2", fc2);
    m("fc3", fc3);
    m("unused", unused);
  }
};

/// A network of float64 that differs between ranks until a DataParallel has it.
Net make_net() {
  manual_seed(17);
  Net net;
  net.to(float64);
  return net;
}

/// Checks that the gradients of both networks are the same but for rounding, and which there are.
void check_same_gradients(nn::Module& got, nn::Module& wanted, double tolerance = 1e-12) {
  const nn::NamedTensors a = got.named_parameters(), b = wanted.named_parameters();
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].first);
    REQUIRE(a[i].second.grad().defined() == b[i].second.grad().defined());
    if (b[i].second.grad().defined())
      CHECK(relative_error(a[i].second.grad(), b[i].second.grad()) < tolerance);
  }
}

/// Checks that all ranks have the same bits.
void check_same_on_all_ranks(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    CHECK(dist::broadcast(t.detach(), world()).to_vector<double>() == t.to_vector<double>());
}

int64_t batch() { return 2 * world().size() + 1; }  // ragged for all but one rank

// --- Every module, beside one process with all samples

/// Sequences are [length, N, features].
int64_t batch_dim(const test::ModuleCase& c) {
  static const std::regex of_sequences("(LSTM|GRU|RNN|Multihead|Transformer)(?!Cell).*");
  return std::regex_match(c.name, of_sequences) ? 1 : 0;
}

/// Batch norm and dropout as in evaluation: in training, a sample's gradient depends on its batch.
std::unique_ptr<nn::Module> make_module(const test::ModuleCase& c, DType dtype) {
  std::unique_ptr<nn::Module> net = c.make();
  net->to(dtype);
  net->eval();
  return net;
}

Tensor input_of(const test::ModuleCase& c, int64_t samples,
                const std::function<Tensor(const Shape&)>& values) {
  Shape shape = c.input;
  shape[static_cast<std::size_t>(batch_dim(c))] = samples;
  Generator generator(3);
  return c.classes > 0 ? randint(0, c.classes, shape, generator) : values(shape);
}

/// The largest error of a gradient in float64, ragged batches, over two steps.
double gradient_error(const test::ModuleCase& c) {
  const auto net = make_module(c, float64), alone = make_module(c, float64);
  const int64_t dim = batch_dim(c);
  dist::DataParallelOptions options = small_buckets;
  options.batch_dim = dim;
  DataParallel ddp{*net, world(), options};
  alone->load_state_dict(net->state_dict());
  const Tensor x = input_of(c, batch(), [](const Shape& shape) { return same(shape, 3); });
  double error = 0;
  for (int step = 0; step < 2; ++step) {
    const Tensor y = (*alone)(x);
    REQUIRE(y.size(dim) == batch());
    const Tensor factors = same(y.shape());
    mean(y * factors).backward();
    mean(ddp(part_of(x, dim)) * part_of(factors, dim)).backward();
    const std::vector<Tensor> a = net->parameters(), b = alone->parameters();
    for (std::size_t i = 0; i < a.size(); ++i) {
      REQUIRE(a[i].grad().defined() == b[i].grad().defined());
      if (b[i].grad().defined()) error = std::max(error, relative_error(a[i].grad(), b[i].grad()));
    }
    net->zero_grad();
    alone->zero_grad();
  }
  return error;
}

/// Checks that gradients which float32 computes without rounding have the same bits: of integers, and of a
/// mean over a power of two. Returns whether the module's are such.
bool check_exact_gradients(const test::ModuleCase& c) {
  const int64_t dim = batch_dim(c);
  const auto integers = [](const Shape& shape) {
    Generator generator(7);
    return randint(-2, 3, shape, generator).to(float32);
  };
  const Tensor x = input_of(c, 16, integers);
  /// The gradients of all samples, or those of this rank's and the others'.
  const auto gradients = [&](DType dtype, bool alone) {
    const auto net = make_module(c, dtype);
    for (const Tensor& p : net->parameters()) ops::copy_into(p, integers(p.shape()));
    dist::DataParallelOptions options = small_buckets;
    options.batch_dim = dim;
    DataParallel ddp{*net, alone ? dist::Communicator() : world(), options};
    const Tensor input = is_floating(x.dtype()) ? x.to(dtype) : x;
    const Tensor y = ddp(alone ? input : part_of(input, dim));
    Shape all = y.shape();
    all[static_cast<std::size_t>(dim)] = 16;
    const Tensor factors = integers(all).to(dtype);
    (sum(y * (alone ? factors : part_of(factors, dim))) / y.size(dim)).backward();
    std::vector<std::vector<double>> values;
    for (const Tensor& p : net->parameters())
      values.push_back(p.grad().defined() ? p.grad().to_vector<double>() : std::vector<double>{});
    return values;
  };
  const auto wanted = gradients(float32, true);
  if (wanted != gradients(float64, true)) return false;
  CHECK(gradients(float32, false) == wanted);
  return true;
}

}  // namespace

TEST_CASE("DataParallel: all ranks begin with the weights and buffers of rank 0", "[dist]") {
  manual_seed(17);  // other numbers on each rank
  nn::Conv2d conv{{.in_channels = 3, .out_channels = 4, .kernel_size = 3}};
  nn::BatchNorm2d norm{{.num_features = 4}};
  ops::fill(norm.running_mean, world().rank());
  const Tensor before = conv.weight.clone();
  nn::Sequential net(conv, norm);
  const DataParallel ddp{net, world()};
  check_same_on_all_ranks({conv.weight, norm.running_mean});
  CHECK(norm.running_mean.to_vector<float>() == std::vector<float>(4, 0));
  CHECK((before.to_vector<float>() == conv.weight.to_vector<float>()) == (world().rank() == 0));
}

TEST_CASE("DataParallel: gradients of every module are those of one process with all samples", "[dist]") {
  // PLEAT_WRITE_EQUALITIES=FILE appends how far they are equal: docs/clusters.md.
  std::ofstream file;
  const char* const name = std::getenv("PLEAT_WRITE_EQUALITIES");
  if (name != nullptr && world().is_main()) file.open(name, std::ios::app);
  const bool means_are_exact = std::has_single_bit(static_cast<unsigned>(world().size()));
  int num_exact = 0;
  for (const test::ModuleCase& c : test::module_cases()) {
    CAPTURE(c.name);
    if (c.make()->parameters().empty() || c.input.empty()) continue;
    const double error = gradient_error(c);
    CHECK(error < 1e-11);
    const bool exact = means_are_exact && check_exact_gradients(c);
    num_exact += exact ? 1 : 0;
    file << world().size() << "," << error << "," << exact << "," << c.name << "\n";
  }
  // Linear layers, convolutions of all kinds and embeddings, whose sums of integers float32 holds. A GPU's
  // libraries may compute them otherwise.
  if (means_are_exact && default_device().is_cpu()) CHECK(num_exact >= 15);
}

TEST_CASE("DataParallel: a training of several processes is that of one", "[dist]") {
  Net net = make_net();
  net.twice = true;
  DataParallel ddp{net, world(), small_buckets};
  Net alone = nn::clone(net);
  optim::Adam adam{net.parameters(), {.lr = 0.01}}, adam_alone{alone.parameters(), {.lr = 0.01}};
  const Tensor x = same({batch(), 3, 6, 6});
  Generator generator(9);
  const Tensor classes = randint(0, 5, {batch()}, generator);
  for (int step = 0; step < 5; ++step) {
    const Tensor loss = cross_entropy(ddp(part_of(x)), part_of(classes));
    loss.backward();
    cross_entropy(alone(x), classes).backward();
    check_same_gradients(net, alone, 1e-10);
    CHECK_FALSE(net.unused.weight.grad().defined());
    optim::clip_grad_norm_(net.parameters(), {.max_norm = 0.1});
    optim::clip_grad_norm_(alone.parameters(), {.max_norm = 0.1});
    adam.step();
    adam_alone.step();
    adam.zero_grad();
    adam_alone.zero_grad();
  }
  check_same_on_all_ranks(net.parameters());
  const auto a = net.parameters(), b = alone.parameters();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(relative_error(a[i], b[i]) < 1e-9);
  if (world().size() > 1) CHECK(ddp.num_buckets() > 2);
}

TEST_CASE("DataParallel: the same run twice gives the same bits", "[dist]") {
  const auto run = [] {
    Net net = make_net();
    DataParallel ddp{net, world(), small_buckets};
    optim::SGD sgd{net.parameters(), {.lr = 0.1}};
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) {
      const Tensor loss = mean(square(ddp(part_of(same({batch(), 3, 6, 6})))));
      losses.push_back(loss.item());
      loss.backward();
      sgd.step();
      sgd.zero_grad();
    }
    return losses;
  };
  CHECK(run() == run());
}

TEST_CASE("DataParallel: gradients that accumulate without a reduction are reduced by the next", "[dist]") {
  Net net = make_net();
  DataParallel ddp{net, world(), small_buckets};
  Net alone = nn::clone(net);
  const auto loss = [](const Tensor& y) { return mean(square(y)); };
  for (int round = 0; round < 2; ++round) {
    {
      const auto accumulate = ddp.no_sync();
      loss(ddp(part_of(same({batch(), 3, 6, 6}, 1)))).backward();
      loss(ddp(part_of(same({batch() + 2, 3, 6, 6}, 2)))).backward();
    }
    // Only a part of the network takes part in the last one.
    loss(ddp.weighted(net.fc3(part_of(same({batch(), 16}, 3))), part_of(same({batch()})).size(0))).backward();
    loss(alone(same({batch(), 3, 6, 6}, 1))).backward();
    loss(alone(same({batch() + 2, 3, 6, 6}, 2))).backward();
    loss(alone.fc3(same({batch(), 16}, 3))).backward();
    check_same_gradients(net, alone);
    // A second backward adds to what is reduced.
    loss(ddp(part_of(same({batch(), 3, 6, 6}, 4)))).backward();
    loss(alone(same({batch(), 3, 6, 6}, 4))).backward();
    check_same_gradients(net, alone);
    net.zero_grad();
    alone.zero_grad();
  }
}

TEST_CASE("DataParallel: a parameter that only some ranks use counts as 0 on the others", "[dist]") {
  Net net = make_net();
  DataParallel ddp{net, world(), small_buckets};
  const bool last = world().rank() == world().size() - 1;
  const Tensor x = same({2, 16});
  for (int step = 0; step < 2; ++step) {
    const Tensor y = last ? net.unused(x) + net.fc3(x) : net.fc3(x);
    sum(y).backward();
    const Tensor expected = sum(x, 0) / world().size();  // of one rank's 2 samples, the mean over the ranks
    CHECK(relative_error(net.unused.weight.grad()[1], expected) < 1e-14);
    CHECK(relative_error(net.fc3.weight.grad()[1], sum(x, 0)) < 1e-14);
    CHECK_FALSE(net.conv1.weight.grad().defined());
    net.zero_grad();
  }
}

TEST_CASE("DataParallel: parts may be frozen, and thawed again", "[dist]") {
  Net net = make_net();
  net.conv1.requires_grad_(false);
  DataParallel ddp{net, world(), small_buckets};
  Net alone = nn::clone(net);
  alone.conv1.requires_grad_(false);
  const Tensor x = same({batch(), 3, 6, 6});
  for (int step = 0; step < 4; ++step) {
    const bool first = step >= 1, middle = step >= 2;
    net.conv1.requires_grad_(first);
    alone.conv1.requires_grad_(first);
    net.fc2.requires_grad_(!middle);
    alone.fc2.requires_grad_(!middle);
    mean(square(ddp(part_of(x)))).backward();
    mean(square(alone(x))).backward();
    check_same_gradients(net, alone);
    net.zero_grad();
    alone.zero_grad();
  }
}

TEST_CASE("DataParallel: a backward inside of backward, by checkpoint", "[dist]") {
  Net net = make_net();
  net.checkpointed = net.twice = true;
  DataParallel ddp{net, world(), small_buckets};
  Net alone = nn::clone(net);
  const Tensor x = same({batch(), 3, 6, 6});
  for (int step = 0; step < 2; ++step) {
    mean(square(ddp(part_of(x)))).backward();
    mean(square(alone(x))).backward();
    check_same_gradients(net, alone);
    net.zero_grad();
    alone.zero_grad();
  }
}

TEST_CASE("DataParallel: two networks in one loss, each with its own", "[dist]") {
  Net first = make_net(), second = make_net();
  DataParallel ddp_first{first, world(), small_buckets}, ddp_second{second, world(), small_buckets};
  Net first_alone = nn::clone(first), second_alone = nn::clone(second);
  const Tensor x = same({batch(), 3, 6, 6});
  mean(square(ddp_first(part_of(x)) + ddp_second(part_of(x)))).backward();
  mean(square(first_alone(x) + second_alone(x))).backward();
  check_same_gradients(first, first_alone);
  check_same_gradients(second, second_alone);
}

TEST_CASE("DataParallel: gradients go over the wire in half precision", "[dist]") {
  for (const DType half : {float16, bfloat16}) {
    Net net = make_net();
    net.to(float32);
    DataParallel ddp{net, world(), {.bucket_megabytes = 0.001, .reduce_dtype = half}};
    Net alone = nn::clone(net);
    const Tensor x = same({batch(), 3, 6, 6}).to(float32);
    mean(square(ddp(part_of(x)))).backward();
    mean(square(alone(x))).backward();
    check_same_gradients(net, alone, half == float16 ? 2e-3 : 2e-2);
    CHECK(net.fc1.weight.grad().dtype() == float32);
    check_same_on_all_ranks({net.fc1.weight.grad()});
  }
}

TEST_CASE("DataParallel: buffers after a backward are those of rank 0", "[dist]") {
  nn::BatchNorm2d norm{{.num_features = 4}};
  DataParallel ddp{norm, world()};
  mean(square(ddp(same({2, 4, 3, 3}, 1 + static_cast<uint64_t>(world().rank())).to(float32)))).backward();
  nn::BatchNorm2d alone{{.num_features = 4}};
  alone(same({2, 4, 3, 3}, 1).to(float32));
  CHECK(norm.running_mean.to_vector<float>() == alone.running_mean.to_vector<float>());
  CHECK(norm.num_batches_tracked.item<int64_t>() == 1);
}

TEST_CASE("DataParallel: one verdict about gradients that are not finite", "[dist]") {
  Net net = make_net();
  net.to(float32);
  DataParallel ddp{net, world()};
  optim::SGD sgd{net.parameters(), {.lr = 0.1}};
  optim::GradScaler scaler;
  const Tensor before = net.fc3.weight.clone();
  const bool last = world().rank() == world().size() - 1;
  Tensor x = same({2, 3, 6, 6}).to(float32);
  if (last) x = x * INFINITY;
  scaler.scale(mean(square(ddp(x)))).backward();
  CHECK_FALSE(bool(scaler.step(sgd)));
  scaler.update();
  CHECK(scaler.scale() == 32768);
  CHECK(net.fc3.weight.to_vector<float>() == before.to_vector<float>());
}

TEST_CASE("DataParallel: a moved network goes on", "[dist]") {
  Net net = make_net();
  DataParallel ddp{net, world(), small_buckets};
  const Tensor x = same({batch(), 3, 6, 6});
  mean(square(ddp(part_of(x)))).backward();
  net.zero_grad();
  net.to(float32);
  Net alone = nn::clone(net);
  mean(square(ddp(part_of(x.to(float32))))).backward();
  mean(square(alone(x.to(float32)))).backward();
  check_same_gradients(net, alone, 1e-5);
}

TEST_CASE("DataParallel: what it cannot do is an error", "[dist]") {
  Net net = make_net();
  for (const double size : {0.0, -1.0, double{NAN}, double{INFINITY}, 1e7}) {
    CHECK_THROWS_AS((DataParallel{net, world(), {.bucket_megabytes = size}}), ValueError);
    CHECK_THROWS_AS((DataParallel{net, world(), {.first_bucket_megabytes = size}}), ValueError);
  }
  CHECK_THROWS_AS((DataParallel{net, world(), {.reduce_dtype = float64}}), ValueError);
  if (world().size() == 1) return;
  DataParallel ddp{net, world()};
  CHECK_THROWS_WITH((DataParallel{net, world()}), Catch::Matchers::Contains("one DataParallel at a time"));
  const Tensor loss = mean(square(ddp(same({2, 3, 6, 6}))));
  CHECK_THROWS_AS(backward({loss}, {}, {.create_graph = true}), AutogradError);
  CHECK_THROWS_AS(ddp.weighted(loss, 0), ValueError);
}

TEST_CASE("DataParallel: hooks of its own and inside are called with this rank's part", "[dist]") {
  Net net = make_net();
  DataParallel ddp{net, world()};
  std::vector<Shape> inputs;
  const auto note = [&](nn::Module&, const std::vector<Tensor>& in, const Tensor&) {
    inputs.push_back(in[0].shape());
    return Tensor();
  };
  net.fc3.register_forward_hook(note);
  ddp.register_forward_hook(note);
  sum(ddp(same({2, 3, 6, 6}))).backward();
  CHECK(inputs == std::vector<Shape>{{2, 16}, {2, 3, 6, 6}});
}

TEST_CASE("DataParallel: its names are those of the network behind \"module\"", "[dist]") {
  Net net = make_net();
  DataParallel ddp{net, world()};
  CHECK(ddp.named_parameters()[0].first == "module.conv1.weight");
  ddp.eval();
  CHECK_FALSE(net.fc1.training());
  CHECK(nn::to_string(ddp).find("DataParallel(rank") == 0);
}
