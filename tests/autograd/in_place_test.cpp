#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

/// In-place functions on the tape: through views, chains of views, of bases with older views, and what is
/// refused.

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

Tensor leaf(const Tensor& x) { return x.set_requires_grad(); }
std::vector<float> grad_of_sum(const Tensor& weighted, const Tensor& x) {
  return grad({sum(weighted)}, {x}, {}, {.retain_graph = true})[0].to_vector();
}
using Floats = std::vector<float>;

}  // namespace

TEST_CASE("values on the tape written into a view reach the tensor it is a view of") {
  const Tensor x = leaf(tensor({1.0, 2.0, 3.0}));
  const Tensor out = zeros({2, 3});
  SECTION("select") {
    copy_(select(out, 0, 1), x * x);
    CHECK(out.to_vector() == Floats{0, 0, 0, 1, 4, 9});
    CHECK(grad_of_sum(out, x) == Floats{2, 4, 6});
  }
  SECTION("narrow of a transpose") {
    copy_(select(narrow(transpose(out, 0, 1), 1, 1, 1), 1, 0), x * x);
    CHECK(out.to_vector() == Floats{0, 0, 0, 1, 4, 9});
    CHECK(grad_of_sum(out, x) == Floats{2, 4, 6});
  }
  SECTION("a chain of views that ends in one element") {
    copy_(select(select(reshape(out, {3, 2}), 0, 2), 0, 1), select(x, 0, 1) * 5);
    CHECK(out.to_vector() == Floats{0, 0, 0, 0, 0, 10});
    CHECK(grad_of_sum(out * out, x) == Floats{0, 100, 0});
  }
  SECTION("+= on a view") {
    select(out, 0, 0) += x * 2;
    CHECK(grad_of_sum(out, x) == Floats{2, 2, 2});
  }
  SECTION("two disjoint views written in turn") {
    const Tensor first = select(out, 0, 0);
    const Tensor second = select(out, 0, 1);
    copy_(first, x * 2);
    copy_(second, x * 3);
    CHECK(grad_of_sum(out, x) == Floats{5, 5, 5});
    CHECK(grad_of_sum(first, x) == Floats{2, 2, 2});
    CHECK(grad_of_sum(second, x) == Floats{3, 3, 3});
  }
  SECTION("the base written while an older view is alive, then the view read") {
    const Tensor row = select(out, 0, 1);
    copy_(out, reshape(cat({x, x * 7}), {2, 3}));
    CHECK(row.requires_grad());
    CHECK(row.to_vector() == Floats{7, 14, 21});
    CHECK(grad_of_sum(row, x) == Floats{7, 7, 7});
    row *= 2;
    CHECK(grad_of_sum(out, x) == Floats{15, 15, 15});
  }
  SECTION("overwriting cuts the earlier gradient") {
    copy_(out, expand(x * 4, {2, 3}));
    fill_(select(out, 0, 0), 1);
    CHECK(grad_of_sum(out, x) == Floats{4, 4, 4});
  }
  SECTION("every in-place function") {
    const Tensor row = select(out, 0, 0);
    add_(row, x);
    subtract_(row, x * 3);    // -2 x
    multiply_(row, x);        // -2 x^2
    divide_(row, x * x * x);  // -2 / x
    clamp_(row, {.min = -5});
    lerp_(row, x, 0.5);  // (x - 2 / x) / 2
    relu_(select(out, 0, 1));
    masked_fill_(row, tensor({false, false, true}), 3);
    CHECK(out.to_vector()[0] == Approx(-0.5));
    const Floats g = grad_of_sum(out, x);
    CHECK(g[0] == Approx(0.5 + 1));
    CHECK(g[1] == Approx(0.5 + 0.25));
    CHECK(g[2] == Approx(0));
  }
}

TEST_CASE("windows of one base that overlap are read again after a change") {
  const Tensor x = leaf(tensor({1.0, 2.0, 3.0, 4.0}));
  const Tensor base = x * 1;
  const Tensor windows = unfold_dimension(base, 0, 2, 1);
  const Tensor wide = expand(reshape(base, {1, 4}), {3, 4});
  base *= 10;
  CHECK(windows.to_vector() == Floats{10, 20, 20, 30, 30, 40});
  CHECK(grad_of_sum(windows, x) == Floats{10, 20, 20, 10});
  CHECK(grad_of_sum(wide, x) == Floats{30, 30, 30, 30});
  CHECK_THROWS_WITH(windows += 1, Contains("share memory"));
  CHECK(grad_of_sum(base, x) == Floats{10, 10, 10, 10});
}

TEST_CASE("a view whose base is gone is written like any tensor") {
  const Tensor x = leaf(tensor({1.0, 2.0, 3.0, 4.0}));
  const Tensor part = narrow(x * 2, 0, 1, 2);
  part *= part;
  CHECK(part.to_vector() == Floats{16, 36});
  CHECK(grad_of_sum(part, x) == Floats{0, 16, 24, 0});
}

TEST_CASE("backward begins at what a view shows now") {
  const Tensor x = leaf(tensor({1.0, 2.0}));
  const Tensor base = x * 3;
  const Tensor element = select(base, 0, 0);
  base *= 5;
  element.backward();
  CHECK(x.grad().to_vector() == Floats{15, 0});
}

TEST_CASE("retain_grad follows a tensor through changes in place, and accumulates") {
  const Tensor x = leaf(tensor({1.0, 2.0}));
  const Tensor y = x * 3;
  y.retain_grad();
  y *= 2;
  sum(y * y).backward();
  CHECK(y.grad().to_vector() == Floats{12, 24});
  CHECK(x.grad().to_vector() == Floats{72, 144});

  const Tensor base = x * 1;
  const Tensor view = select(base, 0, 1);
  view.retain_grad();
  base *= 2;
  (view * 5).backward();
  CHECK(view.grad().item() == 5);

  const Tensor z = x * 1;
  z.retain_grad();
  for (const double weight : {1.0, 2.0}) backward({sum(z)}, {scalar(weight)}, {.retain_graph = true});
  CHECK(z.grad().to_vector() == Floats{3, 3});
  CHECK_THROWS_WITH(zeros({2}).retain_grad(), Contains("does not require a gradient"));
}

TEST_CASE("what the tape cannot follow is refused, with the remedy") {
  const Tensor x = leaf(tensor({1.0, 2.0}));
  SECTION("a leaf, a view of one") {
    CHECK_THROWS_WITH(x += 1, Contains("do it under NoGrad"));
    CHECK_THROWS_WITH(fill_(select(x, 0, 0), 1), Contains("a view of a leaf that requires a gradient"));
    CHECK(x.to_vector() == Floats{1, 2});
    const Tensor buffer = zeros({2});
    const Tensor late = select(buffer, 0, 0);
    buffer.set_requires_grad();
    CHECK_THROWS_WITH(late += 1, Contains("a view of a leaf that requires a gradient"));
    const NoGrad guard;
    fill_(select(x, 0, 0), 5);
    CHECK(x.to_vector() == Floats{5, 2});
  }
  SECTION("views that the tape was not told of: their tensor cannot be read any more") {
    const Tensor out = zeros({2, 2});
    SECTION("under NoGrad") {
      copy_(no_grad([&] { return select(out, 0, 1); }), x * x);
    }
    SECTION("detached") { copy_(out.detach(), expand(x * x, {2, 2})); }
    CHECK_THROWS_WITH(sum(out), Contains("through another tensor that shares them") && Contains("sum: "));
    CHECK_THROWS_WITH(out += x, Contains("through another tensor"));
    CHECK_THROWS_WITH(select(out, 0, 1) * 2, Contains("through another tensor"));
    CHECK_FALSE(sum(out.detach()).requires_grad());
    const NoGrad guard;
    CHECK_FALSE(sum(out).requires_grad());
  }
  SECTION("an older view that the tape was not told of") {
    const Tensor out = zeros({2, 2});
    const Tensor raw = no_grad([&] { return select(out, 0, 1); });
    const Tensor detached = out.detach();
    copy_(select(out, 0, 1), x * x);
    CHECK_THROWS_WITH(raw * 2, Contains("through another tensor"));
    CHECK_FALSE((detached * 2).requires_grad());
    CHECK_FALSE((no_grad([&] { return select(out, 0, 1); }) * 2).requires_grad());
  }
  SECTION("a view that was made a leaf of its own") {
    const Tensor out = zeros({2, 2});
    const Tensor own = leaf(select(out, 0, 1));
    copy_(out, expand(x * x, {2, 2}));
    CHECK_THROWS_WITH(own * 2, Contains("is a leaf that requires a gradient and shows elements"));
  }
}

TEST_CASE("gradients that hooks return and set_grad is given are checked") {
  const Tensor x = leaf(ones({2}));
  CHECK_THROWS_AS(x.set_grad(ones({5})), ShapeError);
  CHECK_THROWS_WITH(x.set_grad(ones({2}, {.dtype = float64})),
                    Contains("the gradient is float64, the tensor float32"));
  CHECK_THROWS_AS(x.set_grad(tensor({1, 2})), DTypeError);
  CHECK_FALSE(x.grad().defined());
  CHECK_THROWS_AS(x.register_hook({}), ValueError);
  for (const Tensor& wrong : {ones({5}), ones({2}, {.dtype = float64}), tensor({1, 2})}) {
    const Tensor y = x * 2;
    y.register_hook([wrong](const Tensor&) { return wrong; });
    CHECK_THROWS_WITH(sum(y).backward(), Contains("what the hook returned"));
    const Tensor own = leaf(ones({2}));
    own.register_hook([wrong](const Tensor&) { return wrong; });
    CHECK_THROWS_WITH(sum(own).backward(), Contains("what the hook returned"));
    CHECK_FALSE(own.grad().defined());
    CHECK_THROWS_AS((x * 2).backward(wrong), Error);
  }
  CHECK_FALSE(x.grad().defined());
}
