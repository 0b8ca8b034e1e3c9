#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "pleat/core/graph/cuda_graph.h"
#include "pleat/core/tensor/dtype.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/data/dataset.h"
#include "pleat/nn/module.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/optimizer.h"
#include "pleat/train/finite.h"

namespace pleat::train {

struct StepOptions {
  /// The half type of mixed precision (autograd/autocast.h); with float16 the loss is scaled.
  std::optional<DType> autocast = {};
  /// So many batches make one update, with the mean of their gradients.
  int64_t accumulate = 1;
  /// The largest norm of all gradients together (nn/optim/clip_grad.h).
  std::optional<double> clip_grad_norm = {};
  /// On a GPU: the step is captured once and replayed (core/graph/cuda_graph.h).
  bool cuda_graph = false;
};

/// Steps of a training: forward, loss, backward, update. Losses are watched: NotFiniteError says
/// where the first that is not finite came from (train/finite.h).
///
///   train::Step step{net, adam, [](const Tensor& y, const Tensor& t) { return cross_entropy(y, t); }};
///   for (const data::Batch& batch : loader) {
///     step.run({.epoch = epoch, .step = loader.batch(), .lr = adam.lr()}, batch);
///     if (step.updated()) schedule.step();
///   }
///   if (step.finish()) schedule.step();
class Step {
 public:
  using Loss = std::function<Tensor(const Tensor& output, const Tensor& targets)>;

  /// Refers to network and optimiser, which must stay where they are. Throws ValueError unless
  /// accumulate is at least 1, and for one above 1 with cuda_graph.
  Step(nn::Module& net, optim::Optimizer& optimizer, Loss loss, StepOptions options = {});

  /// Throws Error when the network as a whole is in evaluation mode (parts of it may be), NotFiniteError,
  /// and what network, loss and optimiser throw.
  void run(const StepPlace& place, const data::Batch& batch);
  /// Whether the last batch completed an update. A checkpoint between updates would lose gradients.
  bool updated() const { return pending_ == 0; }
  /// At the end of an epoch: waits until all losses are known to be finite, and makes an update of
  /// the gradients that are left. Whether it made one.
  bool finish();

  /// Of the last batch, off the tape. With a CUDA graph the next step overwrites them.
  Tensor loss() const { return loss_.detach(); }
  Tensor output() const { return output_.detach(); }
  /// A part of checkpoints.
  optim::GradScaler& scaler() { return scaler_; }

 private:
  template <class Watch>
  void train(const data::Batch& batch, const Watch& watch);
  void train_by_graph(const data::Batch& batch);
  void update();

  nn::Module& net_;
  optim::Optimizer& optimizer_;
  Loss loss_of_;
  StepOptions options_;
  optim::GradScaler scaler_;
  LossWatch watch_;
  int64_t pending_ = 0;  ///< batches since the last update
  Tensor loss_, output_;
  data::Batch static_;  ///< the batch that the graph reads
  std::optional<CudaGraph> graph_;
  Tensor loss_of_graph_, output_of_graph_;
};

}  // namespace pleat::train
