#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "pleat/core/tensor/dtype.h"
#include "pleat/dist/communicator.h"
#include "pleat/nn/module.h"

namespace pleat::dist {

struct DataParallelOptions {
  /// The dimension of the network's input that counts samples: 1 for sequences [length, N, features].
  int64_t batch_dim = 0;
  /// Gradients are reduced in parts of this size, so that the reduction begins while backward still computes.
  double bucket_megabytes = 25;
  /// The size of the part that is ready first, which is smaller so that it begins early.
  double first_bucket_megabytes = 1;
  /// The half type to which gradients are rounded for the reduction, which then moves half the bytes.
  std::optional<DType> reduce_dtype = {};
  /// Whether buffers (running statistics) are those of rank 0 after each backward.
  bool broadcast_buffers = true;
};

/// Trains one network by several processes, each with its part of the batch: after backward all ranks have
/// the gradient of the mean over all samples, so optimisers make the same step everywhere.
///
///   dist::Communicator world = dist::init();
///   dist::DataParallel ddp{net, world};
///   for (const data::Batch& batch : loader) {        // of .rank = world.rank(), .world_size = world.size()
///     cross_entropy(ddp(batch.inputs), batch.targets).backward();
///     adam.step();
///     adam.zero_grad();
///   }
///
/// The network's parameters may be used directly, too (optimisers, checkpoints): this class only watches
/// their gradients. A gradient is complete when backward() returns, in memory that the next backward writes
/// again.
///
/// Gradients are averaged with the ranks' shares of the samples as weights, for a loss that is the mean over
/// the rank's samples: batches need not be equally large. A parameter that no rank used has no gradient; one
/// that some have used counts as 0 on the others. torch.nn.parallel.DistributedDataParallel is the same with
/// equal weights. Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB
/// 2020, describes the buckets.
///
/// In a job of one process it does nothing.
class DataParallel : public nn::Module {
 public:
  /// Compares the networks of all ranks, and gives all of them the values of rank 0. Refers to the network,
  /// which must stay where it is. Throws DistError, naming rank and parameter, where they differ; ValueError
  /// for bucket sizes not above 0 or above 2^20 MB, a reduce_dtype that is no half type, and a network that
  /// another DataParallel has.
  DataParallel(nn::Module& net, Communicator world, DataParallelOptions options = {});
  ~DataParallel() override;
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// The network's forward, and the share that x has of all ranks' samples. Throws ShapeError where x lacks
  /// batch_dim.
  Tensor forward(const Tensor& x) override;
  /// The same for a network that is called otherwise: `y = ddp.weighted(net(x, mask), x.size(0))`. `samples`
  /// are those of this rank. Returns y with a gradient that is multiplied by samples * ranks / (samples of
  /// all).
  Tensor weighted(const Tensor& y, int64_t samples);
  void members(nn::Members& m) override { m("module", net_); }
  std::string type_name() const override { return "DataParallel"; }
  std::string options_text() const override;

  /// In its scope backward() only accumulates this rank's gradients, and the first one after it reduces them
  /// all.
  class NoSync {
   public:
    explicit NoSync(DataParallel& of);
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DataParallel& of_;
    bool before_;
  };
  /// For gradient accumulation: `const auto accumulate = ddp.no_sync();`.
  NoSync no_sync() { return NoSync(*this); }

  const Communicator& world() const { return world_; }
  /// Parts in which gradients are reduced.
  int64_t num_buckets() const;

 private:
  class Reducer;

  nn::Module& net_;
  Communicator world_;
  DataParallelOptions options_;
  std::shared_ptr<Reducer> reducer_;  ///< null: one process alone
};

}  // namespace pleat::dist
