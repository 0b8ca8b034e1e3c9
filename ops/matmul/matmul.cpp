#include "pleat/ops/matmul/matmul.h"

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/linear_activation.h"
#include "pleat/ops/matmul/matmul_sum_to.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// [..., n] -> [rows, n].
Tensor as_rows(const Tensor& x) {
  return reshape(x, {count(std::span(x.shape()).first(x.shape().size() - 1)), x.size(-1)});
}

/// The gradient of y = a b as a matrix, with the dimensions that vectors left out.
Tensor as_matrices(const Tensor& dy, bool left_is_vector, bool right_is_vector) {
  const Tensor with_columns = right_is_vector ? unsqueeze(dy, -1) : dy;
  return left_is_vector ? unsqueeze(with_columns, -2) : with_columns;
}

/// ops/matmul/matmul_sum_to.h: the gradient of a factor that a batch shares is one product, not a batch of
/// products and their sum. A dimension of the batch is one of a, b or the result, and at least of two of
/// them; so each one's gradient is the same of the two others.
Tensor matmul_sum_to(const Tensor& a, const Tensor& b, const Shape& shape, const MatmulOptions& options) {
  return record(
      "matmul_sum_to", ops::matmul_sum_to(a, b, shape, options),
      {grad_of(a, [b = saved(b), shape = a.shape(), options](
                      const Tensor& dy) { return matmul_sum_to(dy, transpose(*b, -2, -1), shape, options); }),
       grad_of(b, [a = saved(a), shape = b.shape(), options](const Tensor& dy) {
         return matmul_sum_to(transpose(*a, -2, -1), dy, shape, options);
       })});
}

Tensor matmul_grad_left(const Tensor& dy, const Tensor& b, const Shape& shape, const MatmulOptions& options) {
  const bool left_is_vector = shape.size() == 1;
  const bool right_is_vector = b.rank() == 1;
  if (left_is_vector && right_is_vector) return dy * b;
  const Tensor right = right_is_vector ? unsqueeze(b, -1) : b;
  const Tensor da = matmul_sum_to(as_matrices(dy, left_is_vector, right_is_vector), transpose(right, -2, -1),
                                  left_is_vector ? Shape{1, shape[0]} : shape, options);
  return left_is_vector ? squeeze(da, -2) : da;
}

Tensor matmul_grad_right(const Tensor& dy, const Tensor& a, const Shape& shape,
                         const MatmulOptions& options) {
  const bool left_is_vector = a.rank() == 1;
  const bool right_is_vector = shape.size() == 1;
  if (left_is_vector && right_is_vector) return dy * a;
  const Tensor left = left_is_vector ? unsqueeze(a, -2) : a;
  const Tensor db = matmul_sum_to(transpose(left, -2, -1), as_matrices(dy, left_is_vector, right_is_vector),
                                  right_is_vector ? Shape{shape[0], 1} : shape, options);
  return right_is_vector ? squeeze(db, -1) : db;
}

}  // namespace

Tensor matmul(const Tensor& left, const Tensor& right, MatmulOptions options) {
  const auto [a, b] = autocast_to_half(left, right);
  return record("matmul", ops::matmul(a, b, options),
                {grad_of(a, [other = saved(b), shape = a.shape(), options](
                                const Tensor& dy) { return matmul_grad_left(dy, *other, shape, options); }),
                 grad_of(b, [other = saved(a), shape = b.shape(), options](const Tensor& dy) {
                   return matmul_grad_right(dy, *other, shape, options);
                 })});
}

Tensor addmm(const Tensor& summand, const Tensor& left, const Tensor& right, AddmmOptions options) {
  const auto [input, a, b] = autocast_to_half(summand, left, right);
  const MatmulOptions product{.precision = options.precision};
  const Call call("addmm", {input, a, b},
                  {{"beta", options.beta.to<double>()}, {"alpha", options.alpha.to<double>()}});
  return call.result(
      ops::addmm(input, a, b, options),
      grad_of(input, [beta = options.beta](const Tensor& dy) { return dy * beta; }),
      grad_of(a, [other = saved(b), alpha = options.alpha, product](
                     const Tensor& dy) { return matmul(dy, transpose(*other, 0, 1), product) * alpha; }),
      grad_of(b, [other = saved(a), alpha = options.alpha, product](const Tensor& dy) {
        return matmul(transpose(*other, 0, 1), dy, product) * alpha;
      }));
}

Tensor linear(const Tensor& input, const Tensor& weights, const Tensor& shifts, MatmulOptions options) {
  const auto [x, weight, bias] = autocast_to_half(input, weights, shifts);
  std::vector<Derivative> derivatives = {
      grad_of(x, [other = saved(weight), options](const Tensor& dy) { return matmul(dy, *other, options); }),
      grad_of(weight, [other = saved(x), options](const Tensor& dy) {
        return matmul(transpose(as_rows(dy), 0, 1), as_rows(*other), options);
      })};
  if (bias.defined()) derivatives.push_back(grad_of(bias, [](const Tensor& dy) { return dy; }));
  return record("linear", ops::linear(x, weight, bias, options), std::move(derivatives));
}

Tensor dot(const Tensor& a, const Tensor& b) {
  check<ShapeError>(a.rank() == 1 && a.shape() == b.shape(),
                    "dot: needs two vectors of one size, got {} and {}", a, b);
  return matmul(a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  check<ShapeError>(a.rank() == 1 && b.rank() == 1, "outer: needs two vectors, got {} and {}", a, b);
  const RecordOp range("outer", a, b);
  return unsqueeze(a, 1) * b;
}

Tensor cross(const Tensor& a, const Tensor& b, Integer dim) {
  const Shape shape = broadcast(a.shape(), b.shape(), "cross");
  const int64_t along = normalize_dim(dim, static_cast<int64_t>(shape.size()), "cross");
  const int64_t from_end = along - static_cast<int64_t>(shape.size());
  for (const Tensor& x : {a, b})
    check<ShapeError>(from_end < 0 && x.rank() + from_end >= 0 && x.size(from_end) == 3,
                      "cross: both need 3 elements along dimension {}, got {} and {}", int64_t{dim}, a, b);
  const RecordOp range("cross", a, b);
  // Element i of `next(x)` is x[i + 1].
  const auto next = [from_end](const Tensor& x) { return roll(x, -1, from_end); };
  const Tensor p = next(a), q = next(b);
  return p * next(q) - next(p) * q;
}

bool fuses_activation(const Tensor& x, const Tensor& weight) {
  const auto fits = [](const Tensor& t) {
    return t.device().is_cpu() && (t.dtype() == float32 || t.dtype() == float64);
  };
  return fits(x) && fits(weight) && !autocast_dtype();
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const MatmulOptions& options,
              const LinearActivationPtr& activation) {
  const bool keeps_result = activation->keeps_result();
  const ops::LinearOutputs out =
      ops::linear_with(x, weight, bias, options, activation->function(), !keeps_result);
  std::vector<Tensor> inputs = {x, weight};
  if (bias.defined()) inputs.push_back(bias);
  return record("linear_with_activation", out.y, inputs,
                [x = saved(x), weight = saved(weight), bias = saved(bias),
                 kept = saved(keeps_result ? out.y : out.sums), options, activation,
                 inputs = inputs.size()](const Tensor& dy, const Needs& needs) -> Grads {
                  // What the sums depend on is not on the tape.
                  const bool again = grad_enabled() && !activation->keeps_result();
                  const Tensor ds =
                      activation->backward(dy, again ? linear(*x, *weight, *bias, options) : *kept);
                  Grads gradients(inputs);
                  if (needs[0]) gradients[0] = matmul(ds, *weight, options);
                  if (needs[1]) gradients[1] = matmul(transpose(as_rows(ds), 0, 1), as_rows(*x), options);
                  if (inputs > 2) gradients[2] = ds;
                  return gradients;
                });
}

}  // namespace pleat
