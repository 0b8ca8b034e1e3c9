#include "pleat/nn/loss_modules.h"

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("modules of losses compute their functions with their options", "[nn][loss]") {
  const Tensor x = tensor({{0.5, 0.25, 0.75}, {0.125, 0.5, 0.25}});
  const Tensor t = tensor({{1.0, 0.0, 0.5}, {0.25, 1.0, 0.0}});
  const Tensor var = tensor({{1.0, 2.0, 0.5}, {0.25, 1.5, 3.0}});
  const Tensor classes = from_vector<int64_t>({2, 0});
  const Tensor signs = from_vector<float>({1, -1});
  const Tensor weight = from_vector<float>({0.5, 1, 2});
  constexpr Reduction sum = Reduction::sum;
  const auto same = [](const Tensor& a, const Tensor& b) { CHECK(array_equal(a, b)); };

  same(nn::L1Loss{{sum}}(x, t), l1_loss(x, t, {sum}));
  same(nn::MSELoss{}(x, t), mse_loss(x, t));
  same(nn::SmoothL1Loss{{.beta = 0.25}}(x, t), smooth_l1_loss(x, t, {.beta = 0.25}));
  same(nn::HuberLoss{{.delta = 0.25}}(x, t), huber_loss(x, t, {.delta = 0.25}));
  same(nn::CrossEntropyLoss{{.weight = weight, .label_smoothing = 0.25}}(x, classes),
       cross_entropy(x, classes, {.weight = weight, .label_smoothing = 0.25}));
  same(nn::NLLLoss{{.ignore_index = 0}}(x, classes), nll_loss(x, classes, {.ignore_index = 0}));
  same(nn::BCELoss{{.weight = weight}}(x, t), binary_cross_entropy(x, t, {.weight = weight}));
  same(nn::BCEWithLogitsLoss{{.pos_weight = weight}}(x, t), bce_with_logits(x, t, {.pos_weight = weight}));
  same(nn::KLDivLoss{{.log_target = true}}(x, t), kl_div(x, t, {.log_target = true}));
  same(nn::GaussianNLLLoss{{.full = true}}(x, t, var), gaussian_nll_loss(x, t, var, {.full = true}));
  same(nn::PoissonNLLLoss{{.log_input = false}}(x, t), poisson_nll_loss(x, t, {.log_input = false}));
  same(nn::MarginRankingLoss{{.margin = 0.5}}(x, var, t), margin_ranking_loss(x, var, t, {.margin = 0.5}));
  same(nn::CosineEmbeddingLoss{{.margin = 0.5}}(x, t, signs),
       cosine_embedding_loss(x, t, signs, {.margin = 0.5}));
  same(nn::HingeEmbeddingLoss{{.margin = 2}}(x, t), hinge_embedding_loss(x, t, {.margin = 2}));
  same(nn::SoftMarginLoss{{sum}}(x, t), soft_margin_loss(x, t, {sum}));
  same(nn::MultiLabelSoftMarginLoss{{.weight = weight}}(x, t),
       multilabel_soft_margin_loss(x, t, {.weight = weight}));
  same(nn::MultiMarginLoss{{.p = 2}}(x, classes), multi_margin_loss(x, classes, {.p = 2}));
  same(nn::TripletMarginLoss{{.swap = true}}(x, t, var), triplet_margin_loss(x, t, var, {.swap = true}));
  CHECK(nn::MSELoss{}.type_name() == "MSELoss");
}

TEST_CASE("weights of a loss's module are buffers; it has no forward of one tensor", "[nn][loss]") {
  nn::BCEWithLogitsLoss loss{{.weight = ones({3}), .pos_weight = full({3}, 2)}};
  CHECK(loss.parameters().empty());
  CHECK(loss.named_buffers().size() == 2);
  CHECK(loss.state_dict().at("pos_weight").to_vector() == std::vector<float>{2, 2, 2});
  loss.to(float64);
  CHECK(loss.options.weight.dtype() == float64);
  CHECK(loss(ones({2, 3}, float64), ones({2, 3}, float64)).dtype() == float64);
  CHECK(nn::BCEWithLogitsLoss{}.state_dict().empty());
  CHECK_THROWS_WITH(loss(ones({2, 3})), Catch::Matchers::Contains("has no forward of one tensor"));
}
