#include "pleat/core/tensor/copy_between_formats.h"

#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/transpose.h"

namespace pleat {

bool copied_between_formats(const Tensor& to, const Tensor& from) {
  const int64_t rank = to.rank();
  if (rank < 3 || rank > 5 || to.dtype() != from.dtype() || to.shape() != from.shape()) return false;
  const bool to_last = to.is_contiguous(MemoryFormat::channels_last) && from.is_contiguous();
  const bool to_first = to.is_contiguous() && from.is_contiguous(MemoryFormat::channels_last);
  if (!to_last && !to_first) return false;
  const int64_t images = to.size(0);
  const int64_t channels = to.size(1);
  const int64_t image = channels == 0 ? 0 : to.numel() / std::max<int64_t>(images, 1);
  const int64_t pixels = channels == 0 ? 0 : image / channels;
  // Pieces of an image, so that one image alone is work for many threads.
  constexpr int64_t wanted = 32768;  // elements of a piece
  const int64_t stretch = (wanted / std::max<int64_t>(channels, 1) / 64 + 1) * 64;
  const int64_t pieces = ceil_div(pixels, stretch);
  dispatch(to.dtype(), [&]<class T>(Type<T>) {
    parallel_for(
        0, images * pieces, std::max<int64_t>(1, wanted / std::max<int64_t>(image, 1)),
        [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            const int64_t pixel = i % pieces * stretch;
            const int64_t count = std::min(stretch, pixels - pixel);
            T* out = to.data<T>() + i / pieces * image;
            const T* in = from.data<T>() + i / pieces * image;
            if (to_last)
              transpose_matrix(out + pixel * channels, channels, in + pixel, pixels, channels, count);
            else
              transpose_matrix(out + pixel, pixels, in + pixel * channels, channels, count, channels);
          }
        });
  });
  to.bump_version();
  return true;
}

}  // namespace pleat
