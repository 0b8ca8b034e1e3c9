#include "pleat/ops/attention/attention_kernels.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/attention/kernels.h"
#include "pleat/ops/attention/problem.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/shape/pad_kernels.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

constexpr const char* op = "scaled_dot_product_attention";

/// Where each matrix of [..., rows, columns] begins.
std::vector<int64_t> items_of(const Tensor& x) {
  std::vector<int64_t> items = {0};
  for (std::size_t d = 0; d + 2 < x.shape().size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t item : items)
      for (int64_t i = 0; i < x.shape()[d]; ++i) next.push_back(item + i * x.strides()[d]);
    items = std::move(next);
  }
  return items;
}

template <class T>
constexpr int64_t padded(int64_t width) {
  return round_up(width, simd::lanes<T>);
}

template <class T>
AttentionRows<T> rows_of(const Tensor& x) {
  return {x.data<std::remove_const_t<T>>(), x.strides()[x.shape().size() - 2], items_of(x)};
}

/// x in the type and shape that kernels read: as it lies where they can.
template <class T>
Tensor readable(const Tensor& x, const Shape& shape) {
  Tensor y = cast(x, dtype_of<T>());
  if (y.strides().back() != 1 && y.size(-1) > 1) y = to_format(y, MemoryFormat::contiguous);
  const int64_t missing = padded<T>(y.size(-1)) - y.size(-1);
  if (missing > 0) y = pad(y, {0, missing});
  Shape full = shape;
  full.back() = y.size(-1);
  return expand(y, full);
}

/// A new tensor of `shape` for kernels to write, wide enough for them, its dimensions but for the last in the
/// order in which those of `like` lie.
template <class T>
Tensor writable(const Tensor& like, Shape shape) {
  shape.back() = padded<T>(shape.back());
  const auto place = [&](int64_t d) {
    const int64_t stride = like.strides()[static_cast<std::size_t>(d)];
    return stride == 0 ? std::numeric_limits<int64_t>::max() : stride;  // stretched ones to the outside
  };
  std::vector<int64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end() - 1, [&](int64_t a, int64_t b) { return place(a) > place(b); });
  Shape laid;
  for (const int64_t d : order) laid.push_back(shape[static_cast<std::size_t>(d)]);
  std::vector<int64_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i);
  return permute(empty(laid, {.dtype = dtype_of<T>()}), back);
}

/// What kernels wrote, without the columns beyond `width`.
Tensor written(const Tensor& x, int64_t width, DType dtype) { return cast(narrow(x, -1, 0, width), dtype); }

/// The operands, and the tensors in which they are.
template <class T>
struct Operands {
  Tensor query, key, value, mask;
  AttentionOperands<T> kernels;

  Operands(const AttentionProblem& p, const Tensor& q, const Tensor& k, const Tensor& v,
           const AttentionOptions& options)
      : query(readable<T>(q, p.shape(p.queries, p.width))),
        key(readable<T>(k, p.shape(p.keys, p.width))),
        value(readable<T>(v, p.shape(p.keys, p.value_width))),
        kernels{.items = count(p.batch),
                .queries = p.queries,
                .keys = p.keys,
                .width = query.size(-1),
                .value_width = value.size(-1),
                .scale = static_cast<T>(p.scale),
                .is_causal = options.is_causal,
                .query = rows_of<const T>(query),
                .key = rows_of<const T>(key),
                .value = rows_of<const T>(value)} {
    if (!options.mask.defined()) return;
    const bool is_truth = options.mask.dtype() == boolean;
    mask = expand(is_truth ? options.mask : cast(options.mask, dtype_of<T>()), p.shape(p.queries, p.keys));
    kernels.mask = {.meets = is_truth ? mask.data<bool>() : nullptr,
                    .added = is_truth ? nullptr : mask.data<T>(),
                    .row_step = mask.strides()[mask.shape().size() - 2],
                    .column_step = mask.strides().back(),
                    .items = items_of(mask)};
  }
};

AttentionProblem problem_on_cpu(const Tensor& query, const Tensor& key, const Tensor& value,
                                const AttentionOptions& options) {
  AttentionProblem p = attention_problem(query, key, value, options);
  check<DeviceError>(query.device().is_cpu(), "{}: needs tensors on the CPU, got {}", op, query.device());
  check<ValueError>(options.dropout == 0, "{}: the raw function drops nothing, got dropout = {}", op,
                    options.dropout);
  return p;
}

/// Of `products` products of queries and keys.
RangeDetails details_of(const AttentionProblem& p, const AttentionOptions& options, double score_products,
                        double value_products) {
  const double pairs = static_cast<double>(count(p.batch)) * static_cast<double>(p.queries) *
                       static_cast<double>(p.keys) * (options.is_causal ? 0.5 : 1);
  return {.implementation = "blocks",
          .flops = 2 * pairs *
                   (score_products * static_cast<double>(p.width) +
                    value_products * static_cast<double>(p.value_width))};
}

}  // namespace

AttentionResult attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const AttentionOptions& options) {
  const RecordOp range(op, query, key, value);
  const AttentionProblem p = problem_on_cpu(query, key, value, options);
  range.details([&] { return details_of(p, options, 1, 1); });
  return dispatch_floating(op, query.dtype(), [&]<class T>(Type<T>) {
    const Operands<T> operands(p, query, key, value, options);
    const Tensor y = writable<T>(operands.query, p.shape(p.queries, p.value_width));
    Shape of_queries = p.batch;
    of_queries.push_back(p.queries);
    const Tensor log_sum_exp = empty(of_queries, {.dtype = dtype_of<T>()});
    attend(operands.kernels, rows_of<T>(y), log_sum_exp.data<T>());
    return AttentionResult{written(y, p.value_width, query.dtype()), log_sum_exp};
  });
}

AttentionGradients attention_backward(const Tensor& dy, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const AttentionResult& result,
                                      const AttentionOptions& options) {
  const RecordOp range(op, "_backward", dy, query, key, value);
  const AttentionProblem p = problem_on_cpu(query, key, value, options);
  const Shape shape = p.shape(p.queries, p.value_width);
  check<ShapeError>(dy.shape() == shape && result.output.shape() == shape,
                    "{}_backward: the output and its gradient must be {}, got {} and {}", op, shape,
                    result.output.shape(), dy.shape());
  range.details([&] { return details_of(p, options, 3, 2); });
  return dispatch_floating(op, query.dtype(), [&]<class T>(Type<T>) {
    const Operands<T> operands(p, query, key, value, options);
    const Tensor gradient = readable<T>(dy, shape);
    const Tensor y = readable<T>(result.output, shape);
    const Tensor dq = writable<T>(operands.query, p.shape(p.queries, p.width));
    const Tensor dk = writable<T>(operands.key, p.shape(p.keys, p.width));
    const Tensor dv = writable<T>(operands.value, p.shape(p.keys, p.value_width));
    attend_backward<T>(operands.kernels, {.dy = rows_of<const T>(gradient),
                                          .y = rows_of<const T>(y),
                                          .log_sum_exp = result.log_sum_exp.data<T>(),
                                          .query = rows_of<T>(dq),
                                          .key = rows_of<T>(dk),
                                          .value = rows_of<T>(dv)});
    return AttentionGradients{written(dq, p.width, query.dtype()), written(dk, p.width, query.dtype()),
                              written(dv, p.value_width, query.dtype())};
  });
}

}  // namespace pleat::ops
