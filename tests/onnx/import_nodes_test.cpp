#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pleat/onnx/model_file.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/onnx/export_check.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

/// ONNX's own test cases of operators.

namespace {

namespace fs = std::filesystem;

struct Outcome {
  enum Kind { agrees, refused, differs } kind;
  std::string why = {};
};

bool is_close(double found, double wanted, double tolerance) {
  if (std::isnan(wanted)) return std::isnan(found);
  return found == wanted || std::abs(found - wanted) <= 1e-5 + tolerance * std::abs(wanted);
}

/// `folder` has model.onnx, and input_0.pb, output_0.pb ... as ONNX has test data.
Outcome outcome_of(const fs::path& folder) {
  const auto tensors = [&](const std::string& kind) {
    std::vector<Tensor> all;
    for (int i = 0; fs::exists(folder / (kind + std::to_string(i) + ".pb")); ++i)
      all.push_back(onnx::read_tensor_file(folder / (kind + std::to_string(i) + ".pb")).tensor);
    return all;
  };
  std::vector<Tensor> found, wanted;
  try {
    const NoGrad off;
    onnx::ImportedNetwork net = onnx::import_onnx(folder / "model.onnx");
    net.eval();
    const std::vector<Tensor> inputs = tensors("input_");
    wanted = tensors("output_");
    found = net(inputs);
  } catch (const Error& error) {
    const std::string why = error.what();
    const bool is_known = why.find("has what Pleat does not compute") != std::string::npos ||
                          why.find("which Pleat does not have") != std::string::npos ||
                          why.find("is not computed") != std::string::npos ||
                          why.find("reads 7 and newer") != std::string::npos;
    return {is_known ? Outcome::refused : Outcome::differs, why};
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Tensor &y = found.at(i), &w = wanted[i];
    if (y.shape() != w.shape() || y.dtype() != w.dtype())
      return {Outcome::differs, y.describe() + " instead of " + w.describe()};
    const std::vector<double> numbers = y.to_vector<double>(), expected = w.to_vector<double>();
    // As onnx's own runner has it; bfloat16 has 8 bits.
    const double tolerance = w.dtype() == bfloat16 ? 2e-2 : w.dtype() == float16 ? 1e-2 : 1e-3;
    for (std::size_t k = 0; k < numbers.size(); ++k)
      if (!is_close(numbers[k], expected[k], tolerance))
        return {Outcome::differs, "output " + std::to_string(i) + ", element " + std::to_string(k) + ": " +
                                      std::to_string(numbers[k]) + " instead of " +
                                      std::to_string(expected[k])};
  }
  return {Outcome::agrees};
}

std::vector<unsigned char> bytes_of(const std::string& hex) {
  std::vector<unsigned char> bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

/// Cases that Pleat computes in another way, on purpose: random ones; batch norm and dropout, which train
/// where the network does; a size that a scale rounds down with align_corners, where onnxruntime and PyTorch
/// take the whole size; the extreme of no bool.
const std::set<std::string> others{"test_bernoulli",
                                   "test_bernoulli_double",
                                   "test_bernoulli_double_expanded",
                                   "test_bernoulli_expanded",
                                   "test_bernoulli_seed",
                                   "test_bernoulli_seed_expanded",
                                   "test_batchnorm_epsilon_training_mode",
                                   "test_batchnorm_example_training_mode",
                                   "test_training_dropout",
                                   "test_training_dropout_default",
                                   "test_training_dropout_default_mask",
                                   "test_training_dropout_mask",
                                   "test_resize_downsample_scales_cubic_align_corners",
                                   "test_resize_downsample_scales_linear_align_corners",
                                   "test_reduce_max_empty_set_bool"};

}  // namespace

TEST_CASE("import_onnx computes onnx's own cases of operators", "[onnx][cpu]") {
  const TemporaryDirectory folder;
  std::set<std::string> refused;
  int agree = 0;
  for (const test::Json& one : test::fixture("onnx_nodes").at("cases")) {
    const std::string name = one.at("name");
    INFO(name);
    const fs::path place = folder / name;
    fs::create_directories(place);
    write_bytes(place / "model.onnx", bytes_of(one.at("model")));
    for (const char* kind : {"input", "output"}) {
      int i = 0;
      for (const std::string hex : one.at(std::string(kind) + "s"))
        write_bytes(place / (std::string(kind) + "_" + std::to_string(i++) + ".pb"), bytes_of(hex));
    }
    const Outcome outcome = outcome_of(place);
    if (outcome.kind == Outcome::differs && !others.contains(name)) CHECK(outcome.why == "");
    if (outcome.kind == Outcome::refused) refused.insert(one.at("op").get<std::string>());
    agree += outcome.kind == Outcome::agrees;
  }
  std::string list;
  for (const std::string& op : refused) list += op + " ";
  // Cast and the quantising ones of float8, Not of opset 1.
  CHECK(list ==
        "Adagrad Adam Binarizer BitCast BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast "
        "CastLike "
        "CausalConvWithState DFT DequantizeLinear Det FlexAttention HammingWindow HannWindow MelWeightMatrix "
        "Momentum "
        "NonMaxSuppression Not OptionalGetElement OptionalHasElement QuantizeLinear SwiGLU TensorScatter "
        "TfIdfVectorizer TreeEnsemble Unique ");
  CHECK(agree > 270);
}

TEST_CASE("import_onnx computes all cases of operators that onnx has", "[onnx][cpu]") {
  if (onnxruntime_python() == nullptr) return skip("needs a Python with onnx, see PLEAT_TEST_PYTHON");
  const TemporaryDirectory folder;
  const std::string script = std::string(PLEAT_FIXTURE_DIR) + "/make_onnx_nodes.py";
  REQUIRE(std::system((std::string(onnxruntime_python()) + " '" + script + "' --folder '" +
                       folder.path().string() + "'")
                          .c_str()) == 0);
  int agree = 0, refused = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const Outcome outcome = outcome_of(entry.path());
    const std::string name = entry.path().filename().string();
    INFO(name << ": " << outcome.why);
    if (!others.contains(name)) CHECK(outcome.kind != Outcome::differs);
    agree += outcome.kind == Outcome::agrees;
    refused += outcome.kind == Outcome::refused;
  }
  INFO(agree << " agree, " << refused << " are refused");
  CHECK(agree > 1500);
  WARN(agree << " agree, " << refused << " are refused");
}
