#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/module.h"

/// Networks that are done training, made fast to call. docs/inference.md has an example.

namespace pleat {

struct InferenceOptions {
  /// The dimension of the inputs that is the batch, as in onnx::ExportOptions: one for all, or one for each,
  /// -1 for an input without. The network's forward then runs for batches of 1, 2 and 4, and plans for all
  /// sizes follow from that. Empty: it runs for each size that is met.
  IntegerList batch_dims = 0;
  /// Times the implementations of each convolution where a plan is made; else takes the one that says that it
  /// costs least.
  bool measure = true;
  /// Plans on a GPU are one CUDA graph each, where all inputs are on it and no function makes the host wait
  /// (CudaGraph; `summary` tells).
  bool cuda_graph = true;
  /// The most plans that are kept, one for each set of input shapes; beyond, the one that was called least
  /// recently goes. At least 1.
  Integer most_plans = 8;
  /// Examples, each a list of inputs, by which int8 is introduced; some 100 that are like what is to come are
  /// enough. Empty: the engine computes in the network's types. Else convolutions, linear layers and products
  /// with constant matrices of a float32 network on the CPU compute in int8: their weights are held as int8
  /// with a scale for each output channel, what they read as uint8 with one scale and zero point. The ranges
  /// are those of the least squared error over the examples. What lies between such layers, with additions,
  /// limits, max_pool and what only moves numbers, stays uint8. All else computes in float32, and `summary`
  /// tells which is which. The engine does not keep the examples. About 1% of rounding, as `difference`
  /// tells, is usual.
  std::vector<std::vector<Tensor>> calibration = {};
};

/// What a network computes in evaluation mode, as plans: lists of calls in which batch norms are folded into
/// the convolutions and linear layers before them, activations and additions are computed while a result is
/// in a cache, what depends on parameters alone is computed once, and weights lie as the kernels read them.
///
///   Inference engine(net, example);   // float32 images [1, 3, 224, 224], say
///   Tensor y = engine(x);             // what net(x) is in evaluation mode, but for rounding
///
/// A plan is for inputs of certain shapes and types, and is made at the first call with them, of the calls
/// that the network's forward makes. A forward that cannot be followed (docs/inference.md), such as one that
/// decides by numbers it reads (item()) or has hooks, is run as it is, and `summary` says why. For what
/// depends on the size of the batch in another way than sizes do, see `batch_dims`. The parameters are those
/// of the construction: a network that trains on needs another engine.
///
/// The network must outlive the engine. Threads may call an engine at once, and they share its weights; while
/// a plan is made, or a network runs as it is, the network must not be used elsewhere.
class Inference {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

  /// A network of one input and one output, and the plan for the example. Throws what the forward throws;
  /// ValueError for options out of range, and for batch_dims that are no dimensions of the examples; with
  /// `calibration` also where its examples are none of the network's inputs or take different ways through
  /// it, where inputs or parameters are of another floating type than float32 or on a GPU, and where a plan
  /// cannot follow the forward.
  Inference(nn::Module& net, const Tensor& example, const InferenceOptions& options = {});
  /// A function of several inputs and outputs that calls `net`.
  Inference(nn::Module& net, const std::vector<Tensor>& examples, Function function,
            const InferenceOptions& options = {});
  ~Inference();
  Inference(Inference&&) noexcept;
  Inference& operator=(Inference&&) noexcept;

  /// The output, off the tape. Throws what the forward throws for inputs that do not fit; Error where a new
  /// plan is needed and parameters have changed since the construction, under Autocast and in
  /// nn::KeyValueCache::run.
  Tensor operator()(const Tensor& input) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;

  /// The largest |engine - network| over all outputs, divided by the largest |network|: how much the engine
  /// rounds in another way. Throws as a call, and Error for an engine from a file.
  double difference(const std::vector<Tensor>& inputs) const;

  /// The plans as text: each call with what was folded into it, the implementation of convolutions, and what
  /// is left as it was.
  std::string summary() const;

  /// Writes the engine to a safetensors file, from which `load` makes it again without the network: what the
  /// network computes, with all plans that there are, weights as tensors that other programs can read, and,
  /// for processors like this one, as the kernels read them. Throws Error, saying why, for an engine on a
  /// GPU, for a network that runs as it is, and where parameters have changed since the construction;
  /// FileError where the file cannot be written.
  void save(const std::filesystem::path& path) const;
  /// Maps the file: processes that load it share its memory. Its plans are ready; others are made when they
  /// are met, as far as the batch is concerned, and for other sizes a call throws ValueError. On another kind
  /// of processor weights are prepared and implementations chosen anew, as `summary` says. A file may be
  /// replaced meanwhile (`save` does), but not cut or overwritten in its place. Throws FileError, naming the
  /// file, for one that is no engine, damaged, or of a newer version; a damage that only a call finds is a
  /// ValueError of it.
  static Inference load(const std::filesystem::path& path);

 private:
  struct State;
  explicit Inference(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pleat
