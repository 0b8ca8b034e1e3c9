// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

/// The loops of attention over blocks of queries and keys.

namespace pleat::ops {

/// The matrices of a batch: rows of neighbouring elements.
template <class T>
struct AttentionRows {
  T* data = nullptr;
  int64_t row_step = 0;
  std::vector<int64_t> items = {};  ///< where each matrix begins

  T* at(int64_t item, int64_t row) const {
    return data + items[static_cast<std::size_t>(item)] + row * row_step;
  }
};

/// What is said of each query and key: whether they meet, or what is added to their score.
template <class T>
struct AttentionMask {
  const bool* meets = nullptr;
  const T* added = nullptr;
  int64_t row_step = 0, column_step = 0;
  std::vector<int64_t> items = {};
};

/// Operands whose widths are multiples of a vector.
template <class T>
struct AttentionOperands {
  int64_t items, queries, keys, width, value_width;
  T scale;
  bool is_causal;
  AttentionRows<const T> query, key, value;
  AttentionMask<T> mask = {};
};

/// Writes y, and log_sum_exp [items, queries].
template <class T>
void attend(const AttentionOperands<T>& p, const AttentionRows<T>& y, T* log_sum_exp);

template <class T>
struct AttentionBackward {
  AttentionRows<const T> dy, y;
  const T* log_sum_exp;
  AttentionRows<T> query, key, value;  ///< the gradients
};

/// Writes the gradients, item by item on the threads.
template <class T>
void attend_backward(const AttentionOperands<T>& p, const AttentionBackward<T>& b);

}  // namespace pleat::ops
