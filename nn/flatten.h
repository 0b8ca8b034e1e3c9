#pragma once

#include "pleat/core/base/required.h"
#include "pleat/nn/module.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::nn {

struct FlattenOptions {
  int64_t first = 1;
  int64_t last = -1;
};

/// Joins dimensions `first` to `last` into one: [N, C, H, W] to [N, C * H * W].
class Flatten : public Module {
 public:
  explicit Flatten(FlattenOptions options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& x) override { return flatten(x, options.first, options.last); }
  std::string type_name() const override { return "Flatten"; }

  FlattenOptions options;
};

struct UnflattenOptions {
  int64_t dim = 1;
  Required<Sizes> sizes;
};

/// Splits dimension `dim` into several; one size may be -1.
class Unflatten : public Module {
 public:
  explicit Unflatten(UnflattenOptions options_) : options(std::move(options_)) {}
  Tensor forward(const Tensor& x) override { return unflatten(x, options.dim, options.sizes); }
  std::string type_name() const override { return "Unflatten"; }

  UnflattenOptions options;
};

}  // namespace pleat::nn
