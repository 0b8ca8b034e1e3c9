#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>

#include "pleat/core/base/streaming.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/norm/cpu/channel_kernels.h"
#include "pleat/ops/norm/cpu/channel_tiling.h"

/// What channel_kernels.h computes of each element.

namespace pleat::ops {
namespace {

using namespace channels;

/// Elements of a run at least: numbers are repeated so often that their loop is long enough to be fast.
constexpr int64_t run_elements = 512;

/// Numbers of channels, `first` of each kind on, repeated to runs of whole pixels.
template <class T, std::size_t K>
class Repeated {
 public:
  /// For at most `most` elements.
  Repeated(int64_t channels, const std::array<const T*, K>& numbers, int64_t first, int64_t most)
      : length_(channels * std::max<int64_t>(1, std::min(most, run_elements) / channels)),
        values_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(length_) * K)) {
    for (std::size_t k = 0; k < K; ++k) {
      T* mine = values_.get() + static_cast<int64_t>(k) * length_;
      for (int64_t at = 0; at < length_; at += channels) std::copy_n(numbers[k] + first, channels, mine + at);
      pointers_[k] = mine;
    }
  }
  int64_t length() const { return length_; }
  const std::array<const T*, K>& pointers() const { return pointers_; }

 private:
  int64_t length_;
  std::unique_ptr<T[]> values_;
  std::array<const T*, K> pointers_;
};

/// Calls `f.operator()<each>(begin, n, numbers)` for runs of adjacent elements, with the numbers of their
/// groups: one for each element when `each`, else one for all. Runs may be written past the caches.
template <class T, std::size_t K, class F>
void for_runs(const ChannelView& view, bool per_image, const std::array<const T*, K>& numbers, const F& f) {
  if (view.numel() == 0) return;
  const Tiling tiling(view, per_image);
  const int64_t channels = view.channels;
  std::optional<Repeated<T, K>> common;
  if (tiling.order == LaneOrder::pixels && !per_image) common.emplace(channels, numbers, 0, view.numel());
  const auto write = [&](const Piece& piece) {
    if (tiling.order == LaneOrder::pixels) {
      const int64_t begin = (piece.first_image * tiling.view.pixels + piece.first_pixel) * channels;
      const int64_t end = begin + (piece.last_pixel - piece.first_pixel) * channels;
      const auto run = [&](const Repeated<T, K>& own) {
        for (int64_t at = begin; at < end; at += own.length())
          f.template operator()<true>(at, std::min(own.length(), end - at), own.pointers());
      };
      if (per_image)
        run(Repeated<T, K>(channels, numbers, piece.first_image * channels, end - begin));
      else
        run(*common);
      return;
    }
    for (int64_t n = piece.first_image; n < piece.last_image; ++n)
      for (int64_t c = piece.first_channel; c < piece.first_channel + piece.channels; ++c) {
        std::array<const T*, K> own;
        for (std::size_t k = 0; k < K; ++k) own[k] = numbers[k] + (per_image ? n * channels : 0) + c;
        f.template operator()<false>((n * channels + c) * view.pixels + piece.first_pixel,
                                     piece.last_pixel - piece.first_pixel, own);
      }
  };
  const int64_t pieces = tiling.pieces();
  // Pieces may be planes of a few hundred pixels: a stretch of some is written forwards, so that the next is
  // fetched in time.
  const int64_t stretch = std::max<int64_t>(1, tile_elements / ceil_div(view.numel(), pieces));
  const int64_t stretches = ceil_div(pieces, stretch);
  parallel_for(0, stretches, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      // The sums have just been made: what they read last is still in the cache.
      const int64_t begin = (stretches - 1 - i) * stretch;
      for (int64_t k = begin; k < std::min(begin + stretch, pieces); ++k) write(tiling.piece(k));
    }
    end_streaming();
  });
}

/// Writes n elements by compute(to, from, first, count), in which `to` and the arrays `from` begin at the
/// element `first`; float16 are copied as floats, a few at a time.
template <class S, std::size_t K, class Compute>
void write_computed(S* y, int64_t n, bool streamed, const std::array<const S*, K>& from,
                    const Compute& compute) {
  using T = Read<S>;
  const auto write = [&](S* to, int64_t first, int64_t count) {
    std::array<const T*, K> own;
    if constexpr (std::is_same_v<S, T>) {
      for (std::size_t k = 0; k < K; ++k) own[k] = from[k] + first;
      compute(to, own, first, count);
    } else {
      T buffers[K + 1][streamed_elements];
      for (std::size_t k = 0; k < K; ++k) own[k] = buffers[k];
      for (int64_t at = 0; at < count; at += streamed_elements) {
        const int64_t some = std::min(streamed_elements, count - at);
        for (std::size_t k = 0; k < K; ++k) convert_array(buffers[k], from[k] + first + at, some);
        compute(buffers[K], own, first + at, some);
        convert_array(to + at, buffers[K], some);
      }
    }
  };
  std::apply([&](const auto*... each) { write_run(y, n, streamed, write, each...); }, from);
}

}  // namespace

template <class S>
void channel_affine(const ChannelView& view, bool per_image, const S* x, const Affine<Computed<S>>& numbers,
                    const Bounds& bounds, S* y, const S* residual) {
  using T = Computed<S>;
  const Limit<T> limit(bounds);
  const bool streamed = x != y && is_streamed(view.numel() * static_cast<int64_t>(sizeof(S)));
  const auto run = [&]<bool limits, bool adds>(std::bool_constant<limits>, std::bool_constant<adds>) {
    constexpr std::size_t inputs = adds ? 2 : 1;
    for_runs<T, 3>(view, per_image, {numbers.shift.data(), numbers.scale.data(), numbers.bias.data()},
                   [=]<bool each>(int64_t begin, int64_t n, const std::array<const T*, 3>& of) {
                     std::array<const S*, inputs> from{x + begin};
                     if constexpr (adds) from[1] = residual + begin;
                     const auto compute = [&](Read<S>* __restrict to,
                                              const std::array<const Read<S>*, inputs>& own, int64_t first,
                                              int64_t count) {
                       const Read<S>* __restrict value_of = own[0];
                       const Read<S>* __restrict other = own[inputs - 1];
                       const int64_t number = each ? first : 0;
                       const T* __restrict shift = of[0] + number;
                       const T* __restrict scale = of[1] + number;
                       const T* __restrict bias = of[2] + number;
                       for (int64_t i = 0; i < count; ++i) {
                         const int64_t k = each ? i : 0;
                         T value = (convert<T>(value_of[i]) - shift[k]) * scale[k] + bias[k];
                         if constexpr (adds) value += convert<T>(other[i]);
                         if constexpr (limits) value = limit.limited(value);
                         to[i] = convert<Read<S>>(value);
                       }
                     };
                     write_computed(y + begin, n, streamed, from, compute);
                   });
  };
  const auto run_with = [&](auto limits) {
    if (residual != nullptr)
      run(limits, std::true_type{});
    else
      run(limits, std::false_type{});
  };
  if (bounds.any())
    run_with(std::true_type{});
  else
    run_with(std::false_type{});
}

template <class S>
void channel_input_gradient(const ChannelView& view, bool per_image, const S* dy, const S* x,
                            const InputGradient<Computed<S>>& numbers, S* dx,
                            const LimitedAffine<Computed<S>>* limited) {
  using T = Computed<S>;
  const bool streamed = dy != dx && is_streamed(view.numel() * static_cast<int64_t>(sizeof(S)));
  const auto run = [&](auto with_limit) {
    constexpr bool limits = decltype(with_limit)::value;
    constexpr std::size_t count = limits ? 6 : 4;
    Limit<T> limit;
    std::array<const T*, count> all{numbers.shift.data(), numbers.scale.data(), numbers.slope.data(),
                                    numbers.offset.data()};
    if constexpr (limits) {
      all[4] = limited->numbers.scale.data();
      all[5] = limited->numbers.bias.data();
      limit = limited->limit;
    }
    for_runs<T, count>(view, per_image, all,
                       [=]<bool each>(int64_t begin, int64_t n, const std::array<const T*, count>& of) {
                         const auto compute = [&](Read<S>* __restrict to,
                                                  const std::array<const Read<S>*, 2>& own, int64_t first,
                                                  int64_t some) {
                           const Read<S>* __restrict gradient = own[0];
                           const Read<S>* __restrict from = own[1];
                           const int64_t number = each ? first : 0;
                           const T* __restrict shift = of[0] + number;
                           const T* __restrict scale = of[1] + number;
                           const T* __restrict slope = of[2] + number;
                           const T* __restrict offset = of[3] + number;
                           const T* __restrict own_scale = of[limits ? 4 : 0] + number;
                           const T* __restrict own_bias = of[limits ? 5 : 0] + number;
                           for (int64_t i = 0; i < some; ++i) {
                             const int64_t k = each ? i : 0;
                             const T d = convert<T>(from[i]) - shift[k];
                             T g = convert<T>(gradient[i]);
                             if constexpr (limits) g = limit.open(d * own_scale[k] + own_bias[k], g);
                             to[i] = convert<Read<S>>(g * scale[k] + d * slope[k] - offset[k]);
                           }
                         };
                         write_computed(dx + begin, n, streamed, std::array{dy + begin, x + begin}, compute);
                       });
  };
  if (limited != nullptr)
    run(std::true_type{});
  else
    run(std::false_type{});
}

#define PLEAT_CHANNEL_MAPS(S)                                                                  \
  template void channel_affine(const ChannelView&, bool, const S*, const Affine<Computed<S>>&, \
                               const Bounds&, S*, const S*);                                   \
  template void channel_input_gradient(const ChannelView&, bool, const S*, const S*,           \
                                       const InputGradient<Computed<S>>&, S*,                  \
                                       const LimitedAffine<Computed<S>>*);
PLEAT_CHANNEL_MAPS(float)
PLEAT_CHANNEL_MAPS(double)
PLEAT_CHANNEL_MAPS(Half)
PLEAT_CHANNEL_MAPS(BFloat16)

}  // namespace pleat::ops
