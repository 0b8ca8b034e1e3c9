#include "pleat/core/base/format.h"
#include "pleat/core/kernels/cuda_handles.h"

namespace pleat::cuda {

cudnnContext* dnn_handle(Device device) {
  fail<DeviceError>("cudnn: this is Pleat built without cuDNN, got {}", device);
}
void check_dnn(int status, const char* op) {
  check<DeviceError>(status == 0, "{}: this is Pleat built without cuDNN, got its status {}", op, status);
}
int cudnn_version() { return 0; }

}  // namespace pleat::cuda
