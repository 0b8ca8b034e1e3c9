// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/ops/norm/problem.h"
#include "pleat/ops/spatial/channel_affine.h"

/// The passes over memory that every normalisation is made of, fast for both layouts of ChannelView and both
/// of float and double. A group is a channel, or (`per_image`) a channel of one image: index c, or n *
/// channels + c. How the work is cut depends on the view only, and parts are merged in a fixed order: the
/// results have the same bits for any number of threads.

namespace pleat::ops {

/// Tiles that fit the cache are read twice, mean first, so that a mean far from 0 costs no digits; the tiles
/// are merged in float64 (Chan, Golub and LeVeque, 1979).
template <class T>
Moments channel_moments(const ChannelView& view, bool per_image, const T* x);

/// y = the Affine of x, plus a residual where there is one, or with `relu` max(0, that).
template <class T>
void channel_affine(const ChannelView& view, bool per_image, const T* x, const Affine<T>& numbers, bool relu,
                    T* y, const T* residual = nullptr);

/// A relu behind an addition, of which the result y is known: writes what dy and `more_dy` (may be null) are
/// where y is above 0, else 0, to `open`, before sums are made of that.
template <class T>
struct Opening {
  const T* more_dy;
  const T* y;
  T* open;
};
/// For each group. Of a `relu` behind channel_affine its numbers, or null: dy counts where the result was
/// above 0, which is worked out from x again.
template <class T>
GradientSums channel_gradient_sums(const ChannelView& view, bool per_image, const T* dy, const T* x,
                                   const std::vector<T>& shift, const Affine<T>* relu = nullptr,
                                   const Opening<T>* opening = nullptr);

/// dx = dy * scale - (x - shift) * slope - offset, numbers for each group; with `relu` as above.
template <class T>
struct InputGradient {
  explicit InputGradient(std::size_t groups) : shift(groups), scale(groups), slope(groups), offset(groups) {}
  std::vector<T> shift;
  std::vector<T> scale;
  std::vector<T> slope;
  std::vector<T> offset;
};
template <class T>
void channel_input_gradient(const ChannelView& view, bool per_image, const T* dy, const T* x,
                            const InputGradient<T>& numbers, T* dx, const Affine<T>* relu = nullptr);

}  // namespace pleat::ops
