#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/parallel/parallel.h"
#include "pleat/pleat.h"
#include "pleat/tests/op_cases/all_cases.h"

// What calls take of the heap: a function whose messages are made although nothing is wrong, or which copies
// shapes about, takes much.

namespace {
thread_local int64_t allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// That of AddressSanitizer would not fit the delete below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pleat::test {
namespace {

template <class F>
int64_t allocations_of(const F& call) {
  call();  // which may keep something for the next
  const int64_t before = allocations;
  call();
  return allocations - before;
}

}  // namespace

TEST_CASE("functions take little of the heap beside their results", "[op_cases][cpu]") {
  // Functions that call others, by the beginnings of their names, of which the first counts.
  const std::vector<std::pair<int64_t, std::vector<std::string>>> of_several{
      {115,
       {"conv_norm_act", "norm_act_conv", "lp_pool", "local_response_norm", "cosine_similarity",
        "cross_entropy", "roll", "scatter_reduce", "quantile", "interpolate", "bincount", "kl_div"}},
      {165,
       {"multi_margin_loss", "poisson_nll_loss", "multinomial", "triplet_margin_loss", "roi_align",
        "gather_nd", "conv_transpose", "affine_grid", "dice_loss", "scatter_nd", "recurrent",
        "gaussian_nll_loss"}},
      {210, {"box_iou", "cosine_embedding_loss", "scaled_dot_product_attention", "einsum", "cross"}},
      {390, {"deform_conv2d"}}};
  const auto most_of = [&](const OpCase& c) {
    for (const auto& [most, names] : of_several)
      for (const std::string& name : names)
        if (c.name.starts_with(name)) return most;
    return int64_t{64};
  };
  const NoGrad guard;
  const SerialScope serial;
  std::string more;
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      const Tensors x = typed(c.inputs, c.types.floating ? float32 : int64);
      const int64_t count = allocations_of([&] { c.run(x); });
      if (count > most_of(c))
        more += c.title() + ": " + std::to_string(count) + " allocations, at most " +
                std::to_string(most_of(c)) + " are expected\n";
    }
  CHECK(more == "");
}

TEST_CASE("calls that networks are made of take next to nothing of the heap", "[op_cases][cpu]") {
  const NoGrad guard;
  const SerialScope serial;
  const Tensor x = randn({1, 8, 4, 4}), w = randn({8, 8, 3, 3}), one = ones({8}), zero = zeros({8});
  const Tensor rows = randn({1, 64}), matrix = randn({64, 64}), bias = randn({64});
  CHECK(allocations_of([&] { conv2d(x, w, one, {.padding = 1}); }) <= 27);
  CHECK(allocations_of([&] { conv2d(x, randn({8, 1, 3, 3}), {}, {.padding = 1, .groups = 8}); }) <= 45);
  CHECK(allocations_of([&] { conv_transpose2d(x, w, {}, {.stride = 2}); }) <= 72);
  CHECK(allocations_of([&] { unfold(x, {.kernel_size = 3}); }) <= 6);
  CHECK(allocations_of([&] { adaptive_avg_pool2d(x, {.output_size = 1}); }) <= 48);
  CHECK(allocations_of([&] { interpolate(x, {.scale_factor = 2}); }) <= 60);
  CHECK(allocations_of([&] { batch_norm(x, one, zero, zero, one, {.training = false}); }) <= 22);
  CHECK(allocations_of([&] { layer_norm(rows, bias, bias, {.normalized_shape = 64}); }) <= 30);
  CHECK(allocations_of([&] { linear(rows, matrix, bias); }) <= 8);
  CHECK(allocations_of([&] { max_pool2d(x, {.kernel_size = 2}); }) <= 20);
  CHECK(allocations_of([&] { silu(x); }) <= 10);
  CHECK(allocations_of([&] { x + x; }) <= 10);
  CHECK(allocations_of([&] { mean(x); }) <= 20);
  CHECK(allocations_of([&] { reshape(x, {1, 128}); }) <= 5);
}

}  // namespace pleat::test
