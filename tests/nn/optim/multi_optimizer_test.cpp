#include "pleat/nn/optim/multi_optimizer.h"

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/optim/muon.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

/// A matrix for Muon and a vector for AdamW, the same each time.
struct Weights {
  Tensor matrix, vector;
  Weights() {
    Generator generator(5);
    matrix = empty({3, 4});
    vector = empty({4});
    fill_normal_(matrix, 0, 1, generator);
    fill_normal_(vector, 0, 1, generator);
    matrix.set_requires_grad();
    vector.set_requires_grad();
  }
  void set_grads(uint64_t seed) const {
    Generator generator(seed);
    for (const Tensor& param : {matrix, vector}) {
      const Tensor grad = empty(param.shape());
      fill_normal_(grad, 0, 1, generator);
      param.set_grad(grad);
    }
  }
  std::vector<float> values() const {
    std::vector<float> all = matrix.to_vector();
    for (const float value : vector.to_vector()) all.push_back(value);
    return all;
  }
};

optim::MultiOptimizer both_of(const Weights& w) {
  return optim::MultiOptimizer{optim::Muon{{w.matrix}, {.lr = 0.02, .weight_decay = 0.1}},
                               optim::AdamW{{w.vector}, {.lr = 1e-3}}};
}

}  // namespace

TEST_CASE("several optimisers as one do what they do by themselves") {
  const Weights together, apart;
  optim::MultiOptimizer both = both_of(together);
  optim::Schedule schedule{both, optim::CosineAnnealingLR{.steps = 8}};
  optim::Muon muon{{apart.matrix}, {.lr = 0.02, .weight_decay = 0.1}};
  optim::AdamW adamw{{apart.vector}, {.lr = 1e-3}};
  optim::Schedule muon_schedule{muon, optim::CosineAnnealingLR{.steps = 8}};
  optim::Schedule adamw_schedule{adamw, optim::CosineAnnealingLR{.steps = 8}};
  const std::vector<float> before = together.values();
  for (uint64_t step = 0; step < 5; ++step) {
    together.set_grads(step);
    apart.set_grads(step);
    both.step();
    schedule.step();
    muon.step();
    adamw.step();
    muon_schedule.step();
    adamw_schedule.step();
  }
  CHECK(together.values() != before);
  CHECK(together.values() == apart.values());
  CHECK(both.lr(0) == muon.lr());
  CHECK(both.lr(1) == adamw.lr());
  CHECK(both.lr(1) < 1e-3);
  both.zero_grad();
  CHECK_FALSE(together.matrix.grad().defined());
  CHECK_FALSE(together.vector.grad().defined());
}

TEST_CASE("groups of several optimisers are counted through") {
  const Weights w;
  const Tensor a = ones({1}).set_requires_grad();
  const Tensor b = ones({1}).set_requires_grad();
  optim::MultiOptimizer all{optim::SGD{{{{a}, {.lr = 1}}, {{b}, {.lr = 2, .momentum = 0.5}}}},
                            optim::AdamW{{w.vector}, {.lr = 3}}, optim::Muon{{w.matrix}, {.lr = 4}}};
  REQUIRE(all.num_groups() == 4);
  CHECK(all.num_parts() == 3);
  CHECK(all.parameters().size() == 4);
  for (std::size_t group = 0; group < 4; ++group) CHECK(all.lr(group) == static_cast<double>(group + 1));
  all.set_lr(1, 7);
  all.set_momentum(2, 0.25);
  CHECK(all.part(0).lr(1) == 7);
  CHECK(all.part(1).momentum() == 0.25);
  CHECK(all.momentum(1) == 0.5);
  CHECK_THROWS_AS(all.lr(4), IndexError);
  CHECK_THROWS_WITH((optim::MultiOptimizer{optim::SGD{{a}, {.lr = 1}}, optim::AdamW{{b, a}}}),
                    Contains("is trained by two optimisers, SGD and AdamW"));
}

TEST_CASE("training with several optimisers goes on from a saved state to the bit") {
  const Weights first, second;
  optim::MultiOptimizer one = both_of(first);
  for (uint64_t step = 0; step < 3; ++step) {
    first.set_grads(step);
    one.step();
  }
  const nn::StateDict state = one.state_dict();
  CHECK(state.contains("0.param.0.momentum_buffer"));
  CHECK(state.contains("1.group.0.lr"));
  ops::copy_into(second.matrix, first.matrix);
  ops::copy_into(second.vector, first.vector);
  optim::MultiOptimizer other = both_of(second);
  other.set_lr(9);
  other.load_state_dict(state);
  for (uint64_t step = 3; step < 6; ++step) {
    first.set_grads(step);
    second.set_grads(step);
    one.step();
    other.step();
  }
  CHECK(first.values() == second.values());
}

TEST_CASE("when one of several optimisers refuses, none has changed anything") {
  const Weights w;
  optim::MultiOptimizer both = both_of(w);
  w.set_grads(1);
  const std::vector<float> before = w.values();
  CHECK_THROWS_WITH(both.set_lr(1, -1), Contains("AdamW: lr must be at least 0"));
  dynamic_cast<optim::AdamW&>(both.part(1)).options().lr = -1;
  CHECK_THROWS_WITH(both.step(), Contains("AdamW: lr must be at least 0"));
  CHECK(w.values() == before);

  dynamic_cast<optim::AdamW&>(both.part(1)).options().lr = 1e-3;
  nn::StateDict bad = both.state_dict();
  bad["0.group.0.lr"] = scalar(5.0, float64);
  bad.erase("1.param.0.step");
  bad["stray"] = ones({1});
  CHECK_THROWS_WITH(both.load_state_dict(bad),
                    Contains("MultiOptimizer: the state does not fit") &&
                        Contains("AdamW, names beginning with \"1.\"\n  missing     param.0.step") &&
                        Contains("unexpected  stray"));
  CHECK(both.lr(0) == 0.02);
}
