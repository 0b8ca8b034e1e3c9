#include "pleat/train/best_weights.h"

#include <cmath>

#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"

namespace pleat::train {
namespace {

constexpr const char* prefix = "weights.";

Tensor number(double value) { return full({}, value, {.dtype = float64, .device = Device{}}); }

}  // namespace

BestWeights::BestWeights(const nn::Module& net, BestWeightsOptions options) : net_(net), options_(options) {
  check<ValueError>(options.min_delta >= 0, "BestWeights: min_delta must not be negative, got {}",
                    options.min_delta);
  check<ValueError>(options.patience >= 0, "BestWeights: patience must not be negative, got {}",
                    options.patience);
}

bool BestWeights::update(double metric) {
  const double gain = options_.maximize.get() ? metric - best_ : best_ - metric;
  const bool better = weights_.empty() ? !std::isnan(metric) : gain > options_.min_delta;
  if (!better) {
    ++since_best_;
    return false;
  }
  weights_ = nn::clone(own());
  best_ = metric;
  since_best_ = 0;
  return true;
}

double BestWeights::best() const {
  check<Error>(!weights_.empty(), "BestWeights: there is no metric yet; call update(metric) first");
  return best_;
}

void BestWeights::restore() {
  check<Error>(!weights_.empty(), "BestWeights: there are no weights yet; call update(metric) first");
  nn::copy_state("BestWeights", own(), weights_);
}

nn::StateDict BestWeights::state_dict() const {
  nn::StateDict state{{"best", number(best_)}, {"since_best", number(static_cast<double>(since_best_))}};
  for (const auto& [name, tensor] : weights_) state.emplace(prefix + name, tensor);
  return state;
}

void BestWeights::load_state_dict(const nn::StateDict& state) {
  const nn::StateDict numbers{{"best", number(0)}, {"since_best", number(0)}};
  const bool has_weights = state.size() > numbers.size();
  nn::StateDict into = numbers, weights;
  if (has_weights) {
    weights = nn::clone(own());
    for (const auto& [name, tensor] : weights) into.emplace(prefix + name, tensor);
  }
  nn::copy_state("BestWeights", into, state);
  weights_ = std::move(weights);
  best_ = numbers.at("best").item();
  since_best_ = static_cast<int64_t>(numbers.at("since_best").item());
}

}  // namespace pleat::train
