// Private header: not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/onnx/plan.h"

namespace pleat::inference {

/// Shape, type and device of an input.
struct Port {
  Shape shape;
  DType dtype;
  Device device;
  bool operator==(const Port&) const = default;
};
using Ports = std::vector<Port>;

inline Ports ports_of(const std::vector<Tensor>& inputs) {
  Ports ports;
  for (const Tensor& x : inputs) ports.push_back({x.shape(), x.dtype(), x.device()});
  return ports;
}

/// The calls that a network makes for inputs like its ports, whatever the size of their batch where
/// `batch_dims` says which dimension that is.
struct Program {
  Ports ports;
  std::vector<int64_t> batch_dims;  ///< of each input, or -1; empty: no size is free
  onnx::Plan plan;
  std::shared_ptr<const std::set<std::string>> texts = {};  ///< that attributes of one from a file refer to

  bool takes(const Ports& inputs) const;
};

/// The size of the batch that all inputs with one have; -1: they have none, of different sizes, or of 0.
int64_t batch_of(const Ports& inputs, const std::vector<int64_t>& dims);

}  // namespace pleat::inference
