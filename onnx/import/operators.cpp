#include "pleat/onnx/import/operators.h"

namespace pleat::onnx::imported {
namespace {

/// A row by its name: "Conv/3(group pads)" is Conv with up to three inputs and these attributes.
void add_row(Operators& all, const std::string& row, Operator op) {
  const std::size_t slash = row.find('/'), open = row.find('(');
  if (slash != std::string::npos) op.most_inputs = row[slash + 1] - '0';
  for (std::size_t at = open; at < row.size() && row[at] != ')';) {
    const std::size_t end = row.find_first_of(" )", at + 1);
    op.attributes.insert(row.substr(at + 1, end - at - 1));
    at = end;
  }
  all.emplace(row.substr(0, std::min({slash, open, row.size()})), std::move(op));
}

}  // namespace

IntegerRange range_of(int64_t type) {
  constexpr IntegerRange ranges[] = {
      {2, 0, 255},         {3, -128, 127}, {4, 0, 65535}, {5, -32768, 32767}, {6, -2147483648, 2147483647},
      {12, 0, 4294967295}, {21, 0, 15},    {22, -8, 7}};
  const auto* found = std::ranges::find(ranges, type, &IntegerRange::type);
  return found == std::end(ranges) ? ranges[0] : *found;
}

const Operators& operators() {
  static const auto& all = *new Operators([] {
    Operators joined;
    for (Operators (*list)() : {elementwise_operators, shape_operators, index_operators, reduce_operators,
                                layer_operators, attention_operators, pool_operators, resize_operators,
                                recurrent_operators, control_operators, quantized_operators})
      for (auto& [row, op] : list()) add_row(joined, row, op);
    return joined;
  }());
  return all;
}

}  // namespace pleat::onnx::imported
