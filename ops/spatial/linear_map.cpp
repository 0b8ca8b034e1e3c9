// Host and device.
#include "pleat/ops/spatial/linear_map.h"

#include <algorithm>

#include <Eigen/Core>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/spatial/linear_map_by_index.h"

namespace pleat::ops {
namespace {

constexpr int64_t grain_elements = 16384;

struct Images {
  int64_t images, channels, pixels;
};

/// A map of three dimensions, the first ones trivial where there are fewer, with the numbers of the kernel's
/// type.
template <class T>
struct Rows {
  const SparseRows* rows;
  std::vector<T> weight;
  std::vector<T> scale;
  bool one_tap =
      true;  ///< each row has exactly one, as upsampling and the adjoints of pools without overlap have

  explicit Rows(const SparseRows& of)
      : rows(&of), weight(of.weight.begin(), of.weight.end()), scale(of.scale.begin(), of.scale.end()) {
    for (int64_t o = 0; o <= outputs(); ++o) one_tap = one_tap && first(o) == o;
  }
  int64_t inputs() const { return rows->inputs; }
  int64_t outputs() const { return rows->outputs(); }
  int64_t first(int64_t o) const { return rows->first[static_cast<std::size_t>(o)]; }
  int64_t index(int64_t tap) const { return rows->index[static_cast<std::size_t>(tap)]; }
};

const SparseRows& identity_of_one() {
  static const SparseRows rows = [] {
    SparseRows one;
    one.inputs = 1;
    one.add_tap(0, 1);
    one.end_row(1);
    return one;
  }();
  return rows;
}

template <class T>
std::array<Rows<T>, 3> three_dims(const LinearMap& map) {
  const auto at = [&](std::size_t d) -> const SparseRows& {
    const std::size_t missing = 3 - map.dims.size();
    return d < missing ? identity_of_one() : map.dims[d - missing];
  };
  return {Rows<T>(at(0)), Rows<T>(at(1)), Rows<T>(at(2))};
}

/// One output pixel in channels_last: L channels from `c` on, summed row by row, so that large windows lose
/// little.
template <int L, class T>
void sum_channels(const std::array<Rows<T>, 3>& map, int64_t d, int64_t h, int64_t w, int64_t channels,
                  const T* x, T* y) {
  using Lanes = Eigen::Array<T, L, 1>;
  const Rows<T>& columns = map[2];
  const int64_t first = columns.first(w);
  const int64_t last = columns.first(w + 1);
  Lanes sum = Lanes::Zero();
  for (int64_t a = map[0].first(d); a < map[0].first(d + 1); ++a)
    for (int64_t b = map[1].first(h); b < map[1].first(h + 1); ++b) {
      const T* row = x + (map[0].index(a) * map[1].inputs() + map[1].index(b)) * columns.inputs() * channels;
      Lanes row_sum = Lanes::Zero();
      for (int64_t e = first; e < last; ++e)
        row_sum += columns.weight[static_cast<std::size_t>(e)] *
                   Eigen::Map<const Lanes>(row + columns.index(e) * channels);
      sum +=
          (map[0].weight[static_cast<std::size_t>(a)] * map[1].weight[static_cast<std::size_t>(b)]) * row_sum;
    }
  const T scale = map[0].scale[static_cast<std::size_t>(d)] * map[1].scale[static_cast<std::size_t>(h)] *
                  columns.scale[static_cast<std::size_t>(w)];
  Eigen::Map<Lanes> result(y);
  result = scale * sum;
}

template <class T>
void run_channels_last(const std::array<Rows<T>, 3>& map, const Images& view, const T* x, T* y) {
  const int64_t channels = view.channels;
  const int64_t row = map[2].outputs() * channels;
  const int64_t rows = view.images * map[0].outputs() * map[1].outputs();
  parallel_for(0, rows, std::max<int64_t>(1, grain_elements / row), [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      const int64_t h = r % map[1].outputs();
      const int64_t d = r / map[1].outputs() % map[0].outputs();
      const T* image = x + r / (map[1].outputs() * map[0].outputs()) * view.pixels * channels;
      for (int64_t w = 0; w < map[2].outputs(); ++w) {
        T* pixel = y + r * row + w * channels;
        int64_t c = 0;
        for (; c + 32 <= channels; c += 32) sum_channels<32>(map, d, h, w, channels, image + c, pixel + c);
        for (; c + 8 <= channels; c += 8) sum_channels<8>(map, d, h, w, channels, image + c, pixel + c);
        for (; c < channels; ++c) sum_channels<1>(map, d, h, w, channels, image + c, pixel + c);
      }
    }
  });
}

/// A row of the result from the weighted sum of rows of x, `line`, of which the columns' taps are taken.
template <class T>
void sum_columns(const Rows<T>& columns, T scale, const T* line, T* y) {
  if (columns.one_tap) {
    for (int64_t w = 0; w < columns.outputs(); ++w) {
      const auto tap = static_cast<std::size_t>(w);
      y[w] = columns.weight[tap] * line[columns.index(w)] * (scale * columns.scale[tap]);
    }
    return;
  }
  for (int64_t w = 0; w < columns.outputs(); ++w) {
    T sum = 0;
    for (int64_t e = columns.first(w); e < columns.first(w + 1); ++e)
      sum += columns.weight[static_cast<std::size_t>(e)] * line[columns.index(e)];
    y[w] = sum * (scale * columns.scale[static_cast<std::size_t>(w)]);
  }
}

template <class T>
void run_contiguous(const std::array<Rows<T>, 3>& map, const Images& view, const T* x, T* y) {
  const int64_t width = map[2].inputs();
  const int64_t row = map[2].outputs();
  const int64_t rows = view.images * view.channels * map[0].outputs() * map[1].outputs();
  parallel_for(
      0, rows, std::max<int64_t>(1, grain_elements / std::max(width, row)), [&](int64_t from, int64_t to) {
        std::vector<T> line(static_cast<std::size_t>(width));
        const Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>> sum(line.data(), width);
        for (int64_t r = from; r < to; ++r) {
          const int64_t h = r % map[1].outputs();
          const int64_t d = r / map[1].outputs() % map[0].outputs();
          const T* plane = x + r / (map[1].outputs() * map[0].outputs()) * view.pixels;
          std::fill(line.begin(), line.end(), T(0));
          for (int64_t a = map[0].first(d); a < map[0].first(d + 1); ++a)
            for (int64_t b = map[1].first(h); b < map[1].first(h + 1); ++b) {
              const T weight =
                  map[0].weight[static_cast<std::size_t>(a)] * map[1].weight[static_cast<std::size_t>(b)];
              const T* from_row = plane + (map[0].index(a) * map[1].inputs() + map[1].index(b)) * width;
              T* __restrict to_line = line.data();
              for (int64_t i = 0; i < width; ++i) to_line[i] += weight * from_row[i];
            }
          const T scale =
              map[0].scale[static_cast<std::size_t>(d)] * map[1].scale[static_cast<std::size_t>(h)];
          sum_columns(map[2], scale, line.data(), y + r * row);
        }
      });
}

template <class T>
void run_native(const LinearMap& map, const Tensor& x, const Tensor& y, MemoryFormat format) {
  const std::array<Rows<T>, 3> rows = three_dims<T>(map);
  const Images view{x.size(0), x.size(1),
                    x.size(0) * x.size(1) == 0 ? 0 : x.numel() / (x.size(0) * x.size(1))};
  if (format == MemoryFormat::channels_last)
    run_channels_last(rows, view, x.data<T>(), y.data<T>());
  else
    run_contiguous(rows, view, x.data<T>(), y.data<T>());
}

}  // namespace

SparseRows SparseRows::transposed() const {
  SparseRows result;
  result.inputs = outputs();
  std::vector<std::vector<std::pair<int64_t, double>>> rows(static_cast<std::size_t>(inputs));
  for (int64_t o = 0; o < outputs(); ++o)
    for (int64_t tap = first[static_cast<std::size_t>(o)]; tap < first[static_cast<std::size_t>(o) + 1];
         ++tap) {
      const auto at = static_cast<std::size_t>(tap);
      rows[static_cast<std::size_t>(index[at])].emplace_back(o,
                                                             weight[at] * scale[static_cast<std::size_t>(o)]);
    }
  for (const auto& row : rows) {
    for (const auto& [output, tap_weight] : row) result.add_tap(output, tap_weight);
    result.end_row(1);
  }
  return result;
}

void check_rows(const char* op, int64_t outputs, int64_t taps_each) {
  // An index and a weight for each tap, as much for each row; and the same again in the kernel's types, and
  // for the adjoint.
  constexpr int64_t bytes = 4 * 2 * 8;
  check_host_memory(
      op, checked_multiply(checked_multiply(outputs, checked_add(taps_each, 1, op), op), bytes, op));
}

LinearMap LinearMap::transposed() const {
  LinearMap result;
  for (const SparseRows& rows : dims) result.dims.push_back(rows.transposed());
  return result;
}

bool wants_reference(const char* op, const std::string& implementation) {
  check<ValueError>(implementation.empty() || implementation == "native" || implementation == "reference",
                    "{}: implementation \"{}\" does not exist; there are: native, reference", op,
                    implementation);
  return implementation == "reference";
}

Tensor apply_linear_map(const char* op, const LinearMap& map, const Tensor& x,
                        const LinearMapOptions& options) {
  const RecordOp range(op, x);
  check<ShapeError>(x.rank() == static_cast<int64_t>(map.dims.size()) + 2,
                    "{}: needs [N, C, and {} spatial dimensions], got {}", op, map.dims.size(), x);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
  const bool reference = wants_reference(op, options.implementation);
  Shape shape{x.size(0), x.size(1)};
  for (std::size_t d = 0; d < map.dims.size(); ++d) {
    check<ShapeError>(x.shape()[d + 2] == map.dims[d].inputs,
                      "{}: needs size {} in spatial dimension {}, got {}", op, map.dims[d].inputs, d, x);
    shape.push_back(map.dims[d].outputs());
  }
  const MemoryFormat format = options.format.value_or(x.memory_format());
  if (reference || x.device().is_cuda()) {
    const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device(), .format = format});
    Floating::dispatch(x.dtype(), [&]<class T>(Type<T>) {
      reference ? apply_by_index<T, double>(op, map, x, y, format)
                : apply_by_index<T, T>(op, map, x, y, format);
    });
    return y;
  }
  const Tensor dense = to_format(cast(x, compute_dtype(x.dtype())), format);
  const Tensor y = empty(shape, {.dtype = dense.dtype(), .device = Device(), .format = format});
  if (y.numel() == 0) return cast(y, x.dtype());
  if (dense.dtype() == float64)
    run_native<double>(map, dense, y, format);
  else
    run_native<float>(map, dense, y, format);
  return cast(y, x.dtype());
}

}  // namespace pleat::ops
