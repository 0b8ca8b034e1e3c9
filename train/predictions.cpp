#include "pleat/train/predictions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/nn/mode_scope.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat::train {

double Predictions::loss() const {
  double sum = 0;
  for (const Prediction& p : samples) sum += p.loss;
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

double Predictions::accuracy() const {
  const auto right = std::count_if(samples.begin(), samples.end(),
                                   [](const Prediction& p) { return p.predicted == p.target; });
  return samples.empty() ? 0 : static_cast<double>(right) / static_cast<double>(samples.size());
}

ConfusionMatrix Predictions::confusion() const {
  std::vector<int64_t> predicted, targets;
  for (const Prediction& p : samples) {
    predicted.push_back(p.predicted);
    targets.push_back(p.target);
  }
  ConfusionMatrix matrix(classes);
  matrix.add(predicted, targets);
  return matrix;
}

std::vector<double> Predictions::class_accuracy() const { return confusion().recall(); }

std::vector<Prediction> Predictions::worst(int64_t most) const {
  std::vector<Prediction> wrong = samples;
  std::erase_if(wrong, [](const Prediction& p) { return p.predicted == p.target; });
  std::ranges::stable_sort(wrong, std::greater{}, &Prediction::loss);
  wrong.resize(std::min(wrong.size(), static_cast<std::size_t>(std::max<int64_t>(most, 0))));
  return wrong;
}

Predictions predict_classes(nn::Module& net, data::DataLoader& loader) {
  const NoGrad off_the_tape;
  const nn::ModeScope scope(net, nn::Mode::evaluation);
  loader.check_has_all("predict_classes");
  Predictions test;
  for (const data::Batch& batch : loader) {
    const Tensor logits = net(batch.inputs);
    check<ShapeError>(logits.rank() == 2 && logits.size(0) == batch.size(),
                      "predict_classes: the network must give [{}, classes], got {}", batch.size(), logits);
    check<ShapeError>(
        batch.targets.defined() && batch.targets.rank() == 1 && batch.targets.dtype() == int64,
        "predict_classes: the loader must give targets [{}] int64, got {}; mixup and cutmix belong "
        "to the training",
        batch.size(), batch.targets);
    check<ShapeError>(
        batch.indices.size() == static_cast<std::size_t>(batch.size()),
        "predict_classes: the loader's transforms must keep the {} samples of a batch, and made {}",
        batch.indices.size(), batch.size());
    check<ShapeError>(test.samples.empty() || logits.size(1) == test.classes,
                      "predict_classes: the network must give as many classes as before, {}, got {}",
                      test.classes, logits);
    test.classes = logits.size(1);
    const auto targets = batch.targets.to_vector<int64_t>();
    for (std::size_t i = 0; i < targets.size(); ++i)
      check<IndexError>(
          targets[i] >= 0 && targets[i] < test.classes,
          "predict_classes: sample {} has the target {}, which must be in [0, {}), the network's "
          "classes",
          batch.indices[i], targets[i], test.classes);
    const Tensor log_probabilities = log_softmax(logits.to(float32), 1);
    const auto best = max_with_indices(log_probabilities, 1);
    const auto of_best = best.values.to_vector<float>();
    const auto predicted = best.indices.to_vector<int64_t>();
    const auto of_target =
        flatten(gather(log_probabilities, 1, unsqueeze(batch.targets, 1))).to_vector<float>();
    for (std::size_t i = 0; i < targets.size(); ++i)
      test.samples.push_back({.sample = batch.indices[i],
                              .target = targets[i],
                              .predicted = predicted[i],
                              .probability = std::exp(of_best[i]),
                              .loss = -of_target[i]});
  }
  std::ranges::sort(test.samples, {}, &Prediction::sample);
  return test;
}

Tensor mirrored(const Tensor& pictures) { return flip(pictures, {-1}); }

TestTimeAugmentation::TestTimeAugmentation(nn::AnyModule net,
                                           std::vector<std::function<Tensor(const Tensor&)>> versions)
    : net_(std::move(net)), versions_(std::move(versions)) {
  for (const auto& version : versions_)
    check<ValueError>(version != nullptr, "TestTimeAugmentation: version {} is an empty function",
                      &version - versions_.data());
}

Tensor TestTimeAugmentation::forward(const Tensor& x) {
  std::vector<Tensor> found;
  const auto add = [&](const Tensor& version) {
    const Tensor logits = net_(version);
    check<ShapeError>(logits.rank() == 2 && logits.size(0) == x.size(0),
                      "TestTimeAugmentation: the network must give [{}, classes], got {}", x.size(0), logits);
    found.push_back(log_softmax(logits, 1));
  };
  add(x);
  for (const auto& version : versions_) add(version(x));
  return logsumexp(stack(found), {0}) - std::log(static_cast<double>(found.size()));
}

}  // namespace pleat::train
