#include "pleat/core/base/device.h"

#include <charconv>
#include <ostream>

#include "pleat/core/base/format.h"

namespace pleat {

Device::Device(const std::string& name) {
  const auto colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  bool valid = kind == "cpu" || kind == "cuda";
  if (colon != std::string::npos) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, index);
    valid = valid && error == std::errc() && stop == end && index >= 0 && (kind == "cuda" || index == 0);
  }
  check<ValueError>(valid, "device: \"cpu\", \"cuda\" or \"cuda:N\" expected, got \"{}\"", name);
  type = kind == "cpu" ? DeviceType::cpu : DeviceType::cuda;
}

std::string name(const Device& device) {
  return device.is_cpu() ? std::string("cpu") : fmt::format("cuda:{}", device.index);
}

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << name(device); }

Device default_device() {
  const Device* device = Scoped<Device>::innermost();
  return device != nullptr ? *device : Device();
}

}  // namespace pleat
