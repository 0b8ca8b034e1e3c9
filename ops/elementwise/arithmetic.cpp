#include "pleat/ops/elementwise/arithmetic.h"

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {
namespace {

template <class F>
Tensor binary(const char* op, const Tensor& a, const Tensor& b, F f) {
  const Tensor out = binary_result(op, a, b, promote(a.dtype(), b.dtype()));
  binary_into(op, out, a, b, f);
  return out;
}

constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };
constexpr auto minus = [](const auto& a, const auto& b) { return a - b; };
constexpr auto times = [](const auto& a, const auto& b) { return a * b; };
constexpr auto over = [](const auto& a, const auto& b) { return a / b; };

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return binary("add", a, b, plus); }
Tensor subtract(const Tensor& a, const Tensor& b) { return binary("subtract", a, b, minus); }
Tensor multiply(const Tensor& a, const Tensor& b) { return binary("multiply", a, b, times); }

Tensor divide(const Tensor& a, const Tensor& b) {
  const Tensor out = binary_result("divide", a, b, floating_result(promote(a.dtype(), b.dtype())));
  divide_into(out, a, b);
  return out;
}

Tensor negate(const Tensor& x) {
  const Tensor out = empty_like(x);
  dispatch_number("negate", x.dtype(), [&]<class T>(Type<T>) {
    elementwise<T, T>("negate", out, {x},
                      [](T* y, const T* a, int64_t n) { array(y, n) = T(0) - array(a, n); });
  });
  return out;
}

void add_into(const Tensor& out, const Tensor& a, const Tensor& b) { binary_into("add", out, a, b, plus); }
void subtract_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_into("subtract", out, a, b, minus);
}
void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_into("multiply", out, a, b, times);
}

void divide_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  dispatch_floating("divide", floating_result(promote(a.dtype(), b.dtype())), [&]<class T>(Type<T>) {
    elementwise<T, T, T>("divide", out, {a, b}, [](T* y, const T* p, const T* q, int64_t n) {
      array(y, n) = array(p, n) / array(q, n);
    });
  });
}

Tensor number_like(Number number, const Tensor& like) {
  return full({}, number, {.dtype = promote_with_number(like.dtype(), number), .device = like.device()});
}

}  // namespace pleat::ops
