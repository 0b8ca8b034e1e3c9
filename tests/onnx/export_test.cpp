#include "pleat/onnx/export.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "pleat/onnx/functions.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/onnx/onnx_file.h"

using namespace pleat;
using namespace pleat_test;
using Catch::Matchers::Contains;

namespace {

using Tensors = std::vector<Tensor>;
using Names = std::vector<std::string>;
using Integers = std::vector<int64_t>;

/// The file of a function of one input.
OnnxFile exported(const Tensor& x, const std::function<Tensor(const Tensor&)>& f,
                  const onnx::ExportOptions& options = {}) {
  const TemporaryDirectory folder;
  const auto function = [&](const Tensors& in) { return Tensors{f(in[0])}; };
  onnx::export_onnx(folder / "f.onnx", {x}, function, options);
  return read_onnx(folder / "f.onnx");
}

/// The message with which an export is refused, which leaves no file.
std::string refusal(const Tensor& x, const std::function<Tensor(const Tensor&)>& f,
                    const onnx::ExportOptions& options = {}) {
  const TemporaryDirectory folder;
  const auto function = [&](const Tensors& in) { return Tensors{f(in[0])}; };
  std::string message;
  try {
    onnx::export_onnx(folder / "f.onnx", {x}, function, options);
  } catch (const ValueError& error) {
    message = error.what();
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  return message;
}

}  // namespace

TEST_CASE("an exported network has its layers as nodes and its state as initializers", "[onnx]") {
  const TemporaryDirectory folder;
  nn::Sequential net{{"conv", nn::Conv2d{{.in_channels = 3,
                                          .out_channels = 4,
                                          .kernel_size = 3,
                                          .stride = 2,
                                          .padding = {{1, 0}, {2, 1}}}}},
                     {"norm", nn::BatchNorm2d{{.num_features = 4}}},
                     {"act", nn::ReLU{}},
                     {"drop", nn::Dropout{{.p = 0.5}}},
                     {"flat", nn::Flatten{}},
                     {"head", nn::Linear{{.in_features = 64, .out_features = 5}}}};
  onnx::export_onnx(folder / "net.onnx", net, randn({2, 3, 8, 6}), {.metadata = {{"classes", "a, b"}}});
  CHECK(net.training());
  const OnnxFile file = read_onnx(folder / "net.onnx");
  CHECK(file.ir_version == 8);
  CHECK(file.opset == 18);
  CHECK(file.metadata == std::map<std::string, std::string>{{"classes", "a, b"}});
  CHECK(file.inputs == std::vector<OnnxPort>{{"input", 1, {"batch", "3", "8", "6"}}});
  CHECK(file.outputs == std::vector<OnnxPort>{{"output", 1, {"batch", "5"}}});
  CHECK(file.ops() == Names{"Conv", "BatchNormalization", "Relu", "Reshape", "Gemm"});
  const OnnxNode& conv = file.nodes[0];
  CHECK(conv.name == "conv/Conv");
  CHECK(conv.inputs == Names{"input", "conv.weight", "conv.bias"});
  CHECK(conv.integers.at("strides") == Integers{2, 2});
  CHECK(conv.integers.at("pads") == Integers{1, 2, 0, 1});
  CHECK(conv.integers.at("kernel_shape") == Integers{3, 3});
  CHECK(conv.integers.at("group") == Integers{1});
  CHECK(file.nodes[4].integers.at("transB") == Integers{1});
  CHECK(file.nodes[4].outputs == Names{"output"});
  const nn::StateDict state = net.state_dict();
  std::size_t found = 0;
  for (const auto& [name, tensor] : file.initializers) {
    const auto own = state.find(name);
    if (own == state.end()) continue;
    ++found;
    CHECK(tensor.type == 1);
    CHECK(tensor.dims == own->second.shape());
    const Tensor dense = own->second.detach().to(Device()).contiguous();
    CHECK(tensor.raw == std::string(reinterpret_cast<const char*>(dense.raw()),
                                    static_cast<std::size_t>(4 * dense.numel())));
  }
  CHECK(found == state.size() - 1);  // all but num_batches_tracked
}

TEST_CASE("an exported graph has names and sizes as the options say", "[onnx]") {
  const Tensor x = randn({2, 6});
  const auto f = [](const Tensor& t) { return reshape(t, {t.size(0), 2, 3}) + 1; };
  const OnnxFile any = exported(x, f, {.input_names = {"x"}, .output_names = {"y"}});
  CHECK(any.inputs == std::vector<OnnxPort>{{"x", 1, {"batch", "6"}}});
  CHECK(any.outputs == std::vector<OnnxPort>{{"y", 1, {"batch", "2", "3"}}});
  CHECK(exported(x, f, {.batch_dims = {}}).inputs == std::vector<OnnxPort>{{"input", 1, {"2", "6"}}});
  CHECK(exported(x,
                 [](const Tensor& t) {
                   return reshape(t, {-1, 2});
                 })
            .outputs[0]
            .dims == Names{"3*batch", "2"});
  CHECK_THAT(refusal(x, f, {.batch_dims = 1}),
             Contains("the function cannot take a batch of 7 where the example has 6: reshape") &&
                 Contains("export for one size of the batch alone: .batch_dims = {}"));
}

TEST_CASE("types of an exported graph", "[onnx]") {
  for (const auto& [dtype, number] : {std::pair{float16, 10}, {bfloat16, 16}, {float64, 11}, {float32, 1}}) {
    const OnnxFile file = exported(randn({2, 3}).to(dtype), [](const Tensor& x) { return relu(x) * 2; });
    CHECK(file.inputs[0].type == number);
    CHECK(file.initializers.at("constant").type == number);
    CHECK(file.outputs[0].type == number);
  }
  CHECK(exported(arange(4), [](const Tensor& x) { return x / 2; }).ops() == Names{"Cast", "Div"});
}

TEST_CASE("an integer of an exported graph has all its digits", "[onnx]") {
  static constexpr int64_t odd = (int64_t{1} << 53) + 1;
  const std::string raw(reinterpret_cast<const char*>(&odd), sizeof odd);
  const std::function<Tensor(const Tensor&)> functions[] = {
      [](const Tensor& x) { return masked_fill(x, x > 1, odd); },
      [](const Tensor& x) { return full_like(x, odd) + x; },
      [](const Tensor& x) { return clamp(x, {.max = odd}); },
      [](const Tensor& x) {
        return pad(x, {1, 1}, {.value = odd});
      },
      [](const Tensor& x) { return x + odd; }};
  for (const auto& f : functions) {
    const OnnxFile file = exported(arange(4), f, {.batch_dims = {}});
    CHECK(std::any_of(file.initializers.begin(), file.initializers.end(),
                      [&](const auto& constant) { return constant.second.raw == raw; }));
  }
}

TEST_CASE("constants of an exported graph depend on no input", "[onnx]") {
  const Tensor x = randn({2, 3});
  // Computed once, and not in the graph.
  CHECK(exported(x, [](const Tensor& t) { return t * exp(arange(3).to(float32)); }).ops() == Names{"Mul"});
  CHECK(exported(x, [](const Tensor& t) { return t + eye(3)[1]; }).ops() == Names{"Add"});
  // What is not read is left out.
  CHECK(exported(x, [](const Tensor& t) {
          (void)cumprod(t, 1);
          return relu(t);
        }).ops() == Names{"Relu"});
  CHECK(exported(x, [](const Tensor& t) { return t.clone().detach().contiguous(); }).ops() ==
        Names{"Identity"});
}

/// A kernel, which tells the export nothing.
static Tensor unseen_sum(const Tensor& a, const Tensor& b) {
  const RecordOp range("add", a, b);
  const Tensor y = empty_like(a);
  ops::add_into(y, a, b);
  return y;
}

TEST_CASE("an export refuses what it cannot follow", "[onnx][cpu]") {
  const Tensor x = randn({2, 3});
  CHECK_THAT(refusal(x, [](const Tensor& t) { return cumprod(t, 1); }),
             Contains("export_onnx: cumprod has no form in ONNX; docs/modules.md lists"));
  CHECK_THAT(
      refusal(x, [](const Tensor& t) { return relu(unseen_sum(t, t)); }),
      Contains("relu reads a tensor [2, 3] float32 cpu that add computed, which the export cannot follow"));
  CHECK_THAT(refusal(x, [](const Tensor& t) { return unseen_sum(t, t); }),
             Contains("the result reads a tensor"));
  CHECK_THAT(refusal(x, [](const Tensor& t) { return relu(nonzero(t)); }), Contains("computed"));
  CHECK_THAT(refusal(x,
                     [](const Tensor& t) {
                       return relu(view(unseen_sum(t, t), {3, 2}));
                     }),
             Contains("view reads a tensor [2, 3] float32 cpu that add computed"));
  CHECK_THAT(refusal(x,
                     [](const Tensor& t) {
                       return relu(unseen_sum(view(t, {3, 2}), scalar(2.0F)));
                     }),
             Contains("[3, 2] float32 cpu that add computed"));
  CHECK_THAT(
      refusal(x, [](const Tensor& t) { return t * sum(t).item(); }),
      Contains("multiply reads a tensor [] float32 cpu that no input leads to, but that is another one"));
  CHECK_THAT(refusal(x, [](const Tensor& t) { return t + rand({3}); }), Contains("it is random"));
  CHECK_THAT(refusal(x, [](const Tensor& t) { return relu(shifted(t, 1, 1, 0)); }),
             Contains("shifted has no form"));
  CHECK_THAT(refusal(x, [](const Tensor& t) { return t.size(0) > 2 ? relu(t) : exp(t); }),
             Contains("the function calls exp with one input and relu with another"));
  CHECK_THAT(refusal(x,
                     [](const Tensor& t) {
                       return reshape(expand(unsqueeze(t, 0), {t.size(0), t.size(0), 3}), {-1});
                     }),
             Contains("no multiple of the batch plus a number; export for one size of the batch alone"));
  CHECK_THAT(refusal(x, [](const Tensor& t) { return var(t); }),
             Contains("var cannot be written: it needs the size of dimension 0"));
  CHECK_THAT(refusal(x, [](const Tensor& t) { return dropout(t, 0.5); }), Contains("dropout has no form"));
  CHECK_THAT(refusal(randn({2, 3, 8}),
                     [](const Tensor& t) { return avg_pool(t, {.kernel_size = 2, .dilation = 2}); }),
             Contains("avg_pool cannot be written: AveragePool has no dilation before opset 19"));
  CHECK_THAT(refusal(x,
                     [](const Tensor& t) {
                       const Autocast half{bfloat16};
                       return matmul(t, ones({3, 2}));
                     }),
             Contains("cast is called under Autocast; leave the scope"));
}

TEST_CASE("an export refuses tensors that were changed in place through others", "[onnx][cpu]") {
  const Tensor x = randn({2, 3});
  CHECK_THAT(refusal(x,
                     [](const Tensor& t) {
                       const Tensor y = t * 2;
                       y[0] = 1;
                       return relu(y);
                     }),
             Contains("relu reads a tensor [2, 3] float32 cpu that was changed in place"));
  CHECK_THAT(refusal(x,
                     [](const Tensor& t) {
                       const Tensor y = zeros({2, 3});
                       ops::copy_into(y, t);
                       return relu(y);
                     }),
             Contains("that copy computed"));
  CHECK_THAT(refusal(x,
                     [](const Tensor& t) {
                       const Tensor y = zeros({4, 3});
                       narrow(y, 0, 0, 2) = t;
                       return relu(y);
                     },
                     {.batch_dims = {}}),
             Contains("changed in place"));
  const Tensor seen = randn({3});
  CHECK_THAT(refusal(x,
                     [&](const Tensor& t) {
                       const Tensor y = t + seen;
                       add_(seen, t[0]);
                       return y + seen;
                     }),
             Contains("another one"));
  nn::Sequential net{nn::BatchNorm1d{{.num_features = 3}}};
  const TemporaryDirectory folder;
  CHECK_THROWS_WITH(onnx::export_onnx(folder / "f.onnx", net, {x},
                                      [&](const Tensors& in) {
                                        net.train();
                                        return Tensors{net(in[0])};
                                      }),
                    Contains("training"));
}

TEST_CASE("an export checks its arguments first", "[onnx][cpu]") {
  const TemporaryDirectory folder;
  const Tensor x = randn({2, 3});
  const auto twice = [](const Tensors& in) { return Tensors{in[0] + in[1], in[0]}; };
  const auto write = [&](const Tensors& examples, const onnx::ExportOptions& options) {
    onnx::export_onnx(folder / "f.onnx", examples, twice, options);
  };
  CHECK_THROWS_WITH(write({x, x}, {.input_names = {"a"}}), Contains("there are 2 inputs, but 1 names"));
  CHECK_THROWS_WITH(write({x, x}, {.output_names = {"a", "b", "c"}}),
                    Contains("there are 2 outputs, but 3 names"));
  CHECK_THROWS_WITH(write({x, x}, {.input_names = {"a", "b"}, .output_names = {"b", "c"}}),
                    Contains("must differ and not be empty, got \"b\" twice"));
  CHECK_THROWS_WITH(write({x, x}, {.batch_dims = 2}),
                    Contains("must be a dimension of [2, 3] float32 cpu, or -1"));
  CHECK_THROWS_WITH(write({x, x}, {.batch_dims = {0, 1, 0}}), Contains("one for each of 2, got 3"));
  CHECK_THROWS_WITH(write({x, randn({3, 3})}, {}),
                    Contains("one size of the batch, at least 1, got 2 and 3"));
  CHECK_THROWS_WITH(write({x, Tensor()}, {}), Contains("undefined"));
  CHECK_THROWS_WITH(write({}, {}), Contains("needs an example of each input"));
  CHECK_THROWS_AS(onnx::export_onnx(folder / "none" / "f.onnx", {x, x}, twice), FileError);
  CHECK(std::filesystem::is_empty(folder.path()));
  write({x, x}, {});
  const OnnxFile file = read_onnx(folder / "f.onnx");
  CHECK(file.inputs[1].name == "input_1");
  CHECK(file.outputs[1].name == "output_1");
  CHECK(file.ops() == Names{"Add", "Identity"});
}

TEST_CASE("an export leaves a running profile as it is", "[onnx][cpu]") {
  profile::Profiler profiler;
  (void)relu(ones({3}));
  const OnnxFile file = exported(randn({2, 3}), [](const Tensor& x) { return exp(x); });
  (void)tanh(ones({3}));
  profiler.stop();
  CHECK(file.ops() == Names{"Exp"});
  const std::string table = profiler.profile().key_averages().table();
  CHECK_THAT(table, Contains("relu") && Contains("exp") && Contains("tanh"));
}
