#include "pleat/core/grid.h"

#include <atomic>

namespace pleat {
namespace {
std::atomic<int> forced{0};
}

bool uses_grid(Device device) { return device.is_cuda() || forced.load(std::memory_order_relaxed) > 0; }

ForceGrid::ForceGrid() { ++forced; }
ForceGrid::~ForceGrid() { --forced; }

}  // namespace pleat
