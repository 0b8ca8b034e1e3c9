#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/nn/module.h"
#include "pleat/onnx/export.h"
#include "pleat/tests/temporary_directory.h"

/// Exports and runs them by onnxruntime, in a Python that PLEAT_TEST_PYTHON names.

namespace pleat_test {

/// Null where there is no such Python with onnxruntime and onnx.
const char* onnxruntime_python();

class OnnxRuntime {
 public:
  using Function = std::function<std::vector<pleat::Tensor>(const std::vector<pleat::Tensor>&)>;

  /// Exports a function for `examples`, and computes it for these and for `others`. Floating results may
  /// differ by `tolerance` of the largest.
  void add(const std::string& name, pleat::nn::Module& net, const Function& function,
           const std::vector<pleat::Tensor>& examples, const std::vector<pleat::Tensor>& others,
           const pleat::onnx::ExportOptions& options = {}, double tolerance = 2e-5);
  /// The same of the file that `write` writes.
  void add_file(const std::string& name, const std::function<void(const std::filesystem::path&)>& write,
                const Function& function, const std::vector<pleat::Tensor>& examples,
                const std::vector<pleat::Tensor>& others, double tolerance = 2e-5);

  /// Checks all files by onnx.checker, runs them, and returns what does not agree; empty: all does.
  std::string run() const;

 private:
  TemporaryDirectory folder_;
};

}  // namespace pleat_test
