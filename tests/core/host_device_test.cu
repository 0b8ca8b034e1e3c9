#include <vector>

#include "pleat/core/cuda.h"
#include "pleat/core/host_device.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"

using namespace pleat;

namespace {

/// out[i] = 3 in[n - 1 - i]
struct Reversed {
  const float* in;
  float* out;
  int64_t n;
  PLEAT_HOST_DEVICE void operator()(int64_t i) const { out[i] = 3 * in[n - 1 - i]; }
};

}  // namespace

TEST_CASE("a .cu file runs its functors over threads, with and without CUDA", "[core]") {
  const int64_t n = 5000;
  std::vector<float> in(n), out(n);
  for (int64_t i = 0; i < n; ++i) in[i] = static_cast<float>(i);
  for_each_index(n, Reversed{in.data(), out.data(), n});
  for (int64_t i = 0; i < n; ++i) REQUIRE(out[i] == static_cast<float>(3 * (n - 1 - i)));
}
