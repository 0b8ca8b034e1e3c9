#include "pleat/core/cuda.h"
#include "pleat/core/transfer.h"

namespace pleat::cuda {

void transfer(const Tensor& to, const Tensor& from, bool) {
  check_device("to", to.device().is_cuda() ? to.device() : from.device());
}

void set_bytes(const Tensor& to, unsigned char) { check_device("fill", to.device()); }

}  // namespace pleat::cuda
