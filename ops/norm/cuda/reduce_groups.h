// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/norm/cuda/group_layout.h"

/// Passes over a dense tensor whose elements belong to groups (the channels of a batch, those of an image),
/// for the .cu files of normalisations: a reduction for each group, and a map of each element with its
/// group's numbers. Memory is moved by vectors where sizes and addresses allow; the
/// order of sums depends on sizes alone.

namespace pleat::ops {

/// Merges `count` states for each of the groups [first, last), which `source(group, number)` gives, and calls
/// finish(group, state): the work of one block.
template <class State, class Source, class Finish>
__device__ void merge_in_block(const Block& block, int64_t first, int64_t last, int64_t count,
                               const Source& source, const Finish& finish) {
  // As many threads for each group as there are: states are few and near, and merging one after the other
  // would take longer than fetching them. Neighbours read those of neighbouring groups.
  Teams teams{.log_lanes = 0, .adjacent = false};
  while (teams.lanes() < block_threads && teams.lanes() < count &&
         (last - first) * teams.lanes() < block_threads)
    ++teams.log_lanes;
  const int lane = teams.lane_of(block.thread());
  const int64_t step = teams.lanes();
  for (; first < last; first += teams.count()) {
    const int64_t group = first + teams.team_of(block.thread());
    State own{};
    if (group < last) {
      int64_t number = lane;
      for (; number + (vectors_at_once - 1) * step < count; number += vectors_at_once * step) {
        State several[vectors_at_once];
        PLEAT_UNROLL
        for (int k = 0; k < vectors_at_once; ++k) several[k] = source(group, number + k * step);
        PLEAT_UNROLL
        for (int k = 0; k < vectors_at_once; ++k) own.merge(several[k]);
      }
      for (; number < count; number += step) own.merge(source(group, number));
    }
    block.combine(own, teams, [](State& into, const State& other) { into.merge(other); });
    if (lane == 0 && group < last) finish(group, own);
  }
}

/// Merges `count` states for each of `groups` groups, `each` of them in a block.
template <class State, class Source, class Finish>
struct MergeStates {
  static constexpr bool keeps_registers = true;
  int64_t each;
  int64_t groups;
  int64_t count;
  Source source;
  Finish finish;

  __device__ void operator()(int64_t b, const Block& block) const {
    const int64_t first = b * each;
    merge_in_block<State>(block, first, first + each < groups ? first + each : groups, count, source, finish);
  }
};

template <class State, class Source, class Finish>
void merge_states(const char* op, Device device, int64_t groups, int64_t count, const Source& source,
                  const Finish& finish) {
  int64_t each = block_threads;
  while (each > 1 && block_threads / each < count) each /= 2;
  launch_blocks(op, device, ceil_div(groups, each),
                MergeStates<State, Source, Finish>{each, groups, count, source, finish});
}

/// States of parts [parts, fine], of which `joined` neighbours make up a group.
template <class State>
struct PartStates {
  const State* states;
  int64_t fine;
  FastDivider joined;

  PLEAT_HOST_DEVICE const State& operator()(int64_t group, int64_t number) const {
    int64_t rest = number;
    const int64_t part = joined.divide(rest);
    return states[part * fine + group * joined.divisor() + rest];
  }
};

/// The numbers of groups (`Op::Numbers`) that the threads of a block share: one of them works them out.
template <class Op, int columns>
class SharedNumbers {
 public:
  using Numbers = typename Op::Numbers;

  __device__ SharedNumbers(const Op& op, const GroupLayout& layout, int64_t b, const Block& block)
      : count_(layout.teams.count()) {
    const int64_t first = layout.first_group(b), last = layout.last_group(b);
    __syncthreads();  // until all have read what was there before
    if (const int i = block.thread(); first + i < last)
      all_.write(place(i / columns, i % columns), op.numbers(first + i));
    __syncthreads();
  }
  __device__ Numbers read(int team, int column) const { return all_.read(place(team, column)); }

 private:
  /// Threads of a warp read and write in different banks.
  static constexpr int banks = 32, gap = banks / columns;

  __device__ int place(int team, int column) const {
    return column * (((count_ + banks - 1) & -banks) + gap) + team;
  }

  int count_;
  SharedArray<Numbers, block_threads + columns*(banks + gap)> all_;
};

/// Reduces groups. The reduction is `Op`:
///
///   struct Op {
///     static constexpr std::size_t width;
///     using State;                                     // of a group; State{} of none; merge(const State&)
///     struct Numbers;                                  // of a group, worked out once for a block
///     Numbers numbers(int64_t group) const;
///     struct Running;                                  // of a group, as a thread gathers it
///     Running begin(const Numbers&, int64_t element) const;  // `element`: the thread's first of the group
///     struct Raw;                                      // a vector's elements, as they are read
///     Raw load(int64_t vector) const;
///     struct Partial;                                  // sums of a few elements, in the type computed in
///     void add(const Running&, Partial&, const Raw&, std::size_t lane) const;
///     void take(Running&, const Partial&, int64_t elements) const;
///     State state(const Running&) const;
///   };
///
/// `Finish` is called as finish(group, state), once for each group. Where a track is several parts the states
/// go to `states` [parts, groups], and the last block to end of those for the same tracks merges them;
/// without `counters` that is left to another launch.
template <class Op, bool across, class Finish>
struct ReduceGroups {
  using State = typename Op::State;
  using Running = typename Op::Running;
  static constexpr int columns = across ? Op::width : 1;
  static constexpr bool keeps_registers = true;
  struct States {
    State of[columns];
  };

  Op op;
  GroupLayout layout;
  Finish finish;
  State* states = nullptr;       ///< or null: one part
  unsigned* counters = nullptr;  ///< for each of the blocks of a part

  __device__ void operator()(int64_t b, const Block& block) const {
    const SharedNumbers<Op, columns> numbers(op, layout, b, block);
    States own{};
    layout.for_own(b, block, [&](int64_t track, int64_t, int64_t first, int64_t last, int64_t step) {
      if (first < last) own = gather(numbers, layout.teams.team_of(block.thread()), track, first, last, step);
    });
    int64_t beside = b;
    const int64_t number = layout.abreast.divide(beside);
    const int64_t begin = layout.first_group(b), end = layout.last_group(b), groups = layout.tracks * columns;
    const auto keep = [&](int64_t group, const State& state) {
      if (states != nullptr)
        states[number * groups + group] = state;
      else
        finish(group, state);
    };
    merge_own(block, own, begin, end, keep);
    if (counters == nullptr || !block.last_of(counters + beside, layout.parts)) return;
    merge_in_block<State>(
        block, begin, end, layout.parts,
        [&](int64_t group, int64_t part) -> const State& { return states[part * groups + group]; }, finish);
  }

 private:
  /// Calls keep(group, state) for the groups [begin, end) of a block.
  template <class Keep>
  __device__ void merge_own(const Block& block, States& own, int64_t begin, int64_t end,
                            const Keep& keep) const {
    const Teams& teams = layout.teams;
    if constexpr (columns == 1) {
      block.combine(own.of[0], teams, [](State& into, const State& other) { into.merge(other); });
      const int64_t group = begin + teams.team_of(block.thread());
      if (teams.lane_of(block.thread()) == 0 && group < end) keep(group, own.of[0]);
    } else {
      // By their numbers, so that threads write and read in different banks.
      constexpr int numbers = sizeof(State) / sizeof(double), banks = 16;
      constexpr int pitch = block_threads + banks / columns;
      const SharedArray<double, numbers * columns * pitch> all;
      __syncthreads();  // until all have read what was there before
      PLEAT_UNROLL
      for (int j = 0; j < columns; ++j) {
        double each[numbers];
        std::memcpy(each, &own.of[j], sizeof(State));
        PLEAT_UNROLL
        for (int k = 0; k < numbers; ++k) all.write((k * columns + j) * pitch + block.thread(), each[k]);
      }
      __syncthreads();
      const auto own_of = [&](int64_t group, int64_t lane) {
        const int local = static_cast<int>(group - begin), team = local / columns;
        const int thread = teams.adjacent ? team * teams.lanes() + static_cast<int>(lane)
                                          : static_cast<int>(lane) * teams.count() + team;
        double each[numbers];
        PLEAT_UNROLL
        for (int k = 0; k < numbers; ++k)
          each[k] = all.read((k * columns + local % columns) * pitch + thread);
        State state;
        std::memcpy(&state, each, sizeof(State));
        return state;
      };
      merge_in_block<State>(block, begin, end, teams.lanes(), own_of, keep);
    }
  }

  __device__ States gather(const SharedNumbers<Op, columns>& numbers, int team, int64_t track, int64_t v,
                           int64_t last, int64_t step) const {
    const int64_t begin = layout.begin(track);
    Running running[columns];
    PLEAT_UNROLL
    for (int j = 0; j < columns; ++j)
      running[j] =
          op.begin(numbers.read(team, j), layout.at<across>(begin, v) * static_cast<int64_t>(Op::width) + j);
    for (; v + (vectors_at_once - 1) * step < last; v += vectors_at_once * step)
      add<vectors_at_once>(running, begin, v, step);
    for (; v < last; v += step) add<1>(running, begin, v, step);
    States result;
    PLEAT_UNROLL
    for (int j = 0; j < columns; ++j) result.of[j] = op.state(running[j]);
    return result;
  }

  template <int n>
  PLEAT_HOST_DEVICE void add(Running (&running)[columns], int64_t begin, int64_t v, int64_t step) const {
    typename Op::Raw raw[n];
    PLEAT_UNROLL
    for (int k = 0; k < n; ++k) raw[k] = op.load(layout.template at<across>(begin, v + k * step));
    PLEAT_UNROLL
    for (int j = 0; j < columns; ++j) {
      typename Op::Partial partial{};
      PLEAT_UNROLL
      for (int k = 0; k < n; ++k) {
        if constexpr (across) {
          op.add(running[j], partial, raw[k], static_cast<std::size_t>(j));
        } else {
          PLEAT_UNROLL
          for (std::size_t lane = 0; lane < Op::width; ++lane) op.add(running[j], partial, raw[k], lane);
        }
      }
      op.take(running[j], partial, n * static_cast<int64_t>(across ? 1 : Op::width));
    }
  }
};

/// Reduces groups that are `joined` neighbouring groups of the layout each, and finishes each.
template <bool across, class Op, class Finish>
void reduce_groups(const char* name, Device device, GroupLayout layout, int64_t joined, const Op& op,
                   const Finish& finish) {
  using State = typename Op::State;
  // What a large GPU holds: many more would only be states for the last block to merge.
  constexpr int64_t enough_blocks = 1024;
  constexpr int64_t least = 16;
  layout.share(least, enough_blocks);
  ReduceGroups<Op, across, Finish> sums{op, layout, finish};
  if (layout.parts == 1 && joined == 1) return launch_blocks(name, device, layout.blocks(), sums);
  const int64_t fine = layout.tracks * int64_t{sums.columns};
  const Tensor memory =
      empty({layout.parts, fine, static_cast<int64_t>(sizeof(State))}, {.dtype = uint8, .device = device});
  sums.states = reinterpret_cast<State*>(memory.raw());
  if (joined == 1) {
    // With parts there are no more blocks side by side than enough_blocks.
    static_assert(enough_blocks <= most_block_counters);
    sums.counters = block_counters(device);
    return launch_blocks(name, device, layout.blocks(), sums);
  }
  launch_blocks(name, device, layout.blocks(), sums);
  merge_states<State>(name, device, fine / joined, layout.parts * joined,
                      PartStates<State>{sums.states, fine, FastDivider(joined)}, finish);
}

/// Changes every element by its group's numbers:
///
///   struct Op {
///     static constexpr std::size_t width;
///     struct Numbers;                                  // of a group
///     Numbers numbers(int64_t group) const;
///     struct Raw;
///     Raw load(int64_t vector) const;
///     using Result;                                    // the type stored
///     Result* result;
///     Result value(const Numbers&, const Raw&, std::size_t lane) const;
///   };
template <class Op, bool across>
struct MapGroups {
  static constexpr int columns = across ? Op::width : 1;
  static constexpr bool keeps_registers = true;

  Op op;
  GroupLayout layout;

  __device__ void operator()(int64_t b, const Block& block) const {
    const SharedNumbers<Op, columns> shared(op, layout, b, block);
    layout.for_own(b, block, [&](int64_t track, int64_t, int64_t v, int64_t last, int64_t step) {
      if (v >= last) return;
      const int64_t begin = layout.begin(track);
      typename Op::Numbers numbers[columns];
      PLEAT_UNROLL
      for (int j = 0; j < columns; ++j) numbers[j] = shared.read(layout.teams.team_of(block.thread()), j);
      for (; v + (vectors_at_once - 1) * step < last; v += vectors_at_once * step)
        change<vectors_at_once>(numbers, begin, v, step);
      for (; v < last; v += step) change<1>(numbers, begin, v, step);
    });
  }

 private:
  template <int n>
  PLEAT_HOST_DEVICE void change(const typename Op::Numbers (&numbers)[columns], int64_t begin, int64_t v,
                                int64_t step) const {
    using Result = Vector<typename Op::Result, Op::width>;
    typename Op::Raw raw[n];
    PLEAT_UNROLL
    for (int k = 0; k < n; ++k) raw[k] = op.load(layout.template at<across>(begin, v + k * step));
    PLEAT_UNROLL
    for (int k = 0; k < n; ++k) {
      Result result;
      PLEAT_UNROLL
      for (std::size_t lane = 0; lane < Op::width; ++lane)
        result.lane[lane] = op.value(numbers[across ? lane : 0], raw[k], lane);
      reinterpret_cast<Result*>(op.result)[layout.template at<across>(begin, v + k * step)] = result;
    }
  }
};

template <bool across, class Op>
void map_groups(const char* name, Device device, GroupLayout layout, const Op& op) {
  constexpr int64_t many_blocks = int64_t{1} << 20;
  constexpr int64_t least = 2 * vectors_at_once;
  layout.share(least, many_blocks);
  launch_blocks(name, device, layout.blocks(), MapGroups<Op, across>{op, layout});
}

}  // namespace pleat::ops
