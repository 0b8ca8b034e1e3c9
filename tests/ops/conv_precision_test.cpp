#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

ops::ConvProblem problem(DType dtype, const ConvOptions& options) {
  const Tensor like = empty({}, {.dtype = dtype});
  return ops::make_conv_problem("conv2d", 2, {"input", {2, 3, 8, 8}, like}, {"weight", {4, 3, 3, 3}, like},
                                options);
}

}  // namespace

TEST_CASE("a convolution's precision is the call's, else the policy's, else the scope's", "[conv]") {
  CHECK(problem(float32, {}).precision == Precision::highest);
  CHECK(problem(float32, {.precision = Precision::medium}).precision == Precision::medium);
  {
    const PrecisionScope scope(Precision::high);
    CHECK(problem(float32, {}).precision == Precision::high);
    const ConvPolicy policy{{.precision = Precision::medium}};
    CHECK(problem(float32, {}).precision == Precision::medium);
    CHECK(problem(float32, {.precision = Precision::highest}).precision == Precision::highest);
  }
  CHECK(problem(float32, {}).precision == Precision::highest);
}

TEST_CASE("convolutions of different precision are different problems", "[conv]") {
  CHECK(problem(float32, {.precision = Precision::high}) != problem(float32, {}));
  // Other types than float32 have one precision only.
  for (const DType dtype : {float64, float16, bfloat16})
    CHECK(problem(dtype, {.precision = Precision::high}) == problem(dtype, {}));
}
