#include "pleat/ops/attention/problem.h"

#include <algorithm>
#include <cmath>

#include "pleat/core/base/format.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

constexpr const char* op = "scaled_dot_product_attention";

Shape batch_of(const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); }

void check_mask(const Tensor& mask, const Tensor& query, const Shape& scores) {
  check<DTypeError>(mask.dtype() == boolean || is_floating(mask.dtype()),
                    "{}: the mask must be bool (true where a query takes a key) or floating (added to the "
                    "scores), got {}",
                    op, mask.dtype());
  check<DeviceError>(mask.device() == query.device(),
                     "{}: mask and query must be on one device, got {} and {}", op, mask.device(),
                     query.device());
  bool fits = mask.shape().size() <= scores.size();
  for (std::size_t d = 1; fits && d <= mask.shape().size(); ++d) {
    const int64_t size = mask.shape()[mask.shape().size() - d];
    fits = size == 1 || size == scores[scores.size() - d];
  }
  check<ShapeError>(fits, "{}: the mask must broadcast to [..., queries, keys] = {}, got {}", op, scores,
                    mask.shape());
}

}  // namespace

Shape AttentionProblem::shape(int64_t rows, int64_t columns) const {
  Shape shape = batch;
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

AttentionProblem attention_problem(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttentionOptions& options) {
  check_types<Floating>(op, query.dtype());
  check_one_type(op, "key", key, "query", query);
  check_one_type(op, "value", value, "query", query);
  for (const Tensor* x : {&key, &value})
    check<DeviceError>(x->device() == query.device(), "{}: all tensors must be on one device, got {} and {}",
                       op, query.device(), x->device());
  check<ShapeError>(query.rank() >= 2 && key.rank() >= 2 && value.rank() >= 2 &&
                        query.size(-1) == key.size(-1) && key.size(-2) == value.size(-2),
                    "{}: needs a query [..., L, E], a key [..., S, E] and a value [..., S, Ev], got {}, {} "
                    "and {}",
                    op, query.shape(), key.shape(), value.shape());
  const double width = static_cast<double>(std::max<int64_t>(query.size(-1), 1));
  AttentionProblem p{.batch = broadcast(broadcast(batch_of(query), batch_of(key), op), batch_of(value), op),
                     .queries = query.size(-2),
                     .keys = key.size(-2),
                     .width = query.size(-1),
                     .value_width = value.size(-1),
                     .scale = options.scale.value_or(1 / std::sqrt(width))};
  check<ValueError>(std::isfinite(p.scale), "{}: scale must be finite, got {}", op, p.scale);
  check<ValueError>(options.dropout >= 0 && options.dropout <= 1, "{}: dropout must be in [0, 1], got {}", op,
                    options.dropout);
  if (!options.mask.defined()) return p;
  check<ValueError>(!options.is_causal,
                    "{}: takes a mask or is_causal, got both; leave keys out of the mask where they come "
                    "after the query",
                    op);
  check_mask(options.mask, query, p.shape(p.queries, p.keys));
  return p;
}

}  // namespace pleat::ops
