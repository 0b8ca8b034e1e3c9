#include "pleat/ops/spatial/channels_hint.h"

#include <fmt/format.h>

#include "pleat/core/base/format.h"

namespace pleat::ops {

std::string channels_last_hint(const Shape& input, int64_t channels, std::size_t at) {
  if (input.size() < at + 2 || input.back() != channels) return "";
  std::vector<std::size_t> order(at);
  for (std::size_t d = 0; d < at; ++d) order[d] = d;
  order.push_back(input.size() - 1);
  for (std::size_t d = at; d + 1 < input.size(); ++d) order.push_back(d);
  Shape permuted;
  for (const std::size_t d : order) permuted.push_back(input[d]);
  return fmt::format("; if the channels are last, permute(x, {{{}}}) makes it {}", fmt::join(order, ", "),
                     permuted);
}

}  // namespace pleat::ops
