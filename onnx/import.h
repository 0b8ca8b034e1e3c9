#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/files/read_options.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/module.h"

/// Networks from ONNX files (https://onnx.ai), which PyTorch, TensorFlow and other programs write: to train
/// on, to compute with, and to export again. docs/onnx.md has an example, and what can be read.

namespace pleat::onnx {

/// An input or output of an imported network.
struct TensorInfo {
  std::string name;
  DType dtype;
  /// Of each dimension its size, or the name of one that is free ("batch"), or "?"; empty: not said.
  std::vector<std::string> shape;
};

/// The network of an ONNX file. It has the file's weights as parameters under their names, what batch norms
/// have counted as buffers, and trains as any module does: batch norms by the statistics of the batch, and
/// dropout drops, where the file has them. It is called with one input, or with a list of all of them, in the
/// file's order. Copies share the parameters.
///
///   onnx::ImportedNetwork net = onnx::import_onnx("resnet18.onnx");
///   net.replace("fc", nn::Linear{{.in_features = 512, .out_features = 10}});
///   net.requires_grad_("layer1", false);
///
/// A part is what one name stands for: a node ("/fc/Gemm"), or a module of the network that was exported
/// ("layer1"), as far as the names of nodes and weights, or the notes of PyTorch's exporter, tell it.
class ImportedNetwork : public nn::Module {
 public:
  ~ImportedNetwork() override;
  ImportedNetwork(const ImportedNetwork& other);
  ImportedNetwork(ImportedNetwork&&) noexcept;
  ImportedNetwork& operator=(const ImportedNetwork& other);
  ImportedNetwork& operator=(ImportedNetwork&&) noexcept;

  using Module::operator();
  using Module::requires_grad_;

  /// Of a network of one input; its first output. Throws what the functions throw, naming the node;
  /// ShapeError, DTypeError, ValueError for inputs that are not the file's.
  Tensor forward(const Tensor& x) override;
  /// All inputs, and all outputs.
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs);
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) { return forward(inputs); }

  void members(nn::Members& m) override;
  std::string type_name() const override { return "ImportedNetwork"; }
  std::string options_text() const override;

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  /// Texts that the file keeps, by key.
  const std::map<std::string, std::string>& metadata() const;
  /// The names of all parts, each before those inside it.
  std::vector<std::string> parts() const;

  /// Puts a module, in the network's mode, in the place of a part that has one input beside its weights, and
  /// one output. Throws ValueError where there is no such part, saying which there are, and where it has
  /// more.
  ImportedNetwork& replace(const std::string& part, nn::AnyModule module);
  /// The network up to a part, whose output it gives: features. It shares the parameters. Throws as replace.
  ImportedNetwork until(const std::string& part) const;
  /// Freezes the parameters of a part, or thaws them. Throws ValueError where there are none.
  void requires_grad_(const std::string& part, Flag requires_grad);

 private:
  struct State;
  friend ImportedNetwork import_onnx(const std::filesystem::path& file, ReadOptions options);
  explicit ImportedNetwork(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Reads an ONNX file of opset 7 or newer, with weights that lie in files beside it, to the default device.
/// Whatever the graph says of sizes is computed as it runs, so that those that the file leaves free stay
/// free; branches and loops, too, may depend on the input. Graphs of integers of 4 and 8 bits are computed in
/// floating numbers. Throws
/// - ValueError for a graph that is none, and one that lists all operators that Pleat does not know, with
///   their nodes;
/// - FileError, naming the file, where it cannot be read, is damaged, holds a type that Pleat does not have,
///   or names weights outside of its folder; what an operator finds wrong names the node.
/// A file may be replaced while it is read, but not cut.
ImportedNetwork import_onnx(const std::filesystem::path& file, ReadOptions options = {});

}  // namespace pleat::onnx
