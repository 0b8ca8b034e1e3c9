// Losses on the other device.

#include "pleat/autograd/functions/loss.h"

#include "pleat/nn/loss.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;
using namespace pleat::test;

namespace {

const std::vector<Reduction> reductions{Reduction::none, Reduction::mean, Reduction::sum,
                                        Reduction::batch_mean};

/// Logits of 5 classes for 6 samples, and for images; class indices, some of which are to be ignored.
struct ClassInputs {
  Tensor logits, target;
};
std::vector<ClassInputs> class_inputs() {
  return {{normal({6, 5}), integers({6}, 0, 5)}, {normal({2, 5, 3, 4}), integers({2, 3, 4}, 0, 5)}};
}

/// A loss of two tensors of one shape, by all reductions.
void agrees_reduced(const Tensor& x, const Tensor& target,
                    const std::function<Tensor(const Tensor&, const Tensor&, Reduction)>& loss) {
  for (const Reduction reduction : reductions) {
    CAPTURE(static_cast<int>(reduction));
    agrees({x, target}, [&](const Tensors& t) { return loss(t[0], t[1], reduction); });
  }
}

}  // namespace

TEST_CASE("device: cross_entropy", "[device]") {
  for (const ClassInputs& in : class_inputs())
    for (const Reduction reduction : reductions) {
      CAPTURE(static_cast<int>(reduction));
      agrees({in.logits, in.target}, [&](const Tensors& t) {
        return cross_entropy(t[0], t[1], {.ignore_index = 2, .reduction = reduction});
      });
      agrees({in.logits, in.target}, [&](const Tensors& t) {
        return cross_entropy(t[0], t[1],
                             {.weight = constant(uniform({5}, 0.5, 2, 3), t[0]),
                              .label_smoothing = 0.1,
                              .reduction = reduction});
      });
    }
  // Targets that are probabilities.
  agrees({normal({6, 5})}, [](const Tensors& t) {
    return cross_entropy(t[0], constant(uniform({6, 5}, 0.1, 0.3, 2), t[0]));
  });
}
TEST_CASE("device: nll_loss", "[device]") {
  for (const ClassInputs& in : class_inputs())
    agrees({in.logits, in.target}, [](const Tensors& t) {
      return nll_loss(t[0], t[1], {.weight = constant(uniform({5}, 0.5, 2, 3), t[0]), .ignore_index = 2});
    });
}
TEST_CASE("device: class_cross_entropies and nll_losses", "[device]") {
  for (const ClassInputs& in : class_inputs()) {
    agrees({in.logits, in.target},
           [](const Tensors& t) { return class_cross_entropies(t[0], t[1], {}, {.label_smoothing = 0.2}); });
    agrees({in.logits, in.target}, [](const Tensors& t) { return nll_losses(t[0], t[1], {}); });
  }
}
TEST_CASE("device: a class outside is an error there, too", "[device]") {
  agrees_in_value({normal({6, 5}), integers({6}, 0, 9)},
                  [](const Tensors& t) { return cross_entropy(t[0], t[1]); });
}

TEST_CASE("device: mse_loss", "[device]") {
  agrees_reduced(normal({4, 5}), normal({4, 5}, 2),
                 [](const Tensor& x, const Tensor& y, Reduction r) { return mse_loss(x, y, {r}); });
}
TEST_CASE("device: l1_loss", "[device]") {
  agrees_reduced(normal({4, 5}), normal({4, 5}, 2),
                 [](const Tensor& x, const Tensor& y, Reduction r) { return l1_loss(x, y, {r}); });
}
TEST_CASE("device: smooth_l1_loss", "[device]") {
  agrees_reduced(normal({4, 5}), normal({4, 5}, 2), [](const Tensor& x, const Tensor& y, Reduction r) {
    return smooth_l1_loss(x, y, {.beta = 0.7, .reduction = r});
  });
}
TEST_CASE("device: huber_loss", "[device]") {
  agrees_reduced(normal({4, 5}), normal({4, 5}, 2), [](const Tensor& x, const Tensor& y, Reduction r) {
    return huber_loss(x, y, {.delta = 0.7, .reduction = r});
  });
}
TEST_CASE("device: distance_losses", "[device]") {
  agrees({normal({4, 5}), normal({4, 5}, 2)}, [](const Tensors& t) {
    return distance_losses("huber", t[0], t[1], {ops::DistanceLoss::Kind::huber, 0.5});
  });
}
TEST_CASE("device: bce_with_logits", "[device]") {
  agrees_reduced(normal({4, 5}), uniform({4, 5}, 0, 1, 2), [](const Tensor& x, const Tensor& y, Reduction r) {
    return bce_with_logits(x, y, {.reduction = r});
  });
  agrees({normal({4, 5}), uniform({4, 5}, 0, 1, 2)}, [](const Tensors& t) {
    return bce_with_logits(t[0], t[1],
                           {.weight = constant(uniform({4, 5}, 0.5, 2, 3), t[0]),
                            .pos_weight = constant(uniform({5}, 0.5, 2, 4), t[0])});
  });
}
TEST_CASE("device: binary_cross_entropies", "[device]") {
  agrees({normal({4, 5}), uniform({4, 5}, 0, 1, 2)},
         [](const Tensors& t) { return binary_cross_entropies(t[0], t[1], {}); });
}
TEST_CASE("device: kl_div", "[device]") {
  agrees_reduced(
      normal({4, 5}), uniform({4, 5}, 0.1, 1, 2),
      [](const Tensor& x, const Tensor& y, Reduction r) { return kl_div(x, y, {.reduction = r}); });
  agrees({normal({4, 5}), normal({4, 5}, 2)},
         [](const Tensors& t) { return kl_div(t[0], t[1], {.log_target = true}); });
}
