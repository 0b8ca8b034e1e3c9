// Private header: not installed.
#pragma once

#include "pleat/core/base/format.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/norm/implementation.h"

/// What stands for the implementations of a library that this Pleat is built without: known by name, and
/// computing nothing.

namespace pleat::ops {

class UnbuiltConv final : public ConvImplementation {
 public:
  UnbuiltConv(const char* name, const char* reason) : name_(name), reason_(reason) {}
  std::string_view name() const override { return name_; }
  bool runs_on(Device) const override { return false; }
  std::string unsupported(const ConvProblem&, ConvPass) const override { return reason_; }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::nhwc; }
  int64_t workspace_bytes(const ConvProblem&, ConvPass) const override { return 0; }
  void forward(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&,
               const Tensor&) const override {
    refuse();
  }
  void backward_input(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&) const override {
    refuse();
  }
  void backward_weight(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&) const override {
    refuse();
  }

 private:
  [[noreturn]] void refuse() const { fail<DeviceError>("conv: {}", reason_); }

  const char* name_;
  const char* reason_;
};

class UnbuiltBatchNorm final : public BatchNormImplementation {
 public:
  UnbuiltBatchNorm(const char* name, const char* reason) : name_(name), reason_(reason) {}
  std::string_view name() const override { return name_; }
  bool runs_on(Device) const override { return false; }
  std::string unsupported(const BatchNormProblem&, BatchNormPass) const override { return reason_; }
  void forward(const BatchNormProblem&, const BatchNormForward&) const override { refuse(); }
  void backward(const BatchNormProblem&, const BatchNormBackward&) const override { refuse(); }

 private:
  [[noreturn]] void refuse() const { fail<DeviceError>("batch_norm: {}", reason_); }

  const char* name_;
  const char* reason_;
};

}  // namespace pleat::ops
