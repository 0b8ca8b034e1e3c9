#pragma once

#include "pleat/nn/layer.h"
#include "pleat/nn/loss.h"

/// Losses as modules of two tensors, or three:
///
///   nn::CrossEntropyLoss criterion{{.label_smoothing = 0.1}};
///   const Tensor loss = criterion(net(x), target);
///
/// Options, formulas and errors: nn/loss.h.

namespace pleat::nn {

namespace detail {
void check_options(LayerName loss, const CrossEntropyOptions& options);
void check_options(LayerName loss, const SmoothL1Options& options);
void check_options(LayerName loss, const HuberOptions& options);
void check_options(LayerName loss, const GaussianNllOptions& options);
void check_options(LayerName loss, const PoissonNllOptions& options);
void check_options(LayerName loss, const MarginLossOptions& options);
void check_options(LayerName loss, const HingeEmbeddingOptions& options);
void check_options(LayerName loss, const MultiMarginOptions& options);
void check_options(LayerName loss, const TripletMarginOptions& options);
}  // namespace detail

using L1Loss = FunctionLayer<"L1Loss", l1_loss>;
using MSELoss = FunctionLayer<"MSELoss", mse_loss>;
using SmoothL1Loss = FunctionLayer<"SmoothL1Loss", smooth_l1_loss>;
using HuberLoss = FunctionLayer<"HuberLoss", huber_loss>;
using CrossEntropyLoss = FunctionLayer<"CrossEntropyLoss", cross_entropy>;
using NLLLoss = FunctionLayer<"NLLLoss", nll_loss>;
using BCELoss = FunctionLayer<"BCELoss", binary_cross_entropy>;
using BCEWithLogitsLoss = FunctionLayer<"BCEWithLogitsLoss", bce_with_logits>;
using KLDivLoss = FunctionLayer<"KLDivLoss", kl_div>;
using GaussianNLLLoss = FunctionLayer<"GaussianNLLLoss", gaussian_nll_loss>;
using PoissonNLLLoss = FunctionLayer<"PoissonNLLLoss", poisson_nll_loss>;
using MarginRankingLoss = FunctionLayer<"MarginRankingLoss", margin_ranking_loss>;
using CosineEmbeddingLoss = FunctionLayer<"CosineEmbeddingLoss", cosine_embedding_loss>;
using HingeEmbeddingLoss = FunctionLayer<"HingeEmbeddingLoss", hinge_embedding_loss>;
using SoftMarginLoss = FunctionLayer<"SoftMarginLoss", soft_margin_loss>;
using MultiLabelSoftMarginLoss = FunctionLayer<"MultiLabelSoftMarginLoss", multilabel_soft_margin_loss>;
using MultiMarginLoss = FunctionLayer<"MultiMarginLoss", multi_margin_loss>;
using TripletMarginLoss = FunctionLayer<"TripletMarginLoss", triplet_margin_loss>;

}  // namespace pleat::nn
