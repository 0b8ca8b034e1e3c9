#include <cstring>
#include <vector>

#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;

namespace {

const Device gpu(DeviceType::cuda);

struct TwiceAndOther {
  PLEAT_HOST_DEVICE float operator()(float a, float b) const { return 2 * a + b; }
};

struct TwiceOrOther {
  PLEAT_HOST_DEVICE float operator()(float a, uint8_t b) const { return 2 * a + static_cast<float>(b); }
};

struct Same {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return a;
  }
};

/// Whether a kernel that moves Ts moves all their bits, also those of NaNs.
template <class T>
bool moves_all_bits() {
  std::vector<uint16_t> bits(65536), moved(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  const Tensor x = empty({65536}, {.dtype = dtype_of<T>()});
  std::memcpy(x.raw(), bits.data(), 2 * bits.size());
  const Tensor there = ops::to_device(x, gpu), y = empty_like(there);
  elementwise_kernel<T, T>("test", y, {there}, Same{});
  const Tensor back = ops::to_device(y, "cpu");
  std::memcpy(moved.data(), back.raw(), 2 * moved.size());
  return moved == bits;
}

}  // namespace

TEST_CASE("cuda: elements that are moved keep their bits", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  CHECK(moves_all_bits<Half>());
  CHECK(moves_all_bits<BFloat16>());
}

TEST_CASE("cuda: elements of operands that lie in any way, and of loops cut into parts", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  manual_seed(7);
  const Tensor whole = randn({6, 5, 12, 8}), odd = randn({3, 7, 11});
  struct Case {
    Tensor out, a, b;
  };
  const auto like = [](const Tensor& x) { return empty_like(x); };
  const std::vector<Case> cases = {
      {like(whole), whole, randn({6, 5, 12, 8})},
      {like(whole), whole, randn({5, 1, 1})},                               // one of each plane
      {like(whole), whole, randn({8})},                                     // one run of all
      {like(whole), whole, permute(randn({8, 12, 5, 6}), {3, 2, 1, 0})},    // elements apart
      {like(whole), whole, randn({6, 5, 12, 8}).to(float16)},               // another type
      {like(whole).to(bfloat16), whole.to(float16), randn({1}).to(int32)},  // three of them
      {like(odd), odd, randn({3, 7, 11})},                                  // a rest of one
      {narrow(empty({3, 7, 12}), 2, 1, 11), odd, randn({11})},              // not at a multiple of 16 bytes
      {permute(empty({8, 6, 12, 5}), {1, 3, 2, 0}), whole, randn({5, 1, 1})},  // the result's elements apart
      {empty({1}), randn({1}), randn({1})},
      {empty({0, 3}), empty({0, 3}), randn({3})}};
  for (const Case& c : cases) {
    CAPTURE(c.out.describe(), c.a.describe(), c.b.describe());
    const Tensor a32 = ops::cast(c.a, float32);
    const Tensor expected = ops::cast(add(add(a32, a32), ops::cast(c.b, float32)), c.out.dtype());
    for (const int64_t most : {small_loop, int64_t{1000}, int64_t{10}, int64_t{2}}) {
      const auto there = [](const Tensor& x) {  // with the same strides
        const Tensor room = x.is_dense() ? ops::to_device(x, gpu) : ops::to_device(x.contiguous(), gpu);
        return room;
      };
      const Tensor a = there(c.a), b = there(c.b);
      Tensor out = ops::to_device(empty({c.out.numel() * 2 + 8}, {.dtype = c.out.dtype()}), gpu);
      out = c.out.is_dense() ? out.as_strided(c.out.shape(), c.out.strides(), 0)
                             : narrow(out.as_strided({3, 7, 12}, {84, 12, 1}, 0), 2, 1, 11);
      elementwise_kernel<float, float, float>("test", out, {a, b}, TwiceAndOther{}, most);
      CHECK(ops::to_device(ops::copy(out), "cpu").to_vector() == expected.to_vector());
    }
  }
}

TEST_CASE("cuda: elements of half types, eight at a time, four or one", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  manual_seed(9);
  for (const DType dtype : {float16, bfloat16})
    for (const int64_t first : {0, 8, 4, 1})
      for (const int64_t n : {48, 44, 43, 8, 4})
        for (const bool whole : {false, true}) {
          // Rows or, of one after the other, a run; beside what nothing may write.
          const auto part = [&](const Tensor& room) {
            return whole ? narrow(reshape(room, {192}), 0, first, n) : narrow(room, 1, first, n);
          };
          const Tensor a = ops::cast(randn({3, 64}), dtype), b = ops::cast(randn({3, 64}), dtype);
          const Tensor mask = greater(b, ops::cast(zeros({1}), dtype));
          CAPTURE(a.describe(), first, n, whole);
          const Tensor a_there = part(ops::to_device(a, gpu)), b_there = part(ops::to_device(b, gpu));
          const Tensor room = ops::to_device(ops::cast(zeros({3, 64}), dtype), gpu);
          const auto check = [&](const Tensor& other, const Tensor& result) {
            const Tensor expected = ops::cast(zeros({3, 64}), dtype), of_a = ops::cast(part(a), float32);
            ops::copy_into(part(expected), add(add(of_a, of_a), ops::cast(other, float32)));
            CHECK(ops::to_device(result, "cpu").to_vector() == expected.to_vector());
          };
          elementwise_kernel<float, float, float>("test", part(room), {a_there, b_there}, TwiceAndOther{});
          check(part(b), room);
          const Tensor one = ops::cast(randn({1}), float32);
          elementwise_kernel<float, float, float>("test", part(room), {a_there, ops::to_device(one, gpu)},
                                                  TwiceAndOther{});
          check(one, room);
          // With bytes, of which a vector of eight has as many as there are.
          const Tensor mask_there = part(ops::to_device(mask, gpu));
          elementwise_kernel<float, float, bool>("test", part(room), {a_there, mask_there}, TwiceOrOther{});
          check(part(mask), room);
        }
}

TEST_CASE("cuda: copies between memory orders, tile by tile and of what is smaller", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  manual_seed(8);
  for (const DType dtype : {float32, float16, float64, uint8})
    for (const Shape& shape :
         {Shape{2, 16, 4, 8}, Shape{3, 33, 7, 5}, Shape{1, 70, 40, 1}, Shape{2, 3, 9, 9}}) {
      const Tensor x = ops::cast(multiply(randn(shape), scalar(50)), dtype), there = ops::to_device(x, gpu);
      CAPTURE(x.describe());
      const auto check = [&](const Tensor& y, const Tensor& expected) {
        CHECK(ops::to_device(y, "cpu").to_vector() == expected.to_vector());
      };
      const Tensor last = ops::to_format(there, MemoryFormat::channels_last);
      check(last, x);
      check(ops::to_format(last, MemoryFormat::contiguous), x);
      check(ops::copy(transpose(there, 1, 2)).contiguous(), transpose(x, 1, 2).contiguous());
      check(transpose(there, 0, 3).contiguous(), transpose(x, 0, 3).contiguous());
      check(narrow(last, 1, 1, shape[1] - 1).contiguous(), narrow(x, 1, 1, shape[1] - 1).contiguous());
    }
}
