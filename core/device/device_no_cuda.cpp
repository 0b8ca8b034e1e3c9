#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"

namespace pleat::cuda {

bool is_built() { return false; }
int device_count() { return 0; }
std::string unavailable_reason() { return "this is Pleat built without CUDA"; }

void check_device(const char* op, Device device) {
  check<DeviceError>(device.is_cuda(), "{}: needs a CUDA device, got {}", op, device);
  fail<DeviceError>("{}: there is no {}: {}", op, device, unavailable_reason());
}

const DeviceProperties& properties(Device device) {
  check_device("properties", device);
  static const auto& none = *new DeviceProperties;
  return none;
}

MemoryInfo memory_info(Device device) {
  check_device("memory_info", device);
  return {};
}

Versions versions() { return {}; }

Device current_device() {
  check_device("current_device", DeviceType::cuda);
  return {};
}

DeviceGuard::DeviceGuard(Device device) {
  if (device.is_cuda()) check_device("device guard", device);
}
DeviceGuard::~DeviceGuard() = default;

void synchronize(Device device) { check_device("synchronize", device); }

}  // namespace pleat::cuda
