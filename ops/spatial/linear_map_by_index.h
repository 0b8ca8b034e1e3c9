// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "pleat/core/base/thread_object.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/kernels/host_array.h"
#include "pleat/core/kernels/number_array.h"
#include "pleat/ops/spatial/linear_map.h"
#include "pleat/ops/spatial/pixel_order.h"

/// Linear maps element by element, by index arithmetic alone: the reference, and what a GPU runs.

namespace pleat::ops {

/// A SparseRows as plain arrays, its numbers as W.
template <class W>
struct SparseRowsView {
  const int64_t* first;
  const int64_t* index;
  const W* weight;
  const W* scale;
};

/// One element of y = map(x) a call, by index arithmetic alone; i counts as y lies in memory. Sums are in
/// Sum.
template <class T, class Sum>
struct ApplyLinearMap {
  SparseRowsView<Sum> rows[3];
  PixelOrder order;
  ImageSteps x_step;
  NumberArray<T> x;
  NumberArray<T> y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel pixel = order.at(i);
    const auto [d, h, w] = pixel.at;
    const int64_t plane = pixel.image * x_step[0] + pixel.channel * x_step[1];
    Sum sum = 0;
    for (int64_t a = rows[0].first[d]; a < rows[0].first[d + 1]; ++a)
      for (int64_t b = rows[1].first[h]; b < rows[1].first[h + 1]; ++b) {
        const Sum weight = rows[0].weight[a] * rows[1].weight[b];
        const int64_t row = plane + rows[0].index[a] * x_step[2] + rows[1].index[b] * x_step[3];
        for (int64_t e = rows[2].first[w]; e < rows[2].first[w + 1]; ++e)
          sum += weight * rows[2].weight[e] * static_cast<Sum>(x.load(row + rows[2].index[e] * x_step[4]));
      }
    y.store(i, static_cast<T>(sum * rows[0].scale[d] * rows[1].scale[h] * rows[2].scale[w]));
  }
};

/// The arrays of a map on a device, in one piece of memory: one copy takes them there.
template <class W>
class MapTables {
 public:
  MapTables(const LinearMap& map, Device device) {
    const SparseRows one{.inputs = 1, .first = {0, 1}, .index = {0}, .weight = {1}, .scale = {1}};
    std::vector<int64_t> words;
    std::size_t starts[3][4];
    for (std::size_t d = 0; d < 3; ++d) {
      const std::size_t missing = 3 - map.dims.size();
      const SparseRows& rows = d < missing ? one : map.dims[d - missing];
      starts[d][0] = add<int64_t>(words, rows.first);
      starts[d][1] = add<int64_t>(words, rows.index);
      starts[d][2] = add<W>(words, rows.weight);
      starts[d][3] = add<W>(words, rows.scale);
    }
    memory_.emplace(words, device);
    bytes_ = static_cast<int64_t>(words.size() * sizeof(int64_t));
    const auto at = [&](std::size_t start) { return memory_->data() + start; };
    for (std::size_t d = 0; d < 3; ++d)
      rows_[d] = {at(starts[d][0]), at(starts[d][1]), reinterpret_cast<const W*>(at(starts[d][2])),
                  reinterpret_cast<const W*>(at(starts[d][3]))};
  }

  const SparseRowsView<W>& rows(std::size_t d) const { return rows_[d]; }
  int64_t bytes() const { return bytes_; }

 private:
  /// Appends numbers as S; where they start.
  template <class S, class From>
  static std::size_t add(std::vector<int64_t>& words, const std::vector<From>& numbers) {
    const std::vector<S> as(numbers.begin(), numbers.end());
    const std::size_t start = words.size();
    words.resize(start + (as.size() * sizeof(S) + sizeof(int64_t) - 1) / sizeof(int64_t));
    if (!as.empty()) std::memcpy(words.data() + start, as.data(), as.size() * sizeof(S));
    return start;
  }

  int64_t bytes_;
  std::optional<HostArray<int64_t>> memory_;
  SparseRowsView<W> rows_[3];
};

/// The tables of a map where they lie already, else new ones: building and copying them costs as much as a
/// small image. Each thread keeps those that it used last, for the stream whose work reads them.
template <class W>
std::shared_ptr<const MapTables<W>> tables_of(const LinearMap& map, Device device) {
  constexpr std::size_t most = 64;
  constexpr int64_t most_bytes = int64_t{1} << 18;
  struct Entry {
    LinearMap map;
    Device device;
    void* stream;
    std::shared_ptr<const MapTables<W>> tables;
  };
  thread_local ThreadObject<std::list<Entry>> kept;
  std::list<Entry>& entries = *kept;
  void* const stream = device.is_cuda() ? cuda::current_stream(device).native() : nullptr;
  for (auto entry = entries.begin(); entry != entries.end(); ++entry)
    if (entry->device == device && entry->stream == stream && entry->map == map) {
      entries.splice(entries.begin(), entries, entry);
      return entries.front().tables;
    }
  auto tables = std::make_shared<const MapTables<W>>(map, device);
  // While a graph is captured, they are filled when it runs.
  if (tables->bytes() > most_bytes || Capture::current() != nullptr) return tables;
  entries.push_front({map, device, stream, tables});
  if (entries.size() > most) entries.pop_back();
  return tables;
}

/// y = map(x), for x of any strides and y that is dense in `format`; T is the type in which both are
/// computed.
template <class T, class Sum>
void apply_by_index(const char* op, const LinearMap& map, const Tensor& x, const Tensor& y,
                    MemoryFormat format) {
  const auto tables = tables_of<Sum>(map, x.device());
  for_each_index(op, y.device(), y.numel(),
                 ApplyLinearMap<T, Sum>{{tables->rows(0), tables->rows(1), tables->rows(2)},
                                        PixelOrder(y, format),
                                        image_steps(x),
                                        NumberArray<T>(x),
                                        NumberArray<T>(y)});
}

}  // namespace pleat::ops
