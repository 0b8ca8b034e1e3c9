#include "pleat/ops/attention/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/matmul/tile_product.h"
#include "pleat/ops/reduce/logsumexp_functors.h"

namespace pleat::ops {
namespace {

using reduction::exponent_shift;
using simd::lanes;

/// Queries and keys of a block: its scores stay in the second-level cache, those of a strip of queries, a
/// tile of the products, in the first-level one.
constexpr int64_t block_queries = 64;
constexpr int64_t block_keys = 64;
constexpr int64_t strip = simd::tile_rows;

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

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

/// f over all elements of a vector, in halves.
template <class T, class F>
[[gnu::always_inline]] inline T reduce(simd::Vector<T> v, const F& f) {
  constexpr int count = static_cast<int>(lanes<T>);
  simd::for_constants<std::countr_zero(static_cast<unsigned>(count))>([&](auto step) {
    v = [&]<int... i>(std::integer_sequence<int, i...>) {
      return f(v, __builtin_shufflevector(v, v, (i ^ (1 << step))...));
    }
    (std::make_integer_sequence<int, count>());
  });
  return v[0];
}

/// The largest of n elements, a multiple of a vector; NaN may be passed over.
template <class T>
T largest_of(const T* x, int64_t n) {
  using V = simd::Vector<T>;
  const auto larger = [](const V& a, const V& b) -> V { return b > a ? b : a; };
  V best = simd::load(x);
  for (int64_t i = lanes<T>; i < n; i += lanes<T>) best = larger(best, simd::load(x + i));
  return reduce<T>(best, larger);
}

template <class T>
T sum_of(const T* x, int64_t n) {
  using V = simd::Vector<T>;
  V sum{};
  for (int64_t i = 0; i < n; i += lanes<T>) sum += simd::load(x + i);
  return reduce<T>(sum, [](const V& a, const V& b) -> V { return a + b; });
}

template <class T>
T dot(const T* x, const T* y, int64_t n) {
  using V = simd::Vector<T>;
  V sum{};
  for (int64_t i = 0; i < n; i += lanes<T>) sum += simd::load(x + i) * simd::load(y + i);
  return reduce<T>(sum, [](const V& a, const V& b) -> V { return a + b; });
}

/// Memory of a thread for a kernel.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t size)
      : memory_(allocate(size * static_cast<int64_t>(sizeof(T)))),
        data_(reinterpret_cast<T*>(memory_.get())) {}
  T* data() const { return data_; }

 private:
  std::shared_ptr<std::byte> memory_;
  T* data_;
};

/// Keys, or their values, turned: [width][block_keys], times `scale`, with zeros behind the last key.
template <class T>
void turn(const AttentionRows<const T>& rows, int64_t item, int64_t first, int64_t count, int64_t width,
          T scale, T* to) {
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
int64_t keys_of(const AttentionOperands<T>& p, const Meeting& m, int64_t query) {
  return p.is_causal ? std::clamp<int64_t>(query + 1 - m.key, 0, m.keys) : m.keys;
}

/// The scores of a strip of queries, [queries][block_keys], in the vectors that hold the keys of the last
/// one; -infinity where a query does not take a key. Returns the number of elements of these vectors.
template <class T>
int64_t compute_scores(const AttentionOperands<T>& p, const Meeting& m, const T* turned_keys, T* scores) {
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
    if (p.mask.meets != nullptr || p.mask.added != nullptr) {
      const int64_t at = p.mask.items[static_cast<std::size_t>(m.item)] + (m.query + i) * p.mask.row_step +
                         m.key * p.mask.column_step;
      for (int64_t j = 0; j < taken; ++j) {
        const int64_t place = at + j * p.mask.column_step;
        if (p.mask.added != nullptr)
          row[j] += p.mask.added[place];
        else if (!p.mask.meets[place])
          row[j] = -infinity<T>;
      }
    }
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
    sums[i] = sums[i] * static_cast<double>(factor) + static_cast<double>(sum_of(scores, columns));
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
void attend_block(const AttentionOperands<T>& p, Meeting block, const AttentionRows<T>& y, T* log_sum_exp) {
  const Buffer<T> memory(block_keys * (p.width + strip));
  T* const turned = memory.data();
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

/// The backward pass of one item.
template <class T>
class ItemBackward {
 public:
  ItemBackward(const AttentionOperands<T>& p, const AttentionBackward<T>& b, int64_t item)
      : p_(p),
        b_(b),
        item_(item),
        memory_(block_keys * (p.width + p.value_width + 2 * block_queries) + p.queries),
        turned_keys_(memory_.data()),
        turned_values_(turned_keys_ + block_keys * p.width),
        shares_(turned_values_ + block_keys * p.value_width),
        slopes_(shares_ + block_keys * block_queries),
        means_(slopes_ + block_keys * block_queries) {}

  void run() {
    for (int64_t i = 0; i < p_.queries; ++i)
      means_[i] = dot(b_.dy.at(item_, i), b_.y.at(item_, i), p_.value_width);
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
      const auto add_products = [&](const T* a, const AttentionRows<const T>& b, const AttentionRows<T>& to,
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

  const AttentionOperands<T>& p_;
  const AttentionBackward<T>& b_;
  int64_t item_;
  Buffer<T> memory_;
  T *turned_keys_, *turned_values_, *shares_, *slopes_, *means_;
};

}  // namespace

template <class T>
void attend(const AttentionOperands<T>& p, const AttentionRows<T>& y, T* log_sum_exp) {
  const int64_t blocks = ceil_div(p.queries, block_queries);
  parallel_chunks(p.items * blocks, [&](int64_t chunk) {
    const int64_t query = chunk % blocks * block_queries;
    attend_block(p, {chunk / blocks, query, std::min(block_queries, p.queries - query), 0, 0}, y,
                 log_sum_exp);
  });
}

template <class T>
void attend_backward(const AttentionOperands<T>& p, const AttentionBackward<T>& b) {
  parallel_chunks(p.items, [&](int64_t item) { ItemBackward<T>(p, b, item).run(); });
}

template void attend(const AttentionOperands<float>&, const AttentionRows<float>&, float*);
template void attend(const AttentionOperands<double>&, const AttentionRows<double>&, double*);
template void attend_backward(const AttentionOperands<float>&, const AttentionBackward<float>&);
template void attend_backward(const AttentionOperands<double>&, const AttentionBackward<double>&);

}  // namespace pleat::ops
