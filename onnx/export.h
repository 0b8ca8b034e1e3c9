#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/module.h"

/// Networks as ONNX files (https://onnx.ai), which onnxruntime and other programs compute. docs/onnx.md has
/// an example, and what can be written.

namespace pleat::onnx {

struct ExportOptions {
  /// One for each input and output of the graph; empty: "input" and "output", of several "input_0" ...
  std::vector<std::string> input_names = {};
  std::vector<std::string> output_names = {};
  /// The dimension of the inputs that is the batch, of which the file then takes any size: one for all inputs
  /// or one for each, -1 for an input without. Empty: the file takes the example's size alone.
  IntegerList batch_dims = 0;
  /// Texts that the file keeps, by key: names of classes, say.
  std::map<std::string, std::string> metadata = {};
};

/// Writes what `net` computes in evaluation mode as an ONNX file of opset 18. The forward runs three times,
/// for the example and for variations of it; the functions that it calls become the graph's nodes.
/// Initializers have the names of state_dict(), and nodes those of the modules. What the forward decides by
/// numbers it reads (item()) is fixed as the example has it. Throws, and leaves no file:
/// - ValueError for a function that ONNX has no form for, or whose way the export cannot follow; for a
/// forward
///   that depends on the size of the batch in a way that a graph cannot; for names that do not fit; for 2 GB
///   of weights;
/// - what the forward throws; FileError where the file cannot be written.
void export_onnx(const std::filesystem::path& file, nn::Module& net, const Tensor& example,
                 const ExportOptions& options = {});

/// The same of a function of several inputs and outputs that calls `net`, the owner of its parameters:
///
///   export_onnx("lstm.onnx", lstm, {x, h, c}, [&](const auto& in) {
///     const RecurrentResult y = lstm.forward(in[0], {.h = in[1], .c = in[2]});
///     return std::vector{y.output, y.h, y.c};
///   }, {.batch_dims = 1});
void export_onnx(const std::filesystem::path& file, nn::Module& net, const std::vector<Tensor>& examples,
                 const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                 const ExportOptions& options = {});

/// The same of a function without a module: what it captures becomes constants.
void export_onnx(const std::filesystem::path& file, const std::vector<Tensor>& examples,
                 const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                 const ExportOptions& options = {});

}  // namespace pleat::onnx
