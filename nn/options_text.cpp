#include "pleat/nn/options_text.h"

#include <vector>

#include <fmt/format.h>

namespace pleat::nn {

std::string padding_text(const Padding& padding) {
  if (!padding.mode().empty()) return padding.mode();
  std::vector<std::string> sides;
  for (const auto& [low, high] : padding.sides())
    sides.push_back(low == high ? std::to_string(low) : fmt::format("({}, {})", low, high));
  return sides.size() == 1 ? sides[0] : fmt::format("({})", fmt::join(sides, ", "));
}

std::string per_dim_text(const PerDim& values) {
  return values.values().size() == 1 ? std::to_string(values.values()[0])
                                     : fmt::format("({})", fmt::join(values.values(), ", "));
}

}  // namespace pleat::nn
