// Threads that use one GPU beside one another: each has handles of its own for cuBLAS and cuDNN.

#include <algorithm>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;

TEST_CASE("cuda: threads multiply and convolve beside one another", "[cuda]") {
  if (pleat_test::lacks_gpus(1)) return;
  const Device gpu(DeviceType::cuda);
  const Tensor a = rand({9, 7}, {.device = gpu}), b = rand({7, 5}, {.device = gpu});
  const Tensor x = rand({2, 4, 6, 6}, {.device = gpu}), w = rand({3, 4, 3, 3}, {.device = gpu});
  const auto compute = [&] {
    std::vector<float> values = matmul(a, b).to_vector();
    for (const std::string name : {"unfold", "cudnn"}) {
      const std::vector<std::string> known = ops::conv_implementations(gpu);
      if (std::find(known.begin(), known.end(), name) == known.end()) continue;
      const std::vector<float> more = ops::conv_forward(x, w, {}, {.implementation = name}).to_vector();
      values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  };
  const std::vector<float> expected = compute();

  constexpr int count = 3;
  std::vector<std::vector<float>> found(count);
  std::latch begun(count), done(count);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        begun.arrive_and_wait();
        for (int round = 0; round < 3; ++round) found[static_cast<std::size_t>(i)] = compute();
        done.arrive_and_wait();  // none leaves its handles to another
      });
  }
  for (const std::vector<float>& values : found) CHECK(values == expected);
}
