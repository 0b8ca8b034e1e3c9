#include "pleat/nn/hooks.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/checkpoint.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/inference/inference.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/attention.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/fusion.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/module.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/recurrent.h"
#include "pleat/nn/transformer.h"
#include "pleat/onnx/export.h"
#include "pleat/onnx/import.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat::test::relative_error;

namespace {

nn::Linear linear(int64_t in = 3, int64_t out = 4) {
  return nn::Linear{{.in_features = in, .out_features = out}};
}

/// A hook that counts its calls.
nn::ForwardHook counting(int& calls) {
  return [&calls](nn::Module&, const std::vector<Tensor>&, const Tensor&) {
    ++calls;
    return Tensor();
  };
}

nn::ForwardHook twice() {
  return [](nn::Module&, const std::vector<Tensor>&, const Tensor& y) { return 2 * y; };
}

}  // namespace

TEST_CASE("hooks see a module's call, in the order of registration, until they are removed") {
  nn::Linear net = linear();
  const Tensor x = randn({2, 3});
  std::string log;
  const auto note = [&](const std::string& name) {
    return [&log, name, &net](nn::Module& module, const std::vector<Tensor>& inputs, const Tensor& output) {
      CHECK(&module == &net);
      log += name + to_string(inputs.at(0).shape()) + to_string(output.shape());
      return Tensor();
    };
  };
  CHECK_FALSE(net.has_hooks());
  nn::RemovableHandle before = net.register_forward_pre_hook(
      [&](nn::Module& module, const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
        log += module.type_name() + to_string(inputs.at(0).shape());
        return {};
      });
  nn::RemovableHandle first = net.register_forward_hook(note("a"));
  nn::RemovableHandle second = net.register_forward_hook(note("b"));
  net(x);
  CHECK(log == "Linear[2, 3]a[2, 3][2, 4]b[2, 3][2, 4]");
  first.remove();
  first.remove();
  log.clear();
  net(x);
  CHECK(log == "Linear[2, 3]b[2, 3][2, 4]");
  before.remove();
  second.remove();
  CHECK_FALSE(net.has_hooks());
  log.clear();
  net(x);
  net.forward(x);
  CHECK(log.empty());
}

TEST_CASE("hooks replace inputs and outputs, with their gradients") {
  nn::Linear net = linear();
  net.to(float64);
  const Tensor x = randn({2, 3}, float64);
  const Tensor plain = net(3 * x);
  net.register_forward_pre_hook(
      [](nn::Module&, const std::vector<Tensor>& inputs) { return std::vector{3 * inputs[0]}; });
  net.register_forward_hook(twice());
  Tensor seen;
  net.register_forward_hook([&](nn::Module&, const std::vector<Tensor>& inputs, const Tensor& output) {
    CHECK(relative_error(inputs[0], 3 * x) < 1e-15);
    seen = output;
    return Tensor();
  });
  const Tensor y = net(x);
  CHECK(relative_error(y, 2 * plain) < 1e-15);
  CHECK(relative_error(seen, 2 * plain) < 1e-15);
  sum(y).backward();
  CHECK(relative_error(net.bias.grad(), full({4}, 4.0, float64)) < 1e-15);
}

TEST_CASE("a hook may remove itself, and is in copies and clones of its module") {
  nn::Linear net = linear();
  int calls = 0;
  nn::RemovableHandle handle = net.register_forward_hook(counting(calls));
  nn::Linear copy = net, own = nn::clone(net);
  nn::Sequential sequence{net, nn::ReLU{}};
  const Tensor x = randn({2, 3});
  for (nn::Module* module :
       {static_cast<nn::Module*>(&copy), static_cast<nn::Module*>(&own), static_cast<nn::Module*>(&sequence)})
    (*module)(x);
  CHECK(calls == 3);
  nn::Linear moved = std::move(copy);
  moved(x);
  CHECK(calls == 4);
  int own_calls = 0;
  own.register_forward_hook(counting(own_calls));
  net(x);
  CHECK(calls == 5);
  CHECK(own_calls == 0);
  handle.remove();
  own(x);
  sequence(x);
  CHECK(calls == 5);
  CHECK(own_calls == 1);
  nn::RemovableHandle itself;
  itself = net.register_forward_hook([&](nn::Module&, const std::vector<Tensor>&, const Tensor&) {
    ++calls;
    itself.remove();
    return Tensor();
  });
  net(x);
  net(x);
  CHECK(calls == 6);
  nn::RemovableHandle outlives;
  {
    nn::Linear gone = linear();
    outlives = gone.register_forward_hook(counting(calls));
  }
  outlives.remove();
}

TEST_CASE("every module of a network that is fused calls its hooks, and sees what it gives") {
  const auto make = [] {
    return nn::Sequential{
        nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = 3, .padding = 1}},
        nn::BatchNorm2d{{.num_features = 4}}, nn::ReLU{},
        nn::Residual{
            {.body = nn::Sequential{nn::Conv2d{{.in_channels = 4, .out_channels = 4, .kernel_size = 1}},
                                    nn::BatchNorm2d{{.num_features = 4}}},
             .activation = nn::ReLU{}}},
        nn::Sequential{nn::Linear{{.in_features = 5, .out_features = 6}}, nn::GELU{}}};
  };
  const bool training = GENERATE(true, false);
  const Tensor x = randn({2, 3, 4, 5});
  nn::Sequential net = make();
  net.train(training);
  const nn::NamedModules modules = net.named_modules();
  for (std::size_t hooked = 0; hooked < modules.size(); ++hooked) {
    nn::Sequential fresh = nn::clone(net);
    nn::Module& module = *fresh.named_modules()[hooked].second;
    CAPTURE(modules[hooked].first, module.type_name());
    const Tensor expected = nn::clone(net)(x);
    Tensor seen;
    nn::RemovableHandle handle =
        module.register_forward_hook([&](nn::Module& called, const std::vector<Tensor>& in, const Tensor& y) {
          CHECK(&called == &module);
          CHECK(in.size() == 1);
          seen = y;
          return Tensor();
        });
    CHECK(relative_error(fresh(x), expected) < 1e-5);
    REQUIRE(seen.defined());
    if (module.type_name() == "BatchNorm2d") CHECK(min(seen).item() < 0);
    if (module.type_name() == "ReLU") CHECK(min(seen).item() == 0);
    handle.remove();
    int calls = 0;
    module.register_forward_hook(counting(calls));
    const nn::FusionPolicy guard{{.enabled = false}};
    fresh(x);
    CHECK(calls == 1);
  }
}

TEST_CASE("forwards of several inputs call hooks once, with all their inputs") {
  nn::MultiheadAttention attention{{.embed_dim = 4, .num_heads = 2, .batch_first = true}};
  const Tensor q = randn({1, 2, 4}), k = randn({1, 3, 4});
  std::size_t inputs = 0;
  int calls = 0;
  attention.register_forward_hook([&](nn::Module&, const std::vector<Tensor>& in, const Tensor& y) {
    inputs = in.size();
    ++calls;
    CHECK(in[1].shape() == k.shape());
    return 0 * y;
  });
  CHECK(sum(abs(attention.forward(q, k, k).output)).item() == 0);
  CHECK(calls == 1);
  CHECK(inputs == 5);
  nn::LSTM lstm{{.input_size = 4, .hidden_size = 2}};
  lstm.register_forward_hook(counting(calls));
  lstm(q);
  (void)lstm.forward(q, {});
  CHECK(calls == 3);
  nn::LSTMCell cell{{.input_size = 4, .hidden_size = 2}};
  cell.register_forward_hook(counting(calls));
  (void)cell.forward(ones({1, 4}), {});
  CHECK(calls == 4);
  nn::TransformerEncoderLayer layer{{.d_model = 4, .nhead = 2, .dim_feedforward = 8}};
  layer.self_attn.register_forward_hook(counting(calls));
  layer(q);
  CHECK(calls == 5);
}

TEST_CASE("hooks that cannot be called, or replace what cannot be replaced, are errors") {
  nn::Linear net = linear();
  CHECK_THROWS_WITH(net.register_forward_hook({}), Contains("register_forward_hook needs a function"));
  CHECK_THROWS_WITH(net.register_forward_pre_hook({}), Contains("register_forward_pre_hook needs"));
  net.register_forward_pre_hook([](nn::Module&, const std::vector<Tensor>& in) {
    return std::vector{in[0], in[0]};
  });
  CHECK_THROWS_WITH(net(ones({2, 3})), Contains("can replace the input of a call with one tensor, by one"));
  nn::MultiheadAttention attention{{.embed_dim = 4, .num_heads = 2}};
  nn::RemovableHandle handle = attention.register_forward_pre_hook(
      [](nn::Module&, const std::vector<Tensor>& in) { return std::vector{in[0]}; });
  const Tensor q = randn({2, 1, 4});
  CHECK_THROWS_WITH(attention.forward(q, q, q), Contains("got 1 for 5"));
  CHECK_NOTHROW(attention(q));

  struct Counts : nn::Module {
    int forward(const Tensor& a, const Tensor& b) {
      const nn::RecordForward range(*this, a, b);
      return range.run([] { return 1; });
    }
    using Module::forward;
  } counts;
  CHECK(counts.forward(q, q) == 1);
  int calls = 0;
  counts.register_forward_hook(counting(calls));
  CHECK_THROWS_WITH(counts.forward(q, q), Contains("has a forward hook, but its forward gives no tensor"));

  nn::Linear throwing = linear();
  throwing.register_forward_hook([](nn::Module&, const std::vector<Tensor>&, const Tensor&) -> Tensor {
    throw ValueError("the hook's");
  });
  nn::Sequential outer{throwing};
  CHECK_THROWS_WITH(outer(ones({2, 3})), "in 0 (Linear): the hook's");
}

TEST_CASE("hooks are called while a ForwardObserver observes, and in both runs of a checkpoint") {
  nn::Sequential net{linear(), nn::ReLU{}};
  int calls = 0;
  net[0].register_forward_hook(counting(calls));
  const Tensor x = randn({2, 3});
  {
    struct Observer : nn::ForwardObserver {
      void enter(nn::Module&, const Tensor&) override {}
      void leave(nn::Module&, const Tensor&, const Tensor&) override {}
    } observer;
    net(x);
    CHECK(calls == 1);
  }
  sum(checkpoint([&](const Tensor& input) { return net(input); }, x)).backward();
  CHECK(calls == 3);
}

TEST_CASE("an ONNX file has what hooks compute") {
  nn::Sequential net{linear(), nn::ReLU{}};
  net[0].register_forward_hook(twice());
  net[1].register_forward_pre_hook(
      [](nn::Module&, const std::vector<Tensor>& inputs) { return std::vector{inputs[0] + 1}; });
  const Tensor x = randn({2, 3});
  const NoGrad off_the_tape;
  const Tensor expected = relu(2 * net[0].forward(x) + 1);
  CHECK(relative_error(net(x), expected) < 1e-6);
  const pleat_test::TemporaryDirectory folder;
  onnx::export_onnx(folder / "net.onnx", net, x);
  onnx::ImportedNetwork imported = onnx::import_onnx(folder / "net.onnx");
  CHECK(relative_error(imported(x), expected) < 1e-6);
}

TEST_CASE("an Inference of a network with hooks calls them, also of one that gets a hook later") {
  nn::Sequential net{linear(), nn::ReLU{}};
  const Tensor x = randn({2, 3});
  Inference engine(net, x);
  const NoGrad off_the_tape;
  const Tensor plain = net(x);
  CHECK(relative_error(engine(x), plain) < 1e-5);
  CHECK_THAT(engine.summary(), !Contains("hooks"));
  nn::RemovableHandle handle = net[1].register_forward_hook(twice());
  CHECK(relative_error(engine(x), 2 * plain) < 1e-5);
  CHECK_THAT(engine.summary(), Contains("1 (ReLU) has hooks, which it would not call"));
  const pleat_test::TemporaryDirectory folder;
  CHECK_THROWS_WITH(engine.save(folder / "engine"), Contains("has hooks"));
  handle.remove();
  CHECK(relative_error(engine(x), plain) < 1e-5);
  Inference again(net, x);
  CHECK_THAT(again.summary(), !Contains("hooks"));
}
