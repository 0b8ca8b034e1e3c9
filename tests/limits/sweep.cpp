#include "pleat/tests/limits/sweep.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/address_sanitizer.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/system.h"

#if defined(__SANITIZE_THREAD__)
#define PLEAT_SHADOW_MEMORY 1
#else
#define PLEAT_SHADOW_MEMORY PLEAT_ADDRESS_SANITIZER
#endif

using namespace pleat;

namespace pleat_test {
namespace {

constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr int64_t most = std::numeric_limits<int64_t>::max();
constexpr std::array<int64_t, 17> extremes = {least,
                                              least + 1,
                                              -(int64_t{1} << 62),
                                              -(int64_t{1} << 32),
                                              -2,
                                              -1,
                                              0,
                                              1,
                                              2,
                                              7,
                                              int64_t{1} << 31,
                                              int64_t{1} << 32,
                                              int64_t{1} << 40,
                                              int64_t{1} << 61,
                                              int64_t{1} << 62,
                                              most - 1,
                                              most};

constexpr int64_t memory = int64_t{4} << 20;           // for tensors and tables
constexpr int64_t address_space = int64_t{512} << 20;  // with stacks of threads
constexpr double most_seconds = 5;                     // under a sanitizer, on a busy machine

/// Reads the result, and takes the way back where there is one.
void use(const Tensor& y) {
  if (!y.defined()) return;
  (void)y.describe();
  if (y.numel() == 0 || y.numel() > 1 << 20) return;
  if (y.requires_grad())
    sum(y).backward();
  else
    (void)y.to_vector<double>();
}

std::string text_of(const Integers& i) {
  std::string text;
  for (const int64_t value : i) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "(" + text + ")";
}

/// "" or what is wrong.
std::string trouble_with(const SweptCall& call, const Integers& i) {
  const auto start = std::chrono::steady_clock::now();
  std::string trouble;
  try {
    use(call(i));
  } catch (const Error&) {
    // refused
  } catch (const std::exception& error) {
    trouble = std::string("throws what is no pleat::Error: ") + error.what();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (trouble.empty() && seconds.count() > most_seconds)
    trouble = "takes " + std::to_string(seconds.count()) + " seconds";
  return trouble;
}

}  // namespace

void sweep_calls(const std::string& name, const Integers& usual, const SweptCall& call) {
  const HostMemoryScope limit(allocator_statistics().allocated + memory);
  std::optional<AddressSpaceLimit> space;
  if (PLEAT_SHADOW_MEMORY == 0) space.emplace(address_space);
  std::string wrong;
  const auto run = [&](const Integers& i) {
    const std::string trouble = trouble_with(call, i);
    if (!trouble.empty() && wrong.size() < 2000) wrong += "\n  " + name + text_of(i) + " " + trouble;
  };
  run(usual);
  for (std::size_t a = 0; a < usual.size(); ++a)
    for (const int64_t first : extremes) {
      Integers i = usual;
      i[a] = first;
      run(i);
      for (std::size_t b = a + 1; b < usual.size(); ++b)
        for (const int64_t second : extremes) {
          Integers pair = i;
          pair[b] = second;
          run(pair);
        }
    }
  INFO(wrong);
  CHECK(wrong.empty());
}

std::vector<Tensor> small_tensors(int64_t rank) {
  const auto dims = static_cast<std::size_t>(rank);
  constexpr std::array<int64_t, 5> usual = {2, 4, 3, 5, 2};
  const Shape shape(usual.begin(), usual.begin() + rank);
  std::vector<Tensor> result;
  Generator generator(7);
  result.push_back(rand(shape, {}, generator));
  result.back().set_requires_grad();
  result.push_back(ones(shape, {.dtype = uint8}));
  if (rank >= 3 && rank <= 5) {
    result.push_back(rand(shape, {.dtype = float64, .format = MemoryFormat::channels_last}, generator));
    result.back().set_requires_grad();
  }
  if (rank >= 1) {
    Shape large = shape;
    large.front() = 0;
    if (rank >= 2) large.back() = int64_t{1} << 40;
    result.push_back(zeros(large));
    // Of more elements than memory has room for.
    const int64_t repeats = rank == 1 ? int64_t{1} << 62 : 1 << 12;
    result.push_back(expand(ones(Shape(dims, 1)), Shape(dims, repeats)));
  }
  return result;
}

}  // namespace pleat_test
