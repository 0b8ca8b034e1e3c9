#include "classification.h"

using namespace pleat;

namespace {
Tensor added(const Tensor& total, const Tensor& more) { return total.defined() ? total + more : more; }
}  // namespace

void ClassificationScore::add(const Tensor& loss, const Tensor& logits, const Tensor& targets) {
  const NoGrad guard;
  const Tensor answers = argmax(logits, 1);
  const Tensor labels = targets.rank() == 2 ? argmax(targets, 1) : targets;
  const int64_t samples = logits.size(0);
  loss_ = added(loss_, loss.to(float64) * samples);
  right_ = added(right_, sum(answers == labels));
  samples_ += samples;
}

double ClassificationScore::loss() const {
  return samples_ == 0 ? 0 : loss_.item() / static_cast<double>(samples_);
}

double ClassificationScore::accuracy() const {
  return samples_ == 0 ? 0 : right_.item() / static_cast<double>(samples_);
}

ClassificationScore evaluate(nn::Module& net, data::DataLoader& loader) {
  const NoGrad guard;
  net.eval();
  ClassificationScore score;
  for (const data::Batch& batch : loader) {
    const Tensor logits = net(batch.inputs);
    score.add(cross_entropy(logits, batch.targets), logits, batch.targets);
  }
  net.train();
  return score;
}

data::Transform cifar_normalization() {
  return data::normalize({0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F});
}
