#pragma once

#include <string>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// One factor for all spatial dimensions, or one each: `.scale_factor = 2`, `.scale_factor = {2, 1.5}`.
class ScaleFactor : public RealList {
 public:
  using RealList::RealList;
};

enum class Interpolation : unsigned char {
  nearest,  ///< the element in whose place a point falls
  linear    ///< linear, bilinear or trilinear by the number of spatial dimensions
};

/// The size of the result, or a factor of the input's: floor(input * factor). Exactly one of the two.
struct InterpolateOptions {
  PerDim size = {};
  ScaleFactor scale_factor = {};
  Interpolation mode = Interpolation::nearest;
  /// Linear only. The centres of the outermost elements of input and result coincide, else their edges do.
  bool align_corners = false;
  std::string implementation = {};  ///< "native", "reference"; empty: native
};

}  // namespace pleat
