#include "pleat/ops/sample/boxes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/elementwise/widened.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

void check_boxes(const char* op, const Tensor& boxes) {
  ops::check_types<ops::Floating>(op, boxes.dtype());
  check<ShapeError>(boxes.rank() == 2 && boxes.size(1) == 4, "{}: boxes must be [N, 4], got {}", op, boxes);
}

void check_device(const char* op, const Tensor& x, const Tensor& boxes) {
  check<DeviceError>(x.device() == boxes.device(), "{}: all tensors must be on one device, got {} and {}", op,
                     boxes.device(), x.device());
}

double area(const double* box) { return (box[2] - box[0]) * (box[3] - box[1]); }

double overlap(const double* a, const double* b) {
  const double width = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const double height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  const double common = std::max(width, 0.0) * std::max(height, 0.0);
  return common / (area(a) + area(b) - common);
}

std::vector<double> numbers(const Tensor& x) { return ops::cast(x.detach(), float64).to_vector<double>(); }

/// `classes` is empty where there are none.
std::vector<int64_t> standing(const std::vector<double>& boxes, const std::vector<double>& scores,
                              const std::vector<int64_t>& classes, double threshold) {
  std::vector<std::size_t> order(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<bool> suppressed(scores.size());
  std::vector<int64_t> kept;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t box = order[i];
    if (suppressed[box]) continue;
    kept.push_back(static_cast<int64_t>(box));
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const std::size_t other = order[j];
      if (!suppressed[other] && (classes.empty() || classes[box] == classes[other]))
        suppressed[other] = overlap(&boxes[4 * box], &boxes[4 * other]) > threshold;
    }
  }
  return kept;
}

Tensor suppress(const char* op, const Tensor& boxes, const Tensor& scores, const Tensor* idxs,
                double threshold) {
  check_boxes(op, boxes);
  ops::check_types<ops::Floating>(op, scores.dtype());
  check<DTypeError>(idxs == nullptr || idxs->dtype() == int64, "{}: idxs must be int64", op);
  for (const Tensor* x : {&scores, idxs}) {
    if (x == nullptr) continue;
    check<ShapeError>(x->shape() == Shape{boxes.size(0)}, "{}: {} must be [{}], one for each box, got {}", op,
                      x == idxs ? "idxs" : "scores", boxes.size(0), *x);
    check_device(op, *x, boxes);
  }
  check<ValueError>(!std::isnan(threshold), "{}: iou_threshold must be a number, got NaN", op);
  const Tensor none;
  const Call call(op, {boxes, scores, idxs == nullptr ? none : *idxs}, {{"iou_threshold", threshold}});
  const auto classes = idxs == nullptr ? std::vector<int64_t>() : idxs->to_vector<int64_t>();
  const std::vector<double> order = numbers(scores);
  check<ValueError>(std::ranges::none_of(order, [](double score) { return std::isnan(score); }),
                    "{}: a score is NaN", op);
  const std::vector<int64_t> kept = standing(numbers(boxes), order, classes, threshold);
  return call.gives(from_vector(kept, {std::ssize(kept)}, boxes.device()));
}

}  // namespace

Tensor box_iou(const Tensor& boxes1, const Tensor& boxes2) {
  constexpr const char* op = "box_iou";
  const Call call(op, {boxes1, boxes2});
  check_boxes(op, boxes1);
  check_boxes(op, boxes2);
  ops::check_one_type(op, "boxes2", boxes2, "boxes1", boxes1);
  check_device(op, boxes2, boxes1);
  const Tensor a = unsqueeze(widened(boxes1), 1), b = unsqueeze(widened(boxes2), 0);
  const auto corner = [](const Tensor& boxes, int64_t first) { return narrow(boxes, -1, first, 2); };
  const auto area_of = [](const Tensor& sides) { return select(sides, -1, 0) * select(sides, -1, 1); };
  const Tensor sides = minimum(corner(a, 2), corner(b, 2)) - maximum(corner(a, 0), corner(b, 0));
  const Tensor common = area_of(clamp(sides, {.min = 0}));
  const Tensor all = area_of(corner(a, 2) - corner(a, 0)) + area_of(corner(b, 2) - corner(b, 0));
  return call.gives(cast(common / (all - common), boxes1.dtype()));
}

Tensor nms(const Tensor& boxes, const Tensor& scores, Real iou_threshold) {
  return suppress("nms", boxes, scores, nullptr, iou_threshold);
}

Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& idxs, Real iou_threshold) {
  return suppress("batched_nms", boxes, scores, &idxs, iou_threshold);
}

}  // namespace pleat
