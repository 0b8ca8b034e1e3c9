#include "pleat/nn/upsample.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "pleat/core/base/format.h"

namespace pleat::nn {

std::string Upsample::options_text() const {
  // Joined as texts: to join doubles would inline fmt's conversion of them, in which g++ 13 sees a false
  // -Warray-bounds.
  std::vector<std::string> factors;
  for (const double factor : options.scale_factor.values()) factors.push_back(fmt::format("{}", factor));
  std::string text = options.size.values().empty()
                         ? fmt::format("scale_factor=({})", fmt::join(factors, ", "))
                         : fmt::format("size=({})", fmt::join(options.size.values(), ", "));
  constexpr const char* modes[] = {"nearest", "nearest_exact", "linear", "cubic", "area"};
  text += fmt::format(", mode={}", modes[static_cast<std::size_t>(options.mode)]);
  if (options.align_corners) text += ", align_corners=true";
  if (options.antialias) text += ", antialias=true";
  return text;
}

}  // namespace pleat::nn
