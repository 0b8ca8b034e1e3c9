#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/nn/module.h"
#include "pleat/onnx/export.h"
#include "pleat/tests/temporary_directory.h"

/// Exports that are read again: by Pleat (onnx/import.h), and by onnxruntime, where PLEAT_TEST_PYTHON names a
/// Python that has it.

namespace pleat_test {

/// Null where there is no such Python with onnxruntime and onnx.
const char* onnxruntime_python();

class ExportCheck {
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

  /// What did not agree where Pleat read the files; then checks them by onnx.checker and runs them by
  /// onnxruntime. Empty: all agrees.
  std::string run() const;

 private:
  TemporaryDirectory folder_;
  std::string differences_;
};

}  // namespace pleat_test
