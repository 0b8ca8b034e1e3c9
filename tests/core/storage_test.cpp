#include "pleat/core/tensor/storage.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

/// The numbers 0, 1, 2 ..., and how often they were computed.
struct Ramp : Deferred {
  Ramp(int64_t n_, std::atomic<int>& computed_) : n(n_), computed(computed_) {}
  void compute(std::byte* elements) const override {
    if (computed++ < failures) throw ValueError("ramp: not yet");
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<float*>(elements)[i] = static_cast<float>(i);
  }
  int64_t n;
  std::atomic<int>& computed;
  int failures = 0;
};

Tensor deferred(const std::shared_ptr<Ramp>& ramp) {
  return make_tensor(std::make_shared<Storage>(ramp, ramp->n * 4, Device()), {ramp->n}, {1}, 0, float32);
}

}  // namespace

TEST_CASE("storage: what is deferred is computed once, when an element is read", "[core][cpu]") {
  std::atomic<int> computed = 0;
  const Tensor t = deferred(std::make_shared<Ramp>(4, computed));
  const Tensor view = t.as_strided({2}, {2}, 1);
  CHECK(t.shape() == Shape{4});
  CHECK(t.impl().storage->deferred() != nullptr);
  CHECK(computed == 0);
  CHECK(view.to_vector<double>() == std::vector<double>{1, 3});
  CHECK(computed == 1);
  CHECK(t.impl().storage->deferred() == nullptr);
  CHECK(t.to_vector<double>() == std::vector<double>{0, 1, 2, 3});
  CHECK(computed == 1);
}

TEST_CASE("storage: writing to a part of what is deferred keeps the rest", "[core][cpu]") {
  std::atomic<int> computed = 0;
  const Tensor t = deferred(std::make_shared<Ramp>(3, computed));
  ops::fill(t.as_strided({1}, {1}, 1), 7);
  CHECK(t.to_vector<double>() == std::vector<double>{0, 7, 2});
}

TEST_CASE("storage: many threads may read what is deferred", "[core][cpu]") {
  std::atomic<int> computed = 0;
  const Tensor t = deferred(std::make_shared<Ramp>(1000, computed));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { right += t.data<float>()[999] == 999 ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 8);
  CHECK(computed == 1);
}

TEST_CASE("storage: what fails to be computed stays deferred", "[core][cpu]") {
  std::atomic<int> computed = 0;
  const auto ramp = std::make_shared<Ramp>(2, computed);
  ramp->failures = 1;
  const Tensor t = deferred(ramp);
  CHECK_THROWS_AS(t.raw(), ValueError);
  CHECK(t.to_vector<double>() == std::vector<double>{0, 1});
}

TEST_CASE("tensor: a note holds until the elements are changed in place", "[core][cpu]") {
  const Tensor t = zeros({2});
  CHECK(t.note<std::string>() == nullptr);
  t.set_note<std::string>(std::make_shared<std::string>("zeros"));
  REQUIRE(t.note<std::string>() != nullptr);
  CHECK(*t.note<std::string>() == "zeros");
  CHECK(t.note<int>() == nullptr);
  t.begin_write();
  CHECK(t.note<std::string>() == nullptr);
}
