#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/transfer.h"

namespace pleat::cuda {

void transfer(const Tensor& to, const Tensor& from, bool) {
  check_device("to", to.device().is_cuda() ? to.device() : from.device());
}

void set_bytes(const Tensor& to, unsigned char) { check_device("fill", to.device()); }

void record_stream(const Tensor&, const Stream& stream) { check_device("record_stream", stream.device()); }

}  // namespace pleat::cuda
