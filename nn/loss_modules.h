#pragma once

#include <type_traits>
#include <utility>

#include "pleat/nn/loss.h"
#include "pleat/nn/module.h"
#include "pleat/nn/record_forward.h"

/// Losses as modules of two tensors, or three:
///
///   nn::CrossEntropyLoss criterion{{.label_smoothing = 0.1}};
///   const Tensor loss = criterion(net(x), target);
///
/// Options, formulas and errors: nn/loss.h.

namespace pleat::nn {

namespace detail {
// They throw ValueError for options outside their ranges; `loss` is who has them.
void check_options(const char* loss, const CrossEntropyOptions& options);
void check_options(const char* loss, const SmoothL1Options& options);
void check_options(const char* loss, const HuberOptions& options);
void check_options(const char* loss, const GaussianNllOptions& options);
void check_options(const char* loss, const PoissonNllOptions& options);
void check_options(const char* loss, const MarginLossOptions& options);
void check_options(const char* loss, const HingeEmbeddingOptions& options);
void check_options(const char* loss, const MultiMarginOptions& options);
void check_options(const char* loss, const TripletMarginOptions& options);
/// Of options without ranges.
template <class Options>
void check_options(const char*, const Options&) {}
}  // namespace detail

/// A module around a loss. The weights among its options are buffers: saved, and moved with the module.
template <class Options, auto function>
class LossModule : public Module {
 public:
  static constexpr bool of_three = std::is_invocable_v<decltype(function), Tensor, Tensor, Tensor, Options>;

  /// Throws ValueError for options outside their ranges.
  LossModule(const char* name, Options options_) : options(std::move(options_)), name_(name) {
    detail::check_options(name, options);
  }

  using Module::forward;
  using Module::operator();
  Tensor forward(const Tensor& input, const Tensor& target) requires(!of_three) {
    const RecordForward range(*this, input, target);
    return range.run([&] { return function(input, target, options); });
  }
  Tensor forward(const Tensor& first, const Tensor& second, const Tensor& third) requires(of_three) {
    const RecordForward range(*this, first, second, third);
    return range.run([&] { return function(first, second, third, options); });
  }
  Tensor operator()(const Tensor& input, const Tensor& target) requires(!of_three) {
    return forward(input, target);
  }
  Tensor operator()(const Tensor& first, const Tensor& second, const Tensor& third) requires(of_three) {
    return forward(first, second, third);
  }
  void members(Members& m) override {
    if constexpr (requires { options.weight; }) m.buffer("weight", options.weight);
    if constexpr (requires { options.pos_weight; }) m.buffer("pos_weight", options.pos_weight);
  }
  std::string type_name() const override { return name_; }

  Options options;

 private:
  const char* name_;
};

struct L1Loss : LossModule<LossOptions, l1_loss> {
  explicit L1Loss(LossOptions loss = {}) : LossModule("L1Loss", loss) {}
};
struct MSELoss : LossModule<LossOptions, mse_loss> {
  explicit MSELoss(LossOptions loss = {}) : LossModule("MSELoss", loss) {}
};
struct SmoothL1Loss : LossModule<SmoothL1Options, smooth_l1_loss> {
  explicit SmoothL1Loss(SmoothL1Options loss = {}) : LossModule("SmoothL1Loss", loss) {}
};
struct HuberLoss : LossModule<HuberOptions, huber_loss> {
  explicit HuberLoss(HuberOptions loss = {}) : LossModule("HuberLoss", loss) {}
};
struct CrossEntropyLoss : LossModule<CrossEntropyOptions, cross_entropy> {
  explicit CrossEntropyLoss(CrossEntropyOptions loss = {}) : LossModule("CrossEntropyLoss", loss) {}
};
struct NLLLoss : LossModule<NllOptions, nll_loss> {
  explicit NLLLoss(NllOptions loss = {}) : LossModule("NLLLoss", loss) {}
};
struct BCELoss : LossModule<ProbabilityLossOptions, binary_cross_entropy> {
  explicit BCELoss(ProbabilityLossOptions loss = {}) : LossModule("BCELoss", loss) {}
};
struct BCEWithLogitsLoss : LossModule<BceOptions, bce_with_logits> {
  explicit BCEWithLogitsLoss(BceOptions loss = {}) : LossModule("BCEWithLogitsLoss", loss) {}
};
struct KLDivLoss : LossModule<KlDivOptions, kl_div> {
  explicit KLDivLoss(KlDivOptions loss = {}) : LossModule("KLDivLoss", loss) {}
};
struct GaussianNLLLoss : LossModule<GaussianNllOptions, gaussian_nll_loss> {
  explicit GaussianNLLLoss(GaussianNllOptions loss = {}) : LossModule("GaussianNLLLoss", loss) {}
};
struct PoissonNLLLoss : LossModule<PoissonNllOptions, poisson_nll_loss> {
  explicit PoissonNLLLoss(PoissonNllOptions loss = {}) : LossModule("PoissonNLLLoss", loss) {}
};
struct MarginRankingLoss : LossModule<MarginLossOptions, margin_ranking_loss> {
  explicit MarginRankingLoss(MarginLossOptions loss = {}) : LossModule("MarginRankingLoss", loss) {}
};
struct CosineEmbeddingLoss : LossModule<MarginLossOptions, cosine_embedding_loss> {
  explicit CosineEmbeddingLoss(MarginLossOptions loss = {}) : LossModule("CosineEmbeddingLoss", loss) {}
};
struct HingeEmbeddingLoss : LossModule<HingeEmbeddingOptions, hinge_embedding_loss> {
  explicit HingeEmbeddingLoss(HingeEmbeddingOptions loss = {}) : LossModule("HingeEmbeddingLoss", loss) {}
};
struct SoftMarginLoss : LossModule<LossOptions, soft_margin_loss> {
  explicit SoftMarginLoss(LossOptions loss = {}) : LossModule("SoftMarginLoss", loss) {}
};
struct MultiLabelSoftMarginLoss : LossModule<ProbabilityLossOptions, multilabel_soft_margin_loss> {
  explicit MultiLabelSoftMarginLoss(ProbabilityLossOptions loss = {})
      : LossModule("MultiLabelSoftMarginLoss", loss) {}
};
struct MultiMarginLoss : LossModule<MultiMarginOptions, multi_margin_loss> {
  explicit MultiMarginLoss(MultiMarginOptions loss = {}) : LossModule("MultiMarginLoss", loss) {}
};
struct TripletMarginLoss : LossModule<TripletMarginOptions, triplet_margin_loss> {
  explicit TripletMarginLoss(TripletMarginOptions loss = {}) : LossModule("TripletMarginLoss", loss) {}
};

}  // namespace pleat::nn
