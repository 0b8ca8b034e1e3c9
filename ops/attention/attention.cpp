#include "pleat/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/attention/kernels.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/dropout.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/elementwise/widened.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat {
namespace {

constexpr const char* op = "scaled_dot_product_attention";
constexpr double infinity = std::numeric_limits<double>::infinity();

double scale_of(const Tensor& query, const AttentionOptions& options) {
  const int64_t width = query.rank() == 0 ? 1 : std::max<int64_t>(query.size(-1), 1);
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(width)));
}

Shape batch_of(const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); }

void check_mask(const Tensor& mask, const Tensor& query, const Shape& scores) {
  check<DTypeError>(mask.dtype() == boolean || is_floating(mask.dtype()),
                    "{}: the mask must be bool (true where a query takes a key) or floating (added to the "
                    "scores), got {}",
                    op, mask.dtype());
  check<DeviceError>(mask.device() == query.device(),
                     "{}: mask and query must be on one device, got {} and {}", op, mask.device(),
                     query.device());
  const bool fits = mask.shape().size() <= scores.size() &&
                    std::equal(mask.shape().rbegin(), mask.shape().rend(), scores.rbegin(),
                               [](int64_t size, int64_t full) { return size == 1 || size == full; });
  check<ShapeError>(fits, "{}: the mask must broadcast to [..., queries, keys] = {}, got {}", op, scores,
                    mask.shape());
}

ops::AttentionProblem checked(const Tensor& query, const Tensor& key, const Tensor& value,
                              const AttentionOptions& options) {
  ops::check_types<ops::Floating>(op, query.dtype());
  ops::check_one_type(op, "key", key, "query", query);
  ops::check_one_type(op, "value", value, "query", query);
  for (const Tensor* x : {&key, &value})
    check<DeviceError>(x->device() == query.device(), "{}: all tensors must be on one device, got {} and {}",
                       op, query.device(), x->device());
  check<ShapeError>(query.rank() >= 2 && key.rank() >= 2 && value.rank() >= 2 &&
                        query.size(-1) == key.size(-1) && key.size(-2) == value.size(-2),
                    "{}: needs a query [..., L, E], a key [..., S, E] and a value [..., S, Ev], got {}, {} "
                    "and {}",
                    op, query.shape(), key.shape(), value.shape());
  ops::AttentionProblem p{
      .batch = broadcast(broadcast(batch_of(query), batch_of(key), op), batch_of(value), op),
      .queries = query.size(-2),
      .keys = key.size(-2),
      .width = query.size(-1),
      .value_width = value.size(-1),
      .scale = scale_of(query, options),
      .is_causal = options.is_causal};
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

/// How much of each value a query takes, [..., L, S].
Tensor shares_of(const ops::AttentionProblem& p, const Tensor& query, const Tensor& key, const Tensor& mask) {
  const Tensor scores = matmul(query, transpose(key, -2, -1)) * p.scale;
  if (p.is_causal) {
    const auto places = [&](int64_t n) { return arange(n, {.device = query.device()}); };
    const Tensor later = unsqueeze(places(p.keys), 0) > unsqueeze(places(p.queries), 1);
    return softmax(masked_fill(scores, later, -infinity), -1);
  }
  if (!mask.defined()) return softmax(scores, -1);
  const Tensor masked =
      mask.dtype() == boolean ? masked_fill(scores, !mask, -infinity) : scores + cast(mask, scores.dtype());
  const Tensor nothing = all(masked == -infinity, {-1}, true);
  return masked_fill(softmax(masked_fill(masked, nothing, 0), -1), nothing, 0);
}

/// The gradients of query, key and value on the tape.
Grads recorded_backward(const ops::AttentionProblem& p, const Tensor& dy, const Tensor& query,
                        const Tensor& key, const Tensor& value, const Tensor& mask) {
  const Tensor shares = shares_of(p, query, key, mask);
  const Tensor slopes = matmul(dy, transpose(value, -2, -1));
  const Tensor scores = shares * (slopes - sum(slopes * shares, {-1}, true)) * p.scale;
  return {matmul(scores, key), matmul(transpose(scores, -2, -1), query),
          matmul(transpose(shares, -2, -1), dy)};
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                    const AttentionOptions& options) {
  const Tensor& mask = options.mask;
  const Call call(op, {queries, keys, values, mask}, [&] {
    return Attributes{{"is_causal", Flag(options.is_causal)},
                      {"scale", scale_of(queries, options)},
                      {"dropout", options.dropout}};
  });
  const auto [query, key, value] = autocast_to_half(queries, keys, values);
  const ops::AttentionProblem p = checked(query, key, value, options);
  if (query.device().is_cuda() || options.dropout != 0 ||
      (mask.defined() && mask.requires_grad() && grad_enabled()))
    return call.gives(matmul(dropout(shares_of(p, query, key, mask), options.dropout), value));
  const ops::AttentionResult result = ops::attention_forward(p, query, key, value, mask);
  const auto backward = [p, q = saved(query), k = saved(key), v = saved(value), mask = saved(mask),
                         output = saved(result.output),
                         log_sum_exp = saved(result.log_sum_exp)](const Grads& dys, const Needs&) -> Grads {
    if (grad_enabled())
      return recorded_backward(p, widened(dys[0]), widened(*q), widened(*k), widened(*v), *mask);
    return ops::attention_backward(p, dys[0], *q, *k, *v, *mask, {*output, *log_sum_exp});
  };
  return call.result(result.output, Derivative{{query, key, value}, backward});
}

}  // namespace pleat
