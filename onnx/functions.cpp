#include "pleat/onnx/functions.h"

namespace pleat::onnx {

Conversion op(std::size_t inputs, const char* name,
              std::vector<std::pair<const char*, const char*>> attributes) {
  return {inputs, inputs, [=](Emit& e) {
            Operands operands;
            for (std::size_t i = 0; i < inputs; ++i) operands.push_back(e.x(i));
            NodeAttributes values;
            for (const auto& [attribute, option] : attributes)
              values.emplace_back(attribute, e.number(option));
            return e.node(name, operands, values);
          }};
}

const Conversions& conversions() {
  static const auto& all = *[] {
    auto* list = new Conversions;
    for (auto* of_file : {elementwise_functions, compare_functions, shape_functions, index_functions,
                          reduce_functions, layer_functions, pool_functions, sequence_functions})
      list->merge(of_file());
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
