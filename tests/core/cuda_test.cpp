#include "pleat/core/device/cuda.h"

#include <thread>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat_test::lacks_gpus;

namespace {
const Device gpu(DeviceType::cuda);
const Device missing(DeviceType::cuda, 99);
}  // namespace

TEST_CASE("without a GPU, questions are answered and actions say why not", "[core]") {
  CHECK(cuda::is_available() == (cuda::device_count() > 0));
  CHECK(cuda::unavailable_reason().empty() == cuda::is_available());
  if (!cuda::is_built()) {
    CHECK(cuda::unavailable_reason() == "this is Pleat built without CUDA");
    CHECK(cuda::versions().runtime == 0);
  } else {
    CHECK(cuda::versions().runtime >= 12000);
    CHECK(cuda::versions().cublas >= 120000);
  }
  CHECK_FALSE(cuda::is_pinned(zeros({2})));
  const cuda::DeviceGuard nothing_to_do{Device()};
  if (cuda::is_available()) return;

  const std::string reason = cuda::unavailable_reason();
  CHECK_THROWS_WITH(cuda::check_device("dance", gpu), Contains("dance: there is no cuda:0: " + reason));
  CHECK_THROWS_WITH(zeros({2}, {.device = gpu}), Contains(reason));
  CHECK_THROWS_WITH(zeros({2}).to(gpu), Contains("to: there is no cuda:0: " + reason));
  CHECK_THROWS_AS(cuda::properties(), DeviceError);
  CHECK_THROWS_AS(cuda::memory_info(), DeviceError);
  CHECK_THROWS_AS(cuda::current_device(), DeviceError);
  CHECK_THROWS_AS(cuda::synchronize(), DeviceError);
  CHECK_THROWS_AS(cuda::DeviceGuard{gpu}, DeviceError);
  CHECK_THROWS_AS(cuda::current_stream(), DeviceError);
  CHECK_THROWS_AS(cuda::Stream{{.device = gpu}}, DeviceError);
  CHECK_THROWS_AS(cuda::Event{{.device = gpu}}, DeviceError);
  CHECK_THROWS_AS(cuda::pin_memory(zeros({2})), DeviceError);
  CHECK_THROWS_AS(cuda::empty_pinned({2}, float32), DeviceError);
  CHECK_THROWS_AS(allocator_statistics(gpu), DeviceError);
  CHECK(cuda::pinned_memory_statistics().requests == 0);
  cuda::empty_pinned_memory_cache();
}

TEST_CASE("a device that is no GPU, or not there, is an error that says so", "[core]") {
  CHECK_THROWS_WITH(cuda::check_device("dance", Device()), Contains("dance: needs a CUDA device, got cpu"));
  CHECK_THROWS_WITH(zeros({2}).to(missing), Contains("there is no cuda:99"));
  CHECK_THROWS_AS(zeros({2}, {.device = Device(DeviceType::cuda, -1)}), DeviceError);
}

TEST_CASE("cuda: the number of devices is said when one is missing", "[core][cuda]") {
  if (lacks_gpus()) return;
  CHECK_THROWS_WITH(zeros({2}).to(missing),
                    Contains("the number of CUDA devices here is " + std::to_string(cuda::device_count())));
}

TEST_CASE("cuda: properties and memory of a device", "[core][cuda]") {
  if (lacks_gpus()) return;
  const cuda::DeviceProperties& properties = cuda::properties();
  CHECK_FALSE(properties.name.empty());
  CHECK(properties.major >= 5);
  CHECK(properties.multiprocessors > 0);
  CHECK(properties.shared_memory_per_block_optin >= properties.shared_memory_per_block);
  const cuda::MemoryInfo memory = cuda::memory_info();
  CHECK(memory.free <= memory.total);
  CHECK(memory.total <= properties.total_memory);
  CHECK(cuda::versions().driver >= 12000);
}

TEST_CASE("cuda: guards choose device and stream for a scope and a thread", "[core][cuda]") {
  if (lacks_gpus()) return;
  const cuda::Stream usual = cuda::current_stream();
  CHECK(usual == cuda::Stream::default_of(gpu));
  const cuda::Stream own({.device = gpu, .priority = -1});
  CHECK_FALSE(own == usual);
  {
    const cuda::StreamGuard guard(own);
    CHECK(cuda::current_stream() == own);
    std::thread([&] { CHECK(cuda::current_stream() == usual); }).join();
  }
  CHECK(cuda::current_stream() == usual);
  CHECK(cuda::current_device() == gpu);
  CHECK_THROWS_AS(cuda::Stream({.device = gpu, .priority = 3}), ValueError);
}

TEST_CASE("cuda: a stream that was let go serves the next who asks", "[core][cuda]") {
  if (lacks_gpus()) return;
  void* handle = nullptr;
  {
    const cuda::Stream a({.device = gpu});
    const cuda::Stream b({.device = gpu});
    CHECK(a.native() != b.native());
    handle = b.native();
  }
  const cuda::Stream next({.device = gpu});
  const cuda::Stream after({.device = gpu});
  CHECK((next.native() == handle || after.native() == handle));
}

TEST_CASE("cuda: events order streams and take the time", "[core][cuda]") {
  if (lacks_gpus()) return;
  const cuda::Event start({.device = gpu, .timing = true});
  const cuda::Event end({.device = gpu, .timing = true});
  CHECK(start.is_done());
  const cuda::Stream other({.device = gpu});
  const Tensor x = zeros({1 << 22}, {.device = gpu});
  start.record();
  for (int i = 0; i < 10; ++i) zeros({1 << 22}, {.device = gpu});
  end.record();
  other.wait(end);
  other.synchronize();
  CHECK(end.is_done());
  CHECK(other.is_done());
  CHECK(cuda::elapsed_ms(start, end) > 0);
  CHECK(cuda::elapsed_ms(start, end) < 10000);
  cuda::synchronize();

  const cuda::Event untimed({.device = gpu});
  untimed.record();
  CHECK_THROWS_AS(cuda::elapsed_ms(untimed, end), DeviceError);
  CHECK(zeros({3}, {.device = gpu}).to_vector() ==
        std::vector<float>{0, 0, 0});  // the error has left no trace
}

TEST_CASE("cuda: streams, events and memory of a GPU that is not the current one", "[core][cuda]") {
  if (lacks_gpus(2)) return;
  const Device other(DeviceType::cuda, 1);
  const cuda::Event start({.device = other, .timing = true});
  const cuda::Event end({.device = other, .timing = true});
  const cuda::Stream usual = cuda::current_stream(other);
  const cuda::Stream side({.device = other});
  const Tensor x = zeros({1 << 20}, {.device = other});
  start.record(usual);
  for (int i = 0; i < 10; ++i) zeros({1 << 20}, {.device = other});
  end.record(usual);
  side.wait(end);
  side.synchronize();
  CHECK(end.is_done());
  for (int i = 0; i < 10; ++i) zeros({1 << 20}, {.device = other});
  usual.synchronize();
  CHECK(usual.is_done());
  CHECK(cuda::elapsed_ms(start, end) > 0);

  empty_cache(other);
  const cuda::MemoryInfo before = cuda::memory_info(other);
  const Tensor y = empty({64 << 20}, {.dtype = uint8, .device = other});
  CHECK(cuda::memory_info(other).free <= before.free - (64 << 20));
  CHECK(cuda::current_device() == gpu);
}
