#include "pleat/ops/softmax/softmax.h"

#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/view.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"

using namespace pleat;

namespace {

using Function = Tensor (*)(const Tensor&, Integer);

void check_against_torch(const char* op, Function function) {
  for (const test::Json& wanted : test::fixture_cases("layers", op)) {
    INFO(wanted["name"]);
    const Tensor x = test::tensors_from(wanted["inputs"]).begin()->second.set_requires_grad();
    const Tensor y = function(x, wanted["options"]["dim"].get<int64_t>());
    y.backward(test::tensor_from(wanted["grad_output"]));
    const auto close = [](const Tensor& got, const Tensor& right) {
      return max(abs(got.detach() - right)).item<double>() < 1e-12;
    };
    CHECK(close(y, test::tensor_from(wanted["outputs"]["y"])));
    CHECK(close(x.grad(), test::tensors_from(wanted["grads"]).begin()->second));
  }
}

}  // namespace

TEST_CASE("softmax and log_softmax agree with PyTorch") {
  check_against_torch("softmax", softmax);
  check_against_torch("log_softmax", log_softmax);
}

TEST_CASE("softmax of an empty batch has gradients of its shape") {
  const Tensor x = zeros({0, 3}).set_requires_grad();
  sum(softmax(x, 1) + log_softmax(x, 1)).backward();
  CHECK(x.grad().shape() == Shape{0, 3});
}
