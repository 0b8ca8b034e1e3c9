#pragma once

#include "pleat/autograd/functions/pool.h"
#include "pleat/nn/module.h"

/// Pooling modules; options, formulas and errors: ops/pool/pool.h.

namespace pleat::nn {

/// A module around a pooling function with options.
template <class Options, Tensor (*function)(const Tensor&, const Options&)>
class Pool : public Module {
 public:
  Pool(const char* name, Options options_) : options(std::move(options_)), name_(name) {}
  Tensor forward(const Tensor& x) override { return function(x, options); }
  std::string type_name() const override { return name_; }
  std::string options_text() const override;

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

namespace detail {
std::string pool_options_text(const PerDim& size, const PerDim* stride, const Padding* padding);
}

template <class Options, Tensor (*function)(const Tensor&, const Options&)>
std::string Pool<Options, function>::options_text() const {
  if constexpr (requires { options.kernel_size; })
    return detail::pool_options_text(options.kernel_size, &options.stride, &options.padding);
  else
    return detail::pool_options_text(options.output_size, nullptr, nullptr);
}

}  // namespace pleat::nn
