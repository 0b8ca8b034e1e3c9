#pragma once

#include <functional>
#include <optional>

#include "pleat/core/base/required.h"
#include "pleat/nn/layer.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/spatial/bounds.h"

namespace pleat::nn {

struct BatchNormModuleOptions {
  Required<int64_t> num_features;
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: running statistics are the average over all batches
  bool affine = true;                    ///< weight and bias
  bool track_running_stats = true;       ///< else the batch's statistics are used in evaluation, too
  Bounds bounds = {};                    ///< of the result: {.min = 0} is a ReLU; see pleat::BatchNormOptions
  std::string implementation = {};       ///< of both passes; empty: see pleat::BatchNormOptions
};

/// A function like pleat::batch_norm.
using BatchNormFunction = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                               const Tensor& running_mean, const Tensor& running_var,
                                               const BatchNormOptions& options)>;

/// A batch or instance norm of `dims` spatial dimensions: what it learns, and what it notes of its inputs.
class RunningNorm : public WeightAndBias<Module> {
 public:
  void members(Members& m) override;
  std::string type_name() const override { return name_ + std::to_string(dims_) + "d"; }

  Tensor running_mean, running_var;
  Tensor num_batches_tracked;  ///< int64

 protected:
  template <class Options>
  RunningNorm(const char* name, int dims, const Options& o);

  const char* name_;
  int dims_;
};

/// What BatchNorm1d, BatchNorm2d and BatchNorm3d share.
class BatchNormModule : public RunningNorm {
 public:
  Tensor forward(const Tensor& x) override;
  /// With a residual, which may be undefined, and bounds in the same passes over memory (see
  /// BatchNormOptions): relu(norm(x) + shortcut) is `norm.forward(x, shortcut, {.min = 0})`.
  Tensor forward(const Tensor& x, const Tensor& residual, const Bounds& bounds);
  /// The same for conv_norm_act and norm_act_conv: `norm.operands(shortcut, {.min = 0})`. Throws Error where
  /// `function` is set, which these do not call.
  BatchNormOperands operands(const Tensor& residual = {}, const Bounds& bounds = {}) const;
  /// Throws ShapeError unless x has the rank that forward takes.
  void check_rank(const Tensor& x) const;
  std::string options_text() const override;

  BatchNormModuleOptions options;
  BatchNormFunction function;  ///< called instead of pleat::batch_norm; dist::convert_sync_batch_norm sets it

 protected:
  BatchNormModule(int dims, BatchNormModuleOptions o);

 private:
  Tensor call(const Tensor& x, const BatchNormOptions& o) const;
  BatchNormOptions call_options(const Tensor& residual, const Bounds& bounds) const;
};

/// Batch normalisation of [N, C, spatial...] with `dims` spatial dimensions (1: also [N, C]); see
/// ops/norm/batch_norm.h. weight starts as 1, bias as 0, running_mean as 0 and running_var as 1. forward
/// throws ShapeError for another rank.
template <int dims>
struct BatchNorm : BatchNormModule {
  explicit BatchNorm(BatchNormModuleOptions o) : BatchNormModule(dims, std::move(o)) {}
};

using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;

struct LayerNormModuleOptions {
  Required<Sizes> normalized_shape;  ///< of the last dimensions: 64, or {32, 8}
  double eps = 1e-5;
  bool elementwise_affine = true;  ///< weight and bias
  bool bias = true;                ///< with a weight
};

/// Normalises the last dimensions of x; see ops/norm/norm.h. weight starts as 1, bias as
/// 0, both of the normalised shape. Throws ValueError for invalid options.
class LayerNorm : public WeightAndBias<Layer<"LayerNorm", LayerNormModuleOptions>> {
 public:
  explicit LayerNorm(LayerNormModuleOptions o);
  Tensor forward(const Tensor& x) override;
  std::string options_text() const override;
};

struct RMSNormModuleOptions {
  Required<Sizes> normalized_shape;          ///< of the last dimensions
  std::optional<double> eps = std::nullopt;  ///< none: the epsilon of the input's type
  bool elementwise_affine = true;
};

/// Divides by the root mean square over the last dimensions; see rms_norm. weight has their shape and starts
/// as 1.
class RMSNorm : public Layer<"RMSNorm", RMSNormModuleOptions> {
 public:
  /// Throws ValueError unless the sizes are at least 1 and eps above 0 and finite.
  explicit RMSNorm(RMSNormModuleOptions o);
  Tensor forward(const Tensor& x) override;
  void members(Members& m) override { m("weight", weight); }
  std::string options_text() const override;

  Tensor weight;
};

/// Divides by what the channels around have; see local_response_norm. Throws ValueError unless size is at
/// least 1 and the others finite.
using LocalResponseNorm = FunctionLayer<"LocalResponseNorm", local_response_norm>;

struct GroupNormModuleOptions {
  Required<int64_t> num_groups;
  Required<int64_t> num_channels;
  double eps = 1e-5;
  bool affine = true;
};

/// Normalises groups of channels of each image [N, C] or [N, C, spatial...]; see ops/norm/group_norm.h.
/// weight [C] starts as 1, bias [C] as 0. Throws ValueError unless num_groups divides num_channels.
class GroupNorm : public WeightAndBias<Layer<"GroupNorm", GroupNormModuleOptions>> {
 public:
  explicit GroupNorm(GroupNormModuleOptions o);
  Tensor forward(const Tensor& x) override;
  std::string options_text() const override;
};

struct InstanceNormModuleOptions {
  Required<int64_t> num_features;
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;  ///< and use them in evaluation
};

/// What InstanceNorm1d, InstanceNorm2d and InstanceNorm3d share.
class InstanceNormModule : public RunningNorm {
 public:
  Tensor forward(const Tensor& x) override;
  std::string options_text() const override;

  InstanceNormModuleOptions options;

 protected:
  InstanceNormModule(int dims, InstanceNormModuleOptions o);
};

/// Normalises each channel of each image [N, C, spatial...] with `dims` spatial dimensions; see
/// ops/norm/group_norm.h. forward throws ShapeError for another rank.
template <int dims>
struct InstanceNorm : InstanceNormModule {
  explicit InstanceNorm(InstanceNormModuleOptions o) : InstanceNormModule(dims, std::move(o)) {}
};

using InstanceNorm1d = InstanceNorm<1>;
using InstanceNorm2d = InstanceNorm<2>;
using InstanceNorm3d = InstanceNorm<3>;

namespace detail {
void check_options(LayerName layer, const LocalResponseNormOptions& options);
std::string text_of_options(LayerName, const LocalResponseNormOptions& options);
}  // namespace detail

}  // namespace pleat::nn
