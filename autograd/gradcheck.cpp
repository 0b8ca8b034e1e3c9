#include "pleat/autograd/gradcheck.h"

#include <cmath>
#include <string>
#include <utility>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/functions.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"

namespace pleat {
namespace {

/// Weights that make one number of an output, the same for every call with that shape.
Tensor weights_for(const Tensor& output) {
  Generator generator(20240607);
  const Tensor weights = empty(output.shape(), {.dtype = output.dtype(), .device = output.device()});
  fill_uniform_(weights, 0.5, 1.5, generator);
  return weights;
}

Tensor dot(const Tensor& a, const Tensor& b) { return sum_to(multiply(a, b), {}); }

double weighted(const TensorFunction& function, const std::vector<Tensor>& inputs) {
  const NoGrad guard;
  const Tensor y = function(inputs);
  return dot(y, weights_for(y)).item<double>();
}

std::vector<Tensor> fresh_leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) {
    // Strides are kept: a layout is part of what is checked.
    Tensor leaf = input.detach();
    if (is_floating(input.dtype())) leaf.set_requires_grad();
    leaves.push_back(leaf);
  }
  return leaves;
}

/// The function's result, which must be on the tape, and a remark on what kept others off it.
std::pair<Tensor, std::string> on_tape(const char* who, const TensorFunction& function,
                                       const std::vector<Tensor>& inputs) {
  const autograd::NoteUnrecorded unrecorded;
  const Tensor y = function(inputs);
  const std::string remark = unrecorded.remark();
  check<AutogradError>(y.requires_grad(),
                       "{}: the result does not depend on any floating input on the tape{}", who, remark);
  return {y, remark};
}

/// The element of a tensor of any layout and device, as a view.
Tensor element(const Tensor& x, int64_t linear) {
  int64_t at = x.offset();
  for (std::size_t d = x.shape().size(); d-- > 0;) {
    at += linear % x.shape()[d] * x.strides()[d];
    linear /= x.shape()[d];
  }
  return x.as_strided({}, {}, at);
}

void check_input(const TensorFunction& function, const std::vector<Tensor>& inputs, std::size_t which,
                 const Tensor& gradient, const GradcheckOptions& options, const std::string& remark) {
  const std::vector<double> analytic =
      gradient.defined() ? gradient.to_vector<double>()
                         : std::vector<double>(static_cast<std::size_t>(inputs[which].numel()), 0.0);
  for (int64_t i = 0; i < inputs[which].numel(); ++i) {
    const Tensor x = element(inputs[which], i);
    const double before = x.item<double>();
    ops::fill(x, before + options.step);
    const double above = weighted(function, inputs);
    ops::fill(x, before - options.step);
    const double below = weighted(function, inputs);
    ops::fill(x, before);
    const double numerical = (above - below) / (2 * options.step);
    const double tape = analytic[static_cast<std::size_t>(i)];
    const bool close =
        std::abs(tape - numerical) <= options.absolute + options.relative * std::abs(numerical);
    check<AutogradError>(close,
                         "gradcheck: input {} {}, element {}: the tape gives {}, central differences {}{}",
                         which, inputs[which], i, tape, numerical, gradient.defined() ? "" : remark);
  }
}

}  // namespace

bool gradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  check<ValueError>(function != nullptr, "gradcheck: the function is empty");
  std::vector<Tensor> own;
  std::vector<Tensor> differentiable;
  for (const Tensor& input : inputs) {
    check<DTypeError>(!is_floating(input.dtype()) || input.dtype() == float64,
                      "gradcheck: differences need float64, got {}", input);
    own.push_back(input.is_dense() ? ops::copy(input) : input);
  }
  const EnableGrad guard;
  std::vector<Tensor> leaves = fresh_leaves(own);
  for (const Tensor& leaf : leaves)
    if (leaf.requires_grad()) differentiable.push_back(leaf);
  const auto [y, remark] = on_tape("gradcheck", function, leaves);
  const Grads gradients = grad({y}, differentiable, {weights_for(y)}, {.allow_unused = true});
  std::size_t next = 0;
  for (std::size_t i = 0; i < own.size(); ++i)
    if (leaves[i].requires_grad()) check_input(function, own, i, gradients[next++], options, remark);
  return true;
}

bool gradgradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs,
                   GradcheckOptions options) {
  check<ValueError>(function != nullptr, "gradgradcheck: the function is empty");
  const Tensor y = no_grad([&] { return function(inputs); });
  std::vector<Tensor> extended = inputs;
  extended.push_back(weights_for(y));
  // The function x, dy -> sum of all dx weighted; its gradients are the second derivatives.
  const TensorFunction gradient = [&](const std::vector<Tensor>& given) {
    const EnableGrad guard;
    std::vector<Tensor> xs(given.begin(), given.end() - 1);
    std::vector<Tensor> differentiable;
    for (Tensor& x : xs) {
      if (!is_floating(x.dtype())) continue;
      if (!x.requires_grad()) x = x.detach().set_requires_grad();
      differentiable.push_back(x);
    }
    const Tensor out = on_tape("gradgradcheck", function, xs).first;
    const Grads gradients =
        grad({out}, differentiable, {given.back()}, {.create_graph = true, .allow_unused = true});
    Tensor total;
    for (const Tensor& g : gradients) {
      if (!g.defined()) continue;
      const Tensor part = dot(g, weights_for(g));
      total = total.defined() ? add(total, part) : part;
    }
    check<AutogradError>(total.defined(),
                         "gradgradcheck: the gradient does not depend on any floating input on the tape");
    return total;
  };
  return gradcheck(gradient, extended, options);
}

}  // namespace pleat
