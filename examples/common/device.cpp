#include "device.h"

using namespace pleat;

Device choose_device(const std::string& name) {
  if (name == "auto") return cuda::is_available() ? Device("cuda") : Device("cpu");
  const Device device(name);
  if (device.is_cuda()) cuda::check_device("--device", device);
  return device;
}

std::string describe(Device device) {
  if (device.is_cpu()) return "cpu, " + std::to_string(num_threads()) + " threads";
  return name(device) + ", " + cuda::properties(device).name;
}

Tensor on_device(const Tensor& x, Device device) {
  if (device.is_cpu()) return x;
  return ops::to_device(cuda::pin_memory(x), device, {.non_blocking = true});
}
