#include "pleat/nn/upsample.h"

#include <fmt/format.h>

#include "pleat/core/format.h"

namespace pleat::nn {

std::string Upsample::options_text() const {
  std::string text = options.size.values().empty()
                         ? fmt::format("scale_factor=({})", fmt::join(options.scale_factor.values(), ", "))
                         : fmt::format("size=({})", fmt::join(options.size.values(), ", "));
  text += options.mode == Interpolation::nearest ? ", mode=nearest" : ", mode=linear";
  if (options.align_corners) text += ", align_corners=true";
  return text;
}

}  // namespace pleat::nn
