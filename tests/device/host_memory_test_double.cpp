// A kernel that reads or writes a tensor on the CPU is noticed by the double of CUDA, however large the tensor is.

#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/host_tensors.h"

using namespace pleat;

TEST_CASE("double: tensors on the CPU are closed to kernels, whatever their size", "[device][cuda]") {
  for (const int64_t bytes : {1, 1 << 12, 1 << 20, 4 << 20, 100 << 20}) {
    INFO(bytes);
    const Tensor t = empty({bytes}, {.dtype = uint8, .device = Device()});
    CHECK(cuda_double::in_host_tensors(t.raw()));
    CHECK(cuda_double::in_host_tensors(t.raw() + bytes - 1));
  }
}
