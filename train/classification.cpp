#include "pleat/train/classification.h"

#include <cmath>
#include <optional>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/compare.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/nn/loss.h"
#include "pleat/train/finite.h"
#include "pleat/train/progress.h"

namespace pleat::train {
namespace {
Tensor added(const Tensor& total, const Tensor& more) { return total.defined() ? total + more : more; }
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

double ClassificationScore::loss() const {
  return samples_ == 0 ? 0 : loss_.item() / static_cast<double>(samples_);
}

double ClassificationScore::accuracy() const {
  return samples_ == 0 ? 0 : right_.item() / static_cast<double>(samples_);
}

ClassificationScore evaluate(nn::Module& net, data::DataLoader& loader, int64_t epoch) {
  const NoGrad guard;
  net.eval();
  ClassificationScore score;
  const auto test = [&] {
    for (const data::Batch& batch : loader) {
      const Tensor logits = net(batch.inputs);
      score.add(cross_entropy(logits, batch.targets), logits, batch.targets);
    }
  };
  test();
  if (!std::isfinite(score.loss()))
    throw NotFiniteError("the test loss is not finite after epoch " + std::to_string(epoch) + "; first " +
                         first_not_finite(test));
  net.train();
  return score;
}

EpochResult run_epoch(EpochNumber epoch, nn::Module& net, data::DataLoader& train_loader,
                      data::DataLoader& test_loader, optim::Optimizer& optimizer, optim::Schedule& schedule) {
  EpochResult result{.train = {}, .test = {}, .learning_rate = optimizer.lr(), .seconds = 0};
  {
    ProgressBar bar("epoch " + std::to_string(epoch.number) + '/' + std::to_string(epoch.of),
                    train_loader.size());
    LossWatch watch(net);
    std::optional<ClassificationScore::Reading> reading;
    int64_t done = 0;
    for (const data::Batch& batch : train_loader) {
      Tensor logits;
      const Tensor loss = watch.compute({epoch.number, ++done, optimizer.lr()}, batch, [&] {
        logits = net(batch.inputs);
        return cross_entropy(logits, batch.targets);
      });
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      schedule.step();
      result.train.add(loss.detach(), logits.detach(), batch.targets);
      if (!bar.is_due(done)) continue;
      if (!reading) reading = result.train.reading();
      if (!reading->is_ready()) continue;
      bar.update(done, {"loss " + number(reading->mean_loss(), 3)});
      reading.reset();
    }
    watch.finish();
    result.seconds = bar.seconds();
  }
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
