#include "pleat/nn/dropout.h"

#include <algorithm>
#include <set>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("Dropout drops in training only", "[nn]") {
  manual_seed(1);
  nn::Dropout dropout{{.p = 0.25}};
  const Tensor x = full({100, 100}, 3.0);
  const auto y = dropout(x).to_vector();
  CHECK(std::set<float>(y.begin(), y.end()) == std::set<float>{0, 4});
  CHECK(static_cast<double>(std::count(y.begin(), y.end(), 0.0F)) == Approx(2500).margin(200));
  dropout.eval();
  CHECK(dropout(x).to_vector() == x.to_vector());
  CHECK(dropout.options_text() == "p=0.25");
}

TEST_CASE("Dropout1d, 2d and 3d drop whole channels of images of their rank", "[nn][cpu]") {
  manual_seed(2);
  nn::Dropout2d dropout;
  const auto y = dropout(ones({8, 16, 2, 3})).to_vector();
  std::set<float> kept;
  for (std::size_t channel = 0; channel < 8 * 16; ++channel) {
    kept.insert(y[channel * 6]);
    for (std::size_t i = 0; i < 6; ++i) CHECK(y[channel * 6 + i] == y[channel * 6]);
  }
  CHECK(kept == std::set<float>{0, 2});
  CHECK_THROWS_WITH(dropout(ones({2, 3, 4})),
                    "Dropout2d: needs [N, C] and 2 spatial dimensions, got [2, 3, 4] float32 cpu");
  CHECK_THROWS_WITH((nn::Dropout3d{{.p = 1.5}}), "Dropout3d: p must be in [0, 1], got 1.5");
  CHECK_THROWS_AS((nn::Dropout{{.p = -0.1}}), ValueError);
}

TEST_CASE("StochasticDepth leaves out whole samples in training", "[nn]") {
  manual_seed(3);
  nn::StochasticDepth depth{{.p = 0.5}};
  const Tensor x = ones({64, 3, 2});
  const auto y = depth(x).to_vector();
  std::set<float> kept;
  for (std::size_t sample = 0; sample < 64; ++sample) {
    kept.insert(y[sample * 6]);
    for (std::size_t i = 0; i < 6; ++i) CHECK(y[sample * 6 + i] == y[sample * 6]);
  }
  CHECK(kept == std::set<float>{0, 2});
  CHECK_THROWS_WITH(depth(full({}, 1.0)), Contains("StochasticDepth: needs samples [N, ...], got []"));
  CHECK_THROWS_AS((nn::StochasticDepth{{.p = 2}}), ValueError);
  depth.eval();
  CHECK(depth(x).to_vector() == x.to_vector());
}
