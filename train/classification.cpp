#include "pleat/train/classification.h"

#include <cmath>
#include <optional>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/mode_scope.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/train/clock.h"

namespace pleat::train {
namespace {
/// The total may come from a checkpoint, which is on the CPU.
Tensor added(const Tensor& total, const Tensor& more) {
  return total.defined() ? total.to(more.device()) + more : more;
}
}  // namespace

void ClassificationScore::add(const Tensor& loss, const Tensor& logits, const Tensor& targets) {
  const NoGrad guard;
  const Tensor predicted = argmax(logits, 1);
  const Tensor labels = targets.rank() == 2 ? argmax(targets, 1) : targets;
  const int64_t samples = logits.size(0);
  loss_ = added(loss_, loss.to(float64) * samples);
  right_ = added(right_, sum(predicted == labels));
  samples_ += samples;
}

nn::StateDict ClassificationScore::state_dict() const {
  const auto sum = [](const Tensor& tensor, DType dtype) {
    return tensor.defined() ? tensor.clone() : zeros({}, {.dtype = dtype, .device = Device{}});
  };
  return {{"loss", sum(loss_, float64)},
          {"right", sum(right_, int64)},
          {"samples", full({}, samples_, {.dtype = int64, .device = Device{}})}};
}

void ClassificationScore::load_state_dict(const nn::StateDict& state) {
  const nn::StateDict into = ClassificationScore().state_dict();
  nn::copy_state("ClassificationScore", into, state);
  samples_ = into.at("samples").item<int64_t>();
  loss_ = samples_ > 0 ? into.at("loss") : Tensor();
  right_ = samples_ > 0 ? into.at("right") : Tensor();
}

double ClassificationScore::loss() const {
  return samples_ == 0 ? 0 : loss_.item() / static_cast<double>(samples_);
}

double ClassificationScore::accuracy() const {
  return samples_ == 0 ? 0 : right_.item() / static_cast<double>(samples_);
}

ClassificationScore evaluate(nn::Module& net, data::DataLoader& loader, std::optional<int64_t> epoch) {
  loader.check_has_all("evaluate");
  const NoGrad guard;
  const nn::ModeScope scope(net, nn::Mode::evaluation);
  ClassificationScore score;
  const auto test = [&] {
    for (const data::Batch& batch : loader) {
      check<ShapeError>(batch.indices.size() == static_cast<std::size_t>(batch.size()),
                        "evaluate: the loader's transforms must keep the {} samples of a batch, and made {}",
                        batch.indices.size(), batch.size());
      const Tensor logits = net(batch.inputs);
      score.add(cross_entropy(logits, batch.targets), logits, batch.targets);
    }
  };
  test();
  if (!std::isfinite(score.loss()))
    throw NotFiniteError("the test loss is not finite" +
                         (epoch ? " after epoch " + std::to_string(*epoch) : std::string{}) + "; first " +
                         first_not_finite(test));
  return score;
}

void train_epoch(EpochNumber epoch, Step& step, data::DataLoader& loader, optim::Optimizer& optimizer,
                 optim::Schedule& schedule, ClassificationScore& score,
                 const std::function<void()>& after_step) {
  ProgressBar bar("epoch " + std::to_string(epoch.number) + '/' + std::to_string(epoch.of), loader.size(),
                  loader.batch());
  std::optional<ClassificationScore::Reading> reading;
  int64_t samples = 0;  // of this call
  for (const data::Batch& batch : loader) {
    step.run({epoch.number, loader.batch(), optimizer.lr()}, batch);
    if (step.updated()) schedule.step();
    score.add(step.loss(), step.output(), batch.targets);
    samples += batch.size();
    if (after_step) after_step();
    if (!bar.is_due(loader.batch())) continue;
    if (!reading) reading = score.reading();
    if (!reading->is_ready()) continue;
    bar.update(loader.batch(), {"loss " + number(reading->mean_loss(), 3),
                                "accuracy " + number(100 * reading->accuracy(), 1) + " %",
                                number(static_cast<double>(samples) / bar.seconds(), 0) + " images/s"});
    reading.reset();
  }
  if (step.finish()) schedule.step();
}

EpochResult run_epoch(EpochNumber epoch, nn::Module& net, data::DataLoader& train_loader,
                      data::DataLoader& test_loader, optim::Optimizer& optimizer, optim::Schedule& schedule) {
  Step step(net, optimizer,
            [](const Tensor& logits, const Tensor& targets) { return cross_entropy(logits, targets); });
  EpochResult result{.train = {}, .test = {}, .learning_rate = optimizer.lr(), .seconds = 0};
  const double start = now();
  train_epoch(epoch, step, train_loader, optimizer, schedule, result.train);
  result.seconds = now() - start;
  result.test = evaluate(net, test_loader, epoch.number);
  return result;
}

std::string EpochTable::line(int64_t epoch, const EpochResult& r, int width) {
  const std::vector<std::string> cells{std::to_string(epoch),
                                       number(r.train.loss(), 4),
                                       number(100 * r.train.accuracy(), 2) + '%',
                                       number(r.test.loss(), 4),
                                       number(100 * r.test.accuracy(), 2) + '%',
                                       general(r.learning_rate, 3),
                                       number(r.images_per_second(), 0),
                                       number(r.seconds, 1)};
  return table_.line(cells, width);
}

}  // namespace pleat::train
