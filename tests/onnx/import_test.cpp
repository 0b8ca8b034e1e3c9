#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/onnx/model_builder.h"

using namespace pleat;
using namespace pleat_test;
using Catch::Matchers::Contains;

namespace {

double relative_error(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  return norm(a.to(float64) - b.to(float64)).item() / std::max(norm(b.to(float64)).item(), 1e-12);
}

onnx::ImportedNetwork imported(const std::string& bytes) {
  const ModelInFolder file(bytes);
  return onnx::import_onnx(file.path());
}

onnx::ImportedNetwork round_trip(nn::Module& net, const Tensor& example) {
  const TemporaryDirectory folder;
  onnx::export_onnx(folder / "net.onnx", net, example);
  return onnx::import_onnx(folder / "net.onnx");
}

/// The error of an import, or of the call after it.
std::string error_of(const std::string& bytes, const std::vector<Tensor>& inputs = {}) {
  try {
    onnx::ImportedNetwork net = imported(bytes);
    if (!inputs.empty()) (void)net(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// y = relu(x W) with W named "fc.weight".
std::string small_model(const std::string& more = "") {
  return model(initializer("fc.weight", ones({3, 2})) + input("x", {"batch", "3"}) +
               node("MatMul", {"x", "fc.weight"}, {"h"}, {}, "fc/MatMul") +
               node("Relu", {"h"}, {"y"}, {}, "act") + more + output("y"));
}

}  // namespace

TEST_CASE("an imported network trains as the one that was exported", "[onnx][import][cpu]") {
  manual_seed(1);
  nn::Sequential net = models::resnet20({.num_classes = 4});
  net.to(float64);
  const Tensor x = randn({4, 3, 32, 32}, float64), target = tensor({0, 3, 1, 2});
  onnx::ImportedNetwork again = round_trip(net, x);
  const nn::StateDict before = net.state_dict(), read = again.state_dict();
  for (const auto& [name, value] : before)
    if (is_floating(value.dtype())) {
      INFO(name);
      REQUIRE(read.contains(name));
      CHECK(array_equal(read.at(name), value));
    }
  CHECK(again.parameters().size() == net.parameters().size());
  optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9}),
      sgd_again(again.parameters(), {.lr = 0.05, .momentum = 0.9});
  net.train();
  again.train();
  for (int step = 0; step < 3; ++step) {
    const auto train = [&](nn::Module& network, optim::SGD& optimizer) {
      optimizer.zero_grad();
      const Tensor loss = cross_entropy(network(x), target);
      loss.backward();
      optimizer.step();
      return loss.item();
    };
    CHECK(train(again, sgd_again) == Approx(train(net, sgd)).epsilon(1e-9));
  }
  // The statistics of batch norms have moved alike.
  for (const auto& [name, buffer] : again.named_buffers()) {
    INFO(name);
    CHECK(relative_error(buffer, net.state_dict().at(name)) < 1e-9);
  }
}

TEST_CASE("gradients of an imported network are those of its functions", "[onnx][import][cpu]") {
  manual_seed(2);
  nn::Sequential net{
      {"conv", nn::Conv2d{{.in_channels = 2, .out_channels = 3, .kernel_size = 3, .padding = 1}}},
      {"norm", nn::GroupNorm{{.num_groups = 3, .num_channels = 3}}},
      {"act", nn::GELU{}},
      {"flat", nn::Flatten{}},
      {"fc", nn::Linear{{.in_features = 48, .out_features = 2}}}};
  net.to(float64);
  onnx::ImportedNetwork again = round_trip(net, randn({1, 2, 4, 4}, float64));
  CHECK(gradcheck([&](const std::vector<Tensor>& x) { return again(x[0]); }, {randn({2, 2, 4, 4}, float64)}));
  CHECK(gradgradcheck([&](const std::vector<Tensor>& x) { return again(x[0]); },
                      {randn({2, 2, 4, 4}, float64)}));
}

TEST_CASE("an imported network moves, copies and shows itself as modules do", "[onnx][import][cpu]") {
  manual_seed(3);
  nn::Sequential net = models::small_cnn({.num_classes = 5});
  const Tensor x = randn({2, 3, 32, 32});
  onnx::ImportedNetwork again = round_trip(net, x);
  again.eval();
  const Tensor y = again(x);

  onnx::ImportedNetwork shared = again, own = nn::clone(again);
  own.eval();
  const NoGrad off;
  fill_(again.parameters()[0], 0.0);
  CHECK(relative_error(own(x), y) < 1e-6);
  CHECK(array_equal(shared(x), again(x)));

  own.to(bfloat16);
  const Tensor half = own(x.to(bfloat16));
  CHECK(half.dtype() == bfloat16);
  CHECK(relative_error(half, y) < 0.05);
  own.to(float64);
  CHECK(own(x.to(float64)).dtype() == float64);

  const nn::Summary summary = nn::summary(own, x.to(float64));
  CHECK(summary.rows.size() > 4);
  CHECK(summary.parameters == net.num_parameters());
  CHECK_THAT(to_string(own), Contains("Conv"));
  CHECK(own.inputs().at(0).shape == std::vector<std::string>{"batch", "3", "32", "32"});

  Inference engine(own, x.to(float64));
  CHECK(engine.difference({x.to(float64)}) < 1e-9);
}

TEST_CASE("what exporters take apart is one function again", "[onnx][import][cpu]") {
  manual_seed(9);
  models::CharTransformer net({.characters = 7, .length = 6, .width = 16, .heads = 4, .layers = 2});
  const Tensor x = randint(0, 7, {3, 6});
  onnx::ImportedNetwork again = round_trip(net, x);
  net.eval();
  again.eval();
  CHECK(relative_error(again(x), net(x)) < 1e-5);
  // The engine's calls are those of the network that was exported.
  const auto counts = [](const std::string& summary) {
    std::map<std::string, int> found;
    for (const char* call :
         {"scaled_dot_product_attention", "linear + gelu", "linear + add", "linear", "matmul", "erf"})
      for (std::size_t at = 0; (at = summary.find(call, at)) != std::string::npos; ++at) ++found[call];
    return found;
  };
  CHECK(counts(Inference(again, x).summary()) == counts(Inference(net, x).summary()));
  nn::Sequential gated{nn::Conv2d{{.in_channels = 2, .out_channels = 2, .kernel_size = 1}}, nn::SiLU{}};
  onnx::ImportedNetwork gates = round_trip(gated, ones({1, 2, 3, 3}));
  CHECK_THAT(Inference(gates, ones({1, 2, 3, 3})).summary(), Contains("conv + silu"));
}

TEST_CASE("parts of an imported network are replaced, left out and frozen", "[onnx][import][cpu]") {
  manual_seed(4);
  nn::Sequential net = models::resnet20({.num_classes = 10});
  const Tensor x = randn({2, 3, 32, 32});
  onnx::ImportedNetwork again = round_trip(net, x);
  again.eval();
  const std::vector<std::string> parts = again.parts();
  const auto has = [&](const std::string& name) {
    return std::find(parts.begin(), parts.end(), name) != parts.end();
  };
  REQUIRE((has("14") && has("3.body.0")));
  const onnx::ImportedNetwork whole = again;
  again.replace("14", nn::Linear{{.in_features = 64, .out_features = 3}});
  for (const auto& [name, module] : again.named_modules()) CHECK_FALSE(module->training());
  CHECK(again(x).shape() == Shape{2, 3});
  CHECK(again.state_dict().at("14.weight").shape() == Shape{3, 64});
  CHECK(onnx::ImportedNetwork(whole)(x).shape() == Shape{2, 10});
  again.requires_grad_("3", false);
  for (const auto& [name, parameter] : again.named_parameters())
    CHECK(parameter.requires_grad() != name.starts_with("3."));
  again.train();
  sum(again(x)).backward();
  for (const auto& [name, parameter] : again.named_parameters())
    CHECK(parameter.grad().defined() != name.starts_with("3."));

  onnx::ImportedNetwork features = again.until("8");
  features.eval();
  CHECK(features(x).shape() == Shape{2, 32, 16, 16});
  CHECK_FALSE(features.state_dict().contains("14.weight"));
  // A part of several layers as one module.
  onnx::ImportedNetwork shorter = whole;
  shorter.replace("9", nn::Conv2d{{.in_channels = 32, .out_channels = 64, .kernel_size = 1, .stride = 2}});
  shorter.eval();
  CHECK(shorter(x).shape() == Shape{2, 10});
  // What was put in is exported and read again, too.
  onnx::ImportedNetwork twice = round_trip(again, x);
  again.eval();
  twice.eval();
  CHECK(relative_error(twice(x), again(x)) < 1e-5);

  CHECK_THROWS_WITH(again.replace("head", nn::Identity{}),
                    Contains("has no part 'head'") && Contains("outermost are 0, 1"));
  CHECK_THROWS_AS(again.until(""), ValueError);
  CHECK_THROWS_AS(again.requires_grad_("layer9", false), ValueError);
}

TEST_CASE("sizes that a file leaves free stay free", "[onnx][import][cpu]") {
  // reshape(x, [shape(x)[0], -1]) by Shape, Gather, Unsqueeze and Concat, as exporters write it.
  const std::string bytes = model(input("x", {"n", "c", "l"}) + initializer("zero", tensor({0})[0].clone()) +
                                  initializer("first", tensor({0})) + initializer("rest", tensor({-1})) +
                                  node("Shape", {"x"}, {"s"}) + node("Gather", {"s", "zero"}, {"n"}) +
                                  node("Unsqueeze", {"n", "first"}, {"n1"}) +
                                  node("Concat", {"n1", "rest"}, {"to"}, {attribute("axis", int64_t{0})}) +
                                  node("Reshape", {"x", "to"}, {"y"}) + output("y"));
  onnx::ImportedNetwork net = imported(bytes);
  CHECK(net(ones({2, 3, 4})).shape() == Shape{2, 12});
  CHECK(net(ones({5, 1, 2})).shape() == Shape{5, 2});
  // In an engine and exported again, for other batches.
  Inference engine(net, ones({2, 3, 4}));
  CHECK(engine(ones({7, 3, 4})).shape() == Shape{7, 12});
  onnx::ImportedNetwork again = round_trip(net, ones({2, 3, 4}));
  CHECK(again(ones({6, 3, 4})).shape() == Shape{6, 12});
}

TEST_CASE("all places in their order, computed from sizes, are no gather", "[onnx][import][cpu]") {
  // PyTorch's exporter writes as_strided so, of a network in channels_last, for example.
  const std::string bytes =
      model(input("x", {"n", "c"}) + initializer("all", tensor({-1})) +
            initializer("zero", tensor({0})[0].clone()) + initializer("one", tensor({1})[0].clone()) +
            node("Reshape", {"x", "all"}, {"flat"}) + node("Shape", {"flat"}, {"s"}) +
            node("Gather", {"s", "zero"}, {"count"}) + node("Range", {"zero", "count", "one"}, {"places"}) +
            node("Gather", {"flat", "places"}, {"same"}) + node("Shape", {"x"}, {"shape"}) +
            node("Reshape", {"same", "shape"}, {"y"}) + output("y"));
  onnx::ImportedNetwork net = imported(bytes);
  const Tensor x = randn({5, 3});
  CHECK(array_equal(net(x), x));
  onnx::ImportedNetwork again = round_trip(net, randn({2, 3}));
  CHECK(array_equal(again(x), x));
  Inference engine(net, randn({2, 3}));
  CHECK(array_equal(engine(x), x));

  // And an assignment to all rows.
  const std::string rows = model(
      input("x", {"n", "c"}) + initializer("zero", tensor({0})[0].clone()) +
      initializer("one", tensor({1})[0].clone()) + initializer("last", tensor({-1})) +
      node("Neg", {"x"}, {"minus"}) + node("Shape", {"x"}, {"s"}) + node("Gather", {"s", "zero"}, {"n"}) +
      node("Range", {"zero", "n", "one"}, {"all"}) + node("Unsqueeze", {"all", "last"}, {"places"}) +
      node("ScatterND", {"x", "places", "minus"}, {"y"}) + output("y"));
  onnx::ImportedNetwork minus = imported(rows), assigned = round_trip(minus, randn({2, 3}));
  CHECK(array_equal(assigned(x), -x));
}

TEST_CASE("branches and loops depend on the input", "[onnx][import][cpu]") {
  const std::string twice = node("Add", {"x", "x"}, {"a"}) + output("a"),
                    minus = node("Neg", {"x"}, {"b"}) + output("b");
  const std::string branch =
      model(input("x", {"n"}) + initializer("zero", tensor(0.0F)) +
            node("ReduceSum", {"x"}, {"s"}, {attribute("keepdims", int64_t{0})}) +
            node("Greater", {"s", "zero"}, {"c"}) +
            node("If", {"c"}, {"y"},
                 {graph_attribute("then_branch", twice), graph_attribute("else_branch", minus)}) +
            output("y"));
  onnx::ImportedNetwork net = imported(branch);
  CHECK(array_equal(net(tensor({1.0F, 2.0F})), tensor({2.0F, 4.0F})));
  CHECK(array_equal(net(tensor({-1.0F, -2.0F})), tensor({1.0F, 2.0F})));
  // h is doubled three times; the steps are collected.
  const std::string body = input("i", {}, 7) + input("c", {}, 9) + input("h", {"n"}) +
                           node("Identity", {"c"}, {"c2"}) + node("Add", {"h", "h"}, {"h2"}) +
                           node("Identity", {"h2"}, {"all"}) + output("c2") + output("h2") + output("all");
  const std::string loop =
      model(input("x", {"n"}) + initializer("steps", tensor({3})[0].clone()) +
            initializer("go", tensor({true})[0].clone()) +
            node("Loop", {"steps", "go", "x"}, {"y", "each"}, {graph_attribute("body", body)}) + output("y") +
            output("each"));
  onnx::ImportedNetwork looped = imported(loop);
  const std::vector<Tensor> found = looped(std::vector{tensor({1.0F, -1.0F})});
  CHECK(array_equal(found.at(0), tensor({8.0F, -8.0F})));
  CHECK(found.at(1).shape() == Shape{3, 2});
}

TEST_CASE("what cannot be computed is told before anything runs, all at once", "[onnx][import][cpu]") {
  const std::string bytes = model(input("x", {"n"}) + node("Foo", {"x"}, {"a"}, {}, "first") +
                                  node("Foo", {"a"}, {"b"}, {}, "second") +
                                  node("Relu", {"b"}, {"c"}, {attribute("slope", 0.5F)}, "act") +
                                  node("Bar", {"c"}, {"y"}, {}, "last") + output("y"));
  const std::string error = error_of(bytes);
  for (const char* part : {"operator Foo: 'first', 'second'", "operator Bar: 'last'",
                           "attribute 'slope' of Relu: 'act'", "opset 18", "written by a test"})
    CHECK_THAT(error, Contains(part));
  CHECK_THAT(error_of(model(input("x", {"n"}) + node("Relu", {"x", "x"}, {"y"}, {}, "act") + output("y"))),
             Contains("input 1 of Relu: 'act'"));
  CHECK_THAT(error_of(model(input("x", {"n"}) + node("Relu", {"x"}, {"y"}) + output("y"), 6)),
             Contains("opset 6"));
}

TEST_CASE("graphs that are none are errors", "[onnx][import][cpu]") {
  CHECK(error_of(small_model(), {ones({2, 3})}) == "no error");
  CHECK_THAT(error_of(small_model(node("Relu", {"nothing"}, {"z"}, {}, "lost"))),
             Contains("node 'lost' (Relu) reads 'nothing'"));
  CHECK_THAT(error_of(small_model(node("Relu", {"x"}, {"h"}, {}, "again"))),
             Contains("are 'h', the second is node 'again'"));
  CHECK_THAT(error_of(model(input("x", {"n"}) + node("Relu", {"b"}, {"a"}, {}, "one") +
                            node("Relu", {"a"}, {"b"}) + output("b"))),
             Contains("has a cycle"));
  CHECK_THAT(error_of(model(input("x", {"n"}) + output("y"))), Contains("nothing gives its output 'y'"));
  CHECK_THAT(error_of(small_model(), {ones({2, 4})}), Contains("input 'x' should be [batch, 3], got [2, 4]"));
  CHECK_THAT(error_of(small_model(), {ones({2, 3}), ones({1})}), Contains("takes 1 inputs, got 2"));
  CHECK_THAT(error_of(small_model(), {ones({2, 3}).to(int64)}), Contains("should be of float"));
  // An operator's own error names the node.
  CHECK_THAT(error_of(model(input("x", {"n", "m"}) + initializer("w", ones({3, 2})) +
                            node("MatMul", {"x", "w"}, {"y"}, {}, "product") + output("y")),
                      {ones({2, 5})}),
             Contains("node 'product' (Linear)"));
}

TEST_CASE("a file that is cut or changed is an error", "[onnx][import][cpu]") {
  const std::string bytes = small_model();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    INFO(size);
    const std::string error = error_of(bytes.substr(0, size));
    CHECK((error != "no error" || size + 8 > bytes.size()));
  }
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const char flip : {'\x01', '\x10', '\x7f'}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      (void)error_of(changed, {ones({2, 3})});
    }
  CHECK_THAT(error_of("no onnx at all"), Contains("model.onnx"));
  CHECK_THROWS_AS(onnx::import_onnx("/no/such/file.onnx"), FileError);
}

TEST_CASE("weights outside of the file lie in its folder", "[onnx][import][cpu]") {
  const auto outside = [](const std::string& location, int64_t offset = 4, int64_t length = 24) {
    const auto entry = [](const char* key, const std::string& value) {
      return proto::bytes_field(13, proto::bytes_field(1, key) + proto::bytes_field(2, value));
    };
    return model(initializer("w", {3, 2}, 1, "",
                             proto::integer_field(14, 1) + entry("location", location) +
                                 entry("offset", std::to_string(offset)) +
                                 entry("length", std::to_string(length))) +
                 input("x", {"n", "3"}) + node("MatMul", {"x", "w"}, {"y"}) + output("y"));
  };
  // Larger than what this file alone may take: 280 MB beside a few hundred bytes.
  {
    const ModelInFolder file(
        model(initializer("w", {70'000'000}, 1, "",
                          proto::integer_field(14, 1) +
                              proto::bytes_field(13, proto::bytes_field(1, "location") +
                                                         proto::bytes_field(2, "large.data"))) +
              input("x", {"n"}) + node("ReduceMax", {"w"}, {"y"}) + output("y")));
    write_bytes(file.folder() / "large.data", std::string_view(""));
    std::filesystem::resize_file(file.folder() / "large.data",
                                 280'000'000);  // zeros, without a place on the disk
    CHECK(onnx::import_onnx(file.path())(ones({1})).item() == 0);
  }
  const auto run = [&](const std::string& bytes) -> std::string {
    const ModelInFolder file(bytes);
    const Tensor w = tensor({{1.0F, 2.0F}, {3.0F, 4.0F}, {5.0F, 6.0F}});
    write_bytes(file.folder() / "net.data", "skip" + std::string(reinterpret_cast<const char*>(w.raw()), 24));
    try {
      onnx::ImportedNetwork net = onnx::import_onnx(file.path());
      return array_equal(net(eye(3)), w) ? "" : "other numbers";
    } catch (const FileError& error) {
      return error.what();
    }
  };
  CHECK(run(outside("net.data")) == "");
  CHECK_THAT(run(outside("../net.data")), Contains("not in the folder"));
  CHECK_THAT(run(outside("/etc/passwd")), Contains("not in the folder"));
  CHECK_THAT(run(outside("other.data")), Contains("cannot open"));
  CHECK_THAT(run(outside("net.data", 8)), Contains("from byte 8 on"));
  CHECK_THAT(run(outside("net.data", 4, 20)), Contains("needs 24 bytes"));
}

TEST_CASE("memory is in proportion to the file", "[onnx][import][cpu]") {
  // A shape of 2^40 numbers, of which there is none.
  CHECK_THAT(error_of(model(initializer("w", {1 << 20, 1 << 20}, 1, "abcd") + input("x", {"n"}) +
                            node("Relu", {"x"}, {"y"}) + output("y"))),
             Contains("needs 4398046511104 bytes, and it has 4"));
  // Constants that double with each node are not computed ahead.
  std::string graph = input("x", {"n"}) + initializer("a0", ones({64}));
  for (int i = 0; i < 60; ++i) {
    const std::string from = "a" + std::to_string(i);
    graph += node("Concat", {from, from}, {"a" + std::to_string(i + 1)}, {attribute("axis", int64_t{0})});
  }
  CHECK(error_of(model(graph + node("Relu", {"x"}, {"y"}) + output("y"))) == "no error");
}

TEST_CASE("a quantised weight is trained as the numbers that it stands for", "[onnx][import][cpu]") {
  const std::string bytes = model(
      input("x", {"n", "3"}) + initializer("w_q", {3, 2}, 3, std::string("\x02\xfe\x04\x00\x06\x01", 6)) +
      initializer("scale", tensor(0.5F)) + node("DequantizeLinear", {"w_q", "scale"}, {"w"}) +
      node("MatMul", {"x", "w"}, {"y"}) + output("y"));
  onnx::ImportedNetwork net = imported(bytes);
  CHECK(array_equal(net(eye(3)), tensor({{1.0F, -1.0F}, {2.0F, 0.0F}, {3.0F, 0.5F}})));
  REQUIRE(net.named_parameters().size() == 1);
  sum(net(eye(3))).backward();
  CHECK(net.parameters()[0].grad().defined());
}

TEST_CASE("what is rounded to integers and back passes its gradient on", "[onnx][import][cpu]") {
  onnx::ImportedNetwork net =
      imported(model(input("x", {"n"}) + initializer("scale", tensor(0.5F)) +
                     initializer("zero", {}, 2, std::string("\x04", 1)) +
                     node("QuantizeLinear", {"x", "scale", "zero"}, {"q"}) +
                     node("DequantizeLinear", {"q", "scale", "zero"}, {"y"}) + output("y")));
  // -2 to 125.5 are held; beyond there is no gradient.
  const Tensor x = tensor({-3.0F, -1.9F, 0.3F, 200.0F}).set_requires_grad();
  const Tensor y = net(x);
  CHECK(array_equal(y.detach(), tensor({-2.0F, -2.0F, 0.5F, 125.5F})));
  sum(y).backward();
  CHECK(array_equal(x.grad(), tensor({0.0F, 1.0F, 1.0F, 0.0F})));
}

TEST_CASE("cuda: an imported network computes and trains on a GPU as on the CPU", "[onnx][import][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  {
    // Steps of a loop and sizes stay on the host, whatever the default device.
    const DefaultDevice on_gpu(DeviceType::cuda);
    const std::string body = input("i", {}, 7) + input("c", {}, 9) + input("h", {"n"}) +
                             node("Identity", {"c"}, {"c2"}) +
                             node("Cast", {"i"}, {"f"}, {attribute("to", int64_t{1})}) +
                             node("Add", {"h", "f"}, {"h2"}) + output("c2") + output("h2");
    onnx::ImportedNetwork loop = imported(
        model(input("x", {"n"}) + node("Size", {"x"}, {"steps"}) +
              node("Loop", {"steps", "", "x"}, {"y"}, {graph_attribute("body", body)}) + output("y")));
    CHECK(loop(ones({4})).to_vector() == std::vector<float>{7, 7, 7, 7});
  }
  manual_seed(10);
  const auto check = [](nn::Module& net, const Tensor& x) {
    onnx::ImportedNetwork host = round_trip(net, x);
    onnx::ImportedNetwork gpu = nn::clone(host);
    gpu.to(DeviceType::cuda);
    for (const bool training : {false, true}) {
      host.train(training);
      gpu.train(training);
      host.zero_grad();
      gpu.zero_grad();
      const Tensor y = host(x), z = gpu(x.to(DeviceType::cuda));
      CHECK(z.device().is_cuda());
      CHECK(relative_error(z.detach().to(Device()), y.detach()) < 1e-4);
      mean(square(y)).backward();
      mean(square(z)).backward();
      const auto parameters = host.named_parameters(), on_gpu = gpu.named_parameters();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        INFO(parameters[i].first);
        const Tensor wanted = parameters[i].second.grad();
        // A bias before a batch norm has a gradient of rounding errors alone.
        CHECK(allclose(on_gpu[i].second.grad().to(Device()), wanted, {.rtol = 1e-3, .atol = 1e-5}));
      }
    }
  };
  nn::Sequential pictures{nn::Conv2d{{.in_channels = 2, .out_channels = 4, .kernel_size = 3, .padding = 1}},
                          nn::BatchNorm2d{{.num_features = 4}},
                          nn::Hardswish{},
                          nn::MaxPool2d{{.kernel_size = 2}},
                          nn::Flatten{},
                          nn::Linear{{.in_features = 16, .out_features = 3}}};
  check(pictures, randn({3, 2, 4, 4}));
  // Constants beside tensors: a mask, and scales.
  models::CharTransformer text({.characters = 5, .length = 4, .width = 8, .heads = 2, .layers = 1});
  check(text, randint(0, 5, {2, 4}));
}
