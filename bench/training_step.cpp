#include "pleat/bench/training_step.h"

#include <iterator>
#include <optional>

#include "pleat/bench/case.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/examples/common/cifar_models.h"
#include "pleat/examples/common/classification.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

constexpr int64_t classes = 10;

data::TensorDataset noise(int64_t batch_size) {
  const int64_t images = checked_multiply(8, batch_size, "step");  // an epoch of 8 batches
  return data::TensorDataset(ops::cast(randint(0, 256, {images, 3, 32, 32}), DType::uint8),
                             randint(0, classes, {images}));
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
  if (is_half(parse_dtype(dtype))) scope.emplace(parse_dtype(dtype));
  return work();
}

}  // namespace

struct TrainingStep::State {
  explicit State(const TrainingStepOptions& o)
      : options(o),
        set(noise(o.batch_size)),
        loader(set, {.batch_size = o.batch_size,
                     .shuffle = true,
                     .workers = o.workers,
                     .transforms = {data::random_crop({.padding = 4}), data::random_horizontal_flip(),
                                    cifar_normalization()},
                     .device = o.device}),
        net(make_model(o.model, classes)) {
    if (o.dtype == "float64") net.to(DType::float64);
    net.to(o.device);
    optimizer = make_optimizer(o.optimizer, net.parameters());
  }

  TrainingStepOptions options;
  data::TensorDataset set;
  data::DataLoader loader;
  std::optional<data::DataLoader::Iterator> next;
  nn::Sequential net;
  std::unique_ptr<optim::Optimizer> optimizer;
  Tensor images, labels, logits, loss;
};

TrainingStep::TrainingStep(const TrainingStepOptions& options) {
  manual_seed(1);
  state_ = std::make_unique<State>(options);
}
TrainingStep::~TrainingStep() = default;

void TrainingStep::data() {
  State& s = *state_;
  if (s.next) ++*s.next;
  if (!s.next || *s.next == std::default_sentinel) s.next = s.loader.begin();
  s.images = (*s.next)->inputs;
  if (s.options.format != "auto") s.images = ops::to_format(s.images, parse_format(s.options.format));
  if (s.options.dtype == "float64") s.images = ops::cast(s.images, DType::float64);
  s.labels = (*s.next)->targets;
}

void TrainingStep::forward() {
  State& s = *state_;
  s.logits = autocast(s.options.dtype, [&] { return s.net(s.images); });
}

void TrainingStep::loss() {
  State& s = *state_;
  s.loss = autocast(s.options.dtype, [&] { return cross_entropy(s.logits, s.labels); });
}

void TrainingStep::backward() { state_->loss.backward(); }

void TrainingStep::optimize() {
  state_->optimizer->step();
  state_->optimizer->zero_grad();
  state_->loss = state_->logits = Tensor();
}

int64_t TrainingStep::num_parameters() const { return state_->net.num_parameters(); }

double TrainingStep::gradient_error() {
  State& s = *state_;
  nn::Sequential exact = nn::clone(s.net);
  exact.to(Device());
  exact.to(DType::float64);
  data();
  forward();
  loss();
  const Grads got = grad({s.loss}, s.net.parameters());
  const Tensor images = ops::cast(ops::to_device(s.images, {}), DType::float64);
  const Grads wanted = grad({cross_entropy(exact(images), ops::to_device(s.labels, {}))}, exact.parameters());
  std::vector<Tensor> all_got, all_wanted;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    all_got.push_back(flatten(ops::to_device(ops::cast(got[i], DType::float64), {})));
    all_wanted.push_back(flatten(wanted[i]));
  }
  s.loss = s.logits = Tensor();
  return relative_error(cat(all_got), cat(all_wanted));
}

}  // namespace pleat::bench
