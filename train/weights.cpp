// Averages, best weights and transfer: copies of a network's state dictionary, and back. Nothing here trains.
#include "pleat/train/weights.h"

#include <algorithm>
#include <cmath>

#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/mode_scope.h"
#include "pleat/nn/norm.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"

namespace pleat::train {
namespace {

constexpr const char *prefix = "weights.", *updates_key = "updates";

Tensor scalar(auto value, DType dtype) { return full({}, value, {.dtype = dtype, .device = Device{}}); }

/// A copy to average in.
Tensor start_of(const Tensor& tensor) {
  const bool half = is_floating(tensor.dtype()) && size_of(tensor.dtype()) < 4;
  return half ? tensor.to(float32) : tensor.clone();
}

/// In its scope the batch norms of a network compute the plain mean over all batches, from none on.
class PlainMeans {
 public:
  explicit PlainMeans(nn::Module& net) {
    for (const auto& [name, module] : net.named_modules())
      if (auto* norm = dynamic_cast<nn::BatchNormModule*>(module); norm && norm->running_mean.defined())
        restart(*norm);
  }
  ~PlainMeans() {
    for (const auto& [momentum, before] : momenta_) *momentum = before;
  }
  PlainMeans(const PlainMeans&) = delete;
  PlainMeans& operator=(const PlainMeans&) = delete;

 private:
  void restart(nn::BatchNormModule& norm) {
    momenta_.emplace_back(&norm.options.momentum, norm.options.momentum);
    norm.options.momentum.reset();
    fill_(norm.running_mean, 0);
    fill_(norm.running_var, 1);
    fill_(norm.num_batches_tracked, 0);
  }

  std::vector<std::pair<std::optional<double>*, std::optional<double>>> momenta_;
};

std::string renamed(const std::string& name, const TransferOptions& options) {
  for (const auto& [from, to] : options.rename)
    if (name.starts_with(from)) return to + name.substr(from.size());
  return name;
}

std::string lines(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = fmt::format("{:<12} {}:\n", title, names.size());
  for (const std::string& name : names) text += "  " + name + '\n';
  return text;
}

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
  nn::StateDict state{{"best", scalar(best_, float64)},
                      {"since_best", scalar(static_cast<double>(since_best_), float64)}};
  for (const auto& [name, tensor] : weights_) state.emplace(prefix + name, tensor);
  return state;
}

void BestWeights::load_state_dict(const nn::StateDict& state) {
  const nn::StateDict numbers{{"best", scalar(0, float64)}, {"since_best", scalar(0, float64)}};
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

WeightAverage::WeightAverage(nn::Module& net, WeightAverageOptions options) : net_(net), options_(options) {
  check<ValueError>(!options.decay || (*options.decay >= 0 && *options.decay < 1),
                    "WeightAverage: decay must be at least 0 and below 1, got {}", options.decay.value_or(0));
  const NoGrad off_the_tape;
  for (const auto& [name, tensor] : net.state_dict()) average_.emplace(name, start_of(tensor));
}

void WeightAverage::update() {
  check<Error>(!in_use_, "WeightAverage: the network has the averages now; update after the Use has ended");
  const NoGrad off_the_tape;
  const auto n = static_cast<double>(updates_);
  double share = 1 / (n + 1);  // of the new weights
  if (options_.decay) {
    const double decay = options_.warm_up ? std::min(*options_.decay, (1 + n) / (10 + n)) : *options_.decay;
    share = 1 - decay;
  }
  for (const auto& [name, tensor] : net_.state_dict()) {
    const Tensor& average = average_.at(name);
    if (is_floating(tensor.dtype()))
      lerp_(average, tensor.to(average.dtype()), share);
    else
      copy_(average, tensor);
  }
  ++updates_;
}

WeightAverage::Use::Use(WeightAverage& average)
    : average_(average), own_(nn::clone(average.net_.state_dict())) {
  check<Error>(!average.in_use_, "WeightAverage: the network has the averages already");
  average.net_.load_state_dict(average.average_);
  average.in_use_ = true;
}

WeightAverage::Use::~Use() {
  const NoGrad off_the_tape;
  // Tensors of the same sizes and types: nothing is refused.
  for (const auto& [name, tensor] : average_.net_.state_dict()) copy_(tensor, own_.at(name));
  average_.in_use_ = false;
}

nn::StateDict WeightAverage::state_dict() const {
  nn::StateDict state = average_;
  state.emplace(updates_key, scalar(updates_, int64));
  return state;
}

void WeightAverage::load_state_dict(const nn::StateDict& state) {
  nn::StateDict into = average_;
  const Tensor updates = scalar(updates_, int64);
  into.emplace(updates_key, updates);
  nn::copy_state("WeightAverage", into, state);
  updates_ = updates.item<int64_t>();
}

void update_batch_norm(nn::Module& net, data::DataLoader& loader) {
  const NoGrad off_the_tape;
  const nn::ModeScope scope(net, nn::Mode::training);
  const PlainMeans means(net);
  for (const data::Batch& batch : loader) (void)net(batch.inputs);
}

std::string TransferReport::text() const {
  return fmt::format("{:<12} {}\n", "copied", copied.size()) + lines("other shape", other_shape) +
         lines("missing", missing) + lines("unexpected", unexpected);
}

TransferReport transfer(nn::Module& net, const nn::StateDict& state, const TransferOptions& options) {
  nn::StateDict from;
  for (const auto& [name, tensor] : state)
    check<ValueError>(from.emplace(renamed(name, options), tensor).second,
                      "transfer: two tensors of the state become {}", renamed(name, options));
  TransferReport report;
  const nn::StateDict all = from;
  nn::StateDict own, matching;
  for (const auto& [name, tensor] : net.state_dict()) {
    const auto found = from.find(name);
    if (found == from.end()) {
      report.missing.push_back(name);
    } else if (found->second.shape() != tensor.shape()) {
      report.other_shape.push_back(fmt::format("{}: {} in the network, {} in the state", name,
                                               to_string(tensor.shape()), to_string(found->second.shape())));
      from.erase(found);
    } else {
      report.copied.push_back(name);
      own.emplace(name, tensor);
      matching.emplace(name, found->second);
      from.erase(found);
    }
  }
  for (const auto& [name, tensor] : from) report.unexpected.push_back(name);
  if (report.copied.empty())
    nn::copy_state("transfer", net.state_dict(), all);  // which fails, and says what does not fit
  else
    nn::copy_state("transfer", own, matching);
  return report;
}

}  // namespace pleat::train
