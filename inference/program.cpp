#include "pleat/inference/program.h"

namespace pleat::inference {

bool Program::takes(const Ports& inputs) const {
  if (batch_dims.empty()) return inputs == ports;
  Ports first = inputs;
  for (std::size_t i = 0; i < inputs.size() && i < ports.size(); ++i) {
    const auto dim = static_cast<std::size_t>(batch_dims[i]);
    if (batch_dims[i] >= 0 && dim < inputs[i].shape.size() && dim < ports[i].shape.size())
      first[i].shape[dim] = ports[i].shape[dim];
  }
  return first == ports && batch_of(inputs, batch_dims) >= 1;
}

int64_t batch_of(const Ports& inputs, const std::vector<int64_t>& dims) {
  int64_t batch = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) continue;
    const int64_t size = inputs[i].shape[static_cast<std::size_t>(dims[i])];
    if (size < 1 || (batch >= 0 && batch != size)) return -1;
    batch = size;
  }
  return batch;
}

}  // namespace pleat::inference
