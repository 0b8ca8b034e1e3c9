// The number of threads changes no bit of results and gradients.

#include "pleat/autograd/backward.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/tests/op_cases/all_cases.h"

using namespace pleat;
using namespace pleat::test;

namespace {

std::vector<Numbers> computed_with(int threads, const OpCase& c) {
  set_num_threads(threads);
  Tensors x = typed(c.large, float32), leaves, ys, dys;
  if (c.order > 0)
    for (Tensor& t : x)
      if (is_floating(t.dtype())) leaves.push_back(t.set_requires_grad());
  std::vector<Numbers> all;
  for (const Tensor& y : c.run(x)) {
    all.push_back(y.detach().to_vector<double>());
    if (!y.requires_grad()) continue;
    ys.push_back(y);
    dys.push_back(constant(normal(y.shape(), 99), y));
  }
  if (!leaves.empty())
    for (const Tensor& dx : grad(ys, leaves, dys, {.allow_unused = true}))
      if (dx.defined()) all.push_back(dx.to_vector<double>());
  return all;
}

void check_threads(const OpCase& c) {
  if (c.large.empty()) return;
  const int before = num_threads();
  const std::vector<Numbers> alone = computed_with(1, c);
  for (const int threads : {2, 3, 5}) {
    CAPTURE(threads);
    CHECK(computed_with(threads, c) == alone);
  }
  set_num_threads(before);
}

}  // namespace

PLEAT_TEST_FAMILIES("threads", "[op_cases][cpu]", check_threads)
