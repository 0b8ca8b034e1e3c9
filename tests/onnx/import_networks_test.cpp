#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "pleat/core/base/format.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/onnx/export_check.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

/// Networks of torchvision, timm and transformers, as PyTorch's exporters write them (export_networks.py).
/// With PLEAT_WRITE_NETWORKS the table of errors goes to that file; PLEAT_TEST_NETWORKS names a folder that
/// the script has written before.

namespace {

namespace fs = std::filesystem;

double relative_error(const Tensor& a, const Tensor& b, double least = 1e-12) {
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  return norm(a.to(float64) - b.to(float64)).item() / std::max(norm(b.to(float64)).item(), least);
}

struct Row {
  std::string name, back;
  double output = 0, gradient = 0, first_loss = 0, last_loss = 0;
  std::size_t compared = 0, parameters = 0, gradients = 0;
};

Row row_of(const fs::path& folder) {
  Row row{.name = folder.filename().string(), .back = {}};
  const Tensor x = io::read_npy(folder / "x.npy"), y = io::read_npy(folder / "y.npy");
  onnx::ImportedNetwork net = onnx::import_onnx(folder / "model.onnx");
  net.eval();
  {
    const NoGrad off;
    row.output = relative_error(net(x), y);
    // Twice the batch.
    CHECK(relative_error(narrow(net(cat({x, x}, 0)), 0, 0, x.size(0)), y) < 1e-5);
  }
  // Gradients in float64, where no ReLU is on another side of 0 by rounding.
  onnx::ImportedNetwork wide = nn::clone(net);
  wide.to(float64);
  wide.eval();
  mean(square(wide(is_floating(x.dtype()) ? x.to(float64) : x))).backward();
  const std::map<std::string, Tensor> expected = io::read_npz(folder / "grads.npz");
  double largest = 0;
  for (const auto& [name, gradient] : expected) largest = std::max(largest, norm(gradient).item());
  for (const auto& [name, parameter] : wide.named_parameters()) {
    ++row.parameters;
    const auto found = expected.find(name);
    if (found == expected.end() || !parameter.grad().defined() || parameter.shape() != found->second.shape())
      continue;
    ++row.compared;
    row.gradient = std::max(row.gradient, relative_error(parameter.grad(), found->second, 1e-4 * largest));
  }
  row.gradients = expected.size();
  // An epoch of ten steps.
  net.train();
  optim::AdamW adam(net.parameters(), {.lr = 1e-4});
  for (int step = 0; step < 10; ++step) {
    const Tensor loss = mean(square(net(x) - 1));
    adam.zero_grad();
    loss.backward();
    adam.step();
    (step == 0 ? row.first_loss : row.last_loss) = loss.item();
  }
  net.eval();
  try {
    const TemporaryDirectory out;
    onnx::export_onnx(out / "net.onnx", net, x);
    onnx::ImportedNetwork again = onnx::import_onnx(out / "net.onnx");
    again.eval();
    const NoGrad off;
    row.back = relative_error(again(x), net(x)) < 1e-5 ? "yes" : "differs";
  } catch (const Error& error) {
    row.back = "no: " + std::string(error.what()).substr(0, 120);
  }
  return row;
}

}  // namespace

TEST_CASE("networks of PyTorch compute, and have the gradients, that PyTorch has", "[onnx][networks][cpu]") {
  const TemporaryDirectory made;
  const char* given = std::getenv("PLEAT_TEST_NETWORKS");
  if (given == nullptr) {
    if (onnxruntime_python() == nullptr) return skip("needs a Python with torch, see PLEAT_TEST_PYTHON");
    const std::string script = std::string(PLEAT_SOURCE_DIR) + "/tests/onnx/export_networks.py";
    const std::string command =
        std::string(onnxruntime_python()) + " '" + script + "' '" + made.path().string() + "'";
    if (std::system((command + " >/dev/null").c_str()) != 0) return skip("needs torch and torchvision");
  }
  std::ofstream table;
  if (const char* file = std::getenv("PLEAT_WRITE_NETWORKS")) table.open(file);
  std::map<std::string, fs::path> folders;
  for (const auto& entry : fs::directory_iterator(given == nullptr ? made.path() : fs::path(given)))
    folders.emplace(entry.path().filename().string(), entry.path());
  for (const auto& [name, folder] : folders) {
    INFO(name);
    Row row;
    CHECK_NOTHROW(row = row_of(folder));
    CHECK(row.output < 1e-5);
    CHECK(row.gradient < 1e-4);
    CHECK(row.last_loss < row.first_loss);
    table << fmt::format("| {} | {:.0e} | {:.0e} ({} of {}) | {:.3g} -> {:.3g} | {} |\n", row.name,
                         row.output, row.gradient, row.compared, row.gradients, row.first_loss, row.last_loss,
                         row.back)
          << std::flush;
  }
}
