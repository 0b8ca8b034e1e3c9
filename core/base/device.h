#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include "pleat/core/base/scope.h"

namespace pleat {

enum class DeviceType : unsigned char { cpu, cuda };

/// Where a tensor's bytes are: "cpu", "cuda" or "cuda:1". A name converts to a Device, as
/// in `x.to("cuda")` and `zeros({2}, {.device = "cuda:1"})`.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType type_, int index_ = 0) : type(type_), index(index_) {}
  /// Throws ValueError when `name` is none of these forms.
  Device(const std::string& name);
  Device(const char* name) : Device(std::string(name)) {}
  Device(std::nullptr_t) = delete;  // `x.to(0)` would read 0 as a name

  constexpr bool is_cpu() const { return type == DeviceType::cpu; }
  constexpr bool is_cuda() const { return type == DeviceType::cuda; }
  bool operator==(const Device&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Device& device);
};

/// "cpu", "cuda:0".
std::string name(const Device& device);

/// The device of new tensors for which none is named: the CPU, unless a DefaultDevice is in force.
Device default_device();

/// While one exists, tensors that this thread makes are on `device` unless another is named: `zeros({2, 3})`,
/// `randn({4})`, the parameters of a module. What files and data sets hold is read into the CPU's memory.
///
///   const DefaultDevice on_gpu("cuda");
///   nn::Linear layer{{.in_features = 8, .out_features = 2}};  // its weight is on the GPU
class DefaultDevice {
 public:
  explicit DefaultDevice(Device device) : device_(device) {}

 private:
  Scoped<Device> device_;
};

}  // namespace pleat
