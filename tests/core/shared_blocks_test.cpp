#include "pleat/core/tensor/shared_blocks.h"

#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("equal blocks are one, as long as one of them is in use", "[core][cpu]") {
  SharedBlocks shared;
  Tensor first = shared.of(full({100}, 2.5));
  CHECK(shared.of(full({100}, 2.5)).data<float>() == first.data<float>());
  CHECK(shared.of(full({10, 10}, 2.5)).shape() == Shape{10, 10});
  CHECK(shared.of(full({100}, 2.0)).data<float>() != first.data<float>());
  CHECK(shared.of(full({99}, 2.5)).data<float>() != first.data<float>());
  const Tensor view = shared.of(full({20, 5}, 2.5)).as_strided({5, 10}, {1, 5}, 3);
  CHECK(view.data<float>() == first.data<float>() + 3);
  CHECK(shared.of(Tensor()).defined() == false);
  first = {};
  const Tensor last = shared.of(full({7}, 2.5));
  CHECK(array_equal(last, full({7}, 2.5)));
}
