#include "pleat/core/device/cuda.h"

#include "pleat/core/graph/cuda_graph.h"

// Without CUDA there is no graph: making one throws.
namespace pleat {

CudaGraph::CudaGraph(std::function<void()>, CudaGraphOptions options) {
  cuda::check_device("CudaGraph", options.device);
}

void CudaGraph::replay() {}

}  // namespace pleat
