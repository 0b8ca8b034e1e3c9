#include "pleat/core/parallel/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "pleat/core/parallel/parallel_steps.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

/// Sets the number of threads for a scope.
class Threads {
 public:
  explicit Threads(int threads) : before_(num_threads()) { set_num_threads(threads); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace

TEST_CASE("every index is visited once, whatever the number of threads", "[core]") {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (const int64_t n : {0, 1, 7, 1000, 100001}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
      parallel_for(0, n, 10, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      bool once = true;
      for (const auto& count : seen) once = once && count == 1;
      CHECK(once);
    }
  }
}

TEST_CASE("many short parallel regions in a row all end", "[core]") {
  const Threads scope(4);
  std::atomic<int64_t> total = 0;
  for (int i = 0; i < 5000; ++i)
    parallel_for(0, 4, 1, [&](int64_t first, int64_t last) { total += last - first; });
  CHECK(total == 20000);
}

TEST_CASE("an exception of a piece reaches the caller, and the pool goes on", "[core]") {
  const Threads scope(3);
  const auto failing = [] {
    parallel_for(0, 100, 1, [](int64_t first, int64_t) {
      if (first >= 50) throw std::runtime_error("piece failed");
    });
  };
  CHECK_THROWS_WITH(failing(), "piece failed");
  CHECK_THROWS_WITH(failing(), "piece failed");
  std::atomic<int> count = 0;
  parallel_chunks(10, [&](int64_t) { ++count; });
  CHECK(count == 10);
}

TEST_CASE("parallel regions inside each other and beside each other work", "[core]") {
  const Threads scope(3);
  std::atomic<int> count = 0;
  parallel_chunks(6, [&](int64_t) { parallel_chunks(5, [&](int64_t) { ++count; }); });
  CHECK(count == 30);
  std::vector<std::thread> users;
  for (int u = 0; u < 3; ++u)
    users.emplace_back([&] {
      for (int i = 0; i < 200; ++i) parallel_chunks(4, [&](int64_t) { ++count; });
    });
  for (std::thread& user : users) user.join();
  CHECK(count == 30 + 3 * 200 * 4);
}

TEST_CASE("a serial scope keeps its thread's work in the thread", "[core]") {
  const Threads scope(4);
  const SerialScope serial;
  const auto self = std::this_thread::get_id();
  bool same = true;
  parallel_for(0, 1000, 1, [&](int64_t, int64_t) { same = same && std::this_thread::get_id() == self; });
  CHECK(same);
}

TEST_CASE("a chunk of a step is computed once, after all of the step before", "[core]") {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (const int64_t chunks : {0, 1, 2, 3, 8, 11}) {
      constexpr int64_t steps = 200;
      std::atomic<int64_t> ended = 0;
      std::atomic<bool> in_order = true;
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(steps * chunks));
      parallel_steps(steps, chunks, [&](int64_t step, int64_t chunk) {
        if (ended < step * chunks || ended >= (step + 1) * chunks) in_order = false;
        ++seen[static_cast<std::size_t>(step * chunks + chunk)];
        ++ended;
      });
      CHECK(in_order);
      CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 1; }));
    }
  }
}

TEST_CASE("steps go on while others keep the pool, and an exception ends them", "[core]") {
  const Threads scope(3);
  std::atomic<int64_t> count = 0;
  std::vector<std::thread> users;
  for (int u = 0; u < 3; ++u)
    users.emplace_back([&] {
      for (int i = 0; i < 100; ++i) parallel_steps(5, 3, [&](int64_t, int64_t) { ++count; });
    });
  for (std::thread& user : users) user.join();
  CHECK(count == 3 * 100 * 5 * 3);
  parallel_chunks(2, [&](int64_t) { parallel_steps(5, 3, [&](int64_t, int64_t) { ++count; }); });
  CHECK(count == 3 * 100 * 5 * 3 + 2 * 5 * 3);
  for (const int64_t where : {0, 1, 2}) {
    count = 0;
    const auto failing = [&] {
      parallel_steps(100, 3, [&](int64_t step, int64_t chunk) {
        ++count;
        if (step == 7 && chunk == where) throw std::runtime_error("chunk failed");
      });
    };
    CHECK_THROWS_WITH(failing(), "chunk failed");
    CHECK(count <= 8 * 3);
  }
}

TEST_CASE("the number of threads must make sense", "[core]") {
  CHECK_THROWS_AS(set_num_threads(0), ValueError);
}

TEST_CASE("numbers of threads that no machine has are refused at once", "[core][limits]") {
  const int before = num_threads();
  CHECK(max_num_threads() >= 256);
  for (const int64_t threads : {int64_t{0}, int64_t{-1}, int64_t{max_num_threads()} + 1, int64_t{1000000000},
                                std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()})
    CHECK_THROWS_AS(set_num_threads(threads), ValueError);
  CHECK_THROWS_WITH(set_num_threads(1000000000), "set_num_threads: must be from 1 to " +
                                                     std::to_string(max_num_threads()) +
                                                     " (4 for each core, at least 256), got 1000000000");
  CHECK(num_threads() == before);
}

TEST_CASE("ranges up to the ends of int64 are cut without overflow", "[core][limits]") {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const Threads scope(3);
  std::atomic<int64_t> pieces = 0;
  std::atomic<int64_t> last = 0;
  parallel_for(0, most, 1, [&](int64_t, int64_t end) {
    ++pieces;
    if (end == most) last = end;
  });
  CHECK(pieces <= 13);
  CHECK(last == most);
  CHECK_THROWS_AS(parallel_for(-2, most, 1, [](int64_t, int64_t) {}), ShapeError);
}

TEST_CASE("denormal numbers are numbers, in every function and on every thread", "[core]") {
  constexpr int64_t n = 1 << 17;
  for (const int threads : {1, 4}) {
    const Threads scope(threads);
    for (const DType dtype : {float16, bfloat16, float32, float64}) {
      CAPTURE(threads, name(dtype));
      const double tiny = dtype == float16 ? 0x1p-24 : dtype == float64 ? 1e-310 : 0x1p-133;
      const Tensor x = full({n}, tiny, dtype);
      CHECK(all(x == tiny).item<bool>());
      CHECK(all(x > 0).item<bool>());
      CHECK(count_nonzero(x).item<int64_t>() == n);
      CHECK(all(x.to(boolean)).item<bool>());
      CHECK(sum(x.to(float64)).item() == Approx(n * tiny));
      CHECK(sum(x).item() == Approx(n * tiny));
      CHECK(max(x).item() == tiny);
      CHECK(norm(x).item() == Approx(std::sqrt(n) * tiny).epsilon(1e-2));
      for (const Tensor& same :
           {x * 1, x + 0, abs(x), relu(x), maximum(x, 0), x.clone(), sort(x).values, -(-x),
            where(x > 0, x, 7), clamp(x, {.min = 0}), x / 1, sqrt(x) * sqrt(x) / 1})
        CHECK(same.to_vector<double>()[n - 1] == Approx(tiny).epsilon(dtype == bfloat16 ? 0.01 : 1e-3));
      if (dtype == float32 || dtype == float64)
        CHECK(log(x).to_vector<double>()[n - 1] == Approx(std::log(tiny)));
    }
    CHECK(full({n}, 1e-40, float64).to(float32).to_vector<double>()[n - 1] == double{1e-40F});
    CHECK(exp(full({n}, -90.0)).to_vector()[n - 1] == Approx(std::exp(-90.0F)).epsilon(1e-4));
    CHECK(matmul(full({64, 64}, 0x1p-70), full({64, 64}, 0x1p-70)).to_vector()[4095] == 0x1p-134F);
  }
}

#if defined(__SSE2__)
TEST_CASE("all threads compute in the caller's mode, and leave it as it was", "[core][cpu]") {
  const unsigned before = _mm_getcsr();
  const Tensor x = full({1 << 17}, 1e-40);
  for (const int threads : {1, 4}) {
    const Threads scope(threads);
    for (const unsigned flush : {0x8040u, 0u}) {
      _mm_setcsr((before & ~0x8040u) | flush);
      const Tensor y = x * 1;
      const unsigned after = _mm_getcsr();
      _mm_setcsr(before);
      CHECK((after & 0x8040u) == flush);
      CHECK(count_nonzero(y).item<int64_t>() == (flush != 0 ? 0 : x.numel()));
    }
  }
}
#endif
