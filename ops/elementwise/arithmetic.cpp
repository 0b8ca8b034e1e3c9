#include "pleat/ops/elementwise/arithmetic.h"

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {
namespace {

constexpr auto plus = []<class T>(T a, T b) { return static_cast<T>(wrapping(a) + wrapping(b)); };
constexpr auto minus = []<class T>(T a, T b) { return static_cast<T>(wrapping(a) - wrapping(b)); };
constexpr auto times = []<class T>(T a, T b) { return static_cast<T>(wrapping(a) * wrapping(b)); };
constexpr auto over = []<class T>(T a, T b) { return a / b; };

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return binary("add", a, b, plus); }
Tensor subtract(const Tensor& a, const Tensor& b) { return binary("subtract", a, b, minus); }
Tensor multiply(const Tensor& a, const Tensor& b) { return binary("multiply", a, b, times); }
Tensor divide(const Tensor& a, const Tensor& b) { return binary_floating("divide", a, b, over); }

Tensor negate(const Tensor& x) {
  return unary_number("negate", x, []<class T>(T a) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(0 - wrapping(a));
    else
      return -a;
  });
}

void add_into(const Tensor& out, const Tensor& a, const Tensor& b) { binary_into("add", out, a, b, plus); }
void subtract_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_into("subtract", out, a, b, minus);
}
void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_into("multiply", out, a, b, times);
}
void divide_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_floating_into("divide", out, a, b, over);
}

Tensor number_like(Number number, const Tensor& like) {
  return full({}, number, {.dtype = promote_with_number(like.dtype(), number), .device = like.device()});
}

}  // namespace pleat::ops
