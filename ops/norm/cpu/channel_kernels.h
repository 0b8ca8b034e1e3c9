// Private header: not installed.
#pragma once

#include <type_traits>
#include <vector>

#include "pleat/ops/norm/problem.h"
#include "pleat/ops/spatial/channel_affine.h"
#include "pleat/ops/spatial/limit.h"

/// The passes over memory that every normalisation is made of, fast for both layouts of ChannelView. Elements
/// S are float, double or of a half type, which is read and written as it lies and computed in float. A group
/// is a channel, or (`per_image`) a channel of one image: index c, or n * channels + c. How the work is cut
/// depends on the view only, and parts are merged in a fixed order: the results have the same bits for any
/// number of threads.

namespace pleat::ops {

/// What elements S are computed in.
template <class S>
using Computed = std::conditional_t<sizeof(S) == 2, float, S>;
/// What loops read elements S as: bfloat16 become floats in registers, float16 are copied before.
template <class S>
using Read = std::conditional_t<std::is_same_v<S, Half>, float, S>;

/// Tiles that fit the cache are read twice, mean first, so that a mean far from 0 costs no digits; the tiles
/// are merged in float64 (Chan, Golub and LeVeque, 1979).
template <class S>
Moments channel_moments(const ChannelView& view, bool per_image, const S* x);

/// y = the Affine of x, plus a residual where there is one, limited to `bounds`.
template <class S>
void channel_affine(const ChannelView& view, bool per_image, const S* x, const Affine<Computed<S>>& numbers,
                    const Bounds& bounds, S* y, const S* residual = nullptr);

/// A limit behind channel_affine: dy counts where it was open, which is worked out from x again.
template <class T>
struct LimitedAffine {
  Affine<T> numbers;
  Limit<T> limit;
};

/// A limit behind an addition, of which the result y is known: writes what dy and `more_dy` (may be null) are
/// where it was open, else 0, to `open`, before sums are made of that.
template <class S>
struct Opening {
  Limit<Computed<S>> limit;
  const S* more_dy;
  const S* y;
  S* open;
};
/// For each group. `limited` and `opening` may be null.
template <class S>
GradientSums channel_gradient_sums(const ChannelView& view, bool per_image, const S* dy, const S* x,
                                   const std::vector<Computed<S>>& shift,
                                   const LimitedAffine<Computed<S>>* limited = nullptr,
                                   const Opening<S>* opening = nullptr);

/// dx = dy * scale + (x - shift) * slope - offset, numbers for each group; `limited` as above. A sum of
/// products: see MuonStep.
template <class T>
struct InputGradient {
  explicit InputGradient(std::size_t groups) : shift(groups), scale(groups), slope(groups), offset(groups) {}
  std::vector<T> shift;
  std::vector<T> scale;
  std::vector<T> slope;
  std::vector<T> offset;
};
template <class S>
void channel_input_gradient(const ChannelView& view, bool per_image, const S* dy, const S* x,
                            const InputGradient<Computed<S>>& numbers, S* dx,
                            const LimitedAffine<Computed<S>>* limited = nullptr);

}  // namespace pleat::ops
