#include "pleat/core/cuda.h"

namespace pleat::cuda {

bool is_built() { return false; }
int device_count() { return 0; }

}  // namespace pleat::cuda
