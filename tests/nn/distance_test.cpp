#include "pleat/nn/distance.h"

#include <cmath>
#include <vector>

#include "pleat/core/tensor/create.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("modules of two inputs compute their functions with their options", "[nn]") {
  const Tensor a = tensor({{1.0, 2.0, 2.0}, {0.0, 3.0, 4.0}});
  const Tensor b = tensor({{2.0, 4.0, 4.0}, {3.0, 0.0, 0.0}});
  nn::CosineSimilarity similarity;
  const auto cosines = similarity.forward(a, b).to_vector();
  CHECK(cosines[0] == Approx(1));
  CHECK(cosines[1] == 0);
  nn::CosineSimilarity along_0{{.dim = 0}};
  CHECK(along_0.forward(a, b).to_vector() == cosine_similarity(a, b, {.dim = 0}).to_vector());
  nn::PairwiseDistance distance{{.p = 1, .eps = 0, .keepdim = true}};
  const Tensor y = distance.forward(a, b);
  CHECK(y.shape() == Shape{2, 1});
  CHECK(y.to_vector() == std::vector<float>{5, 10});
  CHECK(distance.type_name() == "PairwiseDistance");
}

TEST_CASE("vectors of zeros have similarities of 0 and finite gradients") {
  const Tensor zero = zeros({1, 3}).set_requires_grad();
  const Tensor y = cosine_similarity(zero, ones({1, 3}));
  CHECK(y.item() == 0);
  sum(y).backward();
  for (const float g : zero.grad().to_vector()) CHECK(std::isfinite(g));
  CHECK(normalize(zeros({1, 3})).to_vector() == std::vector<float>(3));
}
