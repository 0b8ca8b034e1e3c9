#include "pleat/nn/module.h"

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/train/weights.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

/// y = weight * x + bias, counting its calls.
struct Affine : nn::Module {
  Tensor weight = tensor({2.0, 3.0});
  Tensor bias;
  Tensor calls = scalar(0);
  explicit Affine(bool with_bias = true) {
    if (with_bias) bias = zeros({2});
  }
  Tensor forward(const Tensor& x) override {
    if (training()) calls += 1;
    const Tensor y = weight * x;
    return bias.defined() ? y + bias : y;
  }
  void members(nn::Members& m) override {
    m("weight", weight);
    m("bias", bias);
    m.buffer("calls", calls);
  }
};

struct Net : nn::Module {
  Affine first;
  std::vector<Affine> rest{Affine(), Affine(false)};
  Tensor forward(const Tensor& x) override {
    Tensor y = first(x);
    for (Affine& layer : rest) y = layer(y);
    return y;
  }
  void members(nn::Members& m) override {
    m("first", first);
    m("rest", rest);
  }
};

template <class Named>
std::vector<std::string> names(const Named& named) {
  std::vector<std::string> all;
  for (const auto& [name, value] : named) all.push_back(name);
  return all;
}

std::vector<float> floats(const Tensor& x) { return x.to_vector(); }

}  // namespace

TEST_CASE("a module lists what is inside it by name") {
  Net net;
  CHECK(names(net.named_parameters()) == std::vector<std::string>{"first.weight", "first.bias",
                                                                  "rest.0.weight", "rest.0.bias",
                                                                  "rest.1.weight"});
  CHECK(names(net.named_buffers()) ==
        std::vector<std::string>{"first.calls", "rest.0.calls", "rest.1.calls"});
  CHECK(names(net.named_modules()) == std::vector<std::string>{"", "first", "rest.0", "rest.1"});
  CHECK(net.num_parameters() == 10);
  CHECK(net.parameters().size() == 5);
  CHECK(net.type_name() == "Net");
}

TEST_CASE("parameters require gradients, unless told otherwise") {
  Net net;
  net.rest[0].weight.set_requires_grad(false);
  for (const auto& [name, parameter] : net.named_parameters())
    CHECK(parameter.requires_grad() == (name != "rest.0.weight"));
  for (const auto& [name, buffer] : net.named_buffers()) CHECK_FALSE(buffer.requires_grad());

  sum(net(ones({2}))).backward();
  CHECK(floats(net.first.weight.grad()) == std::vector<float>{4, 9});
  net.zero_grad();
  for (const Tensor& parameter : net.parameters()) CHECK_FALSE(parameter.grad().defined());
  net.requires_grad_(false);
  CHECK_FALSE(net(ones({2})).requires_grad());
}

TEST_CASE("train and eval reach everything inside") {
  Net net;
  CHECK(net.training());
  net(ones({2}));
  net.eval();
  CHECK_FALSE(net.rest[1].training());
  net(ones({2}));
  CHECK(net.rest[1].calls.item() == 1);
  net.train();
  CHECK(net.rest[1].training());
  int modules = 0;
  net.apply([&](nn::Module& module) { modules += module.type_name() == "Affine" ? 1 : 10; });
  CHECK(modules == 13);
  CHECK_THROWS_WITH(net.apply({}), "Net: apply needs a function, got an empty one");
}

// What it gives points into the module.
template <class M>
concept NamesModules = requires(M&& module) {
  std::forward<M>(module).named_modules();
};
static_assert(NamesModules<Net&> && !NamesModules<Net>);

TEST_CASE("a tensor in two places is one parameter with two names in the state") {
  Net net;
  net.rest[1].weight = net.first.weight;
  CHECK(net.parameters().size() == 4);
  CHECK(net.num_parameters() == 8);
  CHECK(net.state_dict().size() == 8);
  CHECK(net.state_dict().contains("rest.1.weight"));
}

TEST_CASE("a state can be loaded into another module") {
  Net net;
  net.first.weight.set_data(tensor({5.0, 6.0}));
  const nn::StateDict state = nn::clone(net.state_dict());
  net.first.weight.set_data(tensor({0.0, 0.0}));
  Net other;
  const Tensor handle = other.first.weight;
  other.load_state_dict(state);
  CHECK(floats(handle) == std::vector<float>{5, 6});
  CHECK(floats(state.at("first.weight")) == std::vector<float>{5, 6});

  // Types are converted: a checkpoint in another precision fits.
  other.load_state_dict({{"first.weight", tensor({1.5, 2.5}, float64)}}, {.strict = false});
  CHECK(floats(handle) == std::vector<float>{1.5, 2.5});
}

TEST_CASE("a module state that does not fit is refused with all problems, and changes nothing", "[cpu]") {
  Net net;
  nn::StateDict state = nn::clone(net.state_dict());
  state["first.weight"] = tensor({7.0, 8.0});
  state["rest.0.bias"] = zeros({3});
  state["rest.0.calls"] = scalar(1.5);
  state["rest.1.weight"] = Tensor();
  state.erase("first.bias");
  state["extra"] = zeros({1});
  CHECK_THROWS_WITH(net.load_state_dict(state),
                    "load_state_dict: Net: the state does not fit\n"
                    "  missing     first.bias  [2] float32 cpu\n"
                    "  shape       rest.0.bias  needs [2], got [3]\n"
                    "  type        rest.0.calls  needs int64, got float32\n"
                    "  undefined   rest.1.weight\n"
                    "  unexpected  extra  [1] float32 cpu");
  CHECK_THROWS_AS(net.load_state_dict(state, {.strict = false}), ValueError);
  CHECK(floats(net.first.weight) == std::vector<float>{2, 3});

  state["rest.0.bias"] = zeros({2});
  state["rest.0.calls"] = scalar(1);
  state["rest.1.weight"] = zeros({2});
  const nn::LoadReport report = net.load_state_dict(state, {.strict = false});
  CHECK(report.missing == std::vector<std::string>{"first.bias"});
  CHECK(report.unexpected == std::vector<std::string>{"extra"});
  CHECK(floats(net.first.weight) == std::vector<float>{7, 8});
}

namespace {

/// What load_state_dict says, by lines.
std::vector<std::string> lines_of(nn::Module& net, const nn::StateDict& state) {
  std::vector<std::string> lines;
  try {
    net.load_state_dict(state);
    FAIL("no error");
  } catch (const ValueError& error) {
    std::istringstream text(error.what());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
  }
  return lines;
}

nn::Sequential linears(std::vector<int64_t> widths) {
  nn::Sequential net;
  for (std::size_t i = 1; i < widths.size(); ++i)
    net.add(nn::Linear{{.in_features = widths[i - 1], .out_features = widths[i]}});
  return net;
}

}  // namespace

TEST_CASE("weights whose names begin otherwise are told what to rename", "[cpu]") {
  nn::Sequential net = linears({3, 4, 5, 2});
  nn::StateDict parallel;
  for (const auto& [name, tensor] : net.state_dict()) parallel["module." + name] = tensor + 1;
  const std::vector<std::string> lines = lines_of(net, parallel);
  CHECK(lines.size() <= 15);
  CHECK(lines.back() ==
        "  The names fit with \"\" in place of \"module.\": train::transfer(net, state, {.rename = "
        "{{\"module.\", "
        "\"\"}}})");
  // The call that it names.
  CHECK(train::transfer(net, parallel, {.rename = {{"module.", ""}}}).copied.size() == 6);
  CHECK(floats(net.state_dict().at("1.bias")) == floats(parallel.at("module.1.bias")));
  CHECK_THROWS_WITH(train::transfer(net, parallel), Contains("{.rename = {{\"module.\", \"\"}}}"));

  nn::Sequential body{net, nn::ReLU{}};
  nn::StateDict other;
  for (const auto& [name, tensor] : net.state_dict()) other["backbone.net." + name] = tensor;
  other["n_averaged"] = scalar(1);  // beside what fits
  CHECK_THAT(lines_of(body, other).back(), Contains("{.rename = {{\"backbone.net.\", \"0.\"}}}"));
  CHECK_THAT(lines_of(body, net.state_dict()).back(), Contains("{.rename = {{\"\", \"0.\"}}}"));
}

TEST_CASE("another network's weights are a message of 15 lines", "[cpu]") {
  const auto is_another = [](nn::Module& net, const nn::StateDict& state, const std::string& fit) {
    const std::vector<std::string> lines = lines_of(net, state);
    CHECK(lines.size() <= 15);
    CHECK(lines.back() ==
          "  " + fit + " tensors fit: it is another network's state, or that of other options");
  };
  nn::Sequential net = linears(std::vector<int64_t>(40, 3)), wide = linears(std::vector<int64_t>(40, 4));
  is_another(net, wide.state_dict(), "0 of 78");
  nn::StateDict state{{"first", ones({3})}};
  for (int i = 0; i < 100; ++i) state["layer" + std::to_string(i) + ".kernel"] = ones({2});
  is_another(net, state, "0 of 78");
  nn::StateDict part = linears({3, 3, 3}).state_dict();
  part["tail.scale"] = ones({3});
  is_another(net, part, "4 of 78");
  const std::vector<std::string> lines = lines_of(net, state);
  CHECK(lines[1] == "  missing     0.bias  [3] float32 cpu");
  CHECK(lines[6] == "  ... and 73 more");
  CHECK(lines[7] == "  unexpected  first  [3] float32 cpu");
  CHECK(lines[12] == "  ... and 96 more");
}

TEST_CASE("a state of other kinds of numbers is refused") {
  Affine affine;
  const auto refused = [&](const std::string& name, const Tensor& value, const std::string& text) {
    CHECK_THROWS_WITH(affine.load_state_dict({{name, value}}, {.strict = false}), Contains(text));
  };
  refused("weight", tensor({1, 2}, int64), "type        weight  needs float32, got int64");
  refused("weight", ones({2}, {.dtype = boolean}), "type        weight  needs float32, got bool");
  refused("calls", scalar(true), "type        calls  needs int64, got bool");
  refused("calls", scalar(1.0), "type        calls  needs int64, got float32");
  affine.load_state_dict({{"calls", scalar(7, int32)}}, {.strict = false});
  CHECK(affine.calls.item() == 7);
  affine.calls = scalar(0, int32);
  refused("calls", scalar(int64_t{1} << 40, int64), "value       calls  is too large for int32");
  affine.load_state_dict({{"calls", scalar(5, int64)}}, {.strict = false});
  CHECK(affine.calls.item() == 5);
  refused("weight", tensor({1.0, 1e300}, float64), "value       weight  is too large for float32");
  const double infinity = std::numeric_limits<double>::infinity();
  affine.load_state_dict({{"weight", tensor({2.0, infinity}, float64)}}, {.strict = false});
  affine.load_state_dict({{"weight", tensor({2.0, 3.0}, float64)}}, {.strict = false});
  CHECK(floats(affine.weight) == std::vector<float>{2, 3});
}

TEST_CASE("to converts parameters, buffers and gradients, and keeps handles", "[cpu]") {
  Net net;
  const std::vector<Tensor> before = net.parameters();
  sum(net(ones({2}))).backward();
  net.to(float64);
  CHECK(before[0].dtype() == float64);
  CHECK(before[0].grad().dtype() == float64);
  CHECK(before[0].requires_grad());
  CHECK(net.first.calls.dtype() == int64);
  CHECK_THROWS_WITH(net.to(int64), "Net: the parameters of a module can only become floating, got int64");

  struct Filter : nn::Module {
    Tensor weight = rand({4, 3, 2, 2});
    Tensor matrix = rand({4, 3});
    void members(nn::Members& m) override { m("weight", weight), m("matrix", matrix); }
  } filter;
  const std::vector<float> values = floats(filter.weight);
  filter.to(MemoryFormat::channels_last);
  CHECK(filter.weight.memory_format() == MemoryFormat::channels_last);
  CHECK(floats(filter.weight) == values);
  filter.to("cpu");
  CHECK(filter.weight.device() == "cpu");
  CHECK_THROWS_AS(filter.to("cuda"), DeviceError);
}

TEST_CASE("a copy shares tensors, a clone does not") {
  Net net;
  net.rest[1].weight = net.first.weight;
  net.rest[0].bias.set_requires_grad(false);
  net.eval();
  const Net copy = net;
  Net twin = nn::clone(net);
  net.first.weight.set_data(tensor({9.0, 9.0}));
  CHECK(floats(copy.first.weight) == std::vector<float>{9, 9});
  CHECK(floats(twin.first.weight) == std::vector<float>{2, 3});
  CHECK(&twin.first.weight.impl() == &twin.rest[1].weight.impl());
  CHECK_FALSE(twin.rest[0].bias.requires_grad());
  CHECK_FALSE(twin.training());
}

TEST_CASE("members with names that cannot be are refused", "[cpu]") {
  struct Bad : nn::Module {
    Affine a, b;
    std::string name;
    explicit Bad(std::string name_) : name(std::move(name_)) {}
    void members(nn::Members& m) override { m("a", a), m(name, b); }
  };
  CHECK_THROWS_WITH(Bad("a").parameters(), "Bad: members() lists the name 'a' twice");
  CHECK_THROWS_WITH(Bad("").state_dict(), Contains("must not have empty parts"));
  CHECK_THROWS_AS(Bad("x..y").named_buffers(), ValueError);
  CHECK(Bad("x.y").parameters().size() == 4);
  CHECK_THROWS_WITH(Bad("b")(ones({2})), Contains("Bad: has no forward of one tensor, got [2] float32 cpu"));
}

TEST_CASE("observers see every call from beginning to end") {
  struct Log : nn::ForwardObserver {
    std::string text;
    void enter(nn::Module& module, const Tensor&) override { text += module.type_name() + '('; }
    void leave(nn::Module&, const Tensor& input, const Tensor& output) override {
      text +=
          output.defined() ? to_string(input.shape()) + to_string(output.shape()) + ')' : std::string("!)");
    }
  };
  Net net;
  Log log;
  {
    Log inner;
    net(ones({3, 2}));
    CHECK(inner.text == "Net(Affine([3, 2][3, 2])Affine([3, 2][3, 2])Affine([3, 2][3, 2])[3, 2][3, 2])");
  }
  CHECK(log.text.size() > 20);
  log.text.clear();
  CHECK_THROWS_AS(net(ones({3})), ShapeError);
  CHECK(log.text == "Net(Affine(!)!)");
}

TEST_CASE("modules print as a tree") {
  std::ostringstream out;
  out << Net();
  CHECK(out.str() ==
        "Net(\n"
        "  (first): Affine()\n"
        "  (rest.0): Affine()\n"
        "  (rest.1): Affine()\n"
        ")");
}
