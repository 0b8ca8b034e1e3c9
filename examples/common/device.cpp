#include "device.h"

#include "program.h"

using namespace pleat;

Device choose_device(const std::string& requested, int number) {
  if (requested == "auto") return cuda::is_available() ? choose_device("cuda", number) : Device("cpu");
  try {
    if (requested == "cuda" && cuda::is_available())
      return Device("cuda:" + std::to_string(number % cuda::device_count()));
    const Device device(requested);
    if (device.is_cuda()) cuda::check_device("--device", device);
    return device;
  } catch (const DeviceError& error) {
    throw UsageError(error.what());
  } catch (const ValueError&) {
    throw UsageError("--device: must be auto, cpu, cuda or cuda:N, got \"" + requested + '"');
  }
}

void check_implementation(const std::string& requested, Device device) {
  if (requested.empty()) return;
  std::string known;
  for (const std::string& implementation : ops::conv_implementations(device)) {
    if (requested.substr(0, requested.find(':')) == implementation) return;
    known += (known.empty() ? "" : ", ") + implementation;
  }
  throw UsageError("--conv-implementation: on " + name(device) + " there are " + known + ", got \"" +
                   requested + '"');
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
