#include "pleat/dist/sharded_optimizer.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/dist/collectives.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/multi_optimizer.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/dist/world.h"
#include "pleat/tests/nn/optim/optimizer_cases.h"
#include "pleat/tests/temporary_directory.h"
#include "pleat/train/checkpoint.h"

using namespace pleat;
using dist::DataParallel;
using dist::ShardedOptimizer;
using test::part_of;
using test::world;

namespace {

/// Parameters of odd sizes, one of them channels-last, which ranks' parts cut anywhere.
nn::Sequential make_net() {
  manual_seed(17);
  nn::Sequential net(nn::Conv2d{{.in_channels = 3, .out_channels = 7, .kernel_size = 3}}, nn::Flatten{},
                     nn::Linear{{.in_features = 7 * 4 * 4, .out_features = 5}},
                     nn::Linear{{.in_features = 5, .out_features = 3}});
  net.parameters()[0].set_data(net.parameters()[0].to(MemoryFormat::channels_last));
  return net;
}

using Make = std::function<std::unique_ptr<optim::Optimizer>(DataParallel& ddp, bool sharded)>;

/// An optimiser as it is, or spread over the ranks.
template <class Inner, class Options>
Make maker(Options options) {
  return [options](DataParallel& ddp, bool sharded) -> std::unique_ptr<optim::Optimizer> {
    Inner inner{ddp.parameters(), options};
    if (sharded) return std::make_unique<ShardedOptimizer>(ddp, std::move(inner));
    return std::make_unique<Inner>(std::move(inner));
  };
}

void train_steps(DataParallel& ddp, optim::Optimizer& optimizer, int steps, uint64_t seed) {
  Generator generator(seed);
  for (int step = 0; step < steps; ++step) {
    const Tensor x = randn({2 * world().size() + 1, 3, 6, 6}, float32, generator);
    const Tensor y = ddp(part_of(x));
    mean(y * y).backward();
    optim::clip_grad_norm_(optimizer.parameters(), {.max_norm = 0.5});
    optimizer.step();
    optimizer.zero_grad();
  }
}

void check_same_bits(const nn::StateDict& a, const nn::StateDict& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [key, tensor] : a) {
    CAPTURE(key);
    REQUIRE(b.contains(key));
    CHECK(tensor.shape() == b.at(key).shape());
    CHECK(tensor.dtype() == b.at(key).dtype());
    CHECK(tensor.to_vector<double>() == b.at(key).to_vector<double>());
  }
}

}  // namespace

TEST_CASE("ShardedOptimizer: each optimiser's weights and state to the bit, and resumed", "[dist]") {
  std::vector<std::pair<std::string, Make>> makers{
      {"Muon and AdamW", [](DataParallel& ddp, bool sharded) -> std::unique_ptr<optim::Optimizer> {
         std::vector<Tensor> matrices, others;
         for (const Tensor& p : ddp.parameters()) (p.rank() >= 2 ? matrices : others).push_back(p);
         optim::Muon muon{matrices, {.lr = 0.02}};
         optim::AdamW adam{others};
         if (!sharded) return std::make_unique<optim::MultiOptimizer>(std::move(muon), std::move(adam));
         return std::make_unique<optim::MultiOptimizer>(ShardedOptimizer{ddp, std::move(muon)},
                                                        ShardedOptimizer{ddp, std::move(adam)});
       }}};
  test::for_each_optimizer([&]<class Optimizer, class Options>(const char* name) {
    if (std::is_same_v<Optimizer, optim::Muon>) return;  // takes no biases
    auto options = test::default_options<Options>();
    if constexpr (requires { options.momentum; }) options.momentum = 0.5;
    if constexpr (requires { options.amsgrad; }) options.amsgrad = true;
    makers.emplace_back(name, maker<Optimizer>(options));
  });
  for (const auto& [name, make] : makers) {
    CAPTURE(name);
    nn::Sequential whole_net = make_net(), sharded_net = make_net(), resumed_net = make_net();
    DataParallel whole_ddp{whole_net, world()}, sharded_ddp{sharded_net, world()},
        resumed_ddp{resumed_net, world()};
    const auto whole = make(whole_ddp, false), sharded = make(sharded_ddp, true);
    train_steps(whole_ddp, *whole, 3, 1);
    train_steps(sharded_ddp, *sharded, 3, 1);
    check_same_bits(whole_net.state_dict(), sharded_net.state_dict());
    check_same_bits(whole->state_dict(), sharded->state_dict());

    // A run that begins again from the state of the whole one, and goes on with another rate.
    const auto resumed = make(resumed_ddp, true);
    resumed_net.load_state_dict(whole_net.state_dict());
    resumed->load_state_dict(whole->state_dict());
    for (optim::Optimizer* each : {whole.get(), resumed.get()}) each->set_lr(each->lr() / 2);
    train_steps(whole_ddp, *whole, 2, 2);
    train_steps(resumed_ddp, *resumed, 2, 2);
    check_same_bits(whole_net.state_dict(), resumed_net.state_dict());
    check_same_bits(whole->state_dict(), resumed->state_dict());
  }
}

TEST_CASE("ShardedOptimizer: groups, half precision, and a step that GradScaler skips", "[dist]") {
  for (const bool overflows : {false, true}) {
    nn::Sequential nets[] = {make_net(), make_net()};
    for (nn::Sequential& net : nets) net[2].to(bfloat16);  // beside parameters of float32
    std::vector<nn::StateDict> states;
    for (nn::Sequential& net : nets) {
      DataParallel ddp{net, world()};
      std::vector<Tensor> params = net.parameters();
      const std::vector<Tensor> slow(params.begin(), params.begin() + 3),
          fast(params.begin() + 3, params.end());
      optim::Adam adam{{{slow, {.lr = 0.001}}, {fast, {.lr = 0.01}}}};
      std::unique_ptr<optim::Optimizer> optimizer;
      if (&net == nets)
        optimizer = std::make_unique<optim::Adam>(std::move(adam));
      else
        optimizer = std::make_unique<ShardedOptimizer>(ddp, std::move(adam));
      optim::GradScaler scaler{{.init_scale = 1024}};
      for (int step = 0; step < 3; ++step) {
        for (const Tensor& p : params) p.set_grad(full(p.shape(), 0.5 + step, p.dtype()));
        if (overflows && step == 1) ops::fill(params[1].grad(), INFINITY);
        scaler.step(*optimizer);
        scaler.update();
      }
      states.push_back(optimizer->state_dict());
    }
    check_same_bits(nets[0].state_dict(), nets[1].state_dict());
    check_same_bits(states[0], states[1]);
  }
}

TEST_CASE("ShardedOptimizer: takes over an optimiser that has a state, and a parameter of no elements",
          "[dist]") {
  struct WithEmpty : nn::Sequential {
    using nn::Sequential::Sequential;
    Tensor none = zeros({0, 3});
    void members(nn::Members& m) override {
      nn::Sequential::members(m);
      m("none", none);
    }
  };
  nn::StateDict states[2];
  nn::StateDict weights[2];
  for (const bool sharded : {false, true}) {
    manual_seed(3);
    WithEmpty net(nn::Linear{{.in_features = 5, .out_features = 3}});
    DataParallel ddp{net, world()};
    const auto step = [&](optim::Optimizer& optimizer, double value) {
      for (const Tensor& p : net.parameters()) p.set_grad(full(p.shape(), value));
      optimizer.step();
    };
    optim::Adam adam{net.parameters(), {.lr = 0.1}};
    step(adam, 1);
    if (sharded) {
      ShardedOptimizer shared{ddp, std::move(adam)};
      step(shared, 2);
      states[1] = shared.state_dict();
      shared.load_state_dict(states[1]);
    } else {
      step(adam, 2);
      states[0] = adam.state_dict();
    }
    for (const auto& [name, tensor] : net.state_dict()) weights[sharded ? 1 : 0][name] = tensor.clone();
  }
  check_same_bits(weights[0], weights[1]);
  for (const auto& [name, tensor] : states[0])
    if (tensor.numel() > 0 && name != "param.2.step")
      CHECK(tensor.to_vector<double>() == states[1].at(name).to_vector<double>());
}

TEST_CASE("ShardedOptimizer: the state falls with the number of ranks", "[dist]") {
  nn::Sequential net = make_net();
  DataParallel ddp{net, world()};
  ShardedOptimizer adam{ddp, optim::Adam{net.parameters()}};
  int64_t elements = 0;
  for (const Tensor& p : net.parameters()) elements += p.numel();
  const Tensor own = scalar(adam.num_own_elements(), int64);
  CHECK(dist::all_reduce(own, world()).item<int64_t>() == elements);
  CHECK(dist::all_reduce(own, world(), dist::ReduceOp::max).item<int64_t>() <= elements / world().size() + 1);
  train_steps(ddp, adam, 1, 1);
  int64_t kept = 0;
  for (const auto& [key, tensor] : adam.inner().state_dict())
    if (key.ends_with("exp_avg")) kept += tensor.numel();
  CHECK(kept == own.item<int64_t>());
}

TEST_CASE("ShardedOptimizer: all ranks save a checkpoint, one writes it, all go on from it", "[dist]") {
  std::optional<pleat_test::TemporaryDirectory> made;
  if (world().is_main()) made.emplace();
  // The main rank's folder, whose name the others learn.
  std::string path = made ? made->path().string() : "";
  std::vector<uint8_t> bytes(path.begin(), path.end());
  bytes.resize(1000);
  bytes = dist::broadcast(from_vector(bytes, bytes.size(), Device{}), world()).to_vector<uint8_t>();
  path = std::string(bytes.begin(), std::ranges::find(bytes, 0));
  const auto run = [&](int steps, bool resumes) {
    nn::Sequential net = make_net();
    DataParallel ddp{net, world()};
    ShardedOptimizer adam{ddp, optim::Adam{net.parameters(), {.lr = 0.01}}};
    train::Checkpoints checkpoints{path, {.maximize = false, .writes = world().is_main()}};
    checkpoints.add("model", net);
    checkpoints.add("optimizer", adam);
    if (resumes) checkpoints.load(train::latest_checkpoint(path).value());
    for (int i = 0; i < steps; ++i) train_steps(ddp, adam, 1, resumes ? 7 : 8);
    checkpoints.save({.step = steps});
    checkpoints.wait();
    dist::barrier(world());
    nn::StateDict state = adam.state_dict();
    for (const auto& [name, tensor] : net.state_dict()) state["net." + name] = tensor.clone();
    return state;
  };
  const nn::StateDict saved = run(2, false);
  const train::Checkpoint file = train::latest_checkpoint(path).value();
  for (const auto& [name, tensor] : file.parts.at("optimizer"))
    CHECK(tensor.to_vector<double>() == saved.at(name).to_vector<double>());
  const nn::StateDict once = run(1, true);
  dist::barrier(world());
  if (world().is_main())
    std::filesystem::remove(std::filesystem::path(path) / "checkpoint-000002.safetensors");
  dist::barrier(world());
  check_same_bits(run(1, true), once);
  dist::barrier(world());
}

TEST_CASE("ShardedOptimizer: wrong use is an error before anything is changed", "[dist]") {
  nn::Sequential net = make_net(), other = make_net();
  DataParallel ddp{net, world()};
  CHECK_THROWS_WITH((ShardedOptimizer{ddp, optim::Adam{other.parameters()}}),
                    Catch::Contains("is not in the network of the DataParallel"));
  ShardedOptimizer adam{ddp, optim::Adam{net.parameters()}};
  CHECK_THROWS_WITH(adam.step(), Catch::Contains("no parameter"));
  // Its state would be that of other elements.
  nn::Sequential laid_out = make_net();
  DataParallel ddp_laid_out{laid_out, world()};
  ShardedOptimizer before{ddp_laid_out, optim::Adam{laid_out.parameters()}};
  train_steps(ddp_laid_out, before, 1, 1);
  laid_out.to(MemoryFormat::contiguous);
  CHECK_THROWS_WITH(before.state_dict(), Catch::Contains("lay out the network first"));
  for (const Tensor& p : laid_out.parameters()) p.set_grad(ones_like(p));
  CHECK_THROWS_WITH(before.step(), Catch::Contains("lay out the network first"));
  nn::StateDict state = adam.state_dict();
  state["param.0.exp_avg"] = zeros({3});
  CHECK_THROWS_WITH(adam.load_state_dict(state), Catch::Contains("param.0.exp_avg"));
  train_steps(ddp, adam, 1, 1);
  net.to(float64);
  for (const Tensor& p : net.parameters()) p.set_grad(ones(p.shape(), p.dtype()));
  CHECK_THROWS_WITH(adam.step(), Catch::Contains("when the optimiser was made"));
}
