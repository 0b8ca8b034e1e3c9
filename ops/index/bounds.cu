#include "pleat/core/kernels/launch.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/index/index_cuda.h"

namespace pleat::ops {
namespace {

template <class Index>
struct FindOutside {
  const Index* indices;
  int64_t low, high;
  int32_t* found;  ///< one outside, one below 0

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    if (indices[i] < low || indices[i] >= high) *found = 1;  // all writers write the same
    if (indices[i] < 0) found[1] = 1;
  }
};

struct FromStart {
  const int64_t* indices;
  int64_t size;
  int64_t* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    y[i] = indices[i] < 0 ? indices[i] + size : indices[i];
  }
};

}  // namespace

std::vector<FoundIndices> find_indices(const char* op, const std::vector<IndexRange>& ranges) {
  const auto n = static_cast<int64_t>(ranges.size());
  const Device device = ranges[0].indices.device();
  const Tensor found = zeros({n, 2}, {.dtype = int32, .device = device});
  for (int64_t k = 0; k < n; ++k) {
    const auto& [indices, low, high] = ranges[static_cast<std::size_t>(k)];
    int32_t* const flags = found.data<int32_t>() + 2 * k;
    if (indices.dtype() == int32)
      launch_indices(op, device, indices.numel(),
                     FindOutside<int32_t>{indices.data<int32_t>(), low, high, flags});
    else
      launch_indices(op, device, indices.numel(),
                     FindOutside<int64_t>{indices.data<int64_t>(), low, high, flags});
  }
  const std::vector<int32_t> flags = found.to_vector<int32_t>();
  std::vector<FoundIndices> result;
  for (std::size_t k = 0; k < ranges.size(); ++k)
    result.push_back({flags[2 * k] != 0, flags[2 * k + 1] != 0});
  return result;
}

Tensor from_start(const char* op, const Tensor& indices, int64_t size) {
  const Tensor y = empty(indices.shape(), {.dtype = int64, .device = indices.device()});
  launch_indices(op, indices.device(), indices.numel(),
                 FromStart{indices.data<int64_t>(), size, y.data<int64_t>()});
  return y;
}

bool all_within(const char* op, const Tensor& indices, int64_t low, int64_t high) {
  return !find_indices(op, {{indices, low, high}})[0].outside;
}

}  // namespace pleat::ops
