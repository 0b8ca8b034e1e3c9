#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/matmul/element_function.h"
#include "pleat/ops/matmul/matmul_kernels.h"
#include "pleat/ops/matmul/matrices.h"
#include "pleat/ops/one_type.h"

namespace pleat::ops {
namespace {

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
  check_one_device("linear", x, weight);
  if (bias.defined()) check_one_device("linear", x, bias);
  check_one_type("linear", "input", x, "weight", weight);
  if (bias.defined()) check_one_type("linear", "input", x, "bias", bias);
}

/// out [rows, weight's] = x weight^T (+ bias).
template <class T>
void multiply_linear(const Tensor& out, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const Finish<T>* finish = nullptr) {
  const Tensor flat = readable(cast(reshape(x, {out.size(0), weight.size(1)}), dtype_of<T>()));
  const Tensor columns = readable(transpose(cast(weight, dtype_of<T>()), 0, 1));
  if (bias.defined())
    multiply_from<T, T>("linear", out, bias, flat, columns, 1, finish);
  else
    multiply_batches<T>("linear", out, flat, columns, 1, false, {}, finish);
}

/// A function of elements from `sums` to the same places of `y`, which may be `sums`.
template <class T>
struct Apply : Finish<T> {
  Apply(const ElementFunction& function, const T* from, T* to) : f(function), sums(from), y(to) {}
  void run(T* c, int64_t n) const override { f.run(y + (c - sums), c, n); }

  const ElementFunction& f;
  const T* sums;
  T* y;
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, MatmulOptions options) {
  const RecordOp range("linear", x, weight, bias);
  const PrecisionScope scope(options.precision);
  check_linear(x, weight, bias);
  const DType dtype = x.dtype();
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const int64_t rows = count(std::span(shape).first(shape.size() - 1));
  return dispatch_product("linear", dtype, x.device(), [&]<class T>(Type<T>) {
    const Tensor out = empty({rows, weight.size(0)}, {.dtype = dtype_of<T>(), .device = x.device()});
    multiply_linear<T>(out, x, weight, bias);
    range.details([&] { return product_details(dtype, out, weight.size(1)); });
    return cast(view(out, shape), dtype);
  });
}

LinearOutputs linear_with(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const MatmulOptions& options, const ElementFunction& f, bool keep_sums) {
  const RecordOp range("linear", x, weight, bias);
  const PrecisionScope scope(options.precision);
  check_linear(x, weight, bias);
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const int64_t rows = count(std::span(shape).first(shape.size() - 1));
  return dispatch_floating("linear", x.dtype(), [&]<class T>(Type<T>) {
    const Tensor sums = empty({rows, weight.size(0)}, {.dtype = dtype_of<T>()});
    const Tensor y = keep_sums ? empty_like(sums) : sums;
    const Apply<T> apply(f, sums.data<T>(), y.data<T>());
    multiply_linear<T>(sums, x, weight, bias, &apply);
    range.details([&] { return product_details(x.dtype(), sums, weight.size(1)); });
    return LinearOutputs{keep_sums ? view(sums, shape) : Tensor(), view(y, shape)};
  });
}

}  // namespace pleat::ops
