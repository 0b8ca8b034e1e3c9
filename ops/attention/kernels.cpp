#include "pleat/ops/attention/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/allocate_array.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/matmul/tile_product.h"
#include "pleat/ops/reduce/logsumexp_functors.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::ops {
namespace {

using reduction::exponent_shift;
using simd::lanes;

constexpr const char* op = "scaled_dot_product_attention";
/// Queries and keys of a block: its scores stay in the second-level cache, those of a strip of queries, a
/// tile of the products, in the first-level one.
constexpr int64_t block_queries = 64;
constexpr int64_t block_keys = 64;
constexpr int64_t strip = simd::tile_rows;

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

/// A new tensor of `shape` for kernels: its width is rounded up to whole vectors, its dimensions but for the
/// last are in the order in which those of `like` lie.
template <class T>
Tensor empty_rows(const Tensor& like, Shape shape) {
  shape.back() = round_up(shape.back(), lanes<T>);
  const auto step = [&](int64_t d) {  // of stretched ones the largest number
    return static_cast<uint64_t>(like.strides()[static_cast<std::size_t>(d)]) - 1;
  };
  std::vector<int64_t> order(shape.size()), back(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end() - 1, [&](int64_t a, int64_t b) { return step(a) > step(b); });
  Shape laid;
  for (const int64_t d : order) {
    back[static_cast<std::size_t>(d)] = static_cast<int64_t>(laid.size());
    laid.push_back(shape[static_cast<std::size_t>(d)]);
  }
  return permute(empty(laid, {.dtype = dtype_of<T>()}), back);
}

/// What kernels wrote, without the columns beyond `width`.
Tensor written(const Tensor& x, int64_t width, DType dtype) { return cast(narrow(x, -1, 0, width), dtype); }

/// The matrices of a batch [..., rows, columns], and the tensor in which they are.
template <class T>
struct Matrices {
  Tensor tensor;
  T* data = nullptr;  ///< none: of no tensor
  int64_t row_step = 0, column_step = 0;
  std::vector<int64_t> items = {};  ///< where each matrix begins

  Matrices() = default;
  explicit Matrices(const Tensor& x)
      : tensor(x),
        data(x.data<std::remove_const_t<T>>()),
        row_step(x.strides().end()[-2]),
        column_step(x.strides().back()),
        items{0} {
    for (std::size_t d = 0; d + 2 < x.shape().size(); ++d) {
      std::vector<int64_t> next;
      for (const int64_t item : items)
        for (int64_t i = 0; i < x.shape()[d]; ++i) next.push_back(item + i * x.strides()[d]);
      items = std::move(next);
    }
  }
  T* at(int64_t item, int64_t row) const {
    return data + items[static_cast<std::size_t>(item)] + row * row_step;
  }
};

/// x in the type and shape that kernels read, rows of neighbours that are whole vectors: as it lies where
/// they can.
template <class T>
Matrices<const T> readable(const Tensor& x, Shape shape) {
  const int64_t width = shape.back();
  shape.back() = round_up(width, lanes<T>);
  if (x.dtype() == dtype_of<T>() && width == shape.back() && (x.strides().back() == 1 || width == 0))
    return Matrices<const T>(expand(x, shape));
  const Tensor y = empty_rows<T>(x, x.shape());
  copy_into(narrow(y, -1, 0, width), x);
  fill(narrow(y, -1, width, shape.back() - width), 0);
  return Matrices<const T>(expand(y, shape));
}

/// Operands whose widths are multiples of a vector.
template <class T>
struct Operands {
  int64_t items, queries, keys;
  T scale;
  bool is_causal;
  Matrices<const T> query, key, value;
  int64_t width, value_width;
  Matrices<const bool> meets = {};  ///< whether a query and a key do
  Matrices<const T> added = {};     ///< to their score

  Operands(const AttentionProblem& p, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask)
      : items(count(p.batch)),
        queries(p.queries),
        keys(p.keys),
        scale(static_cast<T>(p.scale)),
        is_causal(p.is_causal),
        query(readable<T>(q, p.shape(p.queries, p.width))),
        key(readable<T>(k, p.shape(p.keys, p.width))),
        value(readable<T>(v, p.shape(p.keys, p.value_width))),
        width(query.tensor.size(-1)),
        value_width(value.tensor.size(-1)) {
    if (!mask.defined()) return;
    const Shape scores = p.shape(p.queries, p.keys);
    if (mask.dtype() == boolean)
      meets = Matrices<const bool>(expand(mask, scores));
    else
      added = Matrices<const T>(expand(cast(mask, dtype_of<T>()), scores));
  }
};

/// Of `columns` columns, a multiple of a vector.
template <class T>
void multiply(TileProduct<T> p, int64_t rows, int64_t columns) {
  constexpr int64_t panel = 2 * lanes<T>;
  for (; columns >= panel; columns -= panel, p.b += panel, p.result += panel) {
    multiply_rows<T, 2>(p, rows);
    if (p.start != nullptr) p.start += panel;
  }
  if (columns > 0) multiply_rows<T, 1>(p, rows);
}

/// f over the vectors vector(0), vector(lanes) ... of n elements, a multiple of a vector, and over the
/// elements of what comes out, in halves.
template <class T, class F, class V>
[[gnu::always_inline]] inline T reduce(int64_t n, const F& f, const V& vector) {
  constexpr int count = static_cast<int>(lanes<T>);
  simd::Vector<T> v = vector(0);
  for (int64_t i = lanes<T>; i < n; i += lanes<T>) v = f(v, vector(i));
  simd::for_constants<std::countr_zero(static_cast<unsigned>(count))>([&](auto step) {
    v = [&]<int... i>(std::integer_sequence<int, i...>) {
      return f(v, __builtin_shufflevector(v, v, (i ^ (1 << step))...));
    }
    (std::make_integer_sequence<int, count>());
  });
  return v[0];
}

/// The largest of n elements; NaN may be passed over.
template <class T>
T largest_of(const T* x, int64_t n) {
  using V = simd::Vector<T>;
  return reduce<T>(
      n, [](const V& a, const V& b) -> V { return b > a ? b : a; },
      [x](int64_t i) -> V { return simd::load(x + i); });
}

/// The sum of the elements of `vector`.
template <class T, class F>
T sum_of(int64_t n, const F& vector) {
  using V = simd::Vector<T>;
  return n == 0 ? T(0)
                : reduce<T>(
                      n, [](const V& a, const V& b) -> V { return a + b; }, vector);
}

/// Keys, or their values, turned: [width][block_keys], times `scale`, with zeros behind the last key.
template <class T>
void turn(const Matrices<const T>& rows, int64_t item, int64_t first, int64_t count, int64_t width, T scale,
          T* to) {
  if (count < block_keys) std::fill_n(to, width * block_keys, T(0));
  transpose_matrix(to, block_keys, rows.at(item, first), rows.row_step, count, width);
  if (scale != 1) map(to, to, width * block_keys, [scale](T element) { return element * scale; });
}

/// Some queries that meet a block of keys.
struct Meeting {
  int64_t item, query, queries, key, keys;
};

/// How many keys of the block a query takes; those of the last query where it is causal, else all.
template <class T>
int64_t keys_of(const Operands<T>& p, const Meeting& m, int64_t query) {
  return p.is_causal ? std::clamp<int64_t>(query + 1 - m.key, 0, m.keys) : m.keys;
}

/// The scores of a strip of queries, [queries][block_keys], in the vectors that hold the keys of the last
/// one; -infinity where a query does not take a key. Returns the number of elements of these vectors.
template <class T>
int64_t compute_scores(const Operands<T>& p, const Meeting& m, const T* turned_keys, T* scores) {
  const int64_t columns = round_up(keys_of(p, m, m.query + m.queries - 1), lanes<T>);
  multiply<T>({.a = p.query.at(m.item, m.query),
               .a_row = p.query.row_step,
               .a_depth = 1,
               .b = turned_keys,
               .b_depth = block_keys,
               .depth = p.width,
               .result = scores,
               .result_row = block_keys},
              m.queries, columns);
  for (int64_t i = 0; i < m.queries; ++i) {
    T* const row = scores + i * block_keys;
    const int64_t taken = keys_of(p, m, m.query + i);
    if (p.meets.data != nullptr)
      for (int64_t j = 0; j < taken; ++j)
        if (!p.meets.at(m.item, m.query + i)[(m.key + j) * p.meets.column_step]) row[j] = -infinity<T>;
    if (p.added.data != nullptr)
      for (int64_t j = 0; j < taken; ++j)
        row[j] += p.added.at(m.item, m.query + i)[(m.key + j) * p.added.column_step];
    std::fill(row + taken, row + columns, -infinity<T>);
  }
  return columns;
}

/// The softmax of a block of queries, while it goes over the keys.
template <class T>
struct RunningSoftmax {
  T largest[block_queries];
  double sums[block_queries];

  RunningSoftmax() {
    std::fill_n(largest, block_queries, -infinity<T>);
    std::fill_n(sums, block_queries, 0.0);
  }

  /// Turns `scores` into exponentials and adds them to the sum of query i. Returns by how much all that was
  /// summed before has become less.
  T add(int64_t i, T* scores, int64_t columns) {
    const T before = exponent_shift(largest[i]);
    largest[i] = std::max(largest[i], largest_of(scores, columns));
    const T shift = exponent_shift(largest[i]);
    map(scores, scores, columns, [shift](T score) { return vmath::exp_below_0(score - shift); });
    const T factor = sums[i] == 0 ? T(0) : std::exp(before - shift);
    sums[i] = sums[i] * static_cast<double>(factor) +
              static_cast<double>(sum_of<T>(
                  columns, [scores](int64_t j) -> simd::Vector<T> { return simd::load(scores + j); }));
    return factor;
  }
  double inverse(int64_t i) const { return sums[i] == 0 ? 0 : 1 / sums[i]; }
  /// Of no key: infinity, with which all shares are 0.
  T log_sum(int64_t i) const {
    if (sums[i] == 0) return infinity<T>;
    return static_cast<T>(static_cast<double>(exponent_shift(largest[i])) + std::log(sums[i]));
  }
};

template <class T>
void attend_block(const Operands<T>& p, Meeting block, const Matrices<T>& y, T* log_sum_exp) {
  const auto memory = allocate_array<T>(block_keys * (p.width + strip));
  T* const turned = memory.get();
  T* const scores = turned + block_keys * p.width;
  RunningSoftmax<T> softmax;
  const int64_t end = p.is_causal ? std::min(p.keys, block.query + block.queries) : p.keys;
  if (end == 0)
    for (int64_t i = 0; i < block.queries; ++i)
      std::fill_n(y.at(block.item, block.query + i), p.value_width, T(0));
  for (block.key = 0; block.key < end; block.key += block_keys) {
    block.keys = std::min(block_keys, end - block.key);
    turn(p.key, block.item, block.key, block.keys, p.width, p.scale, turned);
    for (int64_t first = 0; first < block.queries; first += strip) {
      Meeting m = block;
      m.query += first;
      m.queries = std::min(strip, block.queries - first);
      const int64_t taken = keys_of(p, m, m.query + m.queries - 1);
      if (taken == 0) continue;
      const int64_t columns = compute_scores(p, m, turned, scores);
      for (int64_t i = 0; i < m.queries; ++i) {
        const T factor = softmax.add(first + i, scores + i * block_keys, columns);
        T* const row = y.at(m.item, m.query + i);
        if (m.key > 0 && factor != 1)
          map(row, row, p.value_width, [factor](T element) { return element * factor; });
      }
      multiply<T>({.a = scores,
                   .a_row = block_keys,
                   .a_depth = 1,
                   .b = p.value.at(m.item, m.key),
                   .b_depth = p.value.row_step,
                   .depth = taken,
                   .result = y.at(m.item, m.query),
                   .result_row = y.row_step,
                   .start = m.key > 0 ? y.at(m.item, m.query) : nullptr,
                   .start_row = y.row_step},
                  m.queries, p.value_width);
    }
  }
  for (int64_t i = 0; i < block.queries; ++i) {
    T* const row = y.at(block.item, block.query + i);
    map(row, row, p.value_width,
        [inverse = static_cast<T>(softmax.inverse(i))](T element) { return element * inverse; });
    log_sum_exp[block.item * p.queries + block.query + i] = softmax.log_sum(i);
  }
}

template <class T>
struct Backward {
  Matrices<const T> dy, y;
  const T* log_sum_exp;
  Matrices<T> query, key, value;  ///< the gradients
};

/// The backward pass of one item.
template <class T>
class ItemBackward {
 public:
  ItemBackward(const Operands<T>& p, const Backward<T>& b, int64_t item)
      : p_(p),
        b_(b),
        item_(item),
        memory_(allocate_array<T>(block_keys * (p.width + p.value_width + 2 * block_queries) + p.queries)),
        turned_keys_(memory_.get()),
        turned_values_(turned_keys_ + block_keys * p.width),
        shares_(turned_values_ + block_keys * p.value_width),
        slopes_(shares_ + block_keys * block_queries),
        means_(slopes_ + block_keys * block_queries) {}

  void run() {
    for (int64_t i = 0; i < p_.queries; ++i)
      means_[i] = sum_of<T>(p_.value_width,
                            [dy = b_.dy.at(item_, i), y = b_.y.at(item_, i)](int64_t j) -> simd::Vector<T> {
                              return simd::load(dy + j) * simd::load(y + j);
                            });
    if (p_.keys == 0)
      for (int64_t i = 0; i < p_.queries; ++i) std::fill_n(b_.query.at(item_, i), p_.width, T(0));
    for (int64_t key = 0; key < p_.keys; key += block_keys) {
      const int64_t keys = std::min(block_keys, p_.keys - key);
      const int64_t first = p_.is_causal ? key / block_queries * block_queries : 0;
      turn(p_.key, item_, key, keys, p_.width, p_.scale, turned_keys_);
      turn(p_.value, item_, key, keys, p_.value_width, T(1), turned_values_);
      for (int64_t query = first; query < p_.queries; query += block_queries)
        add({item_, query, std::min(block_queries, p_.queries - query), key, keys}, query > first);
      if (first < p_.queries) continue;
      for (int64_t j = key; j < key + keys; ++j) {
        std::fill_n(b_.key.at(item_, j), p_.width, T(0));
        std::fill_n(b_.value.at(item_, j), p_.value_width, T(0));
      }
    }
  }

 private:
  /// What some queries and keys give. `accumulate` goes for the gradients of the keys and values.
  void add(const Meeting& block, bool accumulate) {
    for (int64_t first = 0; first < block.queries; first += strip) {
      Meeting m = block;
      m.query += first;
      m.queries = std::min(strip, block.queries - first);
      differentiate(m, first);
    }
    for (int64_t first = 0; first < block.keys; first += strip) {
      // The queries before it do not take this key.
      const int64_t from =
          p_.is_causal ? std::clamp<int64_t>(block.key + first - block.query, 0, block.queries) : 0;
      const auto add_products = [&](const T* a, const Matrices<const T>& b, const Matrices<T>& to,
                                    int64_t width) {
        multiply<T>({.a = a + from * block_keys + first,
                     .a_row = 1,
                     .a_depth = block_keys,
                     .b = b.at(item_, block.query + from),
                     .b_depth = b.row_step,
                     .depth = block.queries - from,
                     .result = to.at(item_, block.key + first),
                     .result_row = to.row_step,
                     .start = accumulate ? to.at(item_, block.key + first) : nullptr,
                     .start_row = to.row_step},
                    std::min(strip, block.keys - first), width);
      };
      add_products(shares_, b_.dy, b_.value, p_.value_width);
      add_products(slopes_, p_.query, b_.key, p_.width);
    }
  }

  /// The shares of the keys for a strip of queries, the block's from number `first`, the gradients of their
  /// scores before scaling, and the queries' gradient.
  void differentiate(const Meeting& m, int64_t first) {
    const int64_t taken = keys_of(p_, m, m.query + m.queries - 1);
    if (taken == 0) return;
    T* const shares = shares_ + first * block_keys;
    T* const slopes = slopes_ + first * block_keys;
    const int64_t columns = compute_scores(p_, m, turned_keys_, shares);
    multiply<T>({.a = b_.dy.at(item_, m.query),
                 .a_row = b_.dy.row_step,
                 .a_depth = 1,
                 .b = turned_values_,
                 .b_depth = block_keys,
                 .depth = p_.value_width,
                 .result = slopes,
                 .result_row = block_keys},
                m.queries, columns);
    for (int64_t i = 0; i < m.queries; ++i) {
      T* const share = shares + i * block_keys;
      T* const slope = slopes + i * block_keys;
      const T log_sum = b_.log_sum_exp[item_ * p_.queries + m.query + i];
      const T mean = means_[m.query + i];
      map(share, share, columns, [log_sum](T score) { return vmath::exp_below_0(score - log_sum); });
      map(slope, slope, share, columns,
          [mean, scale = p_.scale](T gradient, T part) { return part * (gradient - mean) * scale; });
      // The products below read whole strips of keys.
      const int64_t end = std::min(round_up(columns, strip), block_keys);
      std::fill(share + columns, share + end, T(0));
      std::fill(slope + columns, slope + end, T(0));
    }
    multiply<T>({.a = slopes,
                 .a_row = block_keys,
                 .a_depth = 1,
                 .b = p_.key.at(item_, m.key),
                 .b_depth = p_.key.row_step,
                 .depth = taken,
                 .result = b_.query.at(item_, m.query),
                 .result_row = b_.query.row_step,
                 .start = m.key > 0 ? b_.query.at(item_, m.query) : nullptr,
                 .start_row = b_.query.row_step},
                m.queries, p_.width);
  }

  const Operands<T>& p_;
  const Backward<T>& b_;
  int64_t item_;
  std::shared_ptr<T> memory_;
  T *turned_keys_, *turned_values_, *shares_, *slopes_, *means_;
};

/// Of `products` products of queries and keys.
RangeDetails details_of(const AttentionProblem& p, double score_products, double value_products) {
  const double pairs = static_cast<double>(count(p.batch)) * static_cast<double>(p.queries) *
                       static_cast<double>(p.keys) * (p.is_causal ? 0.5 : 1);
  return {.implementation = "blocks",
          .flops = 2 * pairs *
                   (score_products * static_cast<double>(p.width) +
                    value_products * static_cast<double>(p.value_width))};
}

}  // namespace

AttentionResult attention_forward(const AttentionProblem& p, const Tensor& query, const Tensor& key,
                                  const Tensor& value, const Tensor& mask) {
  const NoGrad off_the_tape;
  const TracedCall range(op, {query, key, value});
  range.details([&] { return details_of(p, 1, 1); });
  return dispatch_floating(op, query.dtype(), [&]<class T>(Type<T>) {
    const Operands<T> operands(p, query, key, value, mask);
    const Matrices<T> y(empty_rows<T>(operands.query.tensor, p.shape(p.queries, p.value_width)));
    const Tensor log_sum_exp = empty(p.shape(p.queries, 1), {.dtype = dtype_of<T>()});
    const int64_t blocks = ceil_div(p.queries, block_queries);
    parallel_chunks(operands.items * blocks, [&](int64_t chunk) {
      const int64_t first = chunk % blocks * block_queries;
      attend_block(operands, {chunk / blocks, first, std::min(block_queries, p.queries - first), 0, 0}, y,
                   log_sum_exp.data<T>());
    });
    return AttentionResult{written(y.tensor, p.value_width, query.dtype()), log_sum_exp};
  });
}

std::vector<Tensor> attention_backward(const AttentionProblem& p, const Tensor& dy, const Tensor& query,
                                       const Tensor& key, const Tensor& value, const Tensor& mask,
                                       const AttentionResult& result) {
  const NoGrad off_the_tape;
  const RecordOp range(op, "_backward", dy, query, key, value);
  range.details([&] { return details_of(p, 3, 2); });
  return dispatch_floating(op, query.dtype(), [&]<class T>(Type<T>) {
    const Operands<T> operands(p, query, key, value, mask);
    const Shape shape = p.shape(p.queries, p.value_width);
    const auto gradient_of = [](const Matrices<const T>& x) {
      return Matrices<T>(empty_rows<T>(x.tensor, x.tensor.shape()));
    };
    const Backward<T> b{.dy = readable<T>(dy, shape),
                        .y = readable<T>(result.output, shape),
                        .log_sum_exp = result.log_sum_exp.data<T>(),
                        .query = gradient_of(operands.query),
                        .key = gradient_of(operands.key),
                        .value = gradient_of(operands.value)};
    parallel_chunks(operands.items, [&](int64_t item) { ItemBackward<T>(operands, b, item).run(); });
    const DType dtype = query.dtype();
    return std::vector{written(b.query.tensor, p.width, dtype), written(b.key.tensor, p.width, dtype),
                       written(b.value.tensor, p.value_width, dtype)};
  });
}

}  // namespace pleat::ops
