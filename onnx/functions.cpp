#include "pleat/onnx/functions.h"

namespace pleat::onnx {

const Conversions& conversions() {
  static const auto& all = *[] {
    auto* list = new Conversions;
    add_elementwise(*list);
    add_compare(*list);
    add_shape(*list);
    add_index(*list);
    add_reduce(*list);
    add_layers(*list);
    add_pools(*list);
    add_sequence(*list);
    return list;
  }();
  return all;
}

bool knows_function(const std::string& function, std::size_t inputs) {
  const auto found = conversions().find(function);
  return found != conversions().end() && inputs >= found->second.least_inputs &&
         inputs <= found->second.most_inputs;
}

}  // namespace pleat::onnx
