#include "pleat/ops/attention/attention.h"

#include <limits>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/attention/problem.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/dropout.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/elementwise/widened.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat {
namespace {

constexpr const char* op = "scaled_dot_product_attention";
constexpr double infinity = std::numeric_limits<double>::infinity();

/// How much of each value a query takes, [..., L, S].
Tensor shares_of(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionOptions& options) {
  const ops::AttentionProblem p = ops::attention_problem(query, key, value, options);
  const Tensor scores = matmul(query, transpose(key, -2, -1)) * p.scale;
  const Tensor& mask = options.mask;
  if (options.is_causal) {
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
Grads recorded_backward(const Tensor& dy, const Tensor& query, const Tensor& key, const Tensor& value,
                        const AttentionOptions& options) {
  const double scale = ops::attention_problem(query, key, value, options).scale;
  const Tensor shares = shares_of(query, key, value, options);
  const Tensor slopes = matmul(dy, transpose(value, -2, -1));
  const Tensor scores = shares * (slopes - sum(slopes * shares, {-1}, true)) * scale;
  return {matmul(scores, key), matmul(transpose(scores, -2, -1), query),
          matmul(transpose(shares, -2, -1), dy)};
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                    const AttentionOptions& options) {
  const Call call(op, {queries, keys, values, options.mask}, [&] {
    return Attributes{{"is_causal", Flag(options.is_causal)},
                      {"scale", ops::attention_problem(queries, keys, values, options).scale},
                      {"dropout", options.dropout}};
  });
  const auto [query, key, value] = autocast_to_half(queries, keys, values);
  const Tensor& mask = options.mask;
  if (query.device().is_cuda() || options.dropout != 0 ||
      (mask.defined() && mask.requires_grad() && grad_enabled())) {
    const RecordOp range(op, query, key, value);
    (void)ops::attention_problem(query, key, value, options);
    return call.gives(matmul(dropout(shares_of(query, key, value, options), options.dropout), value));
  }
  const ops::AttentionResult result = ops::attention_forward(query, key, value, options);
  const auto backward = [q = saved(query), k = saved(key), v = saved(value), output = saved(result.output),
                         log_sum_exp = saved(result.log_sum_exp), mask = saved(mask),
                         is_causal = options.is_causal, scale = options.scale](const Tensor& dy) -> Grads {
    const AttentionOptions given{.mask = *mask, .is_causal = is_causal, .scale = scale};
    if (grad_enabled()) return recorded_backward(widened(dy), widened(*q), widened(*k), widened(*v), given);
    const auto [dq, dk, dv] = ops::attention_backward(dy, *q, *k, *v, {*output, *log_sum_exp}, given);
    return {dq, dk, dv};
  };
  return call.gives(record(op, result.output, {query, key, value}, backward));
}

}  // namespace pleat
