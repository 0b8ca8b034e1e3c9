#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/relative_error.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;
using test::Json;

/// The networks of models/ beside those of scripts/torch_networks.py. tests/fixtures/torch_fixtures/models.py
/// has the same formulas for parameters and inputs, and scripts/torch_weights.py converts files.

namespace {

nn::AnyModule network(const std::string& name, const Json& o) {
  const auto classifier = [&] {
    return models::ClassifierOptions{
        .num_classes = o.at("classes"), .in_channels = o.at("channels"), .image_size = o.at("size")};
  };
  if (name == "lenet")
    return models::lenet(
        {.num_classes = o.at("classes"), .in_channels = o.at("channels"), .image_size = o.at("size")});
  if (name == "voxel_net")
    return models::voxel_net({.num_classes = o.at("classes"), .in_channels = o.at("channels")});
  if (name == "unet")
    return models::unet(
        {.num_classes = o.at("classes"), .in_channels = o.at("channels"), .widths = o.at("widths")});
  if (name == "dcgan_generator") return models::dcgan_generator(o.at("width"));
  if (name == "dcgan_discriminator") return models::dcgan_discriminator(o.at("width"));
  if (name == "char_transformer")
    return models::CharTransformer({.characters = o.at("characters"),
                                    .length = o.at("length"),
                                    .width = o.at("width"),
                                    .heads = o.at("heads"),
                                    .layers = o.at("layers")});
  if (name == "imagenet.vit_b_16")
    return models::VisionTransformer({.num_classes = o.at("classes"), .image_size = o.at("size")});
  if (name.starts_with("imagenet."))
    return models::imagenet::make_classifier(name.substr(9), {.num_classes = o.at("classes")});
  return models::make_classifier(name == "small_cnn" ? "small" : name, classifier());
}

/// The first numbers of one that repeats itself.
Tensor repeated(const Tensor& period, int64_t count) {
  return narrow(repeat(period, {count / period.numel() + 1}), 0, 0, count);
}

// In steps of their own: a fused multiply-add rounds otherwise.
Tensor wave(double phase) { return sin(square(arange(10007, float64)) * 0.7 + phase); }

/// The formula of the fixtures.
void fill(nn::Module& net, const Json& state) {
  const NoGrad off;
  const nn::StateDict own = net.state_dict();
  int64_t k = 0;
  for (const Json& entry : state) {
    const std::string name = entry.at(0);
    const std::string kind = name.substr(name.rfind('.') + 1);
    const Tensor& tensor = own.at(name);
    const double phase = 0.3 * static_cast<double>(k++);
    if (kind == "num_batches_tracked") {
      fill_(tensor, k - 1);
      continue;
    }
    Tensor y = wave(phase);
    if (kind == "running_var" || kind.ends_with("scale") || (kind == "weight" && tensor.rank() == 1))
      y = y * 0.3 + 1;
    else if (tensor.rank() == 1)
      y = y * 0.1;
    else
      y = y * 1.5 / std::sqrt(static_cast<double>(tensor.numel() / tensor.size(0)));
    copy_(tensor, reshape(repeated(y.to(tensor.dtype()), tensor.numel()), tensor.shape()));
  }
}

Tensor input_of(const Json& one) {
  const Shape shape = one.at("input");
  const Json& options = one.at("options");
  if (options.contains("characters"))
    return reshape(remainder(arange(count(shape)) * 7 + 3, options.at("characters").get<int64_t>()), shape);
  return reshape(repeated(wave(0.1), count(shape)), shape);
}

/// The largest difference from the recorded samples, as a share of the largest of them.
double error_of(const Tensor& y, const Json& recorded) {
  CHECK(y.shape() == recorded.at("shape").get<Shape>());
  const std::vector<double> all = y.to_vector<double>();
  const std::vector<double> samples = recorded.at("samples");
  double error = 0, size = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    error = std::max(error, std::abs(all[i * (all.size() - 1) / (samples.size() - 1)] - samples[i]));
    size = std::max(size, std::abs(samples[i]));
  }
  return error / size;
}

bool is_parameter(const std::string& name) {
  return !name.ends_with(".running_mean") && !name.ends_with(".running_var") &&
         !name.ends_with(".num_batches_tracked");
}

/// A Python with torch and safetensors; null where there is none.
const char* torch_python() {
  const char* python = std::getenv("PLEAT_TEST_PYTHON");
  if (python == nullptr ||
      std::system((std::string(python) + " -c 'import torch, safetensors' 2>/dev/null").c_str()) != 0)
    return nullptr;
  return python;
}

bool has_torchvision() {
  const char* python = torch_python();
  return python != nullptr &&
         std::system((std::string(python) + " -c 'import torchvision' 2>/dev/null").c_str()) == 0;
}

/// Runs Python; what it printed to both streams, after its status: "0 ...".
std::string run_python(const TemporaryDirectory& folder, const std::string& arguments) {
  const std::string out = (folder / "out").string();
  const int status =
      std::system((std::string(torch_python()) + " " + arguments + " >'" + out + "' 2>&1").c_str());
  const std::vector<unsigned char> text = read_bytes(out);
  return std::to_string(status == 0 ? 0 : 1) + " " + std::string(text.begin(), text.end());
}

}  // namespace

TEST_CASE("networks have PyTorch's names and shapes and compute what it computes", "[models]") {
  const NoGrad off;
  for (const Json& one : test::fixture_cases("models", "network")) {
    const std::string name = one.at("name");
    CAPTURE(name);
    const nn::AnyModule any = network(name, one.at("options"));
    nn::Module* const net = &any.get();
    std::map<std::string, Shape> names, recorded;
    for (const auto& [key, tensor] : net->state_dict()) names.emplace(key, tensor.shape());
    for (const Json& entry : one.at("state")) recorded.emplace(entry.at(0), entry.at(1).get<Shape>());
    REQUIRE(names == recorded);
    net->to(float64);
    fill(*net, one.at("state"));
    const Tensor x = input_of(one);
    net->eval();
    CHECK(error_of((*net)(x), one.at("outputs").at("eval")) < 1e-10);
    net->to(float32);
    CHECK(error_of((*net)(is_floating(x.dtype()) ? x.to(float32) : x), one.at("outputs").at("eval")) < 2e-5);
    net->to(float64);
    fill(*net, one.at("state"));
    net->train();
    CHECK(error_of((*net)(x), one.at("outputs").at("train")) < 1e-10);
  }
}

TEST_CASE("networks for ImageNet have torchvision's names and compute what it computes", "[models]") {
  for (const Json& one : test::fixture_cases("models", "imagenet")) {
    const std::string name = one.at("name");
    CAPTURE(name);
    const nn::AnyModule any = network(name, one.at("options"));
    nn::Module& net = any.get();
    std::map<std::string, Shape> names, recorded;
    for (const auto& [key, tensor] : net.state_dict()) names.emplace(key, tensor.shape());
    for (const Json& entry : one.at("state")) recorded.emplace(entry.at(0), entry.at(1).get<Shape>());
    REQUIRE(names == recorded);
    if (default_device().is_cuda() && net.num_parameters() > 6'000'000) continue;  // a double takes long
    // Of the largest only float32, for the tests' memory and time.
    const bool large = net.num_parameters() > 50'000'000;
    if (!large) net.to(float64);
    fill(net, one.at("state"));
    net.apply([](nn::Module& module) {
      if (auto* dropout = dynamic_cast<nn::Dropout*>(&module)) dropout->options.p = 0;
      if (auto* depth = dynamic_cast<nn::StochasticDepth*>(&module)) depth->options.p = 0;
    });
    const Tensor x = input_of(one).to(large ? float32 : float64);
    const Json& outputs = one.at("outputs");
    net.eval();
    const auto evaluated = [&](const Tensor& input) {
      const NoGrad off;
      return error_of(net(input), outputs.at("eval"));
    };
    CHECK(evaluated(x) < (large ? 1e-5 : 1e-10));
    if (!large) {
      // Numbers that float32 has not are rounded before they come back.
      const nn::StateDict exact = nn::clone(net.state_dict());
      net.to(float32);
      CHECK(evaluated(x.to(float32)) < 1e-5);
      net.to(float64);
      net.load_state_dict(exact);
    }
    net.train();
    const Tensor y = net(x);
    CHECK(error_of(y, outputs.at("train")) < (large ? 1e-5 : 1e-10));
    cross_entropy(y, arange(y.size(0))).backward();
    const Json& gradients = outputs.at("grads");
    const nn::NamedTensors parameters = net.named_parameters();
    REQUIRE(gradients.size() == parameters.size());
    double largest = 0;
    for (const Json& recorded_one : gradients) largest = std::max(largest, recorded_one.at(0).get<double>());
    std::map<std::string, Json> by_name;
    std::size_t i = 0;
    for (const Json& entry : one.at("state"))
      if (const std::string key = entry.at(0); is_parameter(key)) by_name[key] = gradients.at(i++);
    for (const auto& [key, parameter] : parameters) {
      const double norm = by_name.at(key).at(0), number = by_name.at(key).at(1);
      const Tensor grad = parameter.grad().to(float64).to(MemoryFormat::contiguous);
      // Of what a batch norm behind it takes away there is only what rounding leaves. In float32 rounding
      // also decides a relu or a maximum: gradients of vgg11_bn move by 6e-4 when the input does by 1e-7.
      const double share = !large ? 1e-7 : name == "imagenet.vgg11_bn" ? 2e-3 : 1e-4;
      const double bound = share * norm + (large ? 1e-6 : 1e-12) * largest;
      CAPTURE(key, norm, number);
      CHECK(std::abs(std::sqrt(sum(grad * grad).item()) - norm) < bound);
      CHECK(std::abs(reshape(grad, {-1})[grad.numel() * 5 / 7].item() - number) < bound);
    }
  }
}

TEST_CASE("torch_weights.py converts weights both ways", "[models][cpu]") {
  if (torch_python() == nullptr)
    return skip("needs a Python with torch and safetensors, named by PLEAT_TEST_PYTHON");
  const TemporaryDirectory folder;
  const std::string script = PLEAT_SOURCE_DIR "/scripts/torch_weights.py",
                    in = (folder / "in.safetensors").string(), pt = (folder / "weights.pt").string(),
                    back = (folder / "back.safetensors").string();
  nn::Sequential net = models::small_cnn({.num_classes = 3, .in_channels = 1, .image_size = 16});
  const Tensor x = randn({2, 1, 16, 16});
  (void)net(x);  // moves the running statistics
  net.eval();
  io::write_safetensors(in, net.state_dict());
  const std::string options = " --classes 3 --channels 1 --image-size 16";
  CHECK_THAT(run_python(folder, script + " to-torch small_cnn " + in + " " + pt + options),
             Catch::Matchers::StartsWith("0 20 tensors, 94,886 numbers"));
  io::write_npy(folder / "x.npy", x);
  io::write_npy(folder / "y.npy", net(x));
  write_bytes(folder / "compare.py", std::string_view(R"(
import sys
import numpy, torch
sys.path.insert(0, sys.argv[1])
import torch_networks
net = torch_networks.NETWORKS["small_cnn"](3, 1, 16)
net.load_state_dict(torch.load(sys.argv[2] + "/weights.pt", weights_only=True))
with torch.no_grad():
    y = net.eval()(torch.from_numpy(numpy.load(sys.argv[2] + "/x.npy"))).numpy()
error = abs(y - numpy.load(sys.argv[2] + "/y.npy")).max()
assert error < 1e-5, error
torch.save({"state_dict": {"module." + name: t for name, t in net.state_dict().items()}}, sys.argv[2] + "/again.pt")
)"));
  CHECK(run_python(folder, (folder / "compare.py").string() + " " PLEAT_SOURCE_DIR "/scripts " +
                               folder.path().string()) == "0 ");
  CHECK_THAT(run_python(folder, script + " to-pleat small_cnn " + (folder / "again.pt").string() + " " +
                                    back + options),
             Catch::Matchers::StartsWith("0 20 tensors"));
  const nn::StateDict own = net.state_dict(), read = io::read_safetensors(back).tensors;
  REQUIRE(own.size() == read.size());
  for (const auto& [name, tensor] : own) CHECK(array_equal(tensor, read.at(name)));

  const std::string wrong =
      " to-pleat lenet " + pt + " " + (folder / "none.safetensors").string() + " --classes 3";
  const std::string problems = run_python(folder, script + wrong);
  CHECK_THAT(problems, Catch::Matchers::StartsWith("1 torch_weights.py: ") &&
                           Catch::Matchers::Contains("missing: 0.bias [6]\n") &&
                           Catch::Matchers::Contains("unexpected: 1.running_mean [32]\n"));
  CHECK_THAT(run_python(folder, script + " to-torch small_cnn " + in + " " + (folder / "none.pt").string() +
                                    " --classes 4 --channels 1 --image-size 16"),
             Catch::Matchers::Contains("shape: 13.weight [3, 512], the network has 13.weight [4, 512]\n"));
  CHECK_THAT(run_python(folder, script + " to-torch resnet18 " + in + " " + pt),
             Catch::Matchers::Contains("needs --classes"));
  CHECK_THAT(run_python(folder, script + " to-torch dcgan_generator " + in + " " + pt + " --classes 3"),
             Catch::Matchers::Contains("has no option classes"));
  CHECK_FALSE(std::filesystem::exists(folder / "none.safetensors"));
  CHECK_FALSE(std::filesystem::exists(folder / "none.pt"));
}

TEST_CASE("weights of torchvision's networks load, and give its logits and gradients", "[models][cpu]") {
  if (!has_torchvision()) return skip("needs a Python with torchvision, named by PLEAT_TEST_PYTHON");
  const TemporaryDirectory folder;
  const std::string weights = (folder / "weights.safetensors").string(),
                    results = (folder / "results.safetensors").string();
  write_bytes(folder / "record.py", std::string_view(R"(
import sys
import torch, torchvision
from safetensors.torch import save_file
name, weights, results = sys.argv[1:]
torch.manual_seed(1)
net = getattr(torchvision.models, name)(num_classes=10)
with torch.no_grad():
    for key, tensor in net.state_dict().items():
        if key.endswith("running_mean"): tensor.normal_(0, 0.1)
        if key.endswith("running_var"): tensor.uniform_(0.5, 1.5)
        if key.startswith("heads.") or "layer_scale" in key: tensor.normal_(0, 0.1)
save_file(net.state_dict(), weights)
size = 224 if name.startswith("vit") else 64
x = torch.randn(2, 3, size, size)
y = net.double().eval()(x.double())
torch.nn.functional.cross_entropy(y, torch.arange(2)).backward()
save_file({"x": x, "y": y.detach(), **{"grad." + key: p.grad.contiguous() for key, p in net.named_parameters()}}, results)
)"));
  for (const std::string& name : models::imagenet::classifier_names()) {
    REQUIRE(run_python(folder,
                       (folder / "record.py").string() + " " + name + " " + weights + " " + results) == "0 ");
    const nn::AnyModule any = models::imagenet::make_classifier(name, {.num_classes = 10});
    nn::Module& net = any.get();
    net.load_state_dict(io::read_safetensors(weights).tensors);
    net.eval();
    const nn::StateDict recorded = io::read_safetensors(results).tensors;
    const Tensor &x = recorded.at("x"), wanted = recorded.at("y");
    const double error = test::relative_error(net(x), wanted);
    // In float64, as a number near 0 before a ReLU may have another sign in float32 and so another gradient.
    net.to(float64);
    const Tensor y = net(x.to(float64));
    const double exact_error = test::relative_error(y, wanted);
    cross_entropy(y, arange(y.size(0))).backward();
    double apart = 0, size = 0;  // all gradients as one vector
    for (const auto& [key, parameter] : net.named_parameters()) {
      const Tensor& grad = recorded.at("grad." + key);
      apart += sum(square(parameter.grad() - grad)).item();
      size += sum(square(grad)).item();
    }
    const double gradient_error = std::sqrt(apart / size);
    CAPTURE(name, error, exact_error * 1e12, gradient_error * 1e12);
    CHECK(error < 1e-5);
    CHECK(exact_error < 1e-10);
    CHECK(gradient_error < 1e-10);
  }
}

TEST_CASE("torch_weights.py gives published weights today's names", "[models][cpu]") {
  if (!has_torchvision()) return skip("needs a Python with torchvision, named by PLEAT_TEST_PYTHON");
  const TemporaryDirectory folder;
  const std::string old = (folder / "old.pth").string(), now = (folder / "now.safetensors").string();
  write_bytes(folder / "old.py", std::string_view(R"(
import re, sys
import torch, torchvision
name, file = sys.argv[1:]
state = getattr(torchvision.models, name)().state_dict()
def old(key):
    key = re.sub(r'(denselayer\d+\.(?:norm|conv))(\d)', r'\1.\2', key)
    return key.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2.")
kept = {
  key: tensor for key, tensor in state.items() if not key.endswith("num_batches_tracked")}
assert name == "mobilenet_v2" or any(old(key) != key for key in kept)
torch.save({old(key): tensor for key, tensor in kept.items()}, file)
)"));
  for (const std::string name : {"densenet121", "mobilenet_v2", "vit_b_16"}) {
    CAPTURE(name);
    REQUIRE(run_python(folder, (folder / "old.py").string() + " " + name + " " + old) == "0 ");
    CHECK_THAT(run_python(folder, PLEAT_SOURCE_DIR "/scripts/torch_weights.py to-pleat imagenet." + name +
                                      " " + old + " " + now),
               Catch::Matchers::StartsWith("0 "));
    CHECK_NOTHROW(
        models::imagenet::make_classifier(name).get().load_state_dict(io::read_safetensors(now).tensors));
  }
}
