// Derivatives of functions: against differences, of any order, in all types and layouts.

#include <algorithm>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/op_cases/all_cases.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::test;

namespace {

Tensors tracked(const Tensors& inputs) {
  Tensors result = inputs;
  for (Tensor& x : result)
    if (x.defined() && is_floating(x.dtype())) x = x.detach().set_requires_grad();
  return result;
}

Tensors floating_of(const Tensors& inputs) {
  Tensors result;
  for (const Tensor& x : inputs)
    if (x.defined() && is_floating(x.dtype())) result.push_back(x);
  return result;
}

/// Results that have gradients, and numbers that take the gradients' part.
struct Differentiable {
  Tensors ys, dys;
};
Differentiable differentiable(const Tensors& results) {
  Differentiable d;
  for (const Tensor& y : results)
    if (y.requires_grad()) {
      d.ys.push_back(y);
      d.dys.push_back(ops::to_format(constant(normal(y.shape(), 99), y), y.memory_format()));
    }
  return d;
}

void check_differences(const OpCase& c, const Tensors& inputs) {
  const Tensors results = c.run(tracked(inputs));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad() || results[i].dtype() != float64) continue;
    CAPTURE(i);
    CHECK(gradcheck([&](const Tensors& x) { return c.run(x)[i]; }, inputs));
    // Squares make the gradient of a linear function, and one of 0, depend on x.
    const auto squared = [&](const Tensors& x) {
      const Tensor y = c.run(x)[i];
      Tensor result = y * y;
      for (const Tensor& t : floating_of(x)) result = result + sum(t * t);
      return result;
    };
    if (c.order > 1) CHECK(gradgradcheck(squared, inputs));
  }
}

/// The backward in one pass, and the one that is recorded for a graph of gradients.
void check_both_backwards(const OpCase& c) {
  const Tensors x = tracked(typed(c.inputs, float64));
  const auto [ys, dys] = differentiable(c.run(x));
  const Tensors leaves = floating_of(x);
  const Tensors fast = grad(ys, leaves, dys, {.retain_graph = true, .allow_unused = true});
  const Tensors recorded = grad(ys, leaves, dys, {.create_graph = true, .allow_unused = true});
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    REQUIRE(fast[i].defined() == recorded[i].defined());
    if (fast[i].defined()) CHECK(relative_error(fast[i], recorded[i]) <= c.slack * 1e-13);
  }
}

/// How far gradients of a type may be from those of float64: some roundings of results and of what is
/// computed on the way.
double tolerance(DType dtype) {
  return dtype == float64 ? 1e-13 : dtype == float32 ? 1e-5 : 8 * rounding(dtype);
}

/// Gradients of a type are those in float64 of the same numbers, recorded or not.
void check_numbers(const OpCase& c, const Tensors& inputs, bool recorded) {
  for (const DType dtype : {float32, float16, bfloat16}) {
    CAPTURE(name(dtype), recorded);
    const Tensors x = tracked(typed(inputs, dtype));
    const auto [ys, dys] = differentiable(c.run(x));
    const Tensors gradients = grad(ys, floating_of(x), dys, {.create_graph = recorded, .allow_unused = true});
    Tensors wide, wide_dys;
    for (const Tensor& t : x) wide.push_back(is_floating(t.dtype()) ? ops::cast(t.detach(), float64) : t);
    wide = tracked(wide);
    const Tensors wide_ys = differentiable(c.run(wide)).ys;
    for (std::size_t i = 0; i < wide_ys.size(); ++i)
      wide_dys.push_back(ops::cast(dys[i], wide_ys[i].dtype()));
    const Tensors wanted = grad(wide_ys, floating_of(wide), wide_dys, {.allow_unused = true});
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      REQUIRE(gradients[i].defined() == wanted[i].defined());
      if (wanted[i].defined()) CHECK(relative_error(gradients[i], wanted[i]) <= c.slack * tolerance(dtype));
    }
  }
}

/// Gradients have type and shape of the inputs, and for functions of elements their format.
void check_types(const OpCase& c) {
  for (const DType dtype : {float64, float32, float16, bfloat16})
    for (const std::string layout : {"contiguous", "channels_last"}) {
      CAPTURE(name(dtype), layout);
      const Tensors x = tracked(in_layout(typed(c.inputs, dtype), layout));
      const auto [ys, dys] = differentiable(c.run(x));
      const Tensors leaves = floating_of(x);
      const Tensors gradients = grad(ys, leaves, dys, {.allow_unused = true});
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (!gradients[i].defined()) continue;
        CHECK(gradients[i].dtype() == dtype);
        CHECK(gradients[i].shape() == leaves[i].shape());
        if (c.elementwise && x.size() == 1) CHECK(gradients[i].memory_format() == leaves[i].memory_format());
      }
    }
  if (!c.elementwise) return;
  Tensors none;
  for (const Tensor& x : typed(c.inputs, float64)) none.push_back(zeros({0, 3}, {.dtype = x.dtype()}));
  none = tracked(none);
  const auto [ys, dys] = differentiable(c.run(none));
  for (const Tensor& dx : grad(ys, floating_of(none), dys, {.allow_unused = true}))
    CHECK((!dx.defined() || dx.shape() == Shape{0, 3}));
}

std::vector<Tensors> smooth_inputs(const OpCase& c) {
  return c.smooth.empty() ? std::vector<Tensors>{c.inputs} : c.smooth;
}

void check_gradients(const OpCase& c) {
  if (c.order > 0) {
    check_both_backwards(c);
    check_types(c);
    for (const bool recorded : {false, true}) check_numbers(c, smooth_inputs(c).front(), recorded);
  } else if (c.types.floating) {
    for (const Tensor& y : c.run(tracked(typed(c.inputs, float64)))) CHECK_FALSE(y.requires_grad());
  }
}

void check_all_differences(const OpCase& c) {
  if (c.order == 0) return;
  for (const Tensors& inputs : smooth_inputs(c))
    for (const std::string layout : {"contiguous", "transposed", "gaps", "channels_last"}) {
      const bool image = std::any_of(inputs.begin(), inputs.end(),
                                     [](const Tensor& x) { return x.defined() && x.rank() > 3; });
      if (layout == "channels_last" && !image) continue;
      CAPTURE(layout);
      check_differences(c, in_layout(typed(inputs, float64), layout));
    }
}

/// The in-place form gives what the other gives, with its gradients, and is refused where it would lose some.
void check_in_place(const OpCase& c) {
  if (!c.in_place.call) return;
  const auto forward = [&](const Function& f, bool in_place, const Tensors& inputs) {
    Tensors x = tracked(inputs);
    const Tensors leaves = floating_of(x);
    x[0] = in_place ? x[0] * 1 : x[0];
    const auto [ys, dys] = differentiable(f(x).tensors());
    Tensors all = grad(ys, leaves, dys, {.allow_unused = true});
    all.push_back(ys.at(0).detach());
    return all;
  };
  for (const std::string& layout : op_layouts()) {
    if (layout == "expanded") continue;
    CAPTURE(c.in_place.name, layout);
    const auto laid = [&] { return in_layout(typed(c.inputs, float32), layout); };
    const Tensor expected = c.run(laid())[0];
    const Tensors x = laid();
    const uint64_t version = x[0].version();
    const Tensor result = c.in_place.call(x).tensors()[0];
    CHECK(x[0].version() > version);
    CHECK(relative_error(x[0], expected) == 0);
    CHECK(relative_error(result, expected) == 0);
    if (c.order == 0) continue;
    const Tensors wanted = forward(c.call, false, laid());
    const Tensors got = forward(c.in_place.call, true, laid());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      REQUIRE(got[i].defined() == wanted[i].defined());
      if (wanted[i].defined()) CHECK(relative_error(got[i], wanted[i]) <= 1e-6);
    }
    CHECK_THROWS_AS(c.in_place.call(tracked(laid())), AutogradError);
    // Only the others are on the tape.
    Tensors partly = tracked(laid());
    partly[0] = laid()[0];
    const bool depends = c.run(partly)[0].requires_grad();
    (void)c.in_place.call(partly);
    CHECK(partly[0].requires_grad() == depends);
  }
}

}  // namespace

PLEAT_TEST_FAMILIES("gradients", "[op_cases][cpu]", check_gradients)
// On the double of CUDA these take minutes; devices_test.cpp has gradients and differences of the first
// order.
PLEAT_TEST_FAMILIES("differences", "[op_cases][cpu]", check_all_differences)
PLEAT_TEST_FAMILIES("in place", "[op_cases]", check_in_place)
