// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

#include "pleat/core/checked_math.h"
#include "pleat/core/create.h"
#include "pleat/core/error.h"
#include "pleat/core/fast_divider.h"
#include "pleat/core/grid_block.h"
#include "pleat/core/grid_elementwise.h"
#include "pleat/ops/reduce/grid_reduce.h"

/// For the .cu files: what grid_reduce does, and the way to make it for operations.

namespace pleat::ops::reduction {

/// Elements of any type read as In ...
template <class In>
struct LoadAny {
  using Raw = In;
  const std::byte* x;
  DType dtype;
  PLEAT_HOST_DEVICE Raw raw(int64_t i) const { return load_as<In>(x, i, dtype); }
  PLEAT_HOST_DEVICE static In value(Raw raw) { return raw; }
};
/// ... or those of a known one: the loads of several elements then need not wait for each other.
template <class In, class Stored>
struct LoadStored {
  using Raw = Stored;
  const Stored* x;
  PLEAT_HOST_DEVICE Raw raw(int64_t i) const { return x[i]; }
  PLEAT_HOST_DEVICE static In value(Raw raw) { return convert<In>(raw); }
};

template <class In, class F>
PLEAT_HOST_DEVICE decltype(auto) with_loader(const std::byte* x, DType dtype, const F& f) {
  if (dtype == dtype_of<In>()) return f(LoadStored<In, In>{reinterpret_cast<const In*>(x)});
  if constexpr (std::is_same_v<In, float>) {
    if (dtype == float16) return f(LoadStored<In, Half>{reinterpret_cast<const Half*>(x)});
    if (dtype == bfloat16) return f(LoadStored<In, BFloat16>{reinterpret_cast<const BFloat16*>(x)});
  }
  return f(LoadAny<In>{x, dtype});
}

/// Where the results go.
struct GridSink {
  std::array<std::byte*, 2> base{};
  std::array<DType, 2> dtype{};
  GridOffsets<2> kept;  ///< steps in the input and in the results

  template <class T>
  PLEAT_HOST_DEVICE void operator()(int64_t output, const T& value) const {
    store_as<T>(base[0], kept.at(output)[1], dtype[0], value);
  }
  template <class A, class B>
  PLEAT_HOST_DEVICE void operator()(int64_t output, const Two<A, B>& values) const {
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
  GridSink sink;
  Teams teams;
  int64_t outputs = 0;
  int64_t count = 0;
  int64_t part = 0;          ///< elements in a part
  FastDivider groups{};      ///< blocks side by side
  GridOffsets<1> reduced{};  ///< steps in the input
  const std::byte* x = nullptr;
  DType dtype = float32;
  State* states = nullptr;  ///< [parts, outputs], or null: one part

  template <class Block>
  PLEAT_HOST_DEVICE void operator()(int64_t b, Block& block) const {
    int64_t group = b;
    const int64_t number = groups.divide(group);
    const int64_t first = number * part;
    const int64_t last = first + part < count ? first + part : count;
    const auto output_of = [&](int thread) { return group * teams.count() + teams.team_of(thread); };
    typename Block::template Own<State> own;
    block.each([&](int thread) {
      const int64_t output = output_of(thread);
      own[thread] = output < outputs ? gather(sink.kept.at(output)[0], first + teams.lane_of(thread), last)
                                     : operation.empty();
    });
    block.combine(own, teams, [&](State& into, const State& other) { operation.merge(into, other); });
    block.each([&](int thread) {
      const int64_t output = output_of(thread);
      if (teams.lane_of(thread) != 0 || output >= outputs) return;
      if (states != nullptr)
        states[number * outputs + output] = own[thread];
      else
        sink(output, finish(own[thread]));
    });
  }

 private:
  PLEAT_HOST_DEVICE State gather(int64_t offset, int64_t first, int64_t last) const {
    return with_loader<In>(x, dtype,
                           [&](const auto& load) { return gather_with(load, offset, first, last); });
  }

  template <class Load>
  PLEAT_HOST_DEVICE State gather_with(const Load& load, int64_t offset, int64_t i, int64_t last) const {
    const int64_t step = teams.lanes();
    auto running = operation.begin();
    for (; i + (at_once - 1) * step < last; i += at_once * step) {
      typename Load::Raw raw[at_once];
      PLEAT_UNROLL
      for (int k = 0; k < at_once; ++k) raw[k] = load.raw(offset + reduced.at(i + k * step)[0]);
      std::array<In, at_once> values;
      PLEAT_UNROLL
      for (int k = 0; k < at_once; ++k) values[static_cast<std::size_t>(k)] = load.value(raw[k]);
      operation.add(running, values, i, step);
    }
    for (; i < last; i += step)
      operation.add(running, std::array<In, 1>{load.value(load.raw(offset + reduced.at(i)[0]))}, i, step);
    return operation.state(running);
  }
};

/// Blocks that merge the states of all parts.
template <class Operation, class Finish>
struct MergeParts {
  using State = typename Operation::State;

  Operation operation;
  Finish finish;
  GridSink sink;
  Teams teams;
  int64_t outputs;
  int64_t parts;
  const State* states;

  template <class Block>
  PLEAT_HOST_DEVICE void operator()(int64_t b, Block& block) const {
    const auto output_of = [&](int thread) { return b * teams.count() + teams.team_of(thread); };
    typename Block::template Own<State> own;
    block.each([&](int thread) {
      own[thread] = operation.empty();
      const int64_t output = output_of(thread);
      if (output >= outputs) return;
      for (int64_t number = teams.lane_of(thread); number < parts; number += teams.lanes())
        operation.merge(own[thread], states[number * outputs + output]);
    });
    block.combine(own, teams, [&](State& into, const State& other) { operation.merge(into, other); });
    block.each([&](int thread) {
      const int64_t output = output_of(thread);
      if (teams.lane_of(thread) == 0 && output < outputs) sink(output, finish(own[thread]));
    });
  }
};

namespace detail {

/// Blocks that keep any GPU busy.
inline constexpr int64_t enough_blocks = 1024;
/// Elements that a thread reads at least before a result is cut into parts.
inline constexpr int64_t part_elements = 16;

inline int64_t blocks_for(int64_t outputs, const Teams& teams) {
  return (outputs + teams.count() - 1) / teams.count();
}

template <std::size_t N>
GridOffsets<N> grid_offsets(const char* op, const std::vector<Dim>& dims) {
  if (dims.size() > max_grid_dims)
    throw ShapeError(std::string(op) + ": on a GPU at most " + std::to_string(max_grid_dims) +
                     " dimensions that cannot be joined, got " + std::to_string(dims.size()));
  GridOffsets<N> offsets;
  offsets.dims = static_cast<int>(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    offsets.size[d] = FastDivider(dims[d].size);
    offsets.step[d][0] = dims[d].step;
    if constexpr (N > 1) offsets.step[d][1] = dims[d].out_step;
  }
  return offsets;
}

}  // namespace detail

template <class Operation, class Finish>
void grid_reduce(const char* op, const Operation& operation, const Finish& finish, const Plan& plan,
                 const Tensor& x, const std::array<Tensor, 2>& results) {
  using State = typename Operation::State;
  if (plan.outputs == 0) return;
  GridSink sink;
  sink.kept = detail::grid_offsets<2>(op, plan.kept);
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
  const int64_t rounds = ceil_div(ceil_div(plan.count, wanted), teams.lanes());
  const int64_t part = std::max<int64_t>(1, rounds * teams.lanes());
  const int64_t parts = std::max<int64_t>(1, ceil_div(plan.count, part));

  ReduceElements<Operation, Finish> reduce{operation, finish, sink, teams};
  reduce.outputs = plan.outputs;
  reduce.count = plan.count;
  reduce.part = part;
  reduce.groups = FastDivider(blocks);
  reduce.reduced = detail::grid_offsets<1>(op, plan.reduced);
  reduce.x = x.raw();
  reduce.dtype = x.dtype();
  if (parts == 1) return grid_blocks(op, x.device(), blocks, reduce);

  const auto bytes = static_cast<int64_t>(sizeof(State));
  const Tensor workspace = empty({parts, plan.outputs, bytes}, {.dtype = uint8, .device = x.device()});
  reduce.states = reinterpret_cast<State*>(workspace.raw());
  grid_blocks(op, x.device(), blocks * parts, reduce);
  const Teams mergers = choose_teams(parts, plan.outputs);
  const MergeParts<Operation, Finish> merge{operation,    finish, sink,         mergers,
                                            plan.outputs, parts,  reduce.states};
  grid_blocks(op, x.device(), detail::blocks_for(plan.outputs, mergers), merge);
}

/// `template struct GridReductions<Quotient<float>, Fold<SumStep<float>>>;` makes grid_reduce for operations
/// that end in the same way.
template <class Finish, class... Operations>
struct GridReductions {
  static constexpr auto functions = std::make_tuple(&grid_reduce<Operations, Finish>...);
};

}  // namespace pleat::ops::reduction
