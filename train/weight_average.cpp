#include "pleat/train/weight_average.h"

#include <algorithm>
#include <utility>
#include <vector>

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

constexpr const char* updates_key = "updates";

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
      if (!restart<1>(*module) && !restart<2>(*module)) restart<3>(*module);
  }
  ~PlainMeans() {
    for (const auto& [momentum, before] : momenta_) *momentum = before;
  }
  PlainMeans(const PlainMeans&) = delete;
  PlainMeans& operator=(const PlainMeans&) = delete;

 private:
  template <int dims>
  bool restart(nn::Module& module) {
    auto* norm = dynamic_cast<nn::BatchNorm<dims>*>(&module);
    if (norm == nullptr || !norm->running_mean.defined()) return false;
    momenta_.emplace_back(&norm->options.momentum, norm->options.momentum);
    norm->options.momentum.reset();
    fill_(norm->running_mean, 0);
    fill_(norm->running_var, 1);
    fill_(norm->num_batches_tracked, 0);
    return true;
  }

  std::vector<std::pair<std::optional<double>*, std::optional<double>>> momenta_;
};

}  // namespace

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
  state.emplace(updates_key, full({}, updates_, {.dtype = int64, .device = Device{}}));
  return state;
}

void WeightAverage::load_state_dict(const nn::StateDict& state) {
  nn::StateDict into = average_;
  const Tensor updates = full({}, updates_, {.dtype = int64, .device = Device{}});
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

}  // namespace pleat::train
