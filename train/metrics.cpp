#include "pleat/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::train {
namespace {

template <class T>
std::vector<T> on_host(const Tensor& x, DType dtype) {
  return x.detach().to(dtype).to(Device{}).to(MemoryFormat::contiguous).to_vector<T>();
}

template <class T>
Tensor state_of(const std::vector<T>& values) {
  return from_vector(values, {values.size()}, Device{});
}
/// A state of `size` values, or of any number for 0.
template <class T>
std::vector<T> values_of(const char* op, const Tensor& state, std::size_t size) {
  check<DTypeError>(state.dtype() == dtype_of<T>(), "{}: the state must be {}, got {}", op,
                    name(dtype_of<T>()), state);
  check<ShapeError>(state.rank() == 1 && (size == 0 || state.numel() == static_cast<int64_t>(size)),
                    "{}: the state must be [{}], got {}; merge those of the same options", op, size, state);
  return on_host<T>(state, state.dtype());
}

/// Row-major.
std::vector<int64_t> integers(const char* op, const char* what, const Tensor& x) {
  check<DTypeError>(!is_floating(x.dtype()), "{}: {} must be integers, got {}", op, what, x);
  return on_host<int64_t>(x, int64);
}

void check_scores(const char* op, const Tensor& scores) {
  check<DTypeError>(is_floating(scores.dtype()), "{}: scores must be floating, got {}", op, scores);
  check<ValueError>(!any(isnan(scores)).item<bool>(),
                    "{}: scores must not be NaN; first_not_finite names the function that made it", op);
}

/// Integer targets [B] of scores [B, classes], checked.
std::vector<int64_t> targets_of(const char* op, const Tensor& scores, const Tensor& targets,
                                int64_t classes) {
  check<ShapeError>(targets.rank() == 1 && scores.rank() >= 1 && targets.size(0) == scores.size(0),
                    "{}: targets must be [B] and scores [B, classes], got {} and {}", op, targets, scores);
  std::vector<int64_t> labels = integers(op, "targets", targets);
  for (std::size_t i = 0; i < labels.size(); ++i)
    check<IndexError>(labels[i] >= 0 && labels[i] < classes, "{}: target {} is {}, which must be in [0, {})",
                      op, i, labels[i], classes);
  return labels;
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(Integer classes, std::optional<int64_t> ignore_index)
    : classes_(classes), ignore_index_(ignore_index) {
  check<ValueError>(classes_ >= 0 && classes_ <= 1 << 15,
                    "ConfusionMatrix: classes must be from 0 to 32768, got {}", classes_);
  counts_.resize(static_cast<std::size_t>(classes_ * classes_));
}

void ConfusionMatrix::add(const Tensor& predictions, const Tensor& targets) {
  const NoGrad guard;
  Tensor predicted = predictions;
  if (is_floating(predictions.dtype())) {
    check<ShapeError>(predictions.rank() >= 2 && predictions.size(1) == classes_,
                      "ConfusionMatrix: scores must be [B, {}, ...], got {}", classes_, predictions);
    check_scores("ConfusionMatrix", predictions);
    predicted = argmax(predictions, 1);
  }
  check<ShapeError>(
      predicted.shape() == targets.shape(),
      "ConfusionMatrix: targets must be [B, ...], and predictions classes [B, ...] (integers) or "
      "scores [B, {}, ...] (floating), got {} and {}",
      classes_, targets, predictions);
  add(integers("ConfusionMatrix", "predicted classes", predicted),
      integers("ConfusionMatrix", "targets", targets));
}

void ConfusionMatrix::add(std::span<const int64_t> predicted, std::span<const int64_t> targets) {
  check<ShapeError>(predicted.size() == targets.size(), "ConfusionMatrix: {} predictions, but {} targets",
                    predicted.size(), targets.size());
  std::vector<std::size_t> cells;
  cells.reserve(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == ignore_index_) continue;
    for (const int64_t one : {targets[i], predicted[i]})
      check<IndexError>(
          one >= 0 && one < classes_,
          "ConfusionMatrix: element {} has target {} and prediction {}, which must be in [0, {}); "
          "ignore_index leaves out a target",
          i, targets[i], predicted[i], classes_);
    cells.push_back(static_cast<std::size_t>(targets[i] * classes_ + predicted[i]));
  }
  for (const std::size_t cell : cells) ++counts_[cell];
}

Tensor ConfusionMatrix::state() const { return state_of(counts_); }

void ConfusionMatrix::merge(const Tensor& state) {
  check<ShapeError>(state.numel() == classes_ * classes_,
                    "ConfusionMatrix: a state of {} classes is needed, got {}", classes_, state);
  const auto counts = values_of<int64_t>("ConfusionMatrix", state, counts_.size());
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += counts[i];
}

int64_t ConfusionMatrix::samples() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
}

std::vector<std::vector<int64_t>> ConfusionMatrix::counts() const {
  std::vector<std::vector<int64_t>> rows;
  for (int64_t c = 0; c < classes_; ++c)
    rows.emplace_back(counts_.begin() + c * classes_, counts_.begin() + (c + 1) * classes_);
  return rows;
}

std::vector<ConfusionMatrix::Class> ConfusionMatrix::by_class() const {
  std::vector<Class> classes(static_cast<std::size_t>(classes_), Class{0, 0, 0});
  for (std::size_t t = 0; t < classes.size(); ++t)
    for (std::size_t p = 0; p < classes.size(); ++p) {
      const auto count = static_cast<double>(counts_[t * classes.size() + p]);
      classes[t].targets += count;
      classes[p].predicted += count;
      if (t == p) classes[t].found = count;
    }
  return classes;
}

double ConfusionMatrix::accuracy() const {
  double found = 0;
  for (const Class& c : by_class()) found += c.found;
  return found / static_cast<double>(samples());
}

std::vector<double> ConfusionMatrix::each(double (*value)(const Class&)) const {
  std::vector<double> values;
  for (const Class& c : by_class()) values.push_back(value(c));  // 0 / 0 is NaN
  return values;
}
std::vector<double> ConfusionMatrix::precision() const {
  return each([](const Class& c) { return c.found / c.predicted; });
}
std::vector<double> ConfusionMatrix::recall() const {
  return each([](const Class& c) { return c.found / c.targets; });
}
std::vector<double> ConfusionMatrix::f1() const {
  return each([](const Class& c) { return 2 * c.found / (c.targets + c.predicted); });
}
std::vector<double> ConfusionMatrix::iou() const {
  return each([](const Class& c) { return c.found / (c.targets + c.predicted - c.found); });
}

double ConfusionMatrix::mean(const std::vector<double>& values, Average average) const {
  if (average == Average::micro) return accuracy();
  double sum = 0, weights = 0;
  const std::vector<Class> classes = by_class();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const bool occurs = classes[c].targets + classes[c].predicted > 0;
    const double weight = average == Average::weighted ? classes[c].targets : (occurs ? 1 : 0);
    sum += std::isnan(values[c]) ? 0 : weight * values[c];
    weights += weight;
  }
  return sum / weights;
}

TopKAccuracy::TopKAccuracy(Integer k) : k_(k) {
  check<ValueError>(k_ >= 1, "TopKAccuracy: k must be at least 1, got {}", k_);
}

void TopKAccuracy::add(const Tensor& scores, const Tensor& targets) {
  const NoGrad guard;
  check<ShapeError>(scores.rank() == 2, "TopKAccuracy: scores must be [B, classes], got {}", scores);
  check<ValueError>(scores.size(1) >= k_, "TopKAccuracy: the {} largest of {} classes; take a smaller k", k_,
                    scores.size(1));
  const auto classes = static_cast<std::size_t>(scores.size(1));
  const std::vector<int64_t> labels = targets_of("TopKAccuracy", scores, targets, scores.size(1));
  check_scores("TopKAccuracy", scores);
  const std::vector<double> values = on_host<double>(scores, float64);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double* const row = values.data() + i * classes;
    const auto label = static_cast<std::size_t>(labels[i]);
    int64_t ahead = 0;
    for (std::size_t c = 0; c < classes; ++c)
      if (row[c] > row[label] || (row[c] == row[label] && c < label)) ++ahead;
    if (ahead < k_) ++right_;
  }
  samples_ += static_cast<int64_t>(labels.size());
}

Tensor TopKAccuracy::state() const { return state_of(std::vector<int64_t>{k_, right_, samples_}); }

void TopKAccuracy::merge(const Tensor& state) {
  const auto values = values_of<int64_t>("TopKAccuracy", state, 3);
  check<ValueError>(values[0] == k_, "TopKAccuracy: k is {}, but {} in the state; merge those of one k", k_,
                    values[0]);
  right_ += values[1];
  samples_ += values[2];
}

void AUROC::add(const Tensor& scores, const Tensor& targets) {
  const NoGrad guard;
  check<ShapeError>((scores.rank() == 1 || (scores.rank() == 2 && scores.size(1) >= 2)),
                    "AUROC: scores must be [B] of two classes, or [B, classes], got {}", scores);
  const bool two = scores.rank() == 1;
  const auto columns = static_cast<std::size_t>(two ? 1 : scores.size(1));
  const std::vector<int64_t> labels = targets_of("AUROC", scores, targets, two ? 2 : scores.size(1));
  check_scores("AUROC", scores);
  const std::vector<double> values = on_host<double>(scores, float64);
  append(columns, values, labels);
}

void AUROC::append(std::size_t columns, std::span<const double> scores, std::span<const int64_t> targets) {
  check<ShapeError>(columns_ == 0 || columns == columns_,
                    "AUROC: scores had {} columns before, got {}; take another AUROC for other classes",
                    columns_, columns);
  columns_ = columns;
  scores_.insert(scores_.end(), scores.begin(), scores.end());
  targets_.insert(targets_.end(), targets.begin(), targets.end());
}

Tensor AUROC::state() const {
  std::vector<double> values{static_cast<double>(columns_)};
  values.insert(values.end(), scores_.begin(), scores_.end());
  values.insert(values.end(), targets_.begin(), targets_.end());
  return state_of(values);
}

void AUROC::merge(const Tensor& state) {
  const auto values = values_of<double>("AUROC", state, 0);
  const std::size_t columns = values.empty() || !(values[0] >= 1) ? 0 : static_cast<std::size_t>(values[0]);
  check<ShapeError>(values.size() % (columns + 1) == 1 % (columns + 1), "AUROC: {} is no state of one",
                    state);
  if (columns == 0) return;
  const std::span<const double> rest(values.data() + 1, values.size() - 1);
  const std::size_t count = rest.size() / (columns + 1) * columns;
  append(columns, rest.first(count), std::vector<int64_t>(rest.begin() + count, rest.end()));
}

std::vector<double> AUROC::by_class() const {
  std::vector<double> areas;
  const std::size_t n = targets_.size();
  std::vector<std::size_t> order(n);
  for (std::size_t c = 0; c < columns_; ++c) {
    const int64_t label = columns_ == 1 ? 1 : static_cast<int64_t>(c);
    const auto score = [&](std::size_t i) { return scores_[i * columns_ + c]; };
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, score);
    double own = 0, rest = 0, wins = 0;  // own samples, others, pairs that are in order
    for (std::size_t first = 0, end = 0; first < n; first = end) {
      double own_here = 0;  // of those with this score
      for (end = first; end < n && score(order[end]) == score(order[first]); ++end)
        own_here += targets_[order[end]] == label ? 1 : 0;
      const double rest_here = static_cast<double>(end - first) - own_here;
      wins += own_here * (rest + rest_here / 2);
      own += own_here;
      rest += rest_here;
    }
    areas.push_back(wins / (own * rest));
  }
  return areas;
}

double AUROC::value() const {
  std::vector<double> areas = by_class();
  std::erase_if(areas, [](double area) { return std::isnan(area); });
  return std::accumulate(areas.begin(), areas.end(), 0.0) / static_cast<double>(areas.size());
}

void RegressionScore::add(const Tensor& predictions, const Tensor& targets) {
  const NoGrad guard;
  check<ShapeError>(
      predictions.shape() == targets.shape(),
      "RegressionScore: predictions and targets must have one shape, got {} and {}; squeeze(x, 1) "
      "takes off a dimension of size 1",
      predictions, targets);
  if (targets.numel() == 0) return;
  const Tensor wanted = targets.detach().to(float64), error = predictions.detach().to(float64) - wanted;
  const double mean = pleat::mean(wanted).item();
  merge(state_of(std::vector<double>{static_cast<double>(targets.numel()), sum(abs(error)).item(),
                                     sum(square(error)).item(), mean, sum(square(wanted - mean)).item()}));
}

Tensor RegressionScore::state() const {
  return state_of(std::vector<double>{elements_, absolute_, squared_, mean_, deviation_});
}

// Means and squared distances of two sets as one: Chan, Golub and LeVeque, "Updating formulae and a pairwise
// algorithm for computing sample variances", 1979.
void RegressionScore::merge(const Tensor& state) {
  const auto other = values_of<double>("RegressionScore", state, 5);
  const double added = other[0], all = elements_ + added, distance = other[3] - mean_;
  if (added == 0) return;
  absolute_ += other[1];
  squared_ += other[2];
  mean_ += distance * added / all;
  deviation_ += other[4] + distance * distance * elements_ * added / all;
  elements_ = all;
}

double RegressionScore::rmse() const { return std::sqrt(mse()); }

double RegressionScore::r2() const {
  if (elements_ < 2) return std::numeric_limits<double>::quiet_NaN();
  if (deviation_ == 0) return squared_ == 0 ? 1 : 0;
  return 1 - squared_ / deviation_;
}

}  // namespace pleat::train
