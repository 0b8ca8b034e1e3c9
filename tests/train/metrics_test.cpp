#include "pleat/train/metrics.h"

#include <cmath>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;
using train::Average;

namespace {
Tensor classes_of(const std::vector<int64_t>& list) { return from_vector(list); }
train::ConfusionMatrix matrix_of(int64_t classes, const std::vector<int64_t>& targets,
                                 const std::vector<int64_t>& predicted) {
  train::ConfusionMatrix matrix(classes);
  matrix.add(classes_of(predicted), classes_of(targets));
  return matrix;
}
void check_values(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(wanted[i]))
      CHECK(std::isnan(found[i]));
    else
      CHECK(found[i] == Approx(wanted[i]));
  }
}
const double undefined = std::nan("");
}  // namespace

// Data and values of the examples in scikit-learn's reference of confusion_matrix, precision_score,
// recall_score, f1_score and jaccard_score; where these say 0 for 0 / 0 of a class, it is NaN here.
TEST_CASE("precision, recall, F1 and IoU are scikit-learn's", "[train]") {
  CHECK(matrix_of(3, {2, 0, 2, 2, 0, 1}, {0, 0, 2, 2, 0, 2}).counts() ==
        std::vector<std::vector<int64_t>>{{2, 0, 0}, {0, 0, 1}, {1, 0, 2}});
  const train::ConfusionMatrix matrix = matrix_of(3, {0, 1, 2, 0, 1, 2}, {0, 2, 1, 0, 0, 1});
  check_values(matrix.precision(), {2.0 / 3, 0, 0});
  check_values(matrix.recall(), {1, 0, 0});
  check_values(matrix.f1(), {0.8, 0, 0});
  CHECK(matrix.accuracy() == Approx(1.0 / 3));
  CHECK(matrix.precision(Average::macro) == Approx(0.2222222222));
  CHECK(matrix.precision(Average::micro) == Approx(0.3333333333));
  CHECK(matrix.precision(Average::weighted) == Approx(0.2222222222));
  CHECK(matrix.recall(Average::macro) == Approx(0.3333333333));
  CHECK(matrix.recall(Average::micro) == Approx(0.3333333333));
  CHECK(matrix.f1(Average::macro) == Approx(0.2666666667));
  CHECK(matrix.f1(Average::micro) == Approx(0.3333333333));
  CHECK(matrix.f1(Average::weighted) == Approx(0.2666666667));
  const train::ConfusionMatrix jaccard = matrix_of(3, {0, 1, 2, 2}, {0, 2, 1, 2});
  check_values(jaccard.iou(), {1, 0, 1.0 / 3});
  CHECK(jaccard.mean_iou() == Approx(4.0 / 9));
  // Class 3 does not occur and has no part in the mean; class 2 is predicted but never the target.
  const train::ConfusionMatrix absent = matrix_of(4, {0, 0, 1}, {0, 2, 1});
  check_values(absent.precision(), {1, 1, 0, undefined});
  check_values(absent.recall(), {0.5, 1, undefined, undefined});
  CHECK(absent.recall(Average::macro) == Approx(0.5));
  CHECK(absent.recall(Average::weighted) == Approx((2 * 0.5 + 1) / 3));
  CHECK(absent.mean_iou() == Approx((0.5 + 1 + 0) / 3));
  CHECK(std::isnan(train::ConfusionMatrix(2).accuracy()));
  CHECK(std::isnan(train::ConfusionMatrix(2).f1(Average::macro)));
}

TEST_CASE("a confusion matrix takes classes, scores and pixels", "[train]") {
  const Tensor scores = tensor({{1.0F, 2.0F}, {3.0F, 0.0F}, {0.0F, 1.0F}}),
               targets = tensor({1, 1, 0}, int64);
  train::ConfusionMatrix matrix(2);
  matrix.add(scores, targets);
  CHECK(matrix.counts() == std::vector<std::vector<int64_t>>{{0, 1}, {1, 1}});
  CHECK(matrix.samples() == 3);
  // Pixels, of which some are ignored: in parts, merged and through a state.
  manual_seed(1);
  const Tensor pixels = randn({4, 3, 5, 6});
  const Tensor labels = where(rand({4, 5, 6}) < 0.2, full({4, 5, 6}, 255, int64), randint(0, 3, {4, 5, 6}));
  train::ConfusionMatrix whole(3, 255), part(3, 255), rest(3, 255), loaded(3, 255);
  whole.add(pixels, labels);
  whole.add(zeros({0, 3, 5, 6}), zeros({0, 5, 6}, int64));
  part.add(narrow(pixels, 0, 0, 1), narrow(labels, 0, 0, 1).to(uint8));
  rest.add(argmax(narrow(pixels, 0, 1, 3).to(MemoryFormat::channels_last), 1), narrow(labels, 0, 1, 3));
  loaded.merge(rest.state());
  part.merge(loaded.state());
  CHECK(part.counts() == whole.counts());
  CHECK(whole.samples() == sum(labels != 255).item<int64_t>());
  const Tensor kept = labels != 255, right = logical_and(argmax(pixels, 1) == labels, kept);
  CHECK(whole.accuracy() == Approx(sum(right).item() / sum(kept).item()));
  const auto one = [&](int64_t c) {
    const Tensor is = logical_and(labels == c, kept), found = logical_and(argmax(pixels, 1) == c, kept);
    return sum(logical_and(is, found)).item() / sum(logical_or(is, found)).item();
  };
  check_values(whole.iou(), {one(0), one(1), one(2)});

  const auto before = matrix.counts();
  CHECK_THROWS_WITH(matrix.add(tensor({0, 1, 0}, int64), tensor({0, 1, 2}, int64)),
                    Contains("element 2 has target 2 and prediction 0, which must be in [0, 2)"));
  CHECK_THROWS_AS(matrix.add(tensor({0, -1}, int64), tensor({0, 1}, int64)), IndexError);
  CHECK_THROWS_AS(matrix.add(zeros({3, 3}), targets), ShapeError);
  CHECK_THROWS_AS(matrix.add(zeros({4, 2}), targets), ShapeError);
  CHECK_THROWS_AS(matrix.add(scores, zeros({3})), DTypeError);
  CHECK_THROWS_WITH(matrix.add(full({3, 2}, std::nan(""), float32), targets), Contains("must not be NaN"));
  CHECK_THROWS_AS(matrix.merge(whole.state()), ShapeError);
  CHECK_THROWS_AS(matrix.merge(zeros({4})), DTypeError);
  CHECK_THROWS_AS(train::ConfusionMatrix(-1), ValueError);
  CHECK(matrix.counts() == before);
  matrix.reset();
  CHECK(matrix.samples() == 0);
}

// scikit-learn's example of top_k_accuracy_score.
TEST_CASE("top-k accuracy", "[train]") {
  const Tensor scores = tensor({{0.5, 0.2, 0.2}, {0.3, 0.4, 0.2}, {0.2, 0.4, 0.3}, {0.7, 0.2, 0.1}});
  const Tensor targets = tensor({0, 1, 2, 2}, int64);
  train::TopKAccuracy two(2), one(1), loaded(2);
  CHECK(std::isnan(two.value()));
  two.add(scores, targets);
  one.add(scores, targets);
  CHECK(two.value() == 0.75);
  CHECK(one.value() == 0.5);
  loaded.merge(two.state());
  loaded.add(full({2, 3}, 1, float64), tensor({1, 2}, int64));  // of equal scores the first two are larger
  CHECK(loaded.value() == Approx(4.0 / 6));
  loaded.merge(two.state());
  CHECK(loaded.samples() == 10);
  CHECK(loaded.value() == Approx(0.7));
  CHECK_THROWS_AS(loaded.merge(one.state()), ValueError);
  CHECK_THROWS_AS(train::TopKAccuracy(0), ValueError);
  CHECK_THROWS_WITH(train::TopKAccuracy(4).add(scores, targets), Contains("the 4 largest of 3 classes"));
  CHECK_THROWS_AS(two.add(scores, tensor({0, 1, 2, 3}, int64)), IndexError);
  CHECK_THROWS_AS(two.add(scores, tensor({0, 1}, int64)), ShapeError);
  CHECK_THROWS_AS(two.add(full({1, 3}, std::nan(""), float32), tensor({0}, int64)), ValueError);
  CHECK(two.samples() == 4);
}

// scikit-learn's example of roc_auc_score, and the statistic of Mann and Whitney by its definition.
TEST_CASE("the area under the ROC curve", "[train]") {
  train::AUROC area;
  CHECK(std::isnan(area.value()));
  area.add(tensor({0.1, 0.4}), tensor({0, 0}, int64));
  CHECK(std::isnan(area.value()));
  area.add(tensor({0.35, 0.8}), tensor({true, true}));
  CHECK(area.value() == 0.75);
  train::AUROC flat;
  flat.add(zeros({4}), tensor({0, 1, 1, 1}, int64));
  CHECK(flat.value() == 0.5);

  manual_seed(2);
  const Tensor scores = randint(0, 9, {60, 3}).to(float32), targets = randint(0, 3, {60});
  train::AUROC whole, part, loaded;
  whole.add(scores, targets);
  part.add(narrow(scores, 0, 0, 13), narrow(targets, 0, 0, 13));
  loaded.merge(part.state());
  part.reset();
  part.merge(train::AUROC().state());
  part.add(narrow(scores, 0, 13, 47), narrow(targets, 0, 13, 47));
  loaded.merge(part.state());
  CHECK(loaded.by_class() == whole.by_class());
  const auto s = scores.to_vector<float>();
  const auto t = targets.to_vector<int64_t>();
  std::vector<double> wanted;
  for (std::size_t c = 0; c < 3; ++c) {
    double wins = 0, pairs = 0;
    for (std::size_t i = 0; i < t.size(); ++i)
      for (std::size_t j = 0; j < t.size(); ++j) {
        if (t[i] != static_cast<int64_t>(c) || t[j] == static_cast<int64_t>(c)) continue;
        const float own = s[3 * i + c], other = s[3 * j + c];
        wins += own > other ? 1 : (own == other ? 0.5 : 0);
        ++pairs;
      }
    wanted.push_back(wins / pairs);
  }
  check_values(whole.by_class(), wanted);
  CHECK(whole.value() == Approx((wanted[0] + wanted[1] + wanted[2]) / 3));
  train::AUROC absent;
  absent.add(tensor({{0.1, 0.2, 0.7}, {0.3, 0.6, 0.1}}), tensor({2, 1}, int64));
  check_values(absent.by_class(), {undefined, 1, 1});
  CHECK(absent.value() == 1);
  CHECK_THROWS_AS(area.add(scores, targets), ShapeError);
  CHECK_THROWS_AS(area.merge(whole.state()), ShapeError);
  CHECK_THROWS_AS(area.merge(ones({2, 3}, float64)), ShapeError);
  CHECK_THROWS_AS(area.merge(full({3}, 1, float64) + 1), ShapeError);
  CHECK_THROWS_AS(area.add(tensor({0.1}), tensor({2}, int64)), IndexError);
  CHECK_THROWS_AS(area.add(tensor({0.1}), tensor({0.0})), DTypeError);
  CHECK_THROWS_AS(area.add(tensor({1}), tensor({0}, int64)), DTypeError);
  CHECK_THROWS_AS(area.add(full({1}, std::nan(""), float32), tensor({0}, int64)), ValueError);
  CHECK(area.samples() == 4);
}

// scikit-learn's examples of mean_absolute_error, mean_squared_error and r2_score.
TEST_CASE("errors of regression", "[train]") {
  const Tensor targets = tensor({3.0, -0.5, 2.0, 7.0}), predictions = tensor({2.5, 0.0, 2.0, 8.0});
  train::RegressionScore score;
  CHECK(std::isnan(score.mae()));
  score.add(narrow(predictions, 0, 0, 1), narrow(targets, 0, 0, 1));
  CHECK(std::isnan(score.r2()));
  score.add(zeros({0}), zeros({0}));
  score.add(narrow(predictions, 0, 1, 3), narrow(targets, 0, 1, 3));
  CHECK(score.elements() == 4);
  CHECK(score.mae() == 0.5);
  CHECK(score.mse() == 0.375);
  CHECK(score.rmse() == Approx(0.6123724357));
  CHECK(score.r2() == Approx(0.9486081370));
  // Far from 0, where a plain sum of squares would lose all digits.
  train::RegressionScore far, loaded;
  far.add(predictions.to(float64) + 1e9, targets.to(float64) + 1e9);
  CHECK(far.r2() == Approx(0.9486081370).epsilon(1e-6));
  loaded.merge(score.state());
  loaded.merge(score.state());
  CHECK(loaded.elements() == 8);
  CHECK(loaded.r2() == Approx(score.r2()));
  train::RegressionScore constant;
  constant.add(ones({3}), ones({3}));
  CHECK(constant.r2() == 1);
  constant.add(tensor({2.0F}), tensor({1.0F}));
  CHECK(constant.r2() == 0);
  CHECK_THROWS_WITH(score.add(zeros({3, 1}), zeros({3})), Contains("squeeze(x, 1)"));
}
