#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;
using test::Json;

/// The networks of models/ beside those of scripts/torch_networks.py. tests/fixtures/torch_fixtures/models.py
/// has the same formulas for parameters and inputs, and scripts/torch_weights.py converts files.

namespace {

std::unique_ptr<nn::Module> made(nn::Sequential net) {
  return std::make_unique<nn::Sequential>(std::move(net));
}

std::unique_ptr<nn::Module> network(const std::string& name, const Json& o) {
  const auto classifier = [&] {
    return models::ClassifierOptions{
        .num_classes = o.at("classes"), .in_channels = o.at("channels"), .image_size = o.at("size")};
  };
  if (name == "lenet")
    return made(models::lenet(
        {.num_classes = o.at("classes"), .in_channels = o.at("channels"), .image_size = o.at("size")}));
  if (name == "voxel_net")
    return made(models::voxel_net({.num_classes = o.at("classes"), .in_channels = o.at("channels")}));
  if (name == "unet")
    return made(models::unet(
        {.num_classes = o.at("classes"), .in_channels = o.at("channels"), .widths = o.at("widths")}));
  if (name == "dcgan_generator") return made(models::dcgan_generator(o.at("width")));
  if (name == "dcgan_discriminator") return made(models::dcgan_discriminator(o.at("width")));
  if (name == "char_transformer")
    return std::make_unique<models::CharTransformer>(
        models::CharTransformerOptions{.characters = o.at("characters"),
                                       .length = o.at("length"),
                                       .width = o.at("width"),
                                       .heads = o.at("heads"),
                                       .layers = o.at("layers")});
  return made(models::make_classifier(name == "small_cnn" ? "small" : name, classifier()));
}

// In steps of their own: a fused multiply-add rounds otherwise.
Tensor wave(int64_t count, double phase) { return sin(arange(count, float64) * 0.7 + phase); }

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
    Tensor y = wave(tensor.numel(), phase);
    if (kind == "running_var" || kind == "scale" || (kind == "weight" && tensor.rank() == 1))
      y = y * 0.3 + 1;
    else if (tensor.rank() == 1)
      y = y * 0.1;
    else
      y = y * 1.5 / std::sqrt(static_cast<double>(tensor.numel() / tensor.size(0)));
    copy_(tensor, reshape(y, tensor.shape()));
  }
}

Tensor input_of(const Json& one) {
  const Shape shape = one.at("input");
  const Json& options = one.at("options");
  if (options.contains("characters"))
    return reshape(remainder(arange(count(shape)) * 7 + 3, options.at("characters").get<int64_t>()), shape);
  return reshape(wave(count(shape), 0.1), shape);
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

/// A Python with torch and safetensors; null where there is none.
const char* torch_python() {
  const char* python = std::getenv("PLEAT_TEST_PYTHON");
  if (python == nullptr ||
      std::system((std::string(python) + " -c 'import torch, safetensors' 2>/dev/null").c_str()) != 0)
    return nullptr;
  return python;
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
    const std::unique_ptr<nn::Module> net = network(name, one.at("options"));
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
