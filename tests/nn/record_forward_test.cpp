#include "pleat/nn/record_forward.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/checkpoint.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/models/lenet.h"
#include "pleat/models/resnet.h"
#include "pleat/models/small_cnn.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"
#include "pleat/nn/recurrent.h"
#include "pleat/nn/transformer.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// Of two tensors.
struct Scale : nn::Module {
  using Module::forward;
  Tensor forward(const Tensor& x, const Tensor& factor) const {
    const nn::RecordForward range(*this, x, factor);
    return x * factor;
  }
  std::string type_name() const override { return "Scale"; }
};

/// Of no tensor.
struct Ramp : nn::Module {
  using Module::forward;
  Tensor forward(int64_t n) const {
    const nn::RecordForward range(*this);
    if (n < 0) throw std::runtime_error("no ramp falls");
    return arange(n);
  }
  std::string type_name() const override { return "Ramp"; }
};

struct Net : nn::Module {
  Scale scale;
  std::vector<Ramp> ramps{2};
  nn::Sequential tail{nn::Identity{}};

  using Module::forward;
  Tensor forward(const Tensor& x, int64_t n) {
    const nn::RecordForward range(*this, x);
    return tail(scale.forward(x, ramps[1].forward(n)));
  }
  void members(nn::Members& m) override {
    m("scale", scale);
    m("ramps", ramps);
    m("tail", tail);
  }
  std::string type_name() const override { return "Net"; }
};

std::vector<std::string> modules(const profile::Profile& profile) {
  std::vector<std::string> modules;
  for (const profile::Event& event : profile.events)
    if (event.kind == RangeKind::module) modules.push_back(event.module);
  return modules;
}

}  // namespace

TEST_CASE("a forward of several inputs is a range with its path and its tensors", "[profile]") {
  Net net;
  profile::Profiler profiler{{.activities = profile::Activities::cpu}};
  net.forward(ones({2, 3}), 3);
  profiler.stop();
  CHECK(modules(profiler.profile()) == std::vector<std::string>{"Net", "ramps.1 (Ramp)", "scale (Scale)",
                                                                "tail (Sequential)", "tail.0 (Identity)"});
  for (const profile::Event& event : profiler.profile().events) {
    if (event.module == "ramps.1 (Ramp)" && event.kind == RangeKind::module) CHECK(event.inputs.empty());
    if (event.name == "mul") CHECK(event.module == "scale (Scale)");
    if (event.name != "Scale") continue;
    REQUIRE(event.inputs.size() == 2);
    CHECK(event.inputs[0].shape == Shape{2, 3});
    CHECK(event.inputs[1].shape == Shape{3});
  }
}

TEST_CASE("a forward that throws leaves no path behind", "[profile]") {
  Net net;
  profile::Profiler profiler{{.activities = profile::Activities::cpu}};
  CHECK_THROWS_AS(net.forward(ones({2, 3}), -1), std::runtime_error);
  net.ramps[1].forward(3);
  profiler.stop();
  CHECK(modules(profiler.profile()) == std::vector<std::string>{"Net", "ramps.1 (Ramp)", "Ramp"});
}

TEST_CASE("a forward of several inputs computes the same when nobody listens") {
  Net net;
  const Tensor y = net.forward(ones({2, 3}), 3);
  CHECK(y.shape() == Shape{2, 3});
  CHECK(max(y).item<double>() == 2);
}

namespace {

nn::Linear linear3() { return nn::Linear{{.in_features = 3, .out_features = 3}}; }

/// An error with something of its own to tell.
struct OwnError : ValueError {
  using ValueError::ValueError;
  int code = 7;
};

/// Whatever a test wants, between members that it may or may not list.
struct Host : nn::Module {
  std::function<Tensor(const Tensor&)> run;
  std::function<void(nn::Members&)> list = [](nn::Members&) {};
  Tensor forward(const Tensor& x) override { return run(x); }
  void members(nn::Members& m) override { list(m); }
  std::string type_name() const override { return "Host"; }
};

template <class F>
std::string message_of(const F& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

const std::string mismatch = "linear: the last size of the input must be 3";

}  // namespace

TEST_CASE("an error inside a network names the layer", "[cpu]") {
  const Tensor wrong = ones({2, 5});
  nn::Linear fc = linear3();
  const auto begins = [](const std::string& text, const std::string& start) {
    CHECK_THAT(text, StartsWith(start));
    CHECK(text.find("in ", 3) != 3);
  };
  const auto starts = [&](nn::Module& net, const std::string& start) {
    begins(message_of([&] { net(wrong); }), start);
    begins(message_of([&] { net(wrong); }), start);  // the second time as the first
  };

  SECTION("of containers, once") {
    nn::Sequential net{nn::ReLU{}, nn::Residual{{.body = nn::Sequential{nn::ReLU{}, linear3()}}}};
    starts(net, "in 1.body.1 (Linear): " + mismatch);
    nn::Sequential around{nn::Identity{}, nn::Sequential{{"body", net}}};
    starts(around, "in 1.body.1.body.1 (Linear): " + mismatch);
    models::resnet20({.num_classes = 10});
    CHECK_THAT(message_of([] {
                 models::resnet20({.num_classes = 10})(ones({1, 8, 32, 32}));
               }),
               StartsWith("in 0 (Conv2d): conv2d: input has 8 channels, but weight [16, 3, 3, 3]"));
  }
  SECTION("of a module alone nothing") {
    starts(fc, mismatch);
    CHECK(message_of([&] { nn::Identity{}(wrong); }) == "no error");
  }
  SECTION("of a function in the outermost forward nothing, in another's its module") {
    Host net, outer;
    net.run = [](const Tensor& x) { return matmul(x, ones({3, 3})); };
    starts(net, "matmul: ");
    outer.run = [&](const Tensor& x) { return net(x); };
    outer.list = [&](nn::Members& m) { m("inner", net); };
    starts(outer, "in inner (Host): matmul: ");
  }
  SECTION("of members that forward calls") {
    std::vector<nn::Linear> layers{nn::Linear{{.in_features = 5, .out_features = 4}}, linear3()};
    nn::ModuleList list{linear3(), linear3()};
    auto pointer = std::make_shared<nn::Linear>(linear3());
    Host net;
    net.list = [&](nn::Members& m) {
      m("layers", layers);
      m("list", list);
      m("pointer", pointer);
    };
    net.run = [&](const Tensor& x) { return layers[1](layers[0](x)); };
    starts(net, "in layers.1 (Linear): " + mismatch);
    net.run = [&](const Tensor& x) { return list[1](x); };
    starts(net, "in list.1 (Linear): " + mismatch);
    net.run = [&](const Tensor& x) { return (*pointer)(x); };
    starts(net, "in pointer (Linear): " + mismatch);
  }
  SECTION("of a module that two share, where it was called") {
    auto shared = std::make_shared<nn::Linear>(linear3());
    Host a, b, net;
    a.list = b.list = [&](nn::Members& m) { m("fc", shared); };
    a.run = [](const Tensor& x) { return x; };
    b.run = [&](const Tensor& x) { return (*shared)(x); };
    net.list = [&](nn::Members& m) {
      m("a", a);
      m("b", b);
    };
    net.run = [&](const Tensor& x) { return b(a(x)); };
    starts(net, "in b.fc (Linear): " + mismatch);
  }
  SECTION("of one that nobody lists") {
    Host net, inner;
    net.run = [&](const Tensor& x) { return fc(x); };
    starts(net, "in Linear: " + mismatch);
    nn::Sequential chain{nn::ReLU{}, linear3()};
    net.run = [&](const Tensor& x) { return chain(x); };
    starts(net, "in 1 (Linear) of Sequential: " + mismatch);
    // A lambda calls what the network lists.
    nn::Sequential lambdas{nn::ReLU{}, [&](const Tensor& x) { return fc(x); }};
    net.run = [&](const Tensor& x) { return lambdas(x); };
    net.list = [&](nn::Members& m) {
      m("chain", lambdas);
      m("fc", fc);
    };
    starts(net, "in fc (Linear): " + mismatch);
  }
  SECTION("of modules of several inputs") {
    nn::Transformer transformer{
        {.d_model = 4, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 2, .dim_feedforward = 8}};
    const Tensor src = ones({3, 2, 4}), tgt = ones({5, 2, 4});
    CHECK_THAT(
        message_of([&] {
          transformer.forward(src, tgt, {.tgt = {.attn_mask = ones({2, 2})}});
        }),
        StartsWith("in decoder.layers.0.self_attn (MultiheadAttention): MultiheadAttention: attn_mask"));
    nn::LSTM lstm{{.input_size = 3, .hidden_size = 4}};
    Host net;
    net.list = [&](nn::Members& m) { m("lstm", lstm); };
    net.run = [&](const Tensor& x) { return lstm.forward(x, {.h = ones({1, 4})}).output; };
    starts(net, "in lstm (LSTM): LSTM: the input must be");
  }
  SECTION("in a checkpoint, where its path begins at what the checkpoint calls") {
    nn::Sequential net{
        [&](const Tensor& x) { return checkpoint([&](const Tensor& t) { return fc(t); }, x); }};
    starts(net, "in Linear: " + mismatch);
  }
  SECTION("keeps the error's type and fields, and leaves alone what is not Pleat's") {
    Host inner, net;
    net.list = [&](nn::Members& m) { m("inner", inner); };
    net.run = [&](const Tensor& x) { return inner(x); };
    inner.run = [](const Tensor&) -> Tensor { throw OwnError("own: no"); };
    try {
      net(wrong);
      FAIL("no error");
    } catch (const OwnError& error) {
      CHECK(error.code == 7);
      CHECK(std::string(error.what()) == "in inner (Host): own: no");
    }
    inner.run = [](const Tensor& x) { return x.to(int64) / zeros({7}); };
    CHECK_THROWS_AS(net(wrong), ShapeError);
    inner.run = [](const Tensor&) -> Tensor { throw std::runtime_error("another's"); };
    CHECK(message_of([&] { net(wrong); }) == "another's");
    // Caught and told anew by a module between.
    inner.run = [](const Tensor&) -> Tensor { throw ValueError("first"); };
    net.run = [&](const Tensor& x) -> Tensor {
      (void)message_of([&] { inner(x); });
      throw ValueError("second");
    };
    nn::Sequential outer{nn::Identity{}};
    Host top;
    top.list = [&](nn::Members& m) { m("net", net); };
    top.run = [&](const Tensor& x) { return net(x); };
    CHECK(message_of([&] { top(wrong); }) == "in net (Host): second");
  }
  SECTION("under an observer, too") {
    struct Observer : nn::ForwardObserver {
      void enter(nn::Module&, const Tensor&) override {}
      void leave(nn::Module&, const Tensor&, const Tensor&) override {}
    } observer;
    nn::Sequential net{nn::ReLU{}, linear3()};
    starts(net, "in 1 (Linear): " + mismatch);
  }
}

TEST_CASE("a Sequential says which pictures it takes", "[cpu]") {
  const auto message = [](nn::Module& net, const Tensor& x) { return message_of([&] { net(x); }); };
  nn::Sequential lenet = models::lenet({.num_classes = 10});
  CHECK_THAT(
      message(lenet, ones({2, 1, 32, 32})),
      StartsWith("in 7 (Linear): linear: ") && Contains("; the network takes pictures [N, 1, 28, 28]"));
  nn::Sequential small = models::small_cnn({.num_classes = 10, .image_size = 48});
  CHECK_THAT(message(small, ones({2, 3, 32, 32})), Contains("; the network takes pictures [N, 3, 48, 48]"));
  nn::Sequential nested{
      {"features",
       nn::Sequential{nn::Conv2d{{.in_channels = 1, .out_channels = 4, .kernel_size = 3, .stride = 2}},
                      nn::GELU{}, nn::AvgPool2d{{.kernel_size = {2, 2}, .padding = 1}}}},
      {"classifier",
       nn::Sequential{nn::Flatten{}, nn::Dropout{}, nn::Linear{{.in_features = 4 * 36, .out_features = 2}}}}};
  const std::string text = message(nested, ones({2, 1, 33, 33}));
  CHECK_THAT(text, StartsWith("in classifier.2 (Linear): ") &&
                       Contains("; the network takes pictures [N, 1, 21, 21]"));
  CHECK(nested(ones({2, 1, 21, 21})).shape() == Shape{2, 2});
  // What is not known is not said.
  nn::Sequential unknown{nn::Conv2d{{.in_channels = 1, .out_channels = 4, .kernel_size = 3}},
                         [](const Tensor& x) { return x; }, nn::Flatten{},
                         nn::Linear{{.in_features = 4 * 36, .out_features = 2}}};
  CHECK_THAT(message(unknown, ones({2, 1, 33, 33})),
             !Contains("takes pictures") && Contains("flattened picture"));
}
