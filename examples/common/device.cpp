#include "device.h"

using namespace pleat;

Device choose_device(const std::string& name) {
  if (name == "auto") return cuda::is_available() ? "cuda" : "cpu";
  const Device device(name);
  if (device.is_cuda()) cuda::check_device("--device", device);
  return device;
}

std::string describe(Device device) {
  if (device.is_cpu()) return "cpu, " + std::to_string(num_threads()) + " threads";
  return name(device) + ", " + cuda::properties(device).name;
}

data::TensorDataset near_device(const data::TensorDataset& samples, Device device) {
  return samples.fits(device) ? samples.to(device) : samples;
}

std::optional<DType> amp_dtype(const std::string& name) {
  if (name == "off") return {};
  return name == "float16" ? float16 : bfloat16;
}
