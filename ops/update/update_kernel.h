// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/ops/update/table.h"

/// Updates on a GPU.

namespace pleat::ops {

/// A thread for each row: constants that go by the number of a step which only the device has.
template <class F>
struct NumberSteps {
  Rows<F> table;

  PLEAT_HOST_DEVICE void operator()(int64_t k) const {
    Row<F>& row = table.rows[k];
    if (row.count.made != nullptr) row.f.at_step(row.count.before + 1 + *row.count.made);
  }
};

/// A thread's share of all updates, `vector_width` elements of one of them.
template <class T, class F>
struct UpdateElements {
  static constexpr bool keeps_registers = true;
  static constexpr std::size_t operands = F::operands;
  Rows<F> table;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t k = table.row_of(i);
    const Row<F>& row = table.rows[k];
    const int64_t vector = i - table.first[k];
    const StepCount& count = row.count;
    if (count.found != nullptr && *count.found != 0) return;
    if (count.made != nullptr && vector == 0) ++*count.made;
    const int64_t begin = vector * vector_width;
    if (row.by_vectors && begin + vector_width <= row.n) return update_vector(row, vector);
    const int64_t end = begin + vector_width < row.n ? begin + vector_width : row.n;
    for (int64_t j = begin; j < end; ++j) update_element(row, j);
  }

 private:
  template <std::size_t... K>
  PLEAT_HOST_DEVICE static void call(const F& f, T (&lanes)[operands][vector_width], int64_t j,
                                     std::index_sequence<K...>) {
    f(lanes[K][j]...);
  }

  PLEAT_HOST_DEVICE void update_vector(const Row<F>& row, int64_t vector) const {
    T lanes[operands][vector_width];
    for (std::size_t k = 0; k < operands; ++k)
      load_vector(lanes[k], row.base[k], vector * vector_width, row.dtype[k]);
    for (int64_t j = 0; j < vector_width; ++j) call(row.f, lanes, j, std::make_index_sequence<operands>{});
    for (std::size_t k = 0; k < operands; ++k)
      if (k != 1) store_vector(lanes[k], row.base[k], vector * vector_width, row.dtype[k]);
  }

  PLEAT_HOST_DEVICE void update_element(const Row<F>& row, int64_t i) const {
    const std::array<int64_t, operands> at = table.places(row, i);
    T lanes[operands][vector_width];
    for (std::size_t k = 0; k < operands; ++k) lanes[k][0] = load_as<T>(row.base[k], at[k], row.dtype[k]);
    call(row.f, lanes, 0, std::make_index_sequence<operands>{});
    for (std::size_t k = 0; k < operands; ++k)
      if (k != 1) store_as<T>(row.base[k], at[k], row.dtype[k], lanes[k][0]);
  }
};

template <class T, class F>
void launch_updates(const char* op, const std::vector<const Update<F>*>& updates) {
  // Loops refer to their operands and own copies of some, which must outlive the launch.
  std::vector<std::array<Operand, F::operands>> operands;
  std::vector<ElementwiseLoop> loops;
  operands.reserve(updates.size());
  Table<T, F> table(vector_width);
  for (const Update<F>* update : updates) {
    operands.push_back(update_operands<T>(*update));
    loops.push_back(make_elementwise_loop(op, operands.back()));
    table.add(op, *update, loops.back());
  }
  for (const Update<F>* update : updates)
    for (std::size_t k = 0; k < F::operands; ++k)
      if (k != 1 && update->tensors[k].numel() > 0) update->tensors[k].begin_write();
  const Device device = updates[0]->tensors[0].device();
  table.launch(op, device, [&](const Rows<F>& rows, int64_t threads) {
    if constexpr (GoesByStep<F>)
      if (table.counts()) launch_indices(op, device, rows.count, NumberSteps<F>{rows});
    launch_indices(op, device, threads, UpdateElements<T, F>{rows});
  });
}

/// Makes the updates, whose first tensors are floating, in one launch for each device and type computed in.
template <class F>
void update_kernel(const char* op, std::vector<const Update<F>*> updates) {
  while (!updates.empty()) {
    const Tensor model = updates[0]->tensors[0];
    const auto is_alike = [&](const Update<F>* update) {
      const Tensor& t = update->tensors[0];
      return t.device() == model.device() && (t.dtype() == float64) == (model.dtype() == float64);
    };
    const auto end = std::stable_partition(updates.begin(), updates.end(), is_alike);
    const std::vector<const Update<F>*> alike(updates.begin(), end);
    if (model.dtype() == float64)
      launch_updates<double>(op, alike);
    else
      launch_updates<float>(op, alike);
    updates.erase(updates.begin(), end);
  }
}

}  // namespace pleat::ops
