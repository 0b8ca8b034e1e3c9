#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/core/tensor/tensor.h"

/// Figures of a test that grow batch by batch: add() takes a batch, merge() the state() of another object of
/// the same options, such as another process's (`dist::merge_metric`), reset() begins anew. How the samples
/// were divided matters for the rounding of sums alone. Figures are kept on the host, so add() waits for a
/// GPU. What is undefined is NaN; what add() or merge() refuse does not count. Values are scikit-learn's.
///
///   train::ConfusionMatrix matrix(10);
///   for (const data::Batch& batch : loader) matrix.add(net(batch.inputs), batch.targets);
///   matrix.f1(train::Average::macro);

namespace pleat::train {

/// How values of classes become one.
enum class Average : unsigned char {
  macro,  ///< the mean over the classes that occur among targets or predictions; an undefined value counts as
          ///< 0
  micro,  ///< over all samples, whatever their class: here the accuracy
  weighted  ///< the mean with the classes' numbers of samples as weights
};

/// How often each class was taken for each, and what follows from that. With tp samples of a class that were
/// found, fp of others taken for it and fn of its own taken for others: precision tp / (tp + fp), recall tp /
/// (tp + fn), F1 2 tp / (2 tp + fp + fn), IoU (Jaccard) tp / (tp + fp + fn).
class ConfusionMatrix {
 public:
  /// Samples whose target is `ignore_index` do not count. Throws ValueError for a negative number of classes.
  explicit ConfusionMatrix(Integer classes, std::optional<int64_t> ignore_index = {});

  /// Integer targets [B, ...], of pixels, too, with predicted classes of the same shape (integers), or with
  /// scores [B, classes, ...] (floating), of which the largest counts. Throws ShapeError, DTypeError,
  /// IndexError for a class outside [0, classes), ValueError for scores that are NaN.
  void add(const Tensor& predictions, const Tensor& targets);
  /// The same of lists.
  void add(std::span<const int64_t> predicted, std::span<const int64_t> targets);

  /// [target][predicted]: how many.
  std::vector<std::vector<int64_t>> counts() const;
  int64_t samples() const;
  double accuracy() const;
  std::vector<double> precision() const;  ///< by class
  std::vector<double> recall() const;     ///< by class
  std::vector<double> f1() const;         ///< by class
  std::vector<double> iou() const;        ///< by class
  double precision(Average average) const { return mean(precision(), average); }
  double recall(Average average) const { return mean(recall(), average); }
  double f1(Average average) const { return mean(f1(), average); }
  double mean_iou() const { return mean(iou(), Average::macro); }

  Tensor state() const;  ///< int64 [classes * classes]
  /// Throws ShapeError and DTypeError for a state of another number of classes.
  void merge(const Tensor& state);
  void reset() { counts_.assign(counts_.size(), 0); }

 private:
  struct Class {
    double found, targets, predicted;  ///< numbers of samples
  };
  std::vector<Class> by_class() const;
  std::vector<double> each(double (*value)(const Class&)) const;
  double mean(const std::vector<double>& values, Average average) const;

  int64_t classes_;
  std::optional<int64_t> ignore_index_;
  std::vector<int64_t> counts_;  ///< [classes, classes]
};

/// The share of samples whose target is among the k largest scores. Of equal scores that of the lower class
/// is the larger one, as for argmax.
class TopKAccuracy {
 public:
  /// Throws ValueError unless k >= 1.
  explicit TopKAccuracy(Integer k);

  /// Floating scores [B, classes], integer targets [B]. Throws ShapeError, DTypeError, IndexError for a
  /// target that is no class, ValueError for scores that are NaN and fewer classes than k.
  void add(const Tensor& scores, const Tensor& targets);
  int64_t samples() const { return samples_; }
  double value() const { return static_cast<double>(right_) / static_cast<double>(samples_); }

  Tensor state() const;  ///< int64 [3]
  void merge(
      const Tensor& state);  ///< throws ShapeError and DTypeError for another one, ValueError for another k
  void reset() { right_ = samples_ = 0; }

 private:
  int64_t k_, right_ = 0, samples_ = 0;
};

/// The area under the receiver operating characteristic: how often a sample of the class has a larger score
/// than one of another class, where equal scores count half (the statistic of Mann and Whitney). Exact: it
/// keeps all scores.
class AUROC {
 public:
  /// Two classes: floating scores [B], of class 1, with targets [B], 0 and 1 (integers or bool). More: scores
  /// [B, classes] with targets [B], each class against the rest. Throws ShapeError, also for other classes
  /// than before, DTypeError, IndexError for a target that is no class, ValueError for scores that are NaN.
  void add(const Tensor& scores, const Tensor& targets);
  int64_t samples() const { return static_cast<int64_t>(targets_.size()); }
  /// Each class against the rest; for two classes one value, of class 1. NaN for a class of all samples or
  /// none.
  std::vector<double> by_class() const;
  /// The mean of those that are not NaN (macro, one-versus-rest).
  double value() const;

  Tensor state() const;  ///< float64 [1 + N * (classes, or 1, and one more)]
  void merge(
      const Tensor& state);  ///< throws ShapeError and DTypeError for another one and for other classes
  void reset() { *this = {}; }

 private:
  void append(std::size_t columns, std::span<const double> scores, std::span<const int64_t> targets);

  std::size_t columns_ = 0;     ///< 0: nothing was added
  std::vector<double> scores_;  ///< [N, columns]
  std::vector<int64_t> targets_;
};

/// Errors of predicted numbers. All elements count alike.
class RegressionScore {
 public:
  /// Predictions and targets of one shape, of any types. Throws ShapeError.
  void add(const Tensor& predictions, const Tensor& targets);
  int64_t elements() const { return static_cast<int64_t>(elements_); }
  double mae() const { return absolute_ / elements_; }  ///< mean of |prediction - target|
  double mse() const { return squared_ / elements_; }   ///< mean of (prediction - target)^2
  double rmse() const;                                  ///< its square root
  /// 1 - sum of (prediction - target)^2 / sum of (target - mean of targets)^2; where all targets are equal 1
  /// if they were hit, else 0. NaN for fewer than two elements.
  double r2() const;

  Tensor state() const;             ///< float64 [5]
  void merge(const Tensor& state);  ///< throws ShapeError and DTypeError for another one
  void reset() { *this = {}; }

 private:
  double elements_ = 0, absolute_ = 0, squared_ = 0;
  double mean_ = 0, deviation_ = 0;  ///< of targets: mean, sum of squared distances from it
};

}  // namespace pleat::train
