#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/distance.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/init.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss_modules.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/nn/pool.h"
#include "pleat/nn/upsample.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/nn/optim/optimizer_cases.h"

using namespace pleat;

/// Every option with a range refuses what lies outside, NaN first, with a ValueError that names it.

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

using Call = std::function<void(double)>;

void refuses(const std::string& option, const std::vector<double>& bad, const std::vector<double>& good,
             const Call& call) {
  for (const double value : bad) {
    INFO(option << " = " << value);
    std::string message;
    try {
      call(value);
    } catch (const ValueError& error) {
      message = error.what();
    }
    CHECK_THAT(message, Catch::Matchers::Contains(option));
  }
  for (const double value : good) {
    INFO(option << " = " << value);
    CHECK_NOTHROW(call(value));
  }
}

const std::vector<double> not_at_least_0 = {not_a_number, -1, infinity, -infinity};
const std::vector<double> not_positive = {not_a_number, 0, -1, infinity};
const std::vector<double> not_a_fraction = {not_a_number, -0.1, 1, 9, infinity};
const std::vector<double> not_a_share = {not_a_number, -0.1, 1.5, 9, infinity};
const std::vector<double> not_finite = {not_a_number, infinity, -infinity};

}  // namespace

TEST_CASE("options of optimisers outside their range are refused", "[optim]") {
  using namespace optim;
  for (const test::OptimizerOption& option : test::optimizer_options()) {
    CAPTURE(option.optimizer);
    refuses(option.name, option.refused, option.taken, option.use);
  }

  // Later, too, and then nothing is changed.
  SGD later{{ones({2}).set_requires_grad()}, {.lr = 0.1}};
  refuses("lr", not_at_least_0, {0.1}, [&](double v) { later.set_lr(v); });
  refuses("momentum", not_a_share, {0}, [&](double v) { later.set_momentum(0, v); });
  CHECK(later.lr() == 0.1);
  CHECK(later.momentum() == 0);

  const auto clip = [](double max_norm, double norm_type) {
    const Tensor p = ones({2}).set_requires_grad();
    p.set_grad(ones({2}));
    clip_grad_norm_({p}, {.max_norm = max_norm, .norm_type = norm_type});
  };
  refuses("max_norm", {not_a_number, -1}, {0, 1, infinity}, [&](double v) { clip(v, 2); });
  refuses("norm_type", {not_a_number, 0, -1}, {1, infinity}, [&](double v) { clip(1, v); });
  refuses("clip_value", {not_a_number, -1}, {0, infinity}, [](double v) {
    const Tensor p = ones({2}).set_requires_grad();
    p.set_grad(ones({2}));
    clip_grad_value_({p}, {.clip_value = v});
  });
  refuses("init_scale", not_positive, {1}, [](double v) { GradScaler{{.init_scale = v}}; });
  refuses("growth_factor", {not_a_number, 1, 0.5, infinity}, {2},
          [](double v) { GradScaler{{.growth_factor = v}}; });
  refuses("backoff_factor", {not_a_number, 0, 1, -1, infinity}, {0.5},
          [](double v) { GradScaler{{.backoff_factor = v}}; });
  refuses("growth_interval", {0, -1}, {1},
          [](double v) { GradScaler{{.growth_interval = static_cast<int64_t>(v)}}; });
  refuses("the new scale", not_positive, {1}, [](double v) { GradScaler{}.update(v); });
}

TEST_CASE("options of schedules outside their range are refused", "[optim]") {
  using namespace optim;
  const auto rate = [](const Rate& r) { r(1, 0.1); };
  const auto whole = [](double v) { return static_cast<int64_t>(v); };
  const std::vector<double> no_count = {0, -1};
  refuses("step_size", no_count, {1}, [&](double v) { rate(StepLR{.step_size = whole(v)}); });
  refuses("gamma", not_at_least_0, {0, 2}, [&](double v) { rate(StepLR{.step_size = 1, .gamma = v}); });
  refuses("milestone", {-1}, {0, 5}, [&](double v) { rate(MultiStepLR{{whole(v)}}); });
  refuses("gamma", not_at_least_0, {0}, [&](double v) { rate(MultiStepLR{{1}, v}); });
  refuses("gamma", not_at_least_0, {0}, [&](double v) { rate(ExponentialLR{v}); });
  refuses("steps", no_count, {1}, [&](double v) { rate(CosineAnnealingLR{.steps = whole(v)}); });
  refuses("eta_min", not_at_least_0, {0},
          [&](double v) { rate(CosineAnnealingLR{.steps = 3, .eta_min = v}); });
  refuses("first", no_count, {1}, [&](double v) { rate(CosineAnnealingWarmRestarts{.first = whole(v)}); });
  refuses("mult", no_count, {1},
          [&](double v) { rate(CosineAnnealingWarmRestarts{.first = 1, .mult = whole(v)}); });
  refuses("eta_min", not_at_least_0, {0},
          [&](double v) { rate(CosineAnnealingWarmRestarts{.first = 1, .eta_min = v}); });
  refuses("factor", not_at_least_0, {0, 2}, [&](double v) { rate(ConstantLR{.factor = v}); });
  refuses("steps", {-1}, {0}, [&](double v) { rate(ConstantLR{.steps = whole(v)}); });
  refuses("start_factor", not_at_least_0, {0}, [&](double v) { rate(LinearLR{.start_factor = v}); });
  refuses("end_factor", not_at_least_0, {0}, [&](double v) { rate(LinearLR{.end_factor = v}); });
  refuses("steps", no_count, {1}, [&](double v) { rate(LinearLR{.steps = whole(v)}); });
  refuses("steps", no_count, {1}, [&](double v) { rate(PolynomialLR{.steps = whole(v)}); });
  refuses("power", not_positive, {1}, [&](double v) { rate(PolynomialLR{.power = v}); });
  const OneCycleLR cycle{.max_lr = 0.1, .total_steps = 10};
  for (const auto& [name, option] : std::vector<std::pair<std::string, double OneCycleLR::*>>{
           {"div_factor", &OneCycleLR::div_factor}, {"final_div_factor", &OneCycleLR::final_div_factor}})
    refuses(name, not_positive, {1}, [&, member = option](double v) {
      OneCycleLR changed = cycle;
      changed.*member = v;
      rate(changed);
    });
  for (const auto& [name, option] : std::vector<std::pair<std::string, double OneCycleLR::*>>{
           {"base_momentum", &OneCycleLR::base_momentum}, {"max_momentum", &OneCycleLR::max_momentum}})
    refuses(name, not_a_fraction, {0}, [&, member = option](double v) {
      OneCycleLR changed = cycle;
      changed.*member = v;
      rate(changed);
    });
  refuses("pct_start", not_a_share, {0, 1},
          [&](double v) { rate(OneCycleLR{.max_lr = 0.1, .total_steps = 10, .pct_start = v}); });
  refuses("max_lr", not_positive, {1}, [&](double v) { rate(OneCycleLR{.max_lr = v, .total_steps = 10}); });
  refuses("total_steps", no_count, {1},
          [&](double v) { rate(OneCycleLR{.max_lr = 0.1, .total_steps = whole(v)}); });
  refuses("steps", no_count, {1}, [&](double v) { rate(warm_up(whole(v), ConstantLR{})); });
  refuses("start_factor", not_at_least_0, {0}, [&](double v) { rate(warm_up(1, ConstantLR{}, v)); });

  // Without a Rate around them, too.
  CHECK_THROWS_AS(StepLR{.step_size = 0}(1, 0.1), ValueError);
  CHECK_THROWS_AS(LambdaLR{}(1, 0.1), ValueError);
  CHECK_THROWS_AS((SequentialLR{{}, {}}(1, 0.1)), ValueError);
  CHECK_THROWS_AS((SequentialLR{{ConstantLR{}}, {3, 2}}.momentum(1)), ValueError);
  CHECK_THROWS_WITH((Rate{std::function<double(int64_t, double)>{}}), "Rate: there is no function in it");
  double (*nothing)(int64_t, double) = nullptr;
  CHECK_THROWS_AS(Rate{nothing}, ValueError);
  CHECK_THROWS_AS(Rate{ConstantLR{}}(-1, 0.1), ValueError);
  Rate one = ConstantLR{};
  const Rate two = std::move(one);
  CHECK_THROWS_WITH(one(1, 0.1), "Rate: it was moved from; use the one that it was moved to");

  SGD sgd{{ones({2}).set_requires_grad()}, {.lr = 0.1}};
  refuses("rate of group 0 at step 0", not_at_least_0, {1}, [&](double v) {
    Schedule{sgd, LambdaLR{[v](int64_t) { return v; }}};
  });
  Schedule schedule{sgd, LambdaLR{[](int64_t step) { return step == 1 ? not_a_number : 1.0; }}};
  CHECK_THROWS_AS(schedule.step(), ValueError);
  CHECK(schedule.steps() == 0);
  schedule.set_steps(std::numeric_limits<int64_t>::max());
  CHECK_THROWS_AS(schedule.step(), Error);

  const auto plateau = [&](const ReduceLROnPlateauOptions& o) { ReduceLROnPlateau{sgd, o}; };
  refuses("factor", {not_a_number, 0, 1, -1, infinity}, {0.5},
          [&](double v) { plateau({.maximize = false, .factor = v}); });
  refuses("patience", {-1}, {0}, [&](double v) { plateau({.maximize = false, .patience = whole(v)}); });
  refuses("threshold", not_at_least_0, {0}, [&](double v) { plateau({.maximize = false, .threshold = v}); });
  refuses("cooldown", {-1}, {0}, [&](double v) { plateau({.maximize = false, .cooldown = whole(v)}); });
  refuses("min_lr", not_at_least_0, {0}, [&](double v) { plateau({.maximize = false, .min_lr = {v}}); });
  refuses("eps", not_at_least_0, {0}, [&](double v) { plateau({.maximize = false, .eps = v}); });
}

TEST_CASE("options of layers outside their range are refused") {
  const auto whole = [](double v) { return static_cast<int64_t>(v); };
  const std::vector<double> no_count = {0, -1};
  refuses("p must", not_a_share, {0, 1}, [](double v) { nn::Dropout{{.p = v}}; });
  refuses("p must", not_a_share, {0, 1}, [](double v) { nn::Dropout2d{{.p = v}}; });
  refuses("eps", not_positive, {1e-5}, [](double v) { nn::BatchNorm2d{{.num_features = 2, .eps = v}}; });
  refuses("momentum", not_a_share, {0, 1},
          [](double v) { nn::BatchNorm2d{{.num_features = 2, .momentum = v}}; });
  refuses("eps", not_positive, {1e-5}, [](double v) { nn::LayerNorm{{.normalized_shape = 2, .eps = v}}; });
  refuses("eps", not_positive, {1e-5}, [](double v) { nn::RMSNorm{{.normalized_shape = 2, .eps = v}}; });
  refuses("normalized_shape", no_count, {1}, [&](double v) { nn::RMSNorm{{.normalized_shape = whole(v)}}; });
  refuses("size", no_count, {1}, [&](double v) { nn::LocalResponseNorm{{.size = whole(v)}}; });
  refuses("alpha", not_finite, {-1, 0}, [](double v) { nn::LocalResponseNorm{{.size = 2, .alpha = v}}; });
  refuses("beta", not_finite, {-1, 0}, [](double v) { nn::LocalResponseNorm{{.size = 2, .beta = v}}; });
  refuses("k must", not_finite, {-1, 0}, [](double v) { nn::LocalResponseNorm{{.size = 2, .k = v}}; });
  refuses("eps", not_positive, {1e-5}, [](double v) { nn::CosineSimilarity{{.eps = v}}; });
  refuses("eps", not_finite, {-1, 0}, [](double v) { nn::PairwiseDistance{{.eps = v}}; });
  refuses("p must", {not_a_number}, {0, 2, infinity}, [](double v) { nn::PairwiseDistance{{.p = v}}; });
  refuses("eps", not_positive, {1e-5},
          [](double v) { nn::GroupNorm{{.num_groups = 1, .num_channels = 2, .eps = v}}; });
  refuses("eps", not_positive, {1e-5}, [](double v) { nn::InstanceNorm1d{{.num_features = 2, .eps = v}}; });
  refuses("momentum", not_a_share, {0},
          [](double v) { nn::InstanceNorm1d{{.num_features = 2, .momentum = v}}; });
  refuses("num_features", no_count, {1}, [&](double v) { nn::BatchNorm1d{{.num_features = whole(v)}}; });
  refuses("num_features", no_count, {1}, [&](double v) { nn::InstanceNorm3d{{.num_features = whole(v)}}; });
  refuses("num_groups", no_count, {1},
          [&](double v) { nn::GroupNorm{{.num_groups = whole(v), .num_channels = 2}}; });
  refuses("normalized_shape", no_count, {1},
          [&](double v) { nn::LayerNorm{{.normalized_shape = whole(v)}}; });
  refuses("bounds", {not_a_number, 2, infinity}, {-1, 1, -infinity},
          [](double v) { nn::BatchNorm2d{{.num_features = 1, .bounds = {.min = v, .max = 1}}}; });
  refuses("min", {not_a_number, 2, infinity}, {-1, 1, -infinity}, [](double v) { nn::Hardtanh{{.min = v}}; });
  refuses("negative_slope", not_finite, {-1, 0}, [](double v) { nn::LeakyReLU{{.negative_slope = v}}; });
  refuses("init", not_finite, {-1, 0}, [](double v) { nn::PReLU{{.init = v}}; });
  refuses("num_parameters", no_count, {1}, [&](double v) { nn::PReLU{{.num_parameters = whole(v)}}; });
  refuses("alpha", not_finite, {-1, 0}, [](double v) { nn::ELU{{.alpha = v}}; });
  refuses("beta", not_positive, {1}, [](double v) { nn::Softplus{{.beta = v}}; });
  refuses("threshold", {not_a_number}, {20, infinity}, [](double v) { nn::Softplus{{.threshold = v}}; });
  refuses("lambd", {not_a_number, -1, -infinity}, {0, infinity},
          [](double v) { nn::Softshrink{{.lambd = v}}; });
  refuses("lambd", {not_a_number, -1, -infinity}, {0, infinity},
          [](double v) { nn::Hardshrink{{.lambd = v}}; });
  refuses("alpha", {not_a_number, infinity, 0}, {-1, 1}, [](double v) { nn::CELU{{.alpha = v}}; });
  refuses("threshold", {not_a_number}, {0, infinity}, [](double v) { nn::Threshold{{.threshold = v}}; });
  refuses("in_features", no_count, {1},
          [&](double v) { nn::Linear{{.in_features = whole(v), .out_features = 1}}; });
  refuses("out_features", no_count, {1},
          [&](double v) { nn::Linear{{.in_features = 1, .out_features = whole(v)}}; });
  refuses("num_embeddings", no_count, {1},
          [&](double v) { nn::Embedding{{.num_embeddings = whole(v), .embedding_dim = 1}}; });
  refuses("embedding_dim", no_count, {1},
          [&](double v) { nn::Embedding{{.num_embeddings = 1, .embedding_dim = whole(v)}}; });
  refuses("padding_idx", {2, -3}, {1, -2}, [&](double v) {
    nn::Embedding{{.num_embeddings = 2, .embedding_dim = 1, .padding_idx = whole(v)}};
  });
  const auto conv = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
                       int64_t dilation, int64_t groups) {
    nn::Conv2d{{.in_channels = in,
                .out_channels = out,
                .kernel_size = kernel,
                .stride = stride,
                .padding = padding,
                .dilation = dilation,
                .groups = groups}};
  };
  refuses("in_channels", no_count, {1}, [&](double v) { conv(whole(v), 1, 1, 1, 0, 1, 1); });
  refuses("out_channels", no_count, {1}, [&](double v) { conv(1, whole(v), 1, 1, 0, 1, 1); });
  refuses("kernel_size", no_count, {1}, [&](double v) { conv(1, 1, whole(v), 1, 0, 1, 1); });
  refuses("stride", no_count, {1}, [&](double v) { conv(1, 1, 1, whole(v), 0, 1, 1); });
  refuses("padding", {-1}, {0}, [&](double v) { conv(1, 1, 1, 1, whole(v), 1, 1); });
  refuses("dilation", no_count, {1}, [&](double v) { conv(1, 1, 1, 1, 0, whole(v), 1); });
  refuses("groups", {0, -1, 2}, {1}, [&](double v) { conv(1, 1, 1, 1, 0, 1, whole(v)); });

  // Of those without tensors at the first call.
  const Tensor image = ones({1, 2, 4, 4});
  const auto max_pool = [&](const MaxPoolOptions& o) { nn::MaxPool2d{o}(image); };
  refuses("kernel_size", no_count, {1}, [&](double v) { max_pool({.kernel_size = whole(v)}); });
  refuses("stride", no_count, {1}, [&](double v) { max_pool({.kernel_size = 1, .stride = whole(v)}); });
  refuses("dilation", no_count, {1}, [&](double v) { max_pool({.kernel_size = 1, .dilation = whole(v)}); });
  refuses("padding", {-1}, {0}, [&](double v) { max_pool({.kernel_size = 1, .padding = whole(v)}); });
  const auto avg_pool = [&](const AvgPoolOptions& o) { nn::AvgPool2d{o}(image); };
  refuses("kernel_size", no_count, {1}, [&](double v) { avg_pool({.kernel_size = whole(v)}); });
  refuses("stride", no_count, {1}, [&](double v) { avg_pool({.kernel_size = 1, .stride = whole(v)}); });
  refuses("padding", {-1}, {0}, [&](double v) { avg_pool({.kernel_size = 1, .padding = whole(v)}); });
  refuses("divisor_override", {0}, {1},
          [&](double v) { avg_pool({.kernel_size = 1, .divisor_override = whole(v)}); });
  refuses("output_size", {-1}, {1},
          [&](double v) { nn::AdaptiveAvgPool2d{{.output_size = whole(v)}}(image); });
  refuses("scale_factor", not_positive, {2}, [&](double v) { nn::Upsample{{.scale_factor = v}}(image); });
  for (const int64_t size : {0, -1}) CHECK_THROWS_AS(nn::Upsample{{.size = size}}(image), ShapeError);
  refuses("probability", not_a_share, {0}, [&](double v) {
    nn::Dropout dropout;
    dropout.options.p = v;
    dropout(image);
  });

  const Tensor rows = ones({2, 2});
  refuses("eps", not_positive, {1}, [&](double v) { rms_norm(rows, {}, {.normalized_shape = 2, .eps = v}); });
  refuses("eps", not_at_least_0, {0}, [&](double v) { normalize(rows, {.eps = v}); });
  refuses("p must", {not_a_number}, {0, 2, infinity}, [&](double v) { normalize(rows, {.p = v}); });
  refuses("eps", not_positive, {1}, [&](double v) { cosine_similarity(rows, rows, {.eps = v}); });
  refuses("eps", not_finite, {0}, [&](double v) { pairwise_distance(rows, rows, {.eps = v}); });
  refuses("p must", {not_a_number}, {0, 2, infinity},
          [&](double v) { pairwise_distance(rows, rows, {.p = v}); });

  const Tensor x = ones({2});
  refuses("negative_slope", not_finite, {0}, [&](double v) { leaky_relu(x, v); });
  refuses("alpha", not_finite, {0}, [&](double v) { elu(x, v); });
  refuses("beta", not_positive, {1}, [&](double v) { softplus(x, {.beta = v}); });
  refuses("threshold", {not_a_number}, {1}, [&](double v) { softplus(x, {.threshold = v}); });
  refuses("lambd", {not_a_number, -1, -infinity}, {0, infinity}, [&](double v) { softshrink(x, v); });
  refuses("lambd", {not_a_number, -1, -infinity}, {0, infinity}, [&](double v) { hardshrink(x, v); });
  refuses("alpha", {not_a_number, infinity, 0}, {-1, 1}, [&](double v) { celu(x, v); });
  refuses("threshold", {not_a_number}, {0, infinity}, [&](double v) { threshold(x, v, 1); });
}

TEST_CASE("options of losses and initialisers outside their range are refused") {
  const Tensor x = ones({2, 3});
  const Tensor classes = from_vector<int64_t>({0, 1});
  refuses("label_smoothing", not_a_share, {0, 1},
          [&](double v) { cross_entropy(x, classes, {.label_smoothing = v}); });
  refuses("label_smoothing", not_a_share, {0, 1},
          [&](double v) { cross_entropy(x, x, {.label_smoothing = v}); });
  refuses("beta", not_at_least_0, {0, 1}, [&](double v) { smooth_l1_loss(x, x, {.beta = v}); });
  refuses("delta", not_positive, {1}, [&](double v) { huber_loss(x, x, {.delta = v}); });
  refuses("eps", not_positive, {1}, [&](double v) { gaussian_nll_loss(x, x, x, {.eps = v}); });
  refuses("eps", not_positive, {1}, [&](double v) { poisson_nll_loss(x, x, {.eps = v}); });
  refuses("alpha", {not_a_number, 2, -0.5}, {0, 1, -1},
          [&](double v) { sigmoid_focal_loss(x, x, {.alpha = v}); });
  refuses("gamma", not_at_least_0, {0, 2}, [&](double v) { sigmoid_focal_loss(x, x, {.gamma = v}); });
  refuses("smooth", not_at_least_0, {0, 1}, [&](double v) { dice_loss(x, x, {.smooth = v}); });
  refuses("margin", not_finite, {-1, 0}, [&](double v) { margin_ranking_loss(x, x, x, {.margin = v}); });
  refuses("margin", not_finite, {-1, 0}, [&](double v) { hinge_embedding_loss(x, x, {.margin = v}); });
  refuses("margin", not_finite, {-1, 0},
          [&](double v) { cosine_embedding_loss(x, x, ones({2}), {.margin = v}); });
  refuses("margin", not_finite, {-1, 0}, [&](double v) { multi_margin_loss(x, classes, {.margin = v}); });
  refuses("margin", not_finite, {-1, 0}, [&](double v) { triplet_margin_loss(x, x, x, {.margin = v}); });
  refuses("p must", {not_a_number}, {1, infinity}, [&](double v) { triplet_margin_loss(x, x, x, {.p = v}); });
  refuses("eps", not_finite, {0}, [&](double v) { triplet_margin_loss(x, x, x, {.eps = v}); });
  // Of modules when they are made.
  refuses("label_smoothing", not_a_share, {0},
          [](double v) { nn::CrossEntropyLoss{{.label_smoothing = v}}; });
  refuses("beta", not_at_least_0, {0}, [](double v) { nn::SmoothL1Loss{{.beta = v}}; });
  refuses("delta", not_positive, {1}, [](double v) { nn::HuberLoss{{.delta = v}}; });
  refuses("eps", not_positive, {1}, [](double v) { nn::GaussianNLLLoss{{.eps = v}}; });
  refuses("eps", not_positive, {1}, [](double v) { nn::PoissonNLLLoss{{.eps = v}}; });
  refuses("margin", not_finite, {-1}, [](double v) { nn::MarginRankingLoss{{.margin = v}}; });
  refuses("margin", not_finite, {-1}, [](double v) { nn::CosineEmbeddingLoss{{.margin = v}}; });
  refuses("margin", not_finite, {-1}, [](double v) { nn::HingeEmbeddingLoss{{.margin = v}}; });
  refuses("margin", not_finite, {-1}, [](double v) { nn::MultiMarginLoss{{.margin = v}}; });
  refuses("p must", {0, 3}, {1, 2}, [](double v) { nn::MultiMarginLoss{{.p = static_cast<int64_t>(v)}}; });
  refuses("margin", not_finite, {-1}, [](double v) { nn::TripletMarginLoss{{.margin = v}}; });
  refuses("p must", {not_a_number}, {2}, [](double v) { nn::TripletMarginLoss{{.p = v}}; });
  refuses("eps", not_finite, {0}, [](double v) { nn::TripletMarginLoss{{.eps = v}}; });

  using namespace nn::init;
  const Tensor w = ones({2, 3});
  refuses("std", {not_a_number, -1, infinity}, {0, 1}, [&](double v) { normal_(w, 0, v); });
  refuses("mean", not_finite, {-1}, [&](double v) { normal_(w, v, 1); });
  refuses("low", {not_a_number, 2, infinity}, {0}, [&](double v) { uniform_(w, v, 1); });
  refuses("low", {not_a_number, -1, infinity}, {1}, [&](double v) { uniform_(w, 0, v); });
  refuses("std", {not_a_number, 0, -1, infinity}, {1}, [&](double v) { trunc_normal_(w, {.std = v}); });
  refuses("mean", not_finite, {0}, [&](double v) { trunc_normal_(w, {.mean = v}); });
  refuses("low", {not_a_number, 2}, {-1}, [&](double v) { trunc_normal_(w, {.low = v}); });
  refuses("value", {not_a_number}, {0, infinity}, [&](double v) { constant_(w, v); });
  refuses("slope", not_finite, {0, 1}, [&](double v) { kaiming_uniform_(w, {.a = v}); });
  refuses("slope", not_finite, {0, 1}, [&](double v) { kaiming_normal_(w, {.a = v}); });
  refuses("gain", not_at_least_0, {0, 1}, [&](double v) { xavier_uniform_(w, v); });
  refuses("gain", not_at_least_0, {0, 1}, [&](double v) { xavier_normal_(w, v); });
  refuses("gain", not_finite, {-1, 1}, [&](double v) { orthogonal_(w, v); });
  refuses("groups", {0, -1}, {1}, [](double v) { dirac_(ones({2, 3, 1}), static_cast<int64_t>(v)); });
}
