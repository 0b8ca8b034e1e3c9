// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/dtype.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/reduce/plan.h"

/// One loop under every reduction. An operation defines how a block of plain elements becomes a state and how
/// two states merge; the loop handles strides, types and threads.
///
///   struct Operation {
///     using In = float;                // the type of the elements it sees
///     using State = double;            // what is known of some elements
///     State empty() const;             // of none
///     // Of n elements; the first is number `first`.
///     State row(const In* x, int64_t n, int64_t first) const;
///     // Where several rows at once cost less: states[r] of those from x + r * step on.
///     void rows(State* states, const In* x, int64_t step, int64_t count, int64_t n) const;  // optional
///     // states[c] of column c of some rows; row r is number first + r.
///     void columns(State* states, const In* const* rows, int64_t row_count, int64_t n, int64_t first) const;
///     void merge(State& into, const State& other) const;
///     static constexpr bool uses_index = false;  // whether `first` matters
///     // Results of shorter runs are worked on side by side: their elements change places with those of
///     other
///     // results first, which costs less than what each row would.
///     static constexpr int64_t short_run = 64;
///   };
///
/// How the elements are cut into blocks and chunks, and the order in which states are merged (a binary tree
/// over the chunks), depends on shape and strides only: so the result is the same, to the bit, for any number
/// of threads, and rounding errors grow with the logarithm of the count.

namespace pleat::ops::reduction {

inline constexpr int64_t column_block = 512;  ///< columns given to columns()
inline constexpr int64_t longest_row = 2048;  ///< elements given to row(): they stay in the first-level cache
inline constexpr std::size_t largest_state = 24;  ///< bytes

/// An operation as the loop calls it, once for many elements or states: the loop is compiled once for all of
/// them. States are bytes.
struct BlockFunctions {
  const void* operation;
  DType in;
  int64_t state_size;
  bool uses_index;
  int64_t short_run;
  void (*empty)(const void* operation, std::byte* states, int64_t n);
  /// into[i] and other[i] become into[i].
  void (*merge)(const void* operation, std::byte* into, const std::byte* other, int64_t n);
  /// states[i] of the n elements from x + i * step on.
  void (*rows)(const void* operation, std::byte* states, int64_t count, const std::byte* x, int64_t step,
               int64_t n, int64_t first);
  void (*columns)(const void* operation, std::byte* states, const std::byte* const* rows, int64_t row_count,
                  int64_t n, int64_t first);
};

/// What takes the states of `count` results, which lie `step` elements apart from `offset` on in the result.
struct StateSink {
  const void* context;
  void (*take)(const void* context, int64_t offset, int64_t step, const std::byte* states, int64_t count);
};

/// Calls the sink for all results, from several threads.
void reduce(const BlockFunctions& operation, const StateSink& sink, const Plan& plan, const Tensor& x);

template <class Operation>
BlockFunctions block_functions(const Operation& operation) {
  using In = typename Operation::In;
  using State = typename Operation::State;
  static_assert(std::is_trivially_copyable_v<State> && sizeof(State) <= largest_state);
  static constexpr auto self = [](const void* pointer) -> const Operation& {
    return *static_cast<const Operation*>(pointer);
  };
  static constexpr auto as_states = [](std::byte* bytes) { return reinterpret_cast<State*>(bytes); };
  return {.operation = &operation,
          .in = dtype_of<In>(),
          .state_size = sizeof(State),
          .uses_index = Operation::uses_index,
          .short_run = Operation::short_run,
          .empty =
              [](const void* op, std::byte* states, int64_t n) {
                for (int64_t i = 0; i < n; ++i) as_states(states)[i] = self(op).empty();
              },
          .merge =
              [](const void* op, std::byte* into, const std::byte* other, int64_t n) {
                const State* const others = reinterpret_cast<const State*>(other);
                for (int64_t i = 0; i < n; ++i) self(op).merge(as_states(into)[i], others[i]);
              },
          .rows =
              [](const void* op, std::byte* states, int64_t count, const std::byte* x, int64_t step,
                 int64_t n, int64_t first) {
                const In* const elements = reinterpret_cast<const In*>(x);
                if constexpr (requires { self(op).rows(as_states(states), elements, step, count, n); })
                  self(op).rows(as_states(states), elements, step, count, n);
                else
                  for (int64_t i = 0; i < count; ++i)
                    as_states(states)[i] = self(op).row(elements + i * step, n, first);
              },
          .columns =
              [](const void* op, std::byte* states, const std::byte* const* rows, int64_t row_count,
                 int64_t n, int64_t first) {
                self(op).columns(as_states(states), reinterpret_cast<const In* const*>(rows), row_count, n,
                                 first);
              }};
}

/// Calls `sink(offset in the result, state)` once for each result, from several threads.
template <class Operation, class Sink>
void reduce(const Operation& operation, const Plan& plan, const Tensor& x, const Sink& sink) {
  using State = typename Operation::State;
  reduce(block_functions(operation),
         {&sink,
          [](const void* context, int64_t offset, int64_t step, const std::byte* states, int64_t count) {
            const Sink& take = *static_cast<const Sink*>(context);
            const State* const all = reinterpret_cast<const State*>(states);
            if (step == 1) {  // for the vector unit
              PLEAT_INDEPENDENT_ITERATIONS
              for (int64_t i = 0; i < count; ++i) take(offset + i, all[i]);
            } else {
              for (int64_t i = 0; i < count; ++i) take(offset + i * step, all[i]);
            }
          }},
         plan, x);
}

}  // namespace pleat::ops::reduction
