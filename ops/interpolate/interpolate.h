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
  nearest,        ///< element floor(o step) for o of the result, step = input / result
  nearest_exact,  ///< the element in whose place the centre of o falls, floor((o + 0.5) step)
  linear,         ///< linear, bilinear or trilinear by the number of spatial dimensions
  /// Cubic or bicubic: Keys, "Cubic convolution interpolation ..." (1981), with a = -0.75. Beyond the edges
  /// lies the outermost element.
  cubic,
  area  ///< the mean of the elements that o covers, as adaptive_avg_pool
};

/// The size of the result, or a factor of the input's: floor(input * factor). Exactly one of the two. By a
/// factor step = 1 / factor, where a factor is the fraction that was written: 1.1 is 11 / 10. Places in the
/// input are computed in integers.
struct InterpolateOptions {
  PerDim size = {};
  ScaleFactor scale_factor = {};
  Interpolation mode = Interpolation::nearest;
  /// Linear and cubic only. The centres of the outermost elements of input and result coincide, else their
  /// edges do.
  bool align_corners = false;
  /// Linear and cubic only. Where the result is smaller, weights reach over as many more elements, as
  /// Pillow's filters do; cubic has a = -0.5 then. Beyond the edges lies nothing, as for PyTorch, and for
  /// ONNX's Resize with exclude_outside = 1; without, that repeats the outermost element.
  bool antialias = false;
  std::string implementation = {};  ///< "native", "reference"; empty: native
};

/// x [N, C, spatial...] of 1 to 3 spatial dimensions, resampled; differentiable. With s = 1 / factor, or
/// input / output where sizes are given, output o reads the input at
///   nearest                floor(o s)
///   linear                 max((o + 1/2) s - 1/2, 0)
///   linear, align_corners  o (input - 1) / (output - 1)
/// between its neighbours, the last of which is repeated. Throws ShapeError, ValueError, DTypeError,
/// DeviceError.
///
///   interpolate(x, {.scale_factor = 2});
///   interpolate(x, {.size = {7, 9}, .mode = Interpolation::linear, .align_corners = true});
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace pleat
