#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using test::numbers;

TEST_CASE("max_unpool on a GPU gives the CPU's bits, whatever the indices name", "[pool][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  struct Case {
    Shape shape;
    MaxUnpoolOptions options;
  };
  const std::vector<Case> cases{{{2, 3, 4, 5}, {.kernel_size = 2}},
                                {{2, 9, 4, 3}, {.kernel_size = 3, .padding = 1}},
                                {{2, 3, 4, 5}, {.kernel_size = 2, .stride = 3, .output_size = {12, 16}}},
                                {{1, 16, 3, 4}, {.kernel_size = 3, .stride = 2}},  // windows overlap
                                {{2, 3, 7}, {.kernel_size = 3}},
                                {{2, 2, 2, 3, 2}, {.kernel_size = 2}},
                                {{1, 4, 1, 1}, {.kernel_size = 3}},
                                {{0, 3, 4, 5}, {.kernel_size = 2}}};
  // Each in its own window.
  const auto indices_of = [](const Tensor& pooled, const MaxUnpoolOptions& options) {
    const Tensor y = max_unpool(pooled, zeros(pooled.shape(), {.dtype = int64}), options);
    return max_pool_with_indices(
               numbers(y.shape(), float32, 3),
               {.kernel_size = options.kernel_size, .stride = options.stride, .padding = options.padding})
        .indices;
  };
  for (const Case& c : cases)
    for (const DType dtype : {float64, float32, float16})
      for (const DType counted : {int64, int32})
        for (const bool anywhere : {false, true})
          for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
            CAPTURE(c.shape, name(dtype), name(counted), anywhere, static_cast<int>(format));
            const Tensor x = ops::to_format(numbers(c.shape, dtype), format);
            Tensor indices = indices_of(x, c.options);
            if (anywhere) indices = flip(indices, {-1});
            const auto all = [&](Device device) {
              const Tensor from = ops::to_device(x, device).set_requires_grad();
              const Tensor at = ops::to_device(ops::cast(indices, counted), device);
              const Tensor y = max_unpool(from, at, c.options);
              const Tensor dy = ops::to_device(numbers(y.shape(), dtype, 5), device).set_requires_grad();
              const Tensor dx = grad({y}, {from}, {dy}, {.create_graph = true})[0];
              const Tensor twice = grad({dx}, {dy}, {from.detach()})[0];
              CHECK(y.is_contiguous(x.memory_format()));
              return std::vector{y.to_vector<double>(), dx.to_vector<double>(), twice.to_vector<double>()};
            };
            CHECK((all("cuda") == all("cpu")));
          }
  const Tensor x = ops::to_device(numbers({1, 1, 2, 2}, float32), "cuda");
  const Tensor wrong = ops::to_device(from_vector(std::vector<int64_t>{0, 2, 8, 16}, {1, 1, 2, 2}), "cuda");
  CHECK_THROWS_WITH(max_unpool2d(x, wrong, {.kernel_size = 2}),
                    "max_unpool2d: index 16 at [0, 0, 3] is outside [0, 16), dimension 2 of [1, 1, 16]");
}
