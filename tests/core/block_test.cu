#include <utility>
#include <vector>

#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;

namespace {

/// y[i] = the sum of what the threads of i's team read.
struct TeamSums {
  Teams teams;
  const float* x;
  float* y;

  __device__ void operator()(int64_t b, const Block& block) const {
    const int64_t i = b * block_threads + block.thread();
    float own = x[i];
    block.combine(own, teams, [](float& into, float other) { into += other; });
    block.share(own, teams);
    y[i] = own;
  }
};

std::vector<float> team_sums(const Tensor& x, const Teams& teams) {
  const Device device(DeviceType::cuda);
  const Tensor in = ops::to_device(x, device);
  const Tensor out = empty(x.shape(), {.device = device});
  launch_blocks(
      "test", device, x.numel() / block_threads,
      TeamSums{teams, reinterpret_cast<const float*>(in.raw()), reinterpret_cast<float*>(out.raw())});
  return out.to_vector();
}

/// Each block writes its number in all its threads; the last one adds up what all have written.
struct SumOfBlocks {
  int64_t blocks;
  int64_t* written;  ///< [blocks, threads]
  unsigned* counter;
  int64_t* sum;    ///< [threads]
  int64_t* times;  ///< that one of them was the last

  __device__ void operator()(int64_t b, const Block& block) const {
    written[b * block_threads + block.thread()] = b;
    if (!block.last_of(counter, blocks)) return;
    // What other threads wrote, too.
    const int other = block_threads - 1 - block.thread();
    int64_t total = 0;
    for (int64_t i = 0; i < blocks; ++i) total += written[i * block_threads + other];
    sum[block.thread()] = total;
    if (block.thread() == 0) ++*times;
  }
};

}  // namespace

TEST_CASE("the last of several blocks sees what all have written", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device device(DeviceType::cuda);
  for (const int64_t blocks : {1, 2, 7, 300}) {
    const TensorOptions options{.dtype = int64, .device = device};
    const Tensor written = full({blocks, block_threads}, -1, options);
    const Tensor sum = zeros({block_threads}, options), times = zeros({1}, options);
    // Several launches: a counter is zero again after each.
    for (int launch = 1; launch <= 3; ++launch) {
      launch_blocks("test", device, blocks,
                    SumOfBlocks{blocks, written.data<int64_t>(), block_counters(device) + 2,
                                sum.data<int64_t>(), times.data<int64_t>()});
      CHECK(times.item<int64_t>() == launch);
      CHECK(sum.to_vector<int64_t>() == std::vector<int64_t>(block_threads, blocks * (blocks - 1) / 2));
    }
  }
}

TEST_CASE("teams of a block combine and share what their threads found", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  const int64_t blocks = 3;
  const Tensor whole = empty({blocks * block_threads});
  for (int64_t i = 0; i < whole.numel(); ++i) whole.data<float>()[i] = static_cast<float>(i * i % 1009);
  const std::vector<float> values = whole.to_vector();
  for (const bool adjacent : {true, false})
    for (int log_lanes = 0; log_lanes <= log_block_threads; ++log_lanes) {
      const Teams teams{log_lanes, adjacent};
      const int lanes = teams.lanes();
      std::vector<float> expected(values.size());
      // Threads i and j are of one team when they agree in block and team.
      const auto team = [&](std::size_t i) {
        const int thread = static_cast<int>(i) % block_threads;
        return std::pair(i / block_threads, adjacent ? thread / lanes : thread % (block_threads / lanes));
      };
      for (std::size_t i = 0; i < values.size(); ++i)
        for (std::size_t j = 0; j < values.size(); ++j)
          if (team(i) == team(j)) expected[i] += values[j];
      INFO(lanes << (adjacent ? " neighbours" : " apart"));
      CHECK(team_sums(whole, teams) == expected);
    }
}

TEST_CASE("teams fit the block and the work", "[core]") {
  for (const int64_t count : {0, 1, 2, 3, 7, 8, 31, 100, 1000, 1 << 20})
    for (const int64_t across : {1, 2, 3, 31, 32, 1000}) {
      INFO(count << " elements, " << across << " beside each other");
      const Teams teams = choose_teams(count, across);
      CHECK(teams.lanes() <= block_threads);
      CHECK(teams.lanes() < 2 * count + 2);
      CHECK(teams.adjacent == (across == 1));
      if (across >= 32) CHECK(teams.count() >= 32);
    }
}
