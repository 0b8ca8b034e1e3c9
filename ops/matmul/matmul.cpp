#include "pleat/ops/matmul/matmul.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <string>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/matmul/kernels.h"
#include "pleat/ops/matmul/linear_activation.h"
#include "pleat/ops/one_type.h"
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

/// The gradient of a factor that a batch shares is one product, not a batch of products and their sum. A
/// dimension of the batch is one of a, b or the result, and at least of two of them; so each one's gradient
/// is the same of the two others.
Tensor matmul_sum_to(const Tensor& a, const Tensor& b, const Shape& shape) {
  return record(
      "matmul_sum_to", ops::matmul_sum_to(a, b, shape),
      {grad_of(a, [b = saved(b), shape = a.shape()](
                      const Tensor& dy) { return matmul_sum_to(dy, transpose(*b, -2, -1), shape); }),
       grad_of(b, [a = saved(a), shape = b.shape()](const Tensor& dy) {
         return matmul_sum_to(transpose(*a, -2, -1), dy, shape);
       })});
}

Tensor matmul_grad_left(const Tensor& dy, const Tensor& b, const Shape& shape) {
  const bool left_is_vector = shape.size() == 1, right_is_vector = b.rank() == 1;
  if (left_is_vector && right_is_vector) return dy * b;
  const Tensor right = right_is_vector ? unsqueeze(b, -1) : b;
  const Tensor da = matmul_sum_to(as_matrices(dy, left_is_vector, right_is_vector), transpose(right, -2, -1),
                                  left_is_vector ? Shape{1, shape[0]} : shape);
  return left_is_vector ? squeeze(da, -2) : da;
}

Tensor matmul_grad_right(const Tensor& dy, const Tensor& a, const Shape& shape) {
  const bool left_is_vector = a.rank() == 1, right_is_vector = shape.size() == 1;
  if (left_is_vector && right_is_vector) return dy * a;
  const Tensor left = left_is_vector ? unsqueeze(a, -2) : a;
  const Tensor db = matmul_sum_to(transpose(left, -2, -1), as_matrices(dy, left_is_vector, right_is_vector),
                                  right_is_vector ? Shape{shape[0], 1} : shape);
  return right_is_vector ? squeeze(db, -1) : db;
}

void check_operands(const char* op, const char* first, const Tensor& a, const char* second, const Tensor& b) {
  check<DeviceError>(a.device() == b.device(), "{}: all tensors must be on one device, got {} and {}", op,
                     a.device(), b.device());
  ops::check_one_type(op, first, a, second, b);
}

void check_matmul(const Tensor& a, const Tensor& b) {
  check<ShapeError>(
      a.rank() >= 1 && b.rank() >= 1,
      "matmul: needs vectors, matrices or batches of matrices, got {} and {}; numbers multiply with *",
      a.shape(), b.shape());
  const int64_t right_size = b.size(b.rank() == 1 ? -1 : -2);
  check<ShapeError>(a.size(-1) == right_size,
                    "matmul: the last size of the left and the {} of the right must be equal, got {} and {}: "
                    "{} and {}; transpose(x, -2, -1) turns a matrix around",
                    b.rank() == 1 ? "size" : "last but one", a.shape(), b.shape(), a.size(-1), right_size);
  const auto batch = [](const Tensor& x) {
    return x.rank() < 2 ? Shape() : Shape(x.shape().begin(), x.shape().end() - 2);
  };
  (void)broadcast(batch(a), batch(b), "matmul");
  check_operands("matmul", "the left", a, "the right", b);
}

void check_addmm(const Tensor& input, const Tensor& a, const Tensor& b, const AddmmOptions& options) {
  check<ShapeError>(a.rank() == 2 && b.rank() == 2, "addmm: needs two matrices, got {} and {}", a.shape(),
                    b.shape());
  check<ShapeError>(a.size(1) == b.size(0), "addmm: [m, k] and [k, n] must have one k, got {} and {}",
                    a.shape(), b.shape());
  const Shape shape = {a.size(0), b.size(1)};
  check<ShapeError>(broadcast(input.shape(), shape, "addmm") == shape,
                    "addmm: the input {} does not broadcast to the product's {}", input.shape(), shape);
  check_operands("addmm", "the left", a, "the right", b);
  check_operands("addmm", "input", input, "the left", a);
  check<DTypeError>(
      is_floating(a.dtype()) || (options.beta.kind() != float64 && options.alpha.kind() != float64),
      "addmm: beta and alpha must be integers for tensors of {}", a.dtype());
}

/// What an input of a layer of `features` may have been meant as: "; flatten(x, 1) makes it [8, 400]".
std::string picture_hint(const Shape& input, int64_t features) {
  if (input.size() > 2) {
    const int64_t all = std::accumulate(input.begin() + 1, input.end(), int64_t{1}, std::multiplies<>());
    return all == features ? fmt::format("; flatten(x, 1) makes it [{}, {}]", input[0], all) : "";
  }
  if (input.size() != 2 || input[1] < 1) return "";
  // Pictures of other sides than those that the layer was made for have a ratio of pixels that is a square.
  const int64_t common = std::gcd(input[1], features);
  const auto side = [&](int64_t pixels) {
    return std::llround(std::sqrt(static_cast<double>(pixels / common)));
  };
  const int64_t given = side(input[1]), fits = side(features);
  if (given * given * common != input[1] || fits * fits * common != features) return "";
  return "; if it is a flattened picture, its height and width are not those that the network was made for";
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check<ShapeError>(weight.rank() == 2, "linear: the weight must be [out, in], got {}", weight.shape());
  if (x.rank() < 1 || x.size(-1) != weight.size(1))
    fail<ShapeError>(
        "linear: the last size of the input must be {}, the second of the weight {}, got an input {}{}",
        weight.size(1), weight.shape(), x.shape(), picture_hint(x.shape(), weight.size(1)));
  check<ShapeError>(!bias.defined() || (bias.rank() == 1 && bias.size(0) == weight.size(0)),
                    "linear: the bias must be [{}], the first size of the weight {}, got {}", weight.size(0),
                    weight.shape(), bias.defined() ? bias.shape() : Shape());
  check_operands("linear", "input", x, "weight", weight);
  if (bias.defined()) check_operands("linear", "input", x, "bias", bias);
}

/// An activation as a function of its own, and as linear computes it.
struct ActivationForms {
  Tensor (*alone)(const Tensor& x);
  LinearActivationPtr (*fused)();
};

ActivationForms forms_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return {relu, [] { return linear_limit({.min = 0}); }};
    case Activation::relu6:
      return {relu6, [] { return linear_limit({.min = 0, .max = 6}); }};
    case Activation::gelu:
      return {[](const Tensor& x) { return gelu(x); }, [] { return linear_gelu(GeluApproximation::none); }};
    case Activation::gelu_tanh:
      return {[](const Tensor& x) { return gelu(x, GeluApproximation::tanh); },
              [] { return linear_gelu(GeluApproximation::tanh); }};
    case Activation::silu:
      return {silu, linear_silu};
    case Activation::mish:
      return {mish, linear_mish};
    case Activation::hardswish:
      return {hardswish, linear_hardswish};
    case Activation::tanh:
      return {tanh, linear_tanh};
    case Activation::sigmoid:
      return {sigmoid, linear_sigmoid};
  }
  fail<ValueError>("linear_act: there is no activation {}", static_cast<int>(activation));
}

}  // namespace

// A node's closure runs under the precision of its call.

Tensor matmul(const Tensor& left, const Tensor& right, MatmulOptions options) {
  const Call call("matmul", {left, right}, {}, Autocasts::to_half);
  const Tensor &a = call.input(0), &b = call.input(1);
  const PrecisionScope scope(options.precision);
  check_matmul(a, b);
  const Tensor y = ops::matmul_forward(a, b);
  call.details([&] { return ops::product_details(a.dtype(), y, a.size(-1)); });
  return call.result(y,
                     grad_of(a, [other = saved(b), shape = a.shape()](
                                    const Tensor& dy) { return matmul_grad_left(dy, *other, shape); }),
                     grad_of(b, [other = saved(a), shape = b.shape()](const Tensor& dy) {
                       return matmul_grad_right(dy, *other, shape);
                     }));
}

Tensor addmm(const Tensor& summand, const Tensor& left, const Tensor& right, AddmmOptions options) {
  const Call call("addmm", {summand, left, right},
                  {{"beta", options.beta.to<double>()}, {"alpha", options.alpha.to<double>()}},
                  Autocasts::to_half);
  const Tensor &input = call.input(0), &a = call.input(1), &b = call.input(2);
  const PrecisionScope scope(options.precision);
  check_addmm(input, a, b, options);
  const Tensor y = ops::addmm_forward(input, a, b, options.beta, options.alpha);
  call.details([&] { return ops::product_details(a.dtype(), y, a.size(1)); });
  return call.result(
      y, grad_of(input, [beta = options.beta](const Tensor& dy) { return dy * beta; }),
      grad_of(a, [other = saved(b), alpha = options.alpha](
                     const Tensor& dy) { return matmul(dy, transpose(*other, 0, 1)) * alpha; }),
      grad_of(b, [other = saved(a), alpha = options.alpha](const Tensor& dy) {
        return matmul(transpose(*other, 0, 1), dy) * alpha;
      }));
}

Tensor linear(const Tensor& input, const Tensor& weights, const Tensor& shifts, MatmulOptions options) {
  const Call call("linear", {input, weights, shifts}, {}, Autocasts::to_half);
  const Tensor &x = call.input(0), &weight = call.input(1), &bias = call.input(2);
  const PrecisionScope scope(options.precision);
  check_linear(x, weight, bias);
  const Tensor y = ops::linear_forward(x, weight, bias).y;
  call.details([&] { return ops::product_details(x.dtype(), y, weight.size(1)); });
  std::vector<Derivative> derivatives = {
      grad_of(x, [other = saved(weight)](const Tensor& dy) { return matmul(dy, *other); }),
      grad_of(weight, [other = saved(x)](const Tensor& dy) {
        return matmul(transpose(as_rows(dy), 0, 1), as_rows(*other));
      })};
  if (bias.defined()) derivatives.push_back(grad_of(bias, [](const Tensor& dy) { return dy; }));
  return call.result(y, std::move(derivatives));
}

Tensor linear_act(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                  MatmulOptions options) {
  const ActivationForms forms = forms_of(activation);
  check<DTypeError>(is_floating(x.dtype()), "linear_act: needs a floating input, got {}", x.dtype());
  const RecordOp range("linear_act", x, weight, bias);
  // Those who watch calls know the two functions.
  if (fuses_activation(x, weight) && detail::call_observer == nullptr)
    return linear(x, weight, bias, options, forms.fused());
  return forms.alone(linear(x, weight, bias, options));
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
  const RecordOp range("linear", x, weight, bias);
  const PrecisionScope scope(options.precision);
  check_linear(x, weight, bias);
  const bool keeps_result = activation->keeps_result();
  const ops::LinearOutputs out = ops::linear_forward(x, weight, bias, &activation->function(), !keeps_result);
  range.details([&] { return ops::product_details(x.dtype(), out.y, weight.size(1)); });
  std::vector<Tensor> inputs = {x, weight};
  if (bias.defined()) inputs.push_back(bias);
  return record("linear", out.y, inputs,
                [x = saved(x), weight = saved(weight), bias = saved(bias),
                 kept = saved(keeps_result ? out.y : out.sums), activation,
                 inputs = inputs.size()](const Tensor& dy, const Needs& needs) -> Grads {
                  // What the sums depend on is not on the tape.
                  const bool again = grad_enabled() && !activation->keeps_result();
                  const Tensor ds = activation->backward(dy, again ? linear(*x, *weight, *bias) : *kept);
                  Grads gradients(inputs);
                  if (needs[0]) gradients[0] = matmul(ds, *weight);
                  if (needs[1]) gradients[1] = matmul(transpose(as_rows(ds), 0, 1), as_rows(*x));
                  if (inputs > 2) gradients[2] = ds;
                  return gradients;
                });
}

}  // namespace pleat
