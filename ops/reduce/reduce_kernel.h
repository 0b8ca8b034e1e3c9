// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/reduce/plan.h"

#if PLEAT_COMPILES_KERNELS
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/core/kernels/offsets.h"
#endif

/// Reductions on a GPU.

namespace pleat::ops::reduction {

/// What a state becomes where it gives two results.
template <class A, class B>
struct Two {
  A first;
  B second;
};

/// Reduces on x's GPU: results[i] = what `finish` makes of a result's state, or of the
/// state's part in a Two, converted to the type of results[i]; a second result may be undefined.
///
///   struct Operation {
///     using In = float;        // the type of the elements it sees
///     using Running = ...;     // a thread's state after the elements it has read
///     Running begin() const;
///     // n elements, number index, index + step ...
///     void add<n>(Running&, const std::array<In, n>& x, int64_t index, int64_t step) const;
///     using State = double;    // what is known of some elements
///     State state(const Running&) const;
///     State empty() const;     // of none
///     void merge(State& into, const State& other) const;
///   };
///
/// The elements of a result are read by a team of neighbouring threads, or of threads that read beside the
/// teams of neighbouring results, each thread every so many; their states are merged as a binary tree. Where
/// results are few, their elements are cut into parts, one a block, and a second launch merges the parts. All
/// this depends on shape and strides only, and there are no atomics: the same input gives the same bits.
template <class Operation, class Finish>
void reduce_kernel(const char* op, const Operation& operation, const Finish& finish, const Plan& plan,
                   const Tensor& x, const std::array<Tensor, 2>& results);

#if PLEAT_COMPILES_KERNELS

/// Elements of any type read as In ...
template <class In>
struct LoadAny {
  struct One {
    In value;
    __device__ void unpack(In* to) const { *to = value; }
  };
  static constexpr bool has_vectors = false;
  DType dtype;
  template <std::size_t>
  __device__ One at(const std::byte* x) const {
    return {load_as<In>(x, 0, dtype)};
  }
};
/// ... or those of a known one: the loads of several elements then need not wait for each other.
template <class Stored>
struct LoadStored {
  static constexpr bool has_vectors = true;
  template <std::size_t width>
  __device__ auto at(const std::byte* x) const {
    return Loaded<Stored, width>(reinterpret_cast<const Stored*>(x));
  }
};

template <class In, class F>
__device__ decltype(auto) with_loader(DType dtype, const F& f) {
  if (dtype == dtype_of<In>()) return f(LoadStored<In>{});
  if constexpr (std::is_same_v<In, float>) {
    if (dtype == float16) return f(LoadStored<Half>{});
    if (dtype == bfloat16) return f(LoadStored<BFloat16>{});
  }
  return f(LoadAny<In>{dtype});
}

/// Where results are written.
struct Sink {
  std::array<std::byte*, 2> base{};
  std::array<DType, 2> dtype{};
  ElementOffsets<2> kept;  ///< steps in the input, in bytes, and in the results

  template <class T>
  __device__ void operator()(int64_t output, const T& value) const {
    store_as<T>(base[0], kept.at(output)[1], dtype[0], value);
  }
  template <class A, class B>
  __device__ void operator()(int64_t output, const Two<A, B>& values) const {
    const int64_t at = kept.at(output)[1];
    store_as<A>(base[0], at, dtype[0], values.first);
    if (base[1] != nullptr) store_as<B>(base[1], at, dtype[1], values.second);
  }
};

/// Blocks that reduce elements: to results, or to states where each result has several parts.
template <class Operation, class Finish>
struct ReduceElements {
  using In = typename Operation::In;
  using State = typename Operation::State;
  static constexpr std::size_t at_once = 8;  ///< single elements that a thread waits for together
  static constexpr bool keeps_registers = true;

  Operation operation;
  Finish finish;
  Sink sink;
  Teams teams;
  int64_t outputs = 0;
  int64_t count = 0;
  int64_t part = 0;             ///< elements in a part
  FastDivider groups{};         ///< blocks side by side
  ElementOffsets<1> reduced{};  ///< steps in the input, in bytes
  const std::byte* x = nullptr;
  DType dtype = float32;
  uint32_t width = 1;  ///< neighbours that a thread reads at once: 1, vector_width or half_width
  /// From what a thread reads to what it reads next: by elements of the innermost dimension, by bytes, and by
  /// bytes more where that dimension ends. Of two dimensions at most.
  int64_t step_within = 0, step = 0, carry = 0;
  State* states = nullptr;  ///< [parts, outputs], or null: one part

  __device__ void operator()(int64_t b, const Block& block) const {
    int64_t group = b;
    const int64_t number = groups.divide(group);
    const int64_t first = number * part;
    const int64_t last = first + part < count ? first + part : count;
    const int lane = teams.lane_of(block.thread());
    const int64_t output = group * teams.count() + teams.team_of(block.thread());
    State state = output < outputs ? gather(sink.kept.at(output)[0], lane, first, last) : operation.empty();
    block.combine(state, teams, [&](State& into, const State& other) { operation.merge(into, other); });
    if (lane != 0 || output >= outputs) return;
    if (states != nullptr)
      states[number * outputs + output] = state;
    else
      sink(output, finish(state));
  }

 private:
  __device__ State gather(int64_t offset, int lane, int64_t first, int64_t last) const {
    return with_loader<In>(dtype, [&]<class Load>(const Load& load) {
      if constexpr (Load::has_vectors) {
        if constexpr (std::is_same_v<In, float> && !std::is_same_v<Load, LoadStored<In>>)
          if (width == half_width) return gather_by<half_width>(load, x + offset, first, lane, last);
        if (width == vector_width) return gather_by<vector_width>(load, x + offset, first, lane, last);
      }
      return gather_by<1>(load, x + offset, first, lane, last);
    });
  }

  /// Where a thread reads.
  struct Place {
    const std::byte* at;
    int64_t within;  ///< the innermost dimension
  };
  __device__ Place place_of(const std::byte* from, int64_t i) const {
    if (reduced.outermost == 0) return {from + i * reduced.step[0][0], i};
    int64_t within = i;
    const int64_t outer = reduced.size[0].divide(within);
    if (reduced.outermost > 1) return {from + reduced.at(i)[0], within};
    return {from + (outer * reduced.step[1][0] + within * reduced.step[0][0]), within};
  }
  __device__ void advance(Place& place) const {
    place.at += step;
    if (reduced.outermost == 0) return;
    place.within += step_within;
    if (place.within < reduced.size[0].divisor()) return;
    place.within -= reduced.size[0].divisor();
    place.at += carry;
  }

  /// `count` neighbours each time, several times at once where the way to the next ones is known.
  template <std::size_t count, class Load>
  __device__ State gather_by(const Load& load, const std::byte* from, int64_t first, int lane,
                             int64_t last) const {
    constexpr std::size_t together = count == 1 ? at_once : 2;
    constexpr int64_t more = together - 1;
    const int64_t round = int64_t{count} * teams.lanes();
    int64_t i = first + int64_t{count} * lane;
    auto running = operation.begin();
    if (i >= last) return operation.state(running);
    Place place = place_of(from, i);
    const bool is_known = reduced.outermost <= 1;
    for (; is_known && i + more * round < last; i += (more + 1) * round) {
      decltype(load.template at<count>(from)) loaded[together];
      PLEAT_UNROLL
      for (std::size_t k = 0; k < together; ++k) {
        loaded[k] = load.template at<count>(place.at);
        advance(place);
      }
      if constexpr (count == 1) {
        std::array<In, together> values;
        PLEAT_UNROLL
        for (std::size_t k = 0; k < together; ++k) loaded[k].unpack(&values[k]);
        operation.add(running, values, i, round);
      } else {
        PLEAT_UNROLL
        for (std::size_t k = 0; k < together; ++k) {
          std::array<In, count> values;
          loaded[k].unpack(values.data());
          operation.add(running, values, i + static_cast<int64_t>(k) * round, 1);
        }
      }
    }
    for (; i < last; i += round) {
      std::array<In, count> values;
      load.template at<count>(place.at).unpack(values.data());
      operation.add(running, values, i, 1);
      if (is_known)
        advance(place);
      else
        place = place_of(from, i + round);
    }
    return operation.state(running);
  }
};

/// Blocks that merge the states of all parts.
template <class Operation, class Finish>
struct MergeParts {
  using State = typename Operation::State;

  Operation operation;
  Finish finish;
  Sink sink;
  Teams teams;
  int64_t outputs;
  int64_t parts;
  const State* states;

  __device__ void operator()(int64_t b, const Block& block) const {
    const int lane = teams.lane_of(block.thread());
    const int64_t output = b * teams.count() + teams.team_of(block.thread());
    State state = operation.empty();
    if (output < outputs)
      for (int64_t number = lane; number < parts; number += teams.lanes())
        operation.merge(state, states[number * outputs + output]);
    block.combine(state, teams, [&](State& into, const State& other) { operation.merge(into, other); });
    if (lane == 0 && output < outputs) sink(output, finish(state));
  }
};

namespace detail {

/// Blocks that keep any GPU busy.
inline constexpr int64_t enough_blocks = 1024;
/// Elements that a thread reads at least before a result is cut into parts.
inline constexpr int64_t part_elements = 32;

inline int64_t blocks_for(int64_t outputs, const Teams& teams) {
  return (outputs + teams.count() - 1) / teams.count();
}

/// The input's steps in bytes.
template <std::size_t N>
ElementOffsets<N> offsets_of(const char* op, const std::vector<Dim>& dims, int64_t bytes) {
  check_kernel_dims(op, dims.size());
  ElementOffsets<N> offsets;
  offsets.size[0] = FastDivider(1);
  offsets.outermost = std::max(0, static_cast<int>(dims.size()) - 1);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    offsets.size[d] = FastDivider(dims[d].size);
    offsets.step[d][0] = dims[d].step * bytes;
    if constexpr (N > 1) offsets.step[d][1] = dims[d].out_step;
  }
  return offsets;
}

/// Whether the elements of a result lie in vectors of `width`, one behind the other, each at a multiple of
/// its bytes.
inline bool lies_in_vectors(const Plan& plan, const Tensor& x, int64_t width) {
  const auto is_multiple = [width](int64_t n) { return n % width == 0; };
  if (plan.reduced.empty() || plan.reduced[0].step != 1 || !is_multiple(plan.reduced[0].size)) return false;
  for (std::size_t d = 1; d < plan.reduced.size(); ++d)
    if (!is_multiple(plan.reduced[d].step)) return false;
  for (const Dim& dim : plan.kept)
    if (dim.size > 1 && !is_multiple(dim.step)) return false;
  return reinterpret_cast<std::uintptr_t>(x.raw()) %
             static_cast<std::uintptr_t>(width * size_of(x.dtype())) ==
         0;
}
template <class In>
uint32_t width_of(const Plan& plan, const Tensor& x) {
  if (!moves_vectors_of<In>(x.dtype())) return 1;
  if (std::is_same_v<In, float> && is_half(x.dtype()) && lies_in_vectors(plan, x, half_width))
    return half_width;
  return lies_in_vectors(plan, x, vector_width) ? vector_width : 1;
}

}  // namespace detail

template <class Operation, class Finish>
void reduce_kernel(const char* op, const Operation& operation, const Finish& finish, const Plan& plan,
                   const Tensor& x, const std::array<Tensor, 2>& results) {
  using State = typename Operation::State;
  if (plan.outputs == 0) return;
  Sink sink;
  const int64_t bytes = size_of(x.dtype());
  sink.kept = detail::offsets_of<2>(op, plan.kept, bytes);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].defined()) {
      sink.base[i] = results[i].raw();
      sink.dtype[i] = results[i].dtype();
    }
  const Teams teams = choose_teams(plan.count, plan.kept_inside ? plan.kept[0].size : 1);
  const int64_t blocks = detail::blocks_for(plan.outputs, teams);
  const int64_t most_parts = std::max<int64_t>(1, plan.count / (teams.lanes() * detail::part_elements));
  const int64_t wanted = std::clamp<int64_t>(ceil_div(detail::enough_blocks, blocks), 1, most_parts);
  // Whole rounds of a team, so that parts begin where memory is fetched.
  const uint32_t width = teams.adjacent ? detail::width_of<typename Operation::In>(plan, x) : 1;
  const int64_t round = int64_t{width} * teams.lanes();
  const int64_t part = std::max<int64_t>(1, ceil_div(ceil_div(plan.count, wanted), round) * round);
  const int64_t parts = std::max<int64_t>(1, ceil_div(plan.count, part));

  ReduceElements<Operation, Finish> reduce{operation, finish, sink, teams};
  reduce.outputs = plan.outputs;
  reduce.count = plan.count;
  reduce.part = part;
  reduce.groups = FastDivider(blocks);
  reduce.reduced = detail::offsets_of<1>(op, plan.reduced, bytes);
  if (plan.count > 0) {
    const Dim& inner = plan.reduced[0];
    reduce.step_within = round % inner.size;
    reduce.step = reduce.step_within * inner.step * bytes;
    if (plan.reduced.size() > 1) {
      reduce.step += round / inner.size * plan.reduced[1].step * bytes;
      reduce.carry = (plan.reduced[1].step - inner.size * inner.step) * bytes;
    }
  }
  reduce.x = x.raw();
  reduce.dtype = x.dtype();
  reduce.width = width;
  if (parts == 1) return launch_blocks(op, x.device(), blocks, reduce);

  const Tensor workspace = empty({parts, plan.outputs, static_cast<int64_t>(sizeof(State))},
                                 {.dtype = uint8, .device = x.device()});
  reduce.states = reinterpret_cast<State*>(workspace.raw());
  launch_blocks(op, x.device(), blocks * parts, reduce);
  const Teams mergers = choose_teams(parts, plan.outputs);
  const MergeParts<Operation, Finish> merge{operation,    finish, sink,         mergers,
                                            plan.outputs, parts,  reduce.states};
  launch_blocks(op, x.device(), detail::blocks_for(plan.outputs, mergers), merge);
}

#endif

}  // namespace pleat::ops::reduction
