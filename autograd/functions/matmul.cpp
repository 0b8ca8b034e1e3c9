#include "pleat/autograd/functions/matmul.h"

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/format.h"
#include "pleat/ops/matmul/einsum_with.h"

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

Tensor matmul_grad_left(const Tensor& dy, const Tensor& b, bool left_is_vector) {
  const bool right_is_vector = b.rank() == 1;
  const Tensor right = right_is_vector ? unsqueeze(b, -1) : b;
  const Tensor da = matmul(as_matrices(dy, left_is_vector, right_is_vector), transpose(right, -2, -1));
  return left_is_vector ? squeeze(da, -2) : da;
}

Tensor matmul_grad_right(const Tensor& dy, const Tensor& a, bool right_is_vector) {
  const bool left_is_vector = a.rank() == 1;
  const Tensor left = left_is_vector ? unsqueeze(a, -2) : a;
  const Tensor dy_matrices = as_matrices(dy, left_is_vector, right_is_vector);
  const Tensor db = matmul(transpose(left, -2, -1), dy_matrices);
  return right_is_vector ? squeeze(db, -1) : db;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  const bool left_is_vector = a.rank() == 1;
  const bool right_is_vector = b.rank() == 1;
  // One matrix on the right of a batch: its gradient is one product over all rows, not a sum of a batch of
  // products.
  const bool one_right = b.rank() == 2 && a.rank() > 2;
  return record("matmul", ops::matmul(a, b),
                {grad_of(a, [b = saved(b), left_is_vector](
                                const Tensor& dy) { return matmul_grad_left(dy, *b, left_is_vector); }),
                 grad_of(b, [a = saved(a), right_is_vector, one_right](const Tensor& dy) {
                   return one_right ? matmul(transpose(as_rows(*a), 0, 1), as_rows(dy))
                                    : matmul_grad_right(dy, *a, right_is_vector);
                 })});
}

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, AddmmOptions options) {
  return record("addmm", ops::addmm(input, a, b, options),
                {grad_of(input, [beta = options.beta](const Tensor& dy) { return dy * beta; }),
                 grad_of(a, [b = saved(b), alpha = options.alpha](
                                const Tensor& dy) { return matmul(dy, transpose(*b, 0, 1)) * alpha; }),
                 grad_of(b, [a = saved(a), alpha = options.alpha](const Tensor& dy) {
                   return matmul(transpose(*a, 0, 1), dy) * alpha;
                 })});
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  std::vector<Derivative> derivatives = {
      grad_of(x, [weight = saved(weight)](const Tensor& dy) { return matmul(dy, *weight); }),
      grad_of(weight, [x = saved(x)](const Tensor& dy) {
        return matmul(transpose(as_rows(dy), 0, 1), as_rows(*x));
      })};
  if (bias.defined()) derivatives.push_back(grad_of(bias, [](const Tensor& dy) { return dy; }));
  return record("linear", ops::linear(x, weight, bias), std::move(derivatives));
}

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  return ops::einsum_with({permute, reshape, diagonal, sum, multiply, matmul}, equation, operands);
}

}  // namespace pleat
