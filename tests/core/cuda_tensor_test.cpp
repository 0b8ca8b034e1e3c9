#include <numeric>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat_test::lacks_gpus;

namespace {

const Device gpu(DeviceType::cuda);
constexpr int64_t mebi = 1 << 20;

Tensor numbers(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(count(shape)));
  std::iota(values.begin(), values.end(), 1.0f);
  return from_vector(values, std::move(shape));
}

}  // namespace

TEST_CASE("cuda: tensors go to the GPU and come back", "[core][cuda]") {
  if (lacks_gpus()) return;
  for (const DType dtype : {boolean, uint8, int32, pleat::int64, bfloat16, float16, float32, float64}) {
    CAPTURE(name(dtype));
    const Tensor x = ops::cast(numbers({2, 3, 5}), dtype);
    const Tensor y = x.to(gpu);
    CHECK(y.device() == gpu);
    CHECK(y.dtype() == dtype);
    CHECK(y.to_vector<double>() == x.to_vector<double>());
    CHECK(y.to(Device()).to_vector<double>() == x.to_vector<double>());
  }
  const Tensor none = zeros({0, 3}).to(gpu);
  CHECK(none.numel() == 0);
  CHECK(none.to_vector().empty());
  const Tensor one = from_vector(std::vector<float>{2.5f}, {}, gpu);
  CHECK(one.item() == 2.5);
  CHECK(to_string(one) == to_string(one.to(Device())) + " cuda:0");
}

TEST_CASE("cuda: the memory order of a dense tensor is kept", "[core][cuda]") {
  if (lacks_gpus()) return;
  const Tensor x = ops::to_format(numbers({2, 3, 4, 5}), MemoryFormat::channels_last);
  const Tensor y = x.to(gpu);
  CHECK(y.strides() == x.strides());
  CHECK(y.to_vector() == x.to_vector());
  const Tensor part = numbers({4, 6}).as_strided({4, 3}, {6, 1}, 2).to(gpu);  // with gaps
  CHECK(part.is_contiguous());
  CHECK(part.to_vector() == std::vector<float>{3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23});
  const Tensor rows = numbers({4, 3}).to(gpu).as_strided({2, 3}, {3, 1}, 6);  // of a storage on the GPU
  CHECK(rows.to_vector() == std::vector<float>{7, 8, 9, 10, 11, 12});
}

TEST_CASE("cuda: zeros, and copies on the GPU and between devices", "[core][cuda]") {
  if (lacks_gpus()) return;
  const Tensor x = numbers({1000});
  const Tensor y = zeros({1000}, {.device = gpu});
  CHECK(y.to_vector() == zeros({1000}).to_vector());
  const uint64_t before = y.version();
  ops::copy_into(y, x);
  CHECK(y.version() > before);
  CHECK(y.to_vector() == x.to_vector());
  CHECK(ops::copy(y).to_vector() == x.to_vector());
  const Tensor back = empty({1000});
  ops::copy_into(back, y);
  CHECK(back.to_vector() == x.to_vector());
  CHECK_THROWS_AS(ops::copy_into(y, numbers({999})), ShapeError);
  CHECK(full({5}, 255, {.dtype = uint8, .device = gpu}).to_vector<int>() == std::vector<int>(5, 255));
}

TEST_CASE("cuda: the same seed gives the same numbers as on the CPU", "[core][cuda]") {
  if (lacks_gpus()) return;
  for (const DType dtype : {float16, float32, float64}) {
    CAPTURE(name(dtype));
    manual_seed(7);
    const Tensor here = rand({1000}, {.dtype = dtype});
    const Tensor more = randn({1000}, {.dtype = dtype});
    manual_seed(7);
    const Tensor there = rand({1000}, {.dtype = dtype, .device = gpu});
    CHECK(there.device() == gpu);
    CHECK(there.to_vector<double>() == here.to_vector<double>());
    CHECK(randn({1000}, {.dtype = dtype, .device = gpu}).to_vector<double>() == more.to_vector<double>());
  }
}

TEST_CASE("cuda: pinned memory, and copies that nobody waits for", "[core][cuda]") {
  if (lacks_gpus()) return;
  const Tensor x = numbers({512, 1024});
  const Tensor pinned = cuda::pin_memory(x);
  CHECK(cuda::is_pinned(pinned));
  CHECK_FALSE(cuda::is_pinned(x));
  CHECK(cuda::is_pinned(pinned.as_strided({4}, {1}, 3)));
  CHECK(cuda::pin_memory(pinned).raw() == pinned.raw());
  CHECK(pinned.device().is_cpu());
  CHECK(pinned.to_vector() == x.to_vector());

  Tensor source = cuda::pin_memory(x);
  const Tensor there = ops::to_device(source, gpu, {.non_blocking = true});
  source = Tensor();  // its memory must not serve anybody else before the copy is done
  const Tensor other = cuda::empty_pinned({512, 1024}, float32);
  ops::fill(other, 0);
  const Tensor back = ops::to_device(there, Device(), {.non_blocking = true});
  CHECK(cuda::is_pinned(back));
  cuda::current_stream().synchronize();
  CHECK((back.to_vector() == x.to_vector()));  // nobody wants to read half a million numbers
  CHECK(cuda::pinned_memory_statistics().allocated >= 3 * 512 * 1024 * 4);
}

TEST_CASE("cuda: a copy that was not asked for as non-blocking is done when it returns", "[core][cuda]") {
  if (lacks_gpus()) return;
  const Tensor pinned = cuda::pin_memory(numbers({512, 1024}));
  const Tensor there = ops::to_device(pinned, gpu);
  ops::fill(pinned, 0);
  CHECK((there.to_vector() == numbers({512, 1024}).to_vector()));
  ops::copy_into(pinned, there);
  CHECK((pinned.to_vector() == numbers({512, 1024}).to_vector()));
}

TEST_CASE("cuda: memory comes from the cache, and its figures are told", "[core][cuda]") {
  if (lacks_gpus()) return;
  empty_cache(gpu);
  const AllocatorStatistics before = allocator_statistics(gpu);
  const std::byte* place = nullptr;
  {
    const Tensor x = empty({16 * mebi}, {.dtype = uint8, .device = gpu});
    place = x.raw();
    CHECK(reinterpret_cast<uintptr_t>(place) % 512 == 0);
    CHECK(allocator_statistics(gpu).allocated == before.allocated + 16 * mebi);
  }
  CHECK(allocator_statistics(gpu).allocated == before.allocated);
  CHECK(empty({16 * mebi}, {.dtype = uint8, .device = gpu}).raw() == place);
  empty_cache(gpu);
  CHECK(allocator_statistics(gpu).reserved == before.reserved);
}

TEST_CASE("cuda: after an out-of-memory error a smaller request is served", "[core][cuda]") {
  if (lacks_gpus()) return;
  const int64_t total = cuda::memory_info().total;
  const Tensor kept = numbers({1000}).to(gpu);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(empty({2 * total}, {.dtype = uint8, .device = gpu}), OutOfMemoryError);
    CHECK_THROWS_WITH(empty({2 * total}, {.dtype = uint8, .device = gpu}), Contains("cuda:0"));
    const Tensor smaller = zeros({64 * mebi}, {.dtype = uint8, .device = gpu});
    CHECK(ops::copy(smaller).as_strided({1}, {1}, 64 * mebi - 1).item() == 0);
  }
  CHECK(kept.to_vector() == numbers({1000}).to_vector());
}

TEST_CASE("cuda: memory that another stream uses is not reused too early", "[core][cuda]") {
  if (lacks_gpus()) return;
  const cuda::Stream side({.device = gpu});
  const int64_t n = 64 * mebi;
  Tensor x = full({n}, 255, {.dtype = uint8, .device = gpu});
  const Tensor y = empty({n}, {.dtype = uint8, .device = gpu});
  const cuda::Event ready({.device = gpu});
  ready.record();
  {
    const cuda::StreamGuard guard(side);
    side.wait(ready);
    for (int i = 0; i < 20; ++i) ops::copy_into(y, x);
  }
  cuda::record_stream(x, side);
  x = Tensor();
  const Tensor z =
      zeros({n}, {.dtype = uint8, .device = gpu});  // would overwrite x if it were given its memory
  side.synchronize();
  CHECK(y.as_strided({2}, {n - 1}, 0).to(Device()).to_vector<int>() == std::vector<int>{255, 255});
}

TEST_CASE("cuda: memory that a stream let go is not another's while its work may be under way",
          "[core][cuda]") {
  if (lacks_gpus()) return;
  const int64_t n = 24 * mebi;
  empty_cache(gpu);  // what the other stream lets go shall be all there is
  const Tensor y = empty({n}, {.dtype = uint8, .device = gpu});
  const cuda::Stream side({.device = gpu});
  {
    const cuda::StreamGuard guard(side);
    const Tensor x = full({n}, 255, {.dtype = uint8, .device = gpu});
    ops::copy_into(y, x);
  }
  const Tensor z = zeros({n}, {.dtype = uint8, .device = gpu});
  const auto some = [](const Tensor& t) { return t.as_strided({2}, {t.numel() - 1}, 0).to_vector<int>(); };
  CHECK(some(z) == std::vector<int>{0, 0});
  side.synchronize();
  CHECK(some(z) == std::vector<int>{0, 0});
  CHECK(some(y) == std::vector<int>{255, 255});
}

TEST_CASE("cuda: tensors go from one GPU to another", "[core][cuda]") {
  if (lacks_gpus(2)) return;
  const Device other(DeviceType::cuda, 1);
  const Tensor x = numbers({1000, 100});
  const Tensor y = x.to(gpu).to(other);
  CHECK(y.device() == other);
  CHECK((y.to_vector() == x.to_vector()));
  // Whatever the receiver's stream still has to do comes before, and what is given to it afterwards after.
  for (int i = 0; i < 20; ++i) {
    const Tensor z = zeros({1000, 100}, {.device = gpu});
    ops::copy_into(z, y);
    CHECK((z.to_vector() == x.to_vector()));
  }
}
