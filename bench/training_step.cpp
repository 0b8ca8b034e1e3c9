#include "pleat/bench/training_step.h"

#include <iterator>

#include "pleat/bench/case.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/data/datasets.h"
#include "pleat/models/make_classifier.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

constexpr int64_t classes = 10;

data::DataLoader noise(const TrainingStepOptions& options) {
  manual_seed(1);
  const int64_t images = checked_multiply(8, options.batch_size, "step");  // an epoch of 8 batches
  return data::DataLoader(data::TensorDataset(ops::cast(randint(0, 256, {images, 3, 32, 32}), DType::uint8),
                                              randint(0, classes, {images})),
                          {.batch_size = options.batch_size,
                           .shuffle = true,
                           .workers = options.workers,
                           .transforms = {data::random_crop({.padding = 4}), data::random_horizontal_flip(),
                                          data::normalize(data::cifar10_mean, data::cifar10_std)},
                           .device = options.device});
}

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name,
                                                 const std::vector<Tensor>& parameters) {
  // Small steps: on noise, nothing may run away while it is timed for long.
  if (name == "adam") return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 1e-5});
  return std::make_unique<optim::SGD>(
      parameters, optim::SGDOptions{.lr = 1e-4, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
}

/// In mixed precision for half types.
template <class Work>
auto autocast(const std::string& dtype, const Work& work) {
  std::optional<Autocast> scope;
  if (is_half(dtypes.at(dtype))) scope.emplace(dtypes.at(dtype));
  return work();
}

}  // namespace

TrainingStep::TrainingStep(const TrainingStepOptions& options)
    : options_(options),
      loader_(noise(options)),
      net_(models::make_classifier(options.model, {.num_classes = classes})) {
  if (options.dtype == "float64") net_.to(DType::float64);
  net_.to(options.device);
  optimizer_ = make_optimizer(options.optimizer, net_.parameters());
}

void TrainingStep::data() {
  if (next_) ++*next_;
  if (!next_ || *next_ == std::default_sentinel) next_ = loader_.begin();
  images_ = as_kind((*next_)->inputs, {.dtype = options_.dtype == "float64" ? "float64" : "float32",
                                       .format = options_.format == "auto" ? "" : options_.format,
                                       .device = options_.device});
  labels_ = (*next_)->targets;
}

void TrainingStep::forward() {
  logits_ = autocast(options_.dtype, [&] { return net_(images_); });
}

void TrainingStep::loss() {
  loss_ = autocast(options_.dtype, [&] { return cross_entropy(logits_, labels_); });
}

void TrainingStep::backward() { loss_.backward(); }

void TrainingStep::optimize() {
  optimizer_->step();
  optimizer_->zero_grad();
  loss_ = logits_ = Tensor();
}

double TrainingStep::gradient_error() {
  nn::Sequential exact = nn::clone(net_);
  exact.to(Device());
  exact.to(DType::float64);
  data();
  forward();
  loss();
  const Grads got = grad({loss_}, net_.parameters());
  const Tensor images = ops::cast(ops::to_device(images_, {}), DType::float64);
  const Grads wanted = grad({cross_entropy(exact(images), ops::to_device(labels_, {}))}, exact.parameters());
  std::vector<Tensor> all_got, all_wanted;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    all_got.push_back(flatten(got[i]));
    all_wanted.push_back(flatten(wanted[i]));
  }
  loss_ = logits_ = Tensor();
  return relative_error(cat(all_got), cat(all_wanted));
}

}  // namespace pleat::bench
