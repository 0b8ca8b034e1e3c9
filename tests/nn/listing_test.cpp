#include <functional>
#include <memory>
#include <optional>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/checkpoint.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/module.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/nn/module_cases.h"

using namespace pleat;
using Catch::Matchers::Contains;

/// Parameters require gradients from birth, and what members() leaves out is found out.

namespace {

nn::Linear small() { return nn::Linear{{.in_features = 3, .out_features = 3}}; }

/// y = inner(x), listing inner or not.
struct Around : nn::Module {
  nn::Linear first = small();
  std::function<Tensor(const Tensor&)> inner;
  std::function<void(nn::Members&)> list;
  Tensor forward(const Tensor& x) override { return inner ? inner(first(x)) : first(x); }
  void members(nn::Members& m) override {
    m("first", first);
    if (list) list(m);
  }
};

struct Scaled : nn::Module {
  Tensor scale = ones({3});
  Tensor forward(const Tensor& x) override { return x * scale; }
  void members(nn::Members& m) override { m("scale", scale); }
};

/// One step of training.
void train_once(nn::Module& net, optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  sum(net(ones({2, 3}))).backward();
  optimizer.step();
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

std::string error_of_training(nn::Module& net) {
  optim::SGD sgd{net.parameters(), {.lr = 0.1}};
  return error_of([&] { train_once(net, sgd); });
}

}  // namespace

TEST_CASE("layers list all of their parameters, which require gradients from birth, as buffers do not") {
  for (const test::ModuleCase& c : test::module_cases()) {
    CAPTURE(c.name);
    const auto layer = c.make();
    const Tensor x = c.make_input();
    const Tensor y = (*layer)(is_floating(x.dtype()) ? x.to(float32) : x);
    if (y.requires_grad()) sum(y * y).backward();
    const Tensor other = ones({1}).set_requires_grad();
    other.set_grad(ones({1}));
    optim::SGD sgd{{other}, {.lr = 1}};
    CHECK_NOTHROW(sgd.step());  // refuses gradients of parameters that are not listed
    nn::Members members;
    layer->members(members);
    for (const nn::Members::Item& item : members.items())
      if (item.tensor != nullptr && item.tensor->defined())
        CHECK(item.tensor->requires_grad() == !item.buffer);
  }
}

TEST_CASE("an optimiser made after the forward trains") {
  struct Net : nn::Module {
    nn::Linear fc = small();
    Scaled scaled;
    Tensor shift = zeros({3});
    Tensor forward(const Tensor& x) override { return scaled(fc(x)) + shift; }
    void members(nn::Members& m) override {
      m("fc", fc);
      m("scaled", scaled);
      m("shift", shift);
    }
  } net;
  const Tensor y = net(ones({2, 3}));
  optim::SGD sgd{net.parameters(), {.lr = 0.1}};
  sum(y).backward();
  for (const auto& [name, parameter] : net.named_parameters()) {
    INFO(name);
    CHECK(parameter.grad().defined());
  }
  sgd.step();
  CHECK(net.shift.to_vector() == std::vector<float>(3, -0.2F));

  // One that takes the place of an old one is no less a parameter.
  net.shift = ones({3});
  sum(net(ones({2, 3}))).backward();
  CHECK(net.shift.grad().defined());
}

TEST_CASE("a forward of several inputs puts its module's tensors on the tape") {
  struct Two : nn::Module {
    Tensor scale = ones({3});
    using Module::forward;
    Tensor forward(const Tensor& a, const Tensor& b) {
      const nn::RecordForward range(*this, a, b);
      return (a + b) * scale;
    }
    void members(nn::Members& m) override { m("scale", scale); }
  } two;
  sum(two.forward(ones({3}), ones({3}))).backward();
  CHECK(two.scale.grad().to_vector() == std::vector<float>(3, 2));
}

TEST_CASE("plain tensors of a module in a checkpoint are on the tape") {
  Scaled scaled;
  const Tensor y = checkpoint([&](const Tensor& x) { return scaled(x); }, ones({3}));
  optim::SGD sgd{scaled.parameters(), {.lr = 0.1}};
  sum(y).backward();
  sgd.step();
  Scaled later;
  sum(checkpoint([&](const Tensor& x) { return later(x); }, ones({3}))).backward();
  CHECK(later.scale.grad().defined());
  CHECK(later.parameters().size() == 1);
}

TEST_CASE("requires_grad_(false) holds", "[cpu]") {
  nn::Sequential net{small(), Scaled{}};
  net.requires_grad_(false);
  const auto frozen = [](nn::Module& module) {
    CHECK_FALSE(module(ones({2, 3})).requires_grad());
    CHECK(module.parameters().size() == 3);
    for (const Tensor& parameter : module.parameters()) CHECK_FALSE(parameter.requires_grad());
  };
  frozen(net);
  nn::Sequential copy = net;
  frozen(copy);
  nn::Sequential own = nn::clone(net);
  frozen(own);
  net.to(float64);
  net.to(float32);
  net.to(Device());
  net.to(MemoryFormat::channels_last);
  net.load_state_dict(nn::clone(own.state_dict()));
  frozen(net);
  net.zero_grad();
  frozen(net);
  Around parent;
  parent.inner = [&](const Tensor& x) { return net(x); };
  parent.list = [&](nn::Members& m) { m("net", net); };
  parent(ones({2, 3}));
  CHECK(parent.parameters().size() == 5);
  frozen(net);
  nn::Sequential wrapped{std::move(net), nn::ReLU{}};
  frozen(wrapped);

  // Said of one tensor before anybody listed it.
  Scaled scaled;
  scaled.scale.set_requires_grad(false);
  CHECK_FALSE(scaled(ones({3})).requires_grad());
  CHECK_FALSE(nn::clone(scaled).parameters()[0].requires_grad());
}

TEST_CASE("copies, conversions and loading keep the mark") {
  nn::Sequential net{small(), Scaled{}};
  const auto trained = [](nn::Module& module, DType type = float32) {
    sum(module(ones({2, 3}, {.dtype = type}))).backward();
    for (const Tensor& parameter : module.parameters()) {
      CHECK(parameter.requires_grad());
      CHECK(parameter.grad().defined());
    }
    module.zero_grad();
  };
  nn::Sequential own = nn::clone(net);
  trained(own);
  net.to(float64);
  trained(net, float64);
  net.to(float32);
  net.load_state_dict(nn::clone(own.state_dict()));
  trained(net);
  nn::Sequential moved = std::move(net);
  trained(moved);
}

TEST_CASE("nn::parameter takes what a function computed") {
  const nn::Linear fc = small();
  const Tensor half = nn::parameter(fc.weight * 0.5);
  CHECK((half.is_leaf() && half.requires_grad()));
  CHECK_THROWS_AS(nn::parameter(scalar(1)), DTypeError);
  const Tensor same = ones({2});
  CHECK(&nn::parameter(same).impl() == &same.impl());
}

TEST_CASE("a module can list what it owns in many ways") {
  struct Net : nn::Module {
    std::unique_ptr<nn::Linear> one = std::make_unique<nn::Linear>(small());
    std::unique_ptr<nn::Linear> none;
    std::shared_ptr<nn::Linear> shared = std::make_shared<nn::Linear>(small());
    std::optional<Scaled> maybe = Scaled{};
    std::vector<std::unique_ptr<nn::Module>> several;
    std::array<Tensor, 2> tensors{ones({1}), ones({2})};
    std::vector<nn::AnyModule> any{small(), nn::ReLU{}};
    Tensor forward(const Tensor& x) override { return x; }
    void members(nn::Members& m) override {
      m("one", one);
      m("none", none);
      m("shared", shared);
      m("maybe", maybe);
      m("several", several);
      m("tensors", tensors);
      m("any", any);
    }
  } net;
  net.several.push_back(std::make_unique<Scaled>());
  std::vector<std::string> names;
  for (const auto& [name, parameter] : net.named_parameters()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"one.weight", "one.bias", "shared.weight", "shared.bias",
                                          "maybe.scale", "several.0.scale", "tensors.0", "tensors.1",
                                          "any.0.weight", "any.0.bias"});
}

TEST_CASE("a child that members() leaves out is found out at the optimiser's step") {
  const auto found = [](nn::Module& net, const std::string& text) {
    CHECK_THAT(error_of_training(net), Contains(text));
  };
  Around net;

  SECTION("a layer") {
    nn::Linear fc = small();
    net.inner = [&](const Tensor& x) { return fc(x); };
    optim::SGD sgd{net.parameters(), {.lr = 0.1}};
    CHECK(error_of([&] { train_once(net, sgd); }) ==
          "SGD: backward gave gradients to parameters that no members() lists, so that they would be neither "
          "trained nor saved\n"
          "  weight [3, 3], bias [3] of Linear(3, 3), called by Around: add m(\"name\", name), with the "
          "member's own name, to members() of Around\n"
          "  For a module that is not to be trained, call its requires_grad_(false).");
    // Once it is listed, training goes on.
    net.list = [&](nn::Members& m) { m("fc", fc); };
    CHECK(error_of_training(net).empty());
  }
  SECTION("several in a vector") {
    std::vector<nn::Linear> layers;
    layers.push_back(small());
    layers.push_back(small());
    net.inner = [&](const Tensor& x) { return layers[1](layers[0](x)); };
    found(net, " ... of Linear(3, 3) and 1 more Linear, called by Around: add m(\"name\", name)");
    CHECK(error_of_training(net).find("add m(") == error_of_training(net).rfind("add m("));
    CHECK_THAT(error_of([&] { net.state_dict(); }),
               Contains("\n  Linear(3, 3) and 1 more Linear, called by Around: add m(\"name\", name)"));
  }
  SECTION("a child of a child") {
    Around inner;
    nn::Linear fc = small();
    inner.inner = [&](const Tensor& x) { return fc(x); };
    net.inner = [&](const Tensor& x) { return inner(x); };
    net.list = [&](nn::Members& m) { m("inner", inner); };
    found(net, "weight [3, 3], bias [3] of Linear(3, 3), called by Around");
  }
  SECTION("a child with children") {
    nn::Sequential block{small(), nn::ReLU{}, Scaled{}};
    net.inner = [&](const Tensor& x) { return block(x); };
    found(net, " ... of Sequential(), called by Around");
  }
  SECTION("behind a unique_ptr") {
    const auto fc = std::make_unique<nn::Linear>(small());
    net.inner = [&](const Tensor& x) { return (*fc)(x); };
    found(net, "weight [3, 3], bias [3] of Linear(3, 3)");
  }
  SECTION("behind an AnyModule") {
    const nn::AnyModule fc = small();
    net.inner = [&](const Tensor& x) { return fc(x); };
    found(net, "weight [3, 3], bias [3] of Linear(3, 3)");
  }
  SECTION("whose tensors are plain") {
    Scaled scaled;
    net.inner = [&](const Tensor& x) { return scaled(x); };
    found(net, "scale [3] of Scaled(), called by Around: add m(\"name\", name), with the member's own name,");
  }
  SECTION("whose forward is called by its name") {
    nn::Linear fc = small();
    net.inner = [&](const Tensor& x) { return fc.forward(x); };
    found(net, "[3, 3], used by linear: add m(\"name\", name)");
  }
  SECTION("a clone of a listed one") {
    nn::Linear fc = nn::clone(net.first);
    net.inner = [&](const Tensor& x) { return fc(x); };
    net(ones({2, 3}));
    found(net, "weight [3, 3], bias [3] of Linear(3, 3)");
  }
  SECTION("inside a checkpoint") {
    nn::Linear fc = small();
    net.inner = [&](const Tensor& x) { return checkpoint([&](const Tensor& y) { return fc(y); }, x); };
    found(net, "weight [3, 3], bias [3] of Linear(3, 3)");
  }
  SECTION("in a lambda of a Sequential") {
    nn::Linear fc = small();
    nn::Sequential chain{small(), [&](const Tensor& x) { return fc(x); }};
    found(chain, "weight [3, 3], bias [3] of Linear(3, 3), called by Lambda");
  }
  SECTION("a parameter") {
    const Tensor scale = nn::parameter(ones({3}));
    net.inner = [&](const Tensor& x) { return x * scale; };
    found(net,
          "[3], used by multiply: add m(\"name\", name), with the member's own name, to members() of the "
          "module it is in, or give it to an optimiser");
  }
  SECTION("parameters in a vector") {
    const std::vector<Tensor> scales{nn::parameter(ones({3})), nn::parameter(ones({3}))};
    net.inner = [&](const Tensor& x) { return x * scales[0] * scales[1]; };
    found(net, "\n  2 times [3], used by multiply: add m(");
  }
}

TEST_CASE("what is trained elsewhere, or not at all, raises no alarm") {
  Around net;
  SECTION("a GAN") {
    nn::Linear judge = small();
    net.inner = [&](const Tensor& x) { return judge(x); };
    optim::SGD own{judge.parameters(), {.lr = 0.1}};
    CHECK(error_of_training(net).empty());
    own.step();
  }
  SECTION("a discriminator whose optimiser is made after the first backward") {
    nn::Linear judge = small();
    net.inner = [&](const Tensor& x) { return judge(x); };
    optim::SGD sgd{net.parameters(), {.lr = 0.1}};
    sum(net(ones({2, 3}))).backward();
    optim::SGD own{judge.parameters(), {.lr = 0.1}};
    sgd.step();
    own.step();
  }
  SECTION("parameters() called after the first backward") {
    sum(net(ones({2, 3}))).backward();
    optim::SGD sgd{net.parameters(), {.lr = 0.1}};
    sgd.step();
  }
  SECTION("tied weights") {
    nn::Linear decoder{{.in_features = 3, .out_features = 3, .bias = false}};
    decoder.weight = net.first.weight;
    net.inner = [&](const Tensor& x) { return decoder(x); };
    CHECK(error_of_training(net).empty());
  }
  SECTION("a module whose copy is listed") {
    nn::Linear fc = small();
    nn::Sequential block{fc};
    net.inner = [&](const Tensor& x) { return fc(x); };
    net.list = [&](nn::Members& m) { m("block", block); };
    CHECK(error_of_training(net).empty());
    net.state_dict();
    // Until it has tensors of its own.
    fc.weight = nn::parameter(ones({3, 3}));
    CHECK_THAT(error_of_training(net), Contains("[3, 3], used by linear"));
  }
  SECTION("a frozen loss network") {
    nn::Sequential features{small(), nn::Dropout{}};
    features.requires_grad_(false);
    features.eval();
    net.inner = [&](const Tensor& x) { return features(x); };
    CHECK(error_of_training(net).empty());
    net.state_dict();
  }
  SECTION("a loss network whose state was loaded") {
    nn::Linear features = small();
    features.load_state_dict(small().state_dict());
    net.inner = [&](const Tensor& x) { return features(x); };
    CHECK(error_of_training(net).empty());
  }
  SECTION("layers without a parent") {
    nn::Linear first = small();
    nn::Linear fixed = small();  // and never trained
    optim::SGD sgd{first.parameters(), {.lr = 0.1}};
    sum(fixed(first(ones({2, 3})))).backward();
    sgd.step();
  }
  SECTION("a head alone is trained") {
    net.inner = [](const Tensor& x) { return x; };
    nn::Linear head = small();
    net.inner = [&](const Tensor& x) { return head(x); };
    net.list = [&](nn::Members& m) { m("head", head); };
    optim::SGD sgd{head.parameters(), {.lr = 0.1}};
    train_once(net, sgd);
  }
  SECTION("a parameter that is given to the optimiser by hand") {
    const Tensor scale = nn::parameter(ones({3}));
    net.inner = [&](const Tensor& x) { return x * scale; };
    std::vector<Tensor> all = net.parameters();
    all.push_back(scale);
    optim::SGD sgd{all, {.lr = 0.1}};
    train_once(net, sgd);
  }
  SECTION("a parameter of an optimiser that steps later") {
    const Tensor scale = nn::parameter(ones({3}));
    Scaled scaled;
    net.inner = [&](const Tensor& x) { return scaled(x * scale); };
    optim::SGD by_hand{{scale, scaled.scale}, {.lr = 0.1}};
    CHECK(error_of_training(net).empty());
    by_hand.step();
  }
  SECTION("several optimisers") {
    nn::Linear head = small();
    net.inner = [&](const Tensor& x) { return head(x); };
    net.list = [&](nn::Members& m) { m("head", head); };
    optim::SGD a{net.first.parameters(), {.lr = 0.1}};
    optim::SGD b{head.parameters(), {.lr = 0.1}};
    sum(net(ones({2, 3}))).backward();
    a.step();
    b.step();
  }
  SECTION("checkpointing of listed layers, and of one without a parent") {
    nn::Linear fc = small();
    net.inner = [&](const Tensor& x) { return checkpoint([&](const Tensor& y) { return fc(y); }, x); };
    net.list = [&](nn::Members& m) { m("fc", fc); };
    CHECK(error_of_training(net).empty());
    nn::Linear alone = small();
    sum(checkpoint([&](const Tensor& y) { return alone(y); }, ones({2, 3}))).backward();
    CHECK(error_of_training(net).empty());
  }
  SECTION("a child made at the first call") {
    std::unique_ptr<nn::Linear> late;
    net.inner = [&](const Tensor& x) {
      if (!late) late = std::make_unique<nn::Linear>(small());
      return (*late)(x);
    };
    net.list = [&](nn::Members& m) { m("late", late); };
    CHECK(error_of_training(net).empty());
  }
  SECTION("a left-out module that is gone") {
    {
      nn::Linear fc = small();
      net.inner = [&](const Tensor& x) { return fc(x); };
      sum(net(ones({2, 3}))).backward();
    }
    net.inner = {};
    CHECK(error_of_training(net).empty());
    net.state_dict();
  }
  SECTION("gradients that are asked for without backward()") {
    nn::Linear fc = small();
    net.inner = [&](const Tensor& x) { return fc(x); };
    grad({sum(net(ones({2, 3})))}, {net.first.weight});
    net.inner = {};
    CHECK(error_of_training(net).empty());
  }
  SECTION("layers without tensors") {
    nn::ReLU relu;
    nn::Dropout dropout;
    net.inner = [&](const Tensor& x) { return dropout(relu(x)); };
    CHECK(error_of_training(net).empty());
    net.state_dict();
  }
}

TEST_CASE("a child that eval() does not reach is found out when it asks for its mode") {
  Around net;
  const Tensor x = ones({2, 3});
  SECTION("dropout") {
    nn::Dropout dropout;
    net.inner = [&](const Tensor& y) { return dropout(y); };
    net(x);
    net.eval();
    CHECK(error_of([&] { net(x); }) ==
          "in Dropout: Dropout(p=0.5): is in training mode, but Around, whose forward calls it, is in "
          "evaluation mode and "
          "does not list it, so eval() has passed it by; add m(\"name\", name), with the member's own name, "
          "to members() of Around, "
          "or call eval() on it");
    const NoGrad no_grad;
    CHECK_THROWS_AS(net(x), ValueError);
    dropout.eval();
    net(x);
  }
  SECTION("batch norm without parameters, inside of a block") {
    nn::Sequential block{nn::BatchNorm1d{{.num_features = 3, .affine = false}}};
    net.inner = [&](const Tensor& y) { return block(y); };
    net.eval();
    CHECK_THAT(error_of([&] { net(x); }),
               Contains("but Around, whose forward calls Sequential, is in evaluation mode") &&
                   Contains("add m(\"name\", name), with the member's own name, to members() of Around"));
    net.list = [&](nn::Members& m) { m("block", block); };
    net.eval();
    net(x);
  }
  SECTION("called by the name of its forward") {
    nn::Dropout dropout;
    net.inner = [&](const Tensor& y) { return dropout.forward(y); };
    net.eval();
    CHECK_THROWS_AS(net(x), ValueError);
  }
  SECTION("a listed one that was told to train is left alone") {
    nn::Dropout dropout;
    net.inner = [&](const Tensor& y) { return dropout(y); };
    net.list = [&](nn::Members& m) { m("dropout", dropout); };
    net.eval();
    dropout.train();
    net(x);
  }
  SECTION("one that another running module lists, too") {
    nn::Dropout dropout;
    Around inner;
    inner.inner = [&](const Tensor& y) { return dropout(y); };
    net.inner = [&](const Tensor& y) { return inner(y); };
    net.list = [&](nn::Members& m) {
      m("inner", inner);
      m("dropout", dropout);
    };
    net.eval();
    net(x);
  }
  SECTION("a network in evaluation inside of one in training, and the mode asked from outside") {
    nn::Sequential features{nn::Dropout{}};
    features.eval();
    net.inner = [&](const Tensor& y) { return features(y); };
    net(x);
    CHECK(net.training());
    CHECK_FALSE(features.training());
  }
}

TEST_CASE("a state dictionary that would lack a called module's tensors is refused") {
  Around net;
  SECTION("buffers") {
    nn::BatchNorm1d norm{{.num_features = 3, .affine = false}};
    net.inner = [&](const Tensor& y) { return norm(y); };
    net.state_dict();  // nothing is known before the first call
    net(ones({2, 3}));
    CHECK(
        error_of([&] { net.state_dict(); }) ==
        "Around: state_dict() would lack tensors of modules that forward calls and members() does not list\n"
        "  BatchNorm1d(3, affine=false), called by Around: add m(\"name\", name), with the member's own "
        "name, to members() of Around\n"
        "  For one that is kept elsewhere, call its own parameters() or state_dict() first.");
    CHECK_THROWS_AS(net.load_state_dict({}, {.strict = false}), ValueError);
    norm.state_dict();
    net.state_dict();
  }
  SECTION("frozen parameters") {
    nn::Linear body = small();
    body.weight.set_requires_grad(false);
    body.bias.set_requires_grad(false);
    net.inner = [&](const Tensor& y) { return body(y); };
    CHECK(error_of_training(net).empty());
    CHECK_THAT(error_of([&] { net.state_dict(); }), Contains("Linear(3, 3), called by Around"));
    net.list = [&](nn::Members& m) { m("body", body); };
    CHECK(net.state_dict().size() == 4);
  }
  SECTION("inside a larger network") {
    nn::Linear body = small();
    net.inner = [&](const Tensor& y) { return body(y); };
    Around outer;
    outer.inner = [&](const Tensor& y) { return net(y); };
    outer.list = [&](nn::Members& m) { m("net", net); };
    outer(ones({2, 3}));
    CHECK_THROWS_AS(outer.state_dict(), ValueError);
    CHECK_NOTHROW(small().state_dict());
  }
}
