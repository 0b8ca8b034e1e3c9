#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/dist/communicator.h"
#include "pleat/dist/data_parallel.h"
#include "pleat/nn/optim/optimizer.h"

namespace pleat::dist {

/// An optimiser whose state is spread over the ranks: each updates its part of the parameters, and gives it
/// to the others. So the state takes 1 / ranks of the memory, and the update of the time.
///
///   dist::DataParallel ddp{net, world};
///   dist::ShardedOptimizer adam{ddp, optim::Adam{net.parameters(), {.lr = 1e-3}}};
///
/// Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", 2020, stage 1.
/// Gradients are whole on all ranks, as DataParallel leaves them, so that clipping and GradScaler do the same
/// as with any optimiser. The elements of a parameter may belong to several ranks; a parameter of an
/// optimiser that needs it as a whole (Muon) belongs to one.
///
/// The constructor, step() and state_dict() are calls of all ranks, and so are save() and load() of
/// train::Checkpoints, which take the state. It is that of the optimiser inside, so a run may be resumed
/// without a ShardedOptimizer, or by another number of ranks. For parameters with different optimisers, give
/// MultiOptimizer several of these.
///
/// step() throws DistError, and Error when the network was converted, moved or laid out otherwise since the
/// constructor, and in a CUDA graph.
class ShardedOptimizer : public optim::Optimizer {
 public:
  /// Takes the optimiser over, with the state that it has. Throws ValueError when one of its parameters is
  /// not in the network of `ddp`, so that its gradients would not be averaged, or has gaps in its memory.
  /// Throws DistError where the optimisers of the ranks differ in their kind, parameters, groups or rates.
  template <std::derived_from<optim::ParameterwiseOptimizer> Inner>
  ShardedOptimizer(DataParallel& ddp, Inner inner)
      : ShardedOptimizer(
            ddp, std::unique_ptr<optim::ParameterwiseOptimizer>(std::make_unique<Inner>(std::move(inner)))) {}

  /// The optimiser inside, for its options. Its own parameters are this rank's parts: make no steps with it.
  optim::ParameterwiseOptimizer& inner();

  /// Elements whose state this rank has.
  int64_t num_own_elements() const;

  std::vector<Tensor> parameters() const override;
  std::size_t num_groups() const override;
  /// The state of all ranks, on the CPU.
  nn::StateDict state_dict() const override;

 protected:
  GroupPlace find(std::size_t group) const override;
  void check_options() const override;
  bool has_gradient() const override;
  void update_parameters(const std::vector<Tensor>& found) override;
  std::string state_problems(const nn::StateDict& state) const override;
  void take_state(const nn::StateDict& state) override;

 private:
  ShardedOptimizer(DataParallel& ddp, std::unique_ptr<optim::ParameterwiseOptimizer> inner);

  /// Parameters of one type on one device, as one row of elements.
  struct Row {
    DType dtype;
    Device device;
    std::vector<std::size_t> members = {};  ///< numbers of the parameters
    std::vector<int64_t> starts = {};       ///< of each member
    std::vector<int64_t> bounds = {};       ///< rank r has the elements from bounds[r] to bounds[r + 1]
    int64_t size = 0;                       ///< elements
  };
  /// Elements of one parameter, in the order of its memory.
  struct Piece {
    std::size_t param;
    int64_t begin, end;
  };

  /// What all ranks must have alike.
  std::string text(DataParallel& ddp) const;
  /// Throws Error when a parameter does not lie in memory as it did in the constructor.
  void check_unchanged() const;
  void make_rows();
  /// The parts of parameters between two places of a row, in its order.
  std::vector<Piece> pieces(const Row& row, int64_t begin, int64_t end) const;
  /// Those of a rank in all rows.
  std::vector<Piece> pieces_of(int rank) const;
  /// What the optimiser inside sees of a parameter, its gradient or state: the elements in a row, or, where
  /// it needs the whole, all of it in its shape.
  Tensor part(const Tensor& param, const Piece& piece) const;
  /// Makes the optimiser inside work on this rank's parts.
  void put_own_parts() const;
  /// Gives all ranks the elements that each has updated.
  void gather(const Row& row) const;

  Communicator world_;
  std::unique_ptr<optim::ParameterwiseOptimizer> inner_;
  std::vector<Tensor> params_;
  std::vector<Tensor> as_made_;  ///< the parameters' memory in the constructor
  std::vector<Row> rows_;
};

}  // namespace pleat::dist
