#include "pleat/nn/upsample.h"

#include <vector>

#include <fmt/format.h>

#include "pleat/nn/options_text.h"

namespace pleat::nn {

std::string detail::text_of_options(LayerName, const InterpolateOptions& o) {
  // Joined as texts: to join doubles would inline fmt's conversion of them, in which g++ 13 sees a false
  // -Warray-bounds.
  std::vector<std::string> factors;
  for (const double factor : o.scale_factor.values()) factors.push_back(fmt::format("{}", factor));
  constexpr const char* modes[] = {"nearest", "nearest_exact", "linear", "cubic", "area"};
  OptionsText text;
  if (o.size.values().empty())
    text("scale_factor", fmt::format("({})", fmt::join(factors, ", ")));
  else
    text("size", fmt::format("({})", fmt::join(o.size.values(), ", ")));
  return text("mode", modes[static_cast<std::size_t>(o.mode)])("align_corners", o.align_corners, false)(
      "antialias", o.antialias, false);
}

}  // namespace pleat::nn
