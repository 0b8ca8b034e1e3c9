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
  using Raw = In;
  static constexpr bool has_vectors = false;
  const std::byte* x;
  DType dtype;
  __device__ Raw raw(int64_t i) const { return load_as<In>(x, i, dtype); }
  __device__ static In value(Raw raw) { return raw; }
};
/// ... or those of a known one: the loads of several elements then need not wait for each other.
template <class In, class Stored>
struct LoadStored {
  using Raw = Stored;
  static constexpr bool has_vectors = true;
  const Stored* x;
  __device__ Raw raw(int64_t i) const { return x[i]; }
  __device__ auto vector(int64_t i) const {
    return *reinterpret_cast<const Vector<Stored, vector_width>*>(x + i);
  }
  __device__ static In value(Raw raw) { return convert<In>(raw); }
};

template <class In, class F>
__device__ decltype(auto) with_loader(const std::byte* x, DType dtype, const F& f) {
  if (dtype == dtype_of<In>()) return f(LoadStored<In, In>{reinterpret_cast<const In*>(x)});
  if constexpr (std::is_same_v<In, float>) {
    if (dtype == float16) return f(LoadStored<In, Half>{reinterpret_cast<const Half*>(x)});
    if (dtype == bfloat16) return f(LoadStored<In, BFloat16>{reinterpret_cast<const BFloat16*>(x)});
  }
  return f(LoadAny<In>{x, dtype});
}

/// Where results are written.
struct Sink {
  std::array<std::byte*, 2> base{};
  std::array<DType, 2> dtype{};
  ElementOffsets<2> kept;  ///< steps in the input and in the results

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
  static constexpr int at_once = 8;  ///< elements that a thread waits for together
  static constexpr bool keeps_registers = true;

  Operation operation;
  Finish finish;
  Sink sink;
  Teams teams;
  int64_t outputs = 0;
  int64_t count = 0;
  int64_t part = 0;             ///< elements in a part
  FastDivider groups{};         ///< blocks side by side
  ElementOffsets<1> reduced{};  ///< steps in the input
  const std::byte* x = nullptr;
  DType dtype = float32;
  bool by_vectors = false;  ///< whether a thread reads `vector_width` neighbours at once
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
    return with_loader<In>(x, dtype, [&](const auto& load) {
      if constexpr (std::decay_t<decltype(load)>::has_vectors)
        if (by_vectors) return gather_vectors(load, offset, first + lane * vector_width, last);
      return gather_elements(load, offset, first + lane, last);
    });
  }

  /// Where a thread reads: from element to element of the innermost dimension by steps that are known, and
  /// only at its end by a division.
  struct Place {
    int64_t at;      ///< in the input
    int64_t within;  ///< the innermost dimension
  };
  __device__ Place place_of(int64_t offset, int64_t i) const {
    int64_t within = i;
    reduced.size[0].divide(within);
    return {offset + reduced.at(i)[0], within};
  }
  /// To the element `step` further on, whose number is i.
  __device__ void advance(Place& place, int64_t offset, int64_t i, int64_t step) const {
    const int64_t run = reduced.size[0].divisor();
    place.within += step;
    place.at += step * reduced.step[0][0];
    if (reduced.outermost == 0 || place.within < run) return;
    if (reduced.outermost == 1 && place.within < 2 * run) {
      place.within -= run;
      place.at += reduced.step[1][0] - run * reduced.step[0][0];
    } else {
      place = place_of(offset, i);
    }
  }

  template <class Load>
  __device__ State gather_vectors(const Load& load, int64_t offset, int64_t i, int64_t last) const {
    constexpr auto width = static_cast<int64_t>(vector_width);
    constexpr int64_t together = at_once / width;
    const int64_t step = teams.lanes() * width;
    auto running = operation.begin();
    if (i >= last) return operation.state(running);
    Place place = place_of(offset, i);
    const auto add = [&](const auto& loaded, int64_t index) {
      std::array<In, vector_width> values;
      PLEAT_UNROLL
      for (std::size_t j = 0; j < vector_width; ++j) values[j] = load.value(loaded.lane[j]);
      operation.add(running, values, index, 1);
    };
    for (; i + (together - 1) * step < last; i += together * step) {
      Vector<typename Load::Raw, vector_width> loaded[together];
      PLEAT_UNROLL
      for (int64_t k = 0; k < together; ++k) {
        loaded[k] = load.vector(place.at);
        advance(place, offset, i + (k + 1) * step, step);
      }
      PLEAT_UNROLL
      for (int64_t k = 0; k < together; ++k) add(loaded[k], i + k * step);
    }
    for (; i < last; i += step) {
      add(load.vector(place.at), i);
      advance(place, offset, i + step, step);
    }
    return operation.state(running);
  }

  template <class Load>
  __device__ State gather_elements(const Load& load, int64_t offset, int64_t i, int64_t last) const {
    const int64_t step = teams.lanes();
    auto running = operation.begin();
    if (i >= last) return operation.state(running);
    Place place = place_of(offset, i);
    for (; i + (at_once - 1) * step < last; i += at_once * step) {
      typename Load::Raw raw[at_once];
      PLEAT_UNROLL
      for (int k = 0; k < at_once; ++k) {
        raw[k] = load.raw(place.at);
        advance(place, offset, i + (k + 1) * step, step);
      }
      std::array<In, at_once> values;
      PLEAT_UNROLL
      for (int k = 0; k < at_once; ++k) values[static_cast<std::size_t>(k)] = load.value(raw[k]);
      operation.add(running, values, i, step);
    }
    for (; i < last; i += step) {
      operation.add(running, std::array<In, 1>{load.value(load.raw(place.at))}, i, step);
      advance(place, offset, i + step, step);
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

template <std::size_t N>
ElementOffsets<N> offsets_of(const char* op, const std::vector<Dim>& dims) {
  check_kernel_dims(op, dims.size());
  ElementOffsets<N> offsets;
  offsets.size[0] = FastDivider(1);
  offsets.outermost = std::max(0, static_cast<int>(dims.size()) - 1);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    offsets.size[d] = FastDivider(dims[d].size);
    offsets.step[d][0] = dims[d].step;
    if constexpr (N > 1) offsets.step[d][1] = dims[d].out_step;
  }
  return offsets;
}

/// Whether the elements of a result lie in vectors, one behind the other, each at a multiple of its bytes.
inline bool lies_in_vectors(const Plan& plan, const Tensor& x) {
  const auto is_multiple = [](int64_t n) { return n % vector_width == 0; };
  if (plan.reduced.empty() || plan.reduced[0].step != 1 || !is_multiple(plan.reduced[0].size)) return false;
  for (std::size_t d = 1; d < plan.reduced.size(); ++d)
    if (!is_multiple(plan.reduced[d].step)) return false;
  for (const Dim& dim : plan.kept)
    if (!is_multiple(dim.step)) return false;
  return reinterpret_cast<std::uintptr_t>(x.raw()) %
             static_cast<std::uintptr_t>(vector_width * size_of(x.dtype())) ==
         0;
}

}  // namespace detail

template <class Operation, class Finish>
void reduce_kernel(const char* op, const Operation& operation, const Finish& finish, const Plan& plan,
                   const Tensor& x, const std::array<Tensor, 2>& results) {
  using State = typename Operation::State;
  if (plan.outputs == 0) return;
  Sink sink;
  sink.kept = detail::offsets_of<2>(op, plan.kept);
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
  const bool by_vectors = teams.adjacent && detail::lies_in_vectors(plan, x);
  const int64_t round = teams.lanes() * (by_vectors ? int64_t{vector_width} : 1);
  const int64_t part = std::max<int64_t>(1, ceil_div(ceil_div(plan.count, wanted), round) * round);
  const int64_t parts = std::max<int64_t>(1, ceil_div(plan.count, part));

  ReduceElements<Operation, Finish> reduce{operation, finish, sink, teams};
  reduce.outputs = plan.outputs;
  reduce.count = plan.count;
  reduce.part = part;
  reduce.groups = FastDivider(blocks);
  reduce.reduced = detail::offsets_of<1>(op, plan.reduced);
  reduce.x = x.raw();
  reduce.dtype = x.dtype();
  reduce.by_vectors = by_vectors;
  if (parts == 1) return launch_blocks(op, x.device(), blocks, reduce);

  const auto bytes = static_cast<int64_t>(sizeof(State));
  const Tensor workspace = empty({parts, plan.outputs, bytes}, {.dtype = uint8, .device = x.device()});
  reduce.states = reinterpret_cast<State*>(workspace.raw());
  launch_blocks(op, x.device(), blocks * parts, reduce);
  const Teams mergers = choose_teams(parts, plan.outputs);
  const MergeParts<Operation, Finish> merge{operation,    finish, sink,         mergers,
                                            plan.outputs, parts,  reduce.states};
  launch_blocks(op, x.device(), detail::blocks_for(plan.outputs, mergers), merge);
}

#endif

}  // namespace pleat::ops::reduction
