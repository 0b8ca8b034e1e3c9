#include "pleat/core/tensor/convert.h"

#include <bit>
#include <cmath>
#include <vector>

#include "pleat/core/tensor/half.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from) {
  std::vector<To> to(from.size());
  find_convert_run(dtype_of<To>(), dtype_of<From>())(reinterpret_cast<std::byte*>(to.data()), {1},
                                                     reinterpret_cast<const std::byte*>(from.data()), {1},
                                                     static_cast<int64_t>(from.size()), 1);
  return to;
}

}  // namespace

TEST_CASE("rows of float16 become float32 exactly", "[core]") {
  std::vector<Half> halves(65535);  // all but the last: no multiple of a vector
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<uint16_t>(i);
  const std::vector<float> floats = converted<float>(halves);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const float wanted = static_cast<float>(halves[i]);
    if (std::isnan(wanted))
      REQUIRE(std::isnan(floats[i]));
    else
      REQUIRE(std::bit_cast<uint32_t>(floats[i]) == std::bit_cast<uint32_t>(wanted));
  }
}

TEST_CASE("rows of float32 are rounded to float16", "[core]") {
  std::vector<float> floats;
  for (uint32_t bits = 0x30000000u; bits < 0x7f900000u; bits += 4099)
    for (const uint32_t sign : {0u, 0x80000000u}) floats.push_back(std::bit_cast<float>(bits | sign));
  // Ties and ends of the range.
  for (const float x : {0.0f, -0.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 1 + 0x1p-11f, 1 + 0x1.8p-10f, 65504.0f,
                        65519.0f, 65520.0f, -1e30f})
    floats.push_back(x);
  const std::vector<Half> halves = converted<Half>(floats);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    if (std::isnan(floats[i]))
      REQUIRE(std::isnan(static_cast<float>(halves[i])));
    else
      REQUIRE(halves[i].bits == Half(floats[i]).bits);
  }
}

TEST_CASE("rows that repeat one element each are written within their bounds", "[core]") {
  for (const int64_t n : {1, 2, 3, 10, 15, 16, 17, 40})
    for (const int64_t rows : {1, 2, 7, 33}) {
      const std::vector<float> from{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
      std::vector<double> to(static_cast<std::size_t>(n * rows + 1), -1.0);
      find_convert_run(float64, float32)(reinterpret_cast<std::byte*>(to.data()), {1, n},
                                         reinterpret_cast<const std::byte*>(from.data()), {0, 0}, n, rows);
      for (int64_t i = 0; i < n * rows; ++i) REQUIRE(to[static_cast<std::size_t>(i)] == 1);
      REQUIRE(to.back() == -1);
    }
}
