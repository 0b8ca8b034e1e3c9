#pragma once

#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/functions/compare.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"

/// Differentiable functions of one tensor and what each of them is checked for: enter one into a table of
/// these, and its derivatives are tested.

namespace pleat::tests {

struct UnaryCase {
  const char* name;
  Tensor (*function)(const Tensor&);
  double low, high;  ///< where it is smooth
};

inline Tensor uniform(Shape shape, double low, double high, uint64_t seed = 1) {
  const Tensor x = empty(std::move(shape), {.dtype = float64});
  Generator generator(seed);
  fill_uniform_(x, low, high, generator);
  return x;
}

/// [2, 3] with gaps and in the wrong order.
inline Tensor with_gaps(double low, double high) {
  return uniform({24}, low, high).as_strided({2, 3}, {2, 7}, 1);
}

/// First and second derivatives, dense, with gaps and empty.
inline void check_derivatives(const UnaryCase& c) {
  const auto f = [&](const std::vector<Tensor>& t) { return c.function(t[0]); };
  for (const Tensor& x : {uniform({2, 3}, c.low, c.high), with_gaps(c.low, c.high)}) {
    CHECK(gradcheck(f, {x}));
    CHECK(gradgradcheck(f, {x}));
  }
  const Tensor none = zeros({0, 3}, {.dtype = float64}).set_requires_grad();
  sum(c.function(none)).backward();
  CHECK(none.grad().shape() == Shape{0, 3});
}

/// The backward in one pass, and the one that is recorded for a graph of gradients.
inline void check_both_backwards_agree(const UnaryCase& c) {
  const Tensor x = uniform({3, 5}, c.low, c.high).set_requires_grad();
  const Tensor y = c.function(x);
  const Tensor dy = uniform({3, 5}, -1, 1, 2);
  const Tensor fast = grad({y}, {x}, {dy}, {.retain_graph = true})[0];
  const Tensor recorded = grad({y}, {x}, {dy}, {.create_graph = true})[0];
  CHECK(allclose(fast, recorded, {.rtol = 1e-14, .atol = 1e-15}));
}

/// Results and gradients in the type and memory format of the input.
inline void check_type_and_format_stay(const UnaryCase& c) {
  for (const DType dtype : {float16, bfloat16}) {
    const Tensor x = uniform({4}, c.low, c.high).to(dtype).set_requires_grad();
    const Tensor y = c.function(x);
    CHECK(y.dtype() == dtype);
    sum(y).backward();
    CHECK(x.grad().dtype() == dtype);
  }
  const Tensor image =
      uniform({2, 3, 2, 2}, c.low, c.high).to(MemoryFormat::channels_last).set_requires_grad();
  const Tensor y = c.function(image);
  CHECK(y.memory_format() == MemoryFormat::channels_last);
  y.backward(ones_like(y));
  CHECK(image.grad().memory_format() == MemoryFormat::channels_last);
}

}  // namespace pleat::tests
