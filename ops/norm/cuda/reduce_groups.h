// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/create.h"

/// Passes over a dense tensor whose elements belong to groups (the channels of a batch, those of an image),
/// for the .cu files of normalisations: a reduction for each group, and a map of each element with its
/// group's numbers. Memory is moved 16 bytes at a time where sizes and addresses allow; the
/// order of sums depends on sizes alone.

namespace pleat::ops {

/// How the vectors (1 or more adjacent elements) of a dense tensor belong to groups, and how teams of threads
/// share them. A track is what one team reads: all vectors of one group, or, where neighbours belong to
/// different groups (`across`), the vectors at one place of every row, each lane of which is a group's.
struct GroupLayout {
  bool across = false;
  int64_t tracks = 0;
  int64_t count = 0;   ///< vectors of a track
  FastDivider beside;  ///< tracks that begin side by side
  int64_t beside_step = 0;
  FastDivider run;  ///< vectors of a track that lie one behind the other
  int64_t run_step = 0;

  Teams teams;
  int64_t part = 0;     ///< vectors of a track that a block reads
  int64_t parts = 0;    ///< of a track
  FastDivider abreast;  ///< blocks for the first part of all tracks

  /// Groups of `runs` runs of `length` elements; run j of group g begins at (j * groups + g) * length.
  static GroupLayout along(int64_t groups, int64_t runs, int64_t length, std::size_t width) {
    const int64_t vectors = length / static_cast<int64_t>(width);
    GroupLayout layout;
    layout.tracks = groups;
    layout.count = runs * vectors;
    layout.beside = FastDivider(1);
    layout.beside_step = vectors;
    layout.run = FastDivider(vectors);
    layout.run_step = groups * vectors;
    return layout;
  }
  /// Groups of single elements `columns` apart, `rows` of them; `images` times `columns` groups.
  static GroupLayout down(int64_t images, int64_t rows, int64_t columns, std::size_t width) {
    const int64_t vectors = columns / static_cast<int64_t>(width);
    GroupLayout layout;
    layout.across = true;
    layout.tracks = images * vectors;
    layout.count = rows;
    layout.beside = FastDivider(vectors);
    layout.beside_step = rows * vectors;
    layout.run = FastDivider(1);
    layout.run_step = vectors;
    return layout;
  }

  /// Shares the work out: parts of at least `least` vectors a thread, and about `blocks` blocks.
  GroupLayout& share(int64_t least, int64_t blocks) {
    teams = choose_teams(count, across ? beside.divisor() : 1);
    const int64_t side_by_side = (tracks + teams.count() - 1) / teams.count();
    abreast = FastDivider(side_by_side);
    const int64_t most = std::max<int64_t>(1, count / (teams.lanes() * least));
    const int64_t wanted = std::clamp<int64_t>(ceil_div(blocks, side_by_side), 1, most);
    // Whole rounds of a team, so that parts begin where memory is fetched.
    const int64_t rounds = ceil_div(ceil_div(count, wanted), teams.lanes());
    part = std::max<int64_t>(1, rounds * teams.lanes());
    parts = ceil_div(count, part);
    return *this;
  }
  int64_t blocks() const { return abreast.divisor() * parts; }

  /// Calls `f(track, number of the part, first, last, step)` with the vectors of a track that are a thread's.
  template <class F>
  __device__ void for_own(int64_t b, const Block& block, const F& f) const {
    int64_t rest = b;
    const int64_t number = abreast.divide(rest);
    const int64_t track = rest * teams.count() + teams.team_of(block.thread());
    if (track >= tracks) return;
    const int64_t first = number * part;
    f(track, number, first + teams.lane_of(block.thread()), first + part < count ? first + part : count,
      static_cast<int64_t>(teams.lanes()));
  }
  PLEAT_HOST_DEVICE int64_t begin(int64_t track) const {
    int64_t rest = track;
    return beside.divide(rest) * beside_step + rest;
  }
  /// Where vector v of the track that begins at `begin` lies.
  PLEAT_HOST_DEVICE int64_t at(int64_t begin, int64_t v) const {
    int64_t rest = v;
    return begin + run.divide(rest) * run_step + rest;
  }
};

/// Vectors that a thread waits for together.
inline constexpr int vectors_at_once = 4;

/// How many elements of type S can be moved at once: as many as 16 bytes hold when `length` is a multiple of
/// that and the addresses are, else 1.
template <class S>
constexpr std::size_t wide = 16 / sizeof(S);
template <class S>
bool can_be_wide(int64_t length, std::initializer_list<const S*> data) {
  bool can = length % static_cast<int64_t>(wide<S>) == 0;
  for (const S* pointer : data) can = can && reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  return can;
}

/// Calls `f(std::integral_constant<std::size_t, width>{})`.
template <class S, class F>
void by_width(int64_t length, std::initializer_list<const S*> data, const F& f) {
  if (can_be_wide<S>(length, data))
    f(std::integral_constant<std::size_t, wide<S>>{});
  else
    f(std::integral_constant<std::size_t, 1>{});
}

/// Calls `f(Type<T>{}, Type<S>{})`: T is computed in, S is stored.
template <class F>
void by_stored_type(DType dtype, const F& f) {
  if (dtype == float64) return f(Type<double>{}, Type<double>{});
  if (dtype == float16) return f(Type<float>{}, Type<Half>{});
  if (dtype == bfloat16) return f(Type<float>{}, Type<BFloat16>{});
  f(Type<float>{}, Type<float>{});
}

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

/// Reduces groups. The reduction is `Op`:
///
///   struct Op {
///     static constexpr std::size_t width;
///     using State;                                     // of a group; State{} of none; merge(const State&)
///     struct Running;                                  // of a group, as a thread gathers it
///     Running begin(int64_t group, int64_t element) const;  // `element`: the thread's first of the group
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
  static constexpr std::size_t columns = across ? Op::width : 1;
  struct States {
    State of[columns];
  };

  Op op;
  GroupLayout layout;
  Finish finish;
  State* states = nullptr;       ///< or null: one part
  unsigned* counters = nullptr;  ///< for each of the blocks of a part

  __device__ void operator()(int64_t b, const Block& block) const {
    States own{};
    layout.for_own(b, block, [&](int64_t track, int64_t, int64_t first, int64_t last, int64_t step) {
      if (first < last) own = gather(track, first, last, step);
    });
    // One group at a time: the shared memory of all at once would leave no room for other blocks.
    PLEAT_UNROLL
    for (std::size_t j = 0; j < columns; ++j)
      block.combine(own.of[j], layout.teams, [](State& into, const State& other) { into.merge(other); });
    if (layout.teams.lane_of(block.thread()) == 0)
      layout.for_own(b, block, [&](int64_t track, int64_t number, int64_t, int64_t, int64_t) {
        constexpr auto n = static_cast<int64_t>(columns);
        PLEAT_UNROLL
        for (std::size_t j = 0; j < columns; ++j) {
          const int64_t group = track * n + static_cast<int64_t>(j);
          if (states != nullptr)
            states[number * layout.tracks * n + group] = own.of[j];
          else
            finish(group, own.of[j]);
        }
      });
    if (counters == nullptr) return;
    int64_t beside = b;
    layout.abreast.divide(beside);
    if (!block.last_of(counters + beside, layout.parts)) return;
    constexpr auto n = static_cast<int64_t>(columns);
    const int64_t begin = beside * layout.teams.count() * n;
    const int64_t end = begin + layout.teams.count() * n;
    const int64_t groups = layout.tracks * n;
    merge_in_block<State>(
        block, begin, end < groups ? end : groups, layout.parts,
        [&](int64_t group, int64_t number) -> const State& { return states[number * groups + group]; },
        finish);
  }

 private:
  PLEAT_HOST_DEVICE States gather(int64_t track, int64_t v, int64_t last, int64_t step) const {
    const int64_t begin = layout.begin(track);
    Running running[columns];
    PLEAT_UNROLL
    for (std::size_t j = 0; j < columns; ++j)
      running[j] = op.begin(
          track * static_cast<int64_t>(columns) + static_cast<int64_t>(j),
          layout.at(begin, v) * static_cast<int64_t>(Op::width) + static_cast<int64_t>(across ? j : 0));
    for (; v + (vectors_at_once - 1) * step < last; v += vectors_at_once * step)
      add<vectors_at_once>(running, begin, v, step);
    for (; v < last; v += step) add<1>(running, begin, v, step);
    States result;
    PLEAT_UNROLL
    for (std::size_t j = 0; j < columns; ++j) result.of[j] = op.state(running[j]);
    return result;
  }

  template <int n>
  PLEAT_HOST_DEVICE void add(Running (&running)[columns], int64_t begin, int64_t v, int64_t step) const {
    typename Op::Raw raw[n];
    PLEAT_UNROLL
    for (int k = 0; k < n; ++k) raw[k] = op.load(layout.at(begin, v + k * step));
    PLEAT_UNROLL
    for (std::size_t j = 0; j < columns; ++j) {
      typename Op::Partial partial{};
      PLEAT_UNROLL
      for (int k = 0; k < n; ++k) {
        if constexpr (across) {
          op.add(running[j], partial, raw[k], j);
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
  const int64_t fine = layout.tracks * static_cast<int64_t>(sums.columns);
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
  static constexpr std::size_t columns = across ? Op::width : 1;
  static constexpr bool keeps_registers = requires { requires Op::keeps_registers; };

  Op op;
  GroupLayout layout;

  __device__ void operator()(int64_t b, const Block& block) const {
    layout.for_own(b, block, [&](int64_t track, int64_t, int64_t v, int64_t last, int64_t step) {
      if (v >= last) return;
      const int64_t begin = layout.begin(track);
      typename Op::Numbers numbers[columns];
      PLEAT_UNROLL
      for (std::size_t j = 0; j < columns; ++j)
        numbers[j] = op.numbers(track * static_cast<int64_t>(columns) + static_cast<int64_t>(j));
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
    for (int k = 0; k < n; ++k) raw[k] = op.load(layout.at(begin, v + k * step));
    PLEAT_UNROLL
    for (int k = 0; k < n; ++k) {
      Result result;
      PLEAT_UNROLL
      for (std::size_t lane = 0; lane < Op::width; ++lane)
        result.lane[lane] = op.value(numbers[across ? lane : 0], raw[k], lane);
      reinterpret_cast<Result*>(op.result)[layout.at(begin, v + k * step)] = result;
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
