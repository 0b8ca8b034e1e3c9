#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "pleat/nn/conv.h"
#include "pleat/nn/module.h"

/// Layers whose weight is computed from other parameters, with the names of torch.nn.utils.parametrizations:
///
///   nn::Sequential net{nn::WeightNorm{nn::Linear{{.in_features = 2, .out_features = 16}}}, nn::ReLU{}};

namespace pleat::nn {

/// A layer with a member `weight`.
template <class M>
concept WeightedLayer = std::derived_from<M, Module> && requires(M& layer) {
  { layer.weight } -> std::same_as<Tensor&>;
};

struct WeightNormOptions {
  std::optional<int64_t> dim = 0;  ///< each index of it has a magnitude; empty: one for the whole weight
};
struct SpectralNormOptions {
  int64_t n_power_iterations = 1;   ///< with each call in training mode; up to 1000
  double eps = 1e-12;               ///< the least length that is divided by
  std::optional<int64_t> dim = {};  ///< of the weight, the rows of a matrix; empty: 0, of ConvTranspose 1
};

namespace detail {
/// Throws ValueError for a layer that cannot be wrapped, IndexError for another dim; counts it from 0.
void check_layer(const Module& wrapper, const Module& layer, const Tensor& weight,
                 std::optional<int64_t>& dim);
Tensor magnitudes(const Tensor& v, const std::optional<int64_t>& dim);
Tensor with_magnitudes(const Tensor& g, const Tensor& v, const std::optional<int64_t>& dim);
void check_options(const SpectralNormOptions& options);
/// Improves u and v, which it makes where they are undefined.
void power_iteration(const Tensor& weight, const SpectralNormOptions& by, int64_t steps, Tensor& u,
                     Tensor& v);
Tensor spectrally_normal(const Tensor& weight, const SpectralNormOptions& by, const Tensor& u,
                         const Tensor& v);

/// A layer without its weight.
template <WeightedLayer M>
class Parametrized : public Module {
 public:
  Tensor forward(const Tensor& x) override {
    M layer = layer_;  // of this call: threads may make several at once
    layer.weight = weight();
    if (!training()) layer.eval();
    return layer.forward(x);
  }
  /// The weight as the next call has it.
  virtual Tensor weight() = 0;
  void members(Members& m) override { layer_.members(m); }
  std::string options_text() const override { return text_; }

 protected:
  explicit Parametrized(M layer)
      : text_(layer.type_name() + '(' + layer.options_text() + ')'), layer_(std::move(layer)) {
    layer_.weight = {};
  }

 private:
  std::string text_;  ///< of the layer
  M layer_;
};
}  // namespace detail

/// A layer with the weight g v / |v|, with |v| over all dimensions but `dim`: Salimans and Kingma, "Weight
/// normalization" (2016). It starts as the layer's. Parameters are those of the layer, with g
/// (parametrizations.weight.original0) and v (original1) in the place of the weight. Throws ValueError for a
/// layer without a weight or with hooks, which belong to this module, IndexError for another dimension.
template <WeightedLayer M>
class WeightNorm : public detail::Parametrized<M> {
 public:
  explicit WeightNorm(M layer, WeightNormOptions o = {})
      : detail::Parametrized<M>(layer), options(o), v(layer.weight) {
    detail::check_layer(*this, layer, v, options.dim);
    g = parameter(detail::magnitudes(v, options.dim));
  }
  Tensor weight() override { return detail::with_magnitudes(g, v, options.dim); }
  void members(Members& m) override {
    detail::Parametrized<M>::members(m);
    m("parametrizations.weight.original0", g);
    m("parametrizations.weight.original1", v);
  }
  std::string type_name() const override { return "WeightNorm"; }
  std::string options_text() const override {
    const std::string dim = options.dim ? std::to_string(*options.dim) : "none";
    return detail::Parametrized<M>::options_text() + ", dim=" + dim;
  }

  WeightNormOptions options;
  Tensor g, v;
};

/// A layer with the weight W / sigma, where sigma is the largest singular value of W as a matrix: Miyato et
/// al., "Spectral normalization for generative adversarial networks" (2018). sigma is u^T W v, of which the
/// power iteration, in training mode only, makes u and v better; they count as constants in the derivative.
/// A W of one dimension is divided by its length. Parameters are those of the layer, with W
/// (parametrizations.weight.original) in the place of the weight; buffers parametrizations.weight.0._u and
/// ._v, which start random, after 15 iterations. Throws as WeightNorm, and ValueError unless
/// n_power_iterations is in [1, 1000] and eps at least 0.
template <WeightedLayer M>
class SpectralNorm : public detail::Parametrized<M> {
 public:
  explicit SpectralNorm(M layer, SpectralNormOptions o = {})
      : detail::Parametrized<M>(layer), options(o), original(layer.weight) {
    if (!options.dim) options.dim = std::derived_from<M, ConvTransposeModule> ? 1 : 0;
    detail::check_layer(*this, layer, original, options.dim);
    detail::check_options(options);
    detail::power_iteration(original, options, 15, u, v);
  }
  Tensor weight() override {
    if (this->training()) detail::power_iteration(original, options, options.n_power_iterations, u, v);
    return detail::spectrally_normal(original, options, u, v);
  }
  void members(Members& m) override {
    detail::Parametrized<M>::members(m);
    m("parametrizations.weight.original", original);
    m.buffer("parametrizations.weight.0._u", u);
    m.buffer("parametrizations.weight.0._v", v);
  }
  std::string type_name() const override { return "SpectralNorm"; }
  std::string options_text() const override {
    return detail::Parametrized<M>::options_text() +
           ", n_power_iterations=" + std::to_string(options.n_power_iterations) +
           ", dim=" + std::to_string(*options.dim);
  }

  SpectralNormOptions options;
  Tensor original, u, v;
};

}  // namespace pleat::nn
