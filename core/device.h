#pragma once

#include <string>

namespace pleat {

enum class DeviceType : unsigned char { cpu, cuda };

/// Where a tensor's bytes live. `Device("cpu")`, `Device("cuda")`, `Device("cuda:1")`.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType type_, int index_ = 0) : type(type_), index(index_) {}
  /// Throws ValueError when `name` is none of the forms above.
  explicit Device(const std::string& name);

  constexpr bool is_cpu() const { return type == DeviceType::cpu; }
  constexpr bool is_cuda() const { return type == DeviceType::cuda; }
  bool operator==(const Device&) const = default;
};

/// "cpu", "cuda:0".
std::string name(const Device& device);

}  // namespace pleat
