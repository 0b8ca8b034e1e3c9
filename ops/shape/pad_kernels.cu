#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/kernels/dispatch_size.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/number_array.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/shape/pad_kernels.h"

namespace pleat::ops {
namespace {

/// The index arithmetic of padding, in all modes but constant.
/// Those places of a padded dimension that read one element of the plain one, in order: up to three runs.
class PadReaders {
 public:
  PadReaders() = default;
  PLEAT_HOST_DEVICE PadReaders(PadMode mode, int64_t i, int64_t size, int64_t before, int64_t padded) {
    add(before + i, before + i + 1, padded, 1);
    if (mode == PadMode::reflect) {
      if (i > 0) add(before - i, before - i + 1, padded, 0);
      if (i < size - 1) add(before + 2 * (size - 1) - i, before + 2 * (size - 1) - i + 1, padded, 2);
    } else if (mode == PadMode::replicate) {
      if (i == 0) add(0, before, padded, 0);
      if (i == size - 1) add(before + size, padded, padded, 2);
    } else {
      add(before + i - size, before + i - size + 1, padded, 0);
      add(before + i + size, before + i + size + 1, padded, 2);
    }
  }

  PLEAT_HOST_DEVICE int64_t count() const { return count_[0] + count_[1] + count_[2]; }
  PLEAT_HOST_DEVICE int64_t operator[](int64_t k) const {
    if (k < count_[0]) return start_[0] + k;
    k -= count_[0];
    return k < count_[1] ? start_[1] + k : start_[2] + k - count_[1];
  }

 private:
  /// The places [first, last) as far as there are such, as run number `run`.
  PLEAT_HOST_DEVICE void add(int64_t first, int64_t last, int64_t padded, int run) {
    first = first < 0 ? 0 : first;
    last = last > padded ? padded : last;
    start_[run] = first;
    count_[run] = last > first ? last - first : 0;
  }

  int64_t start_[3] = {};
  int64_t count_[3] = {};
};

inline constexpr std::size_t max_pad_dims = 16;

/// One dimension. Functors take them from the densest one of the tensor that they write.
struct PadDim {
  FastDivider written;     ///< size in the tensor that is written
  int64_t size = 1;        ///< of the plain tensor
  int64_t padded = 1;      ///< of the padded one
  int64_t before = 0;      ///< places in front
  int64_t read_step = 0;   ///< in the tensor that is read
  std::size_t reader = 0;  ///< its number from the densest one of the tensor that is read
};

/// One element of the padded tensor a call, as it lies in memory.
template <class T>
struct PadElement {
  std::array<PadDim, max_pad_dims> dim;
  std::size_t dims;
  PadMode mode;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t rest = i;
    int64_t offset = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      int64_t at = rest;
      rest = dim[d].written.divide(at);
      offset += pad_source(mode, at - dim[d].before, dim[d].size) * dim[d].read_step;
    }
    y[i] = x[offset];
  }
};

/// One element of the gradient of the plain tensor a call, as it lies in memory: the sum over those that had
/// read it, in the order in which these lie in memory.
template <class T>
struct PadBackwardElement {
  std::array<PadDim, max_pad_dims> dim;
  std::size_t dims;
  PadMode mode;
  NumberArray<T> dy;
  NumberArray<T> dx;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    PadReaders readers[max_pad_dims];
    int64_t steps[max_pad_dims];
    int64_t rest = i;
    int64_t number = 1;
    for (std::size_t d = 0; d < dims; ++d) {
      int64_t at = rest;
      rest = dim[d].written.divide(at);
      const std::size_t reader = dim[d].reader;
      readers[reader] = PadReaders(mode, at, dim[d].size, dim[d].before, dim[d].padded);
      steps[reader] = dim[d].read_step;
      number *= readers[reader].count();
    }
    T sum = 0;
    for (int64_t k = 0; k < number; ++k) {
      int64_t left = k;
      int64_t offset = 0;
      for (std::size_t r = 0; r < dims; ++r) {
        const int64_t count = readers[r].count();
        offset += readers[r][left % count] * steps[r];
        left /= count;
      }
      sum += dy.load(offset);
    }
    dx.store(i, sum);
  }
};

struct PadDims {
  std::array<PadDim, max_pad_dims> dim;
  std::size_t dims = 0;
};

/// The dimensions of `t` from the densest on, without those of one place in both tensors.
std::vector<std::size_t> from_densest(const Tensor& t, const Tensor& other) {
  std::vector<std::size_t> order;
  for (std::size_t d = t.shape().size(); d-- > 0;)
    if (t.shape()[d] != 1 || other.shape()[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return t.strides()[a] < t.strides()[b]; });
  return order;
}

PadDims pad_dims(const char* op, const Tensor& written, const Tensor& read, bool reads_padded,
                 const std::vector<PadWidths>& widths) {
  const std::vector<std::size_t> order = from_densest(written, read);
  const std::vector<std::size_t> readers = from_densest(read, written);
  if (order.size() > max_pad_dims)
    throw ShapeError(std::string(op) + ": on a GPU at most " + std::to_string(max_pad_dims) +
                     " dimensions, got " + std::to_string(order.size()));
  const Tensor& plain = reads_padded ? written : read;
  const Tensor& padded = reads_padded ? read : written;
  PadDims result;
  for (const std::size_t d : order)
    result.dim[result.dims++] = {
        FastDivider(written.shape()[d]),
        plain.shape()[d],
        padded.shape()[d],
        widths[d].before,
        read.strides()[d],
        static_cast<std::size_t>(std::find(readers.begin(), readers.end(), d) - readers.begin())};
  return result;
}

}  // namespace

void pad_cuda(const Tensor& y, const Tensor& x, const std::vector<PadWidths>& widths, PadMode mode) {
  if (y.numel() == 0) return;
  const PadDims dims = pad_dims("pad", y, x, false, widths);
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    const PadElement<T> functor{dims.dim, dims.dims, mode, reinterpret_cast<const T*>(x.raw()),
                                reinterpret_cast<T*>(y.raw())};
    launch_indices("pad", y.device(), y.numel(), functor);
  });
}

void pad_backward_cuda(const Tensor& dx, const Tensor& dy, const std::vector<PadWidths>& widths,
                       PadMode mode) {
  if (dx.numel() == 0) return;
  const PadDims dims = pad_dims("pad_backward", dx, dy, true, widths);
  Floating::dispatch(dy.dtype(), [&]<class T>(Type<T>) {
    const PadBackwardElement<T> functor{dims.dim, dims.dims, mode, NumberArray<T>(dy), NumberArray<T>(dx)};
    launch_indices("pad_backward", dx.device(), dx.numel(), functor);
  });
}

}  // namespace pleat::ops
