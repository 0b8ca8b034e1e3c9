// Private header: not installed.
#pragma once

#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/elementwise/pointwise.h"
#include "pleat/ops/matmul/linear_activation.h"

/// Formulas (pointwise.h) as activations that linear computes. For files whose first line is "Host and
/// device".

namespace pleat {

template <class F>
class PointwiseLinear : public LinearActivation, private ops::ElementFunction {
 public:
  PointwiseLinear(const char* op, const F& formula) : op_(op), formula_(formula) {}

  const ops::ElementFunction& function() const override { return *this; }
  bool keeps_result() const override { return detail::BackwardFromResult<F>; }
  Tensor backward(const Tensor& dy, const Tensor& kept) const override {
    return detail::run_backward(op_, detail::Backward<F>{formula_}, dy, kept);
  }

 private:
  void run(float* y, const float* x, int64_t n) const override { ops::map(y, x, n, formula_); }
  void run(double* y, const double* x, int64_t n) const override { ops::map(y, x, n, formula_); }

  const char* op_;
  F formula_;
};

template <class F>
LinearActivationPtr pointwise_linear(const char* op, const F& formula) {
  return std::make_shared<const PointwiseLinear<F>>(op, formula);
}

}  // namespace pleat
