#include <atomic>

#include "pleat/core/create.h"
#include "pleat/core/grid.h"
#include "pleat/ops/index/bounds.h"

namespace pleat::ops {
namespace {

template <class Index>
struct FindOutside {
  const Index* indices;
  int64_t low, high;
  int32_t* found;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    if (indices[i] >= low && indices[i] < high) return;
#if PLEAT_DEVICE_CODE
    *found = 1;  // whoever else writes writes the same
#else
    std::atomic_ref(*found).store(1, std::memory_order_relaxed);
#endif
  }
};

}  // namespace

bool all_within(const char* op, const Tensor& indices, int64_t low, int64_t high) {
  const Tensor found = zeros({1}, {.dtype = int32, .device = indices.device()});
  const auto find = [&]<class Index>(Type<Index>) {
    grid_for(op, indices.device(), indices.numel(),
             FindOutside<Index>{indices.data<Index>(), low, high, found.data<int32_t>()});
  };
  if (indices.dtype() == int32)
    find(Type<int32_t>{});
  else
    find(Type<int64_t>{});
  return found.item<int32_t>() == 0;
}

}  // namespace pleat::ops
