#pragma once

#include "pleat/nn/module.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/pool/pool.h"

/// Pooling modules; options, formulas and errors: ops/pool/pool_kernels.h.

namespace pleat::nn {

namespace detail {
std::string pool_options_text(const MaxPoolOptions& options);
std::string pool_options_text(const AvgPoolOptions& options);
std::string pool_options_text(const LpPoolOptions& options);
std::string pool_options_text(const AdaptivePoolOptions& options);
std::string pool_options_text(const MaxUnpoolOptions& options);
}  // namespace detail

/// A module around a pooling function with options.
template <class Options, Tensor (*function)(const Tensor&, const Options&)>
class Pool : public Module {
 public:
  Pool(const char* name, Options options_) : options(std::move(options_)), name_(name) {}
  Tensor forward(const Tensor& x) override { return function(x, options); }
  std::string type_name() const override { return name_; }
  std::string options_text() const override { return detail::pool_options_text(options); }

  Options options;

 private:
  const char* name_;
};

struct MaxPool1d : Pool<MaxPoolOptions, max_pool1d> {
  explicit MaxPool1d(MaxPoolOptions pool) : Pool("MaxPool1d", std::move(pool)) {}
};
struct MaxPool2d : Pool<MaxPoolOptions, max_pool2d> {
  explicit MaxPool2d(MaxPoolOptions pool) : Pool("MaxPool2d", std::move(pool)) {}
};
struct MaxPool3d : Pool<MaxPoolOptions, max_pool3d> {
  explicit MaxPool3d(MaxPoolOptions pool) : Pool("MaxPool3d", std::move(pool)) {}
};
struct AvgPool1d : Pool<AvgPoolOptions, avg_pool1d> {
  explicit AvgPool1d(AvgPoolOptions pool) : Pool("AvgPool1d", std::move(pool)) {}
};
struct AvgPool2d : Pool<AvgPoolOptions, avg_pool2d> {
  explicit AvgPool2d(AvgPoolOptions pool) : Pool("AvgPool2d", std::move(pool)) {}
};
struct AvgPool3d : Pool<AvgPoolOptions, avg_pool3d> {
  explicit AvgPool3d(AvgPoolOptions pool) : Pool("AvgPool3d", std::move(pool)) {}
};
struct LPPool1d : Pool<LpPoolOptions, lp_pool1d> {
  explicit LPPool1d(LpPoolOptions pool) : Pool("LPPool1d", std::move(pool)) {}
};
struct LPPool2d : Pool<LpPoolOptions, lp_pool2d> {
  explicit LPPool2d(LpPoolOptions pool) : Pool("LPPool2d", std::move(pool)) {}
};
struct LPPool3d : Pool<LpPoolOptions, lp_pool3d> {
  explicit LPPool3d(LpPoolOptions pool) : Pool("LPPool3d", std::move(pool)) {}
};
struct AdaptiveMaxPool1d : Pool<AdaptivePoolOptions, adaptive_max_pool1d> {
  explicit AdaptiveMaxPool1d(AdaptivePoolOptions pool) : Pool("AdaptiveMaxPool1d", std::move(pool)) {}
};
struct AdaptiveMaxPool2d : Pool<AdaptivePoolOptions, adaptive_max_pool2d> {
  explicit AdaptiveMaxPool2d(AdaptivePoolOptions pool) : Pool("AdaptiveMaxPool2d", std::move(pool)) {}
};
struct AdaptiveMaxPool3d : Pool<AdaptivePoolOptions, adaptive_max_pool3d> {
  explicit AdaptiveMaxPool3d(AdaptivePoolOptions pool) : Pool("AdaptiveMaxPool3d", std::move(pool)) {}
};
struct AdaptiveAvgPool1d : Pool<AdaptivePoolOptions, adaptive_avg_pool1d> {
  explicit AdaptiveAvgPool1d(AdaptivePoolOptions pool) : Pool("AdaptiveAvgPool1d", std::move(pool)) {}
};
struct AdaptiveAvgPool2d : Pool<AdaptivePoolOptions, adaptive_avg_pool2d> {
  explicit AdaptiveAvgPool2d(AdaptivePoolOptions pool) : Pool("AdaptiveAvgPool2d", std::move(pool)) {}
};
struct AdaptiveAvgPool3d : Pool<AdaptivePoolOptions, adaptive_avg_pool3d> {
  explicit AdaptiveAvgPool3d(AdaptivePoolOptions pool) : Pool("AdaptiveAvgPool3d", std::move(pool)) {}
};

/// A module of two inputs: what a max pool gave, and the indices of max_pool_with_indices.
template <Tensor (*function)(const Tensor&, const Tensor&, const MaxUnpoolOptions&)>
class MaxUnpool : public Module {
 public:
  MaxUnpool(const char* name, MaxUnpoolOptions options_) : options(std::move(options_)), name_(name) {}
  using Module::forward;
  Tensor forward(const Tensor& x, const Tensor& indices) {
    const RecordForward range(*this, x, indices);
    return range.run([&] { return function(x, indices, options); });
  }
  std::string type_name() const override { return name_; }
  std::string options_text() const override { return detail::pool_options_text(options); }

  MaxUnpoolOptions options;

 private:
  const char* name_;
};

struct MaxUnpool1d : MaxUnpool<max_unpool1d> {
  explicit MaxUnpool1d(MaxUnpoolOptions pool) : MaxUnpool("MaxUnpool1d", std::move(pool)) {}
};
struct MaxUnpool2d : MaxUnpool<max_unpool2d> {
  explicit MaxUnpool2d(MaxUnpoolOptions pool) : MaxUnpool("MaxUnpool2d", std::move(pool)) {}
};
struct MaxUnpool3d : MaxUnpool<max_unpool3d> {
  explicit MaxUnpool3d(MaxUnpoolOptions pool) : MaxUnpool("MaxUnpool3d", std::move(pool)) {}
};

}  // namespace pleat::nn
