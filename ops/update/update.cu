#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/grid_elementwise.h"
#include "pleat/core/pinned_memory.h"
#include "pleat/ops/update/grid_update.h"
#include "pleat/ops/update/update_functors.h"

namespace pleat::ops {
namespace {

/// Elements a thread updates: 16 bytes of each float32 tensor.
constexpr int64_t width = 4;

/// The tensors of one update.
template <class F>
struct Row {
  F f;
  std::array<std::byte*, F::operands> base;
  std::array<DType, F::operands> dtype;
  int64_t n;        ///< elements
  int64_t strides;  ///< place in the table's strides; -1 where all tensors lie densely and alike
  bool by_vectors;  ///< whether `width` elements at a time may be moved
};

/// `width` elements of a dense tensor whose type is T or, for float, a half type.
template <class T, class Stored>
PLEAT_HOST_DEVICE void load_stored(T* lanes, const std::byte* base, int64_t i) {
  const auto loaded = reinterpret_cast<const Vector<Stored, width>*>(base)[i];
  for (int64_t j = 0; j < width; ++j) lanes[j] = convert<T>(loaded.lane[j]);
}
template <class T, class Stored>
PLEAT_HOST_DEVICE void store_stored(const T* lanes, std::byte* base, int64_t i) {
  Vector<Stored, width> result;
  for (int64_t j = 0; j < width; ++j) result.lane[j] = convert<Stored>(lanes[j]);
  reinterpret_cast<Vector<Stored, width>*>(base)[i] = result;
}
template <class T>
PLEAT_HOST_DEVICE void load_vector(T* lanes, const std::byte* base, int64_t i, DType dtype) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == float16) return load_stored<T, Half>(lanes, base, i);
    if (dtype == bfloat16) return load_stored<T, BFloat16>(lanes, base, i);
  }
  load_stored<T, T>(lanes, base, i);
}
template <class T>
PLEAT_HOST_DEVICE void store_vector(const T* lanes, std::byte* base, int64_t i, DType dtype) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == float16) return store_stored<T, Half>(lanes, base, i);
    if (dtype == bfloat16) return store_stored<T, BFloat16>(lanes, base, i);
  }
  store_stored<T, T>(lanes, base, i);
}

/// A thread's share of all updates, `width` elements of one of them. What it points to is on the device.
template <class T, class F>
struct UpdateElements {
  static constexpr std::size_t operands = F::operands;
  const Row<F>* rows;
  const int64_t* first;  ///< thread of each row
  const GridOffsets<operands>* strides;
  int64_t count;  ///< rows

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t k = row_of(i);
    const Row<F>& row = rows[k];
    const int64_t vector = i - first[k];
    const int64_t begin = vector * width;
    if (row.by_vectors && begin + width <= row.n) return update_vector(row, vector);
    const int64_t end = begin + width < row.n ? begin + width : row.n;
    for (int64_t j = begin; j < end; ++j) update_element(row, j);
  }

 private:
  PLEAT_HOST_DEVICE int64_t row_of(int64_t i) const {
    int64_t low = 0;
    int64_t high = count;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (first[middle] <= i ? low : high) = middle;
    }
    return low;
  }

  template <std::size_t... K>
  PLEAT_HOST_DEVICE static void call(const F& f, T (&lanes)[operands][width], int64_t j,
                                     std::index_sequence<K...>) {
    f(lanes[K][j]...);
  }

  PLEAT_HOST_DEVICE void update_vector(const Row<F>& row, int64_t vector) const {
    T lanes[operands][width];
    for (std::size_t k = 0; k < operands; ++k) load_vector(lanes[k], row.base[k], vector, row.dtype[k]);
    for (int64_t j = 0; j < width; ++j) call(row.f, lanes, j, std::make_index_sequence<operands>{});
    for (std::size_t k = 0; k < operands; ++k)
      if (k != 1) store_vector(lanes[k], row.base[k], vector, row.dtype[k]);
  }

  PLEAT_HOST_DEVICE void update_element(const Row<F>& row, int64_t i) const {
    std::array<int64_t, operands> at;
    if (row.strides < 0)
      for (std::size_t k = 0; k < operands; ++k) at[k] = i;
    else
      at = strides[row.strides].at(i);
    T lanes[operands][width];
    for (std::size_t k = 0; k < operands; ++k) lanes[k][0] = load_as<T>(row.base[k], at[k], row.dtype[k]);
    call(row.f, lanes, 0, std::make_index_sequence<operands>{});
    for (std::size_t k = 0; k < operands; ++k)
      if (k != 1) store_as<T>(row.base[k], at[k], row.dtype[k], lanes[k][0]);
  }
};

template <class T>
bool moves_by_vectors(const Tensor& t) {
  const auto bytes = static_cast<std::size_t>(size_of(t.dtype()) * width);
  const bool readable = t.dtype() == dtype_of<T>() || (std::is_same_v<T, float> && is_half(t.dtype()));
  return readable && reinterpret_cast<std::uintptr_t>(t.raw()) % bytes == 0;
}

/// The table that tells threads what to do, as it is made on the host.
template <class T, class F>
class Table {
 public:
  static constexpr std::size_t operands = F::operands;

  void add(const char* op, const Update<F>& update, const ElementwiseLoop& loop) {
    Row<F> row{update.f, {}, {}, loop.numel(), -1, true};
    for (std::size_t k = 0; k < operands; ++k) {
      const Tensor& t = loop.operands[k].tensor;
      row.base[k] = t.raw();
      row.dtype[k] = t.dtype();
      row.by_vectors = row.by_vectors && moves_by_vectors<T>(t);
      if (!loop.is_dense(k)) row.strides = static_cast<int64_t>(strides_.size());
    }
    if (row.strides >= 0) {
      if (loop.dims.size() > max_grid_dims)
        throw ShapeError(std::string(op) + ": on " + name(update.tensors[0].device()) + " at most " +
                         std::to_string(max_grid_dims) + " dimensions that cannot be joined, got " +
                         std::to_string(loop.dims.size()));
      row.by_vectors = false;
      strides_.emplace_back(loop);
    }
    first_.push_back(threads_);
    rows_.push_back(row);
    threads_ += (row.n + width - 1) / width;
  }

  void launch(const char* op, Device device) const {
    if (threads_ == 0) return;
    const std::size_t strides_at = rounded(bytes(rows_));
    const std::size_t first_at = strides_at + rounded(bytes(strides_));
    const Shape size = {static_cast<int64_t>(first_at + bytes(first_))};
    const Tensor host = device.is_cuda() ? cuda::empty_pinned(size, uint8) : empty(size, {.dtype = uint8});
    write(host.raw(), rows_);
    write(host.raw() + strides_at, strides_);
    write(host.raw() + first_at, first_);
    const Tensor table = to_device(host, device, {.non_blocking = true});
    const UpdateElements<T, F> functor{
        reinterpret_cast<const Row<F>*>(table.raw()),
        reinterpret_cast<const int64_t*>(table.raw() + first_at),
        reinterpret_cast<const GridOffsets<operands>*>(table.raw() + strides_at),
        static_cast<int64_t>(rows_.size())};
    grid_for(op, device, threads_, functor);
  }

 private:
  template <class A>
  static std::size_t bytes(const std::vector<A>& array) {
    return array.size() * sizeof(A);
  }
  static std::size_t rounded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }
  template <class A>
  static void write(std::byte* to, const std::vector<A>& array) {
    static_assert(std::is_trivially_copyable_v<A> && alignof(A) <= 16);
    if (!array.empty()) std::memcpy(to, array.data(), bytes(array));
  }

  std::vector<Row<F>> rows_;
  std::vector<int64_t> first_;
  std::vector<GridOffsets<operands>> strides_;
  int64_t threads_ = 0;
};

template <class T, class F>
void launch_updates(const char* op, const std::vector<const Update<F>*>& updates) {
  // Loops refer to their operands and own copies of some, which must outlive the launch.
  std::vector<std::array<Operand, F::operands>> operands;
  std::vector<ElementwiseLoop> loops;
  operands.reserve(updates.size());
  Table<T, F> table;
  for (const Update<F>* update : updates) {
    operands.push_back(update_operands<T>(*update));
    loops.push_back(make_elementwise_loop(op, operands.back()));
    if (loops.back().numel() > 0) table.add(op, *update, loops.back());
  }
  table.launch(op, updates[0]->tensors[0].device());
  for (const Update<F>* update : updates)
    for (std::size_t k = 0; k < F::operands; ++k)
      if (k != 1 && update->tensors[k].numel() > 0) update->tensors[k].bump_version();
}

}  // namespace

template <class F>
void update_on_grid(const char* op, std::vector<const Update<F>*> updates) {
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

/// `template struct GridUpdates<SgdStep>;` makes update_on_grid for a functor.
template <class... F>
struct GridUpdates {
  static constexpr auto functions = std::make_tuple(&update_on_grid<F>...);
};

template struct GridUpdates<SgdStep, SgdMomentumStep, AdamStep, AmsgradStep, AdagradStep, LionStep>;
template struct GridUpdates<RmspropStep<false>, RmspropStep<true>, RmspropMomentumStep<false>,
                            RmspropMomentumStep<true>>;
template struct GridUpdates<MuonMomentum, MuonStep, ScaleBy, ClampTo>;

}  // namespace pleat::ops
