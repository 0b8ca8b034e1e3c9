// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "pleat/core/base/thread_object.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/host_array.h"
#include "pleat/ops/spatial/linear_map.h"

/// SparseRows on a GPU.

namespace pleat::ops {

/// How taps with weights of type W are counted: with floats those of maps below 2^31.
template <class W>
using TapIndex = std::conditional_t<std::is_same_v<W, float>, int32_t, int64_t>;

template <class W>
struct alignas(8) Tap {
  TapIndex<W> index;
  W weight;
};

/// A SparseRows as plain arrays, its numbers as W.
template <class W>
struct SparseRowsView {
  const TapIndex<W>* first;
  const Tap<W>* tap;
  const W* scale;
};

/// The arrays of a map on a device, in one piece of memory: one copy takes them there.
template <class W>
class MapTables {
 public:
  MapTables(const LinearMap& map, Device device) {
    const SparseRows one{.inputs = 1, .first = {0, 1}, .index = {0}, .weight = {1}, .scale = {1}};
    std::vector<int64_t> words;
    std::size_t starts[3][3];
    for (std::size_t d = 0; d < 3; ++d) {
      const std::size_t missing = 3 - map.dims.size();
      const SparseRows& rows = d < missing ? one : map.dims[d - missing];
      std::vector<Tap<W>> taps(rows.index.size());
      for (std::size_t t = 0; t < taps.size(); ++t)
        taps[t] = {static_cast<TapIndex<W>>(rows.index[t]), static_cast<W>(rows.weight[t])};
      starts[d][0] = add<TapIndex<W>>(words, rows.first);
      starts[d][1] = add<Tap<W>>(words, taps);
      starts[d][2] = add<W>(words, rows.scale);
    }
    memory_.emplace(words, device);
    bytes_ = static_cast<int64_t>(words.size() * sizeof(int64_t));
    const auto at = [&](std::size_t start) { return memory_->data() + start; };
    for (std::size_t d = 0; d < 3; ++d)
      rows_[d] = {reinterpret_cast<const TapIndex<W>*>(at(starts[d][0])),
                  reinterpret_cast<const Tap<W>*>(at(starts[d][1])),
                  reinterpret_cast<const W*>(at(starts[d][2]))};
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

}  // namespace pleat::ops
