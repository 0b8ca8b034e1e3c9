#include "pleat/ops/softmax/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/core/tensor/transpose_few.h"
#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/reduce/lines.h"
#include "pleat/ops/reduce/logsumexp_functors.h"
#include "pleat/ops/reduce/map_row.h"
#include "pleat/ops/reduce/rows.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/kernels_cuda.h"

namespace pleat::ops {
namespace {

using reduction::exponent_shift;
using reduction::ExtremeStep;
using reduction::map_row;

constexpr int64_t block_columns = 128;
/// Elements of lines of neighbours that are worked on together: they stay in the first-level cache.
constexpr int64_t block_elements = 2048;
/// Elements worth waking another thread for: an exponential costs much more than a sum.
constexpr int64_t grain_elements = 8192;

template <class T>
using Block = std::array<T, block_columns>;

/// Lines beside fewer others than this are turned to lie one after the other: vectors lie across lines.
constexpr int64_t few_beside = 16;
bool has_few_beside(const Lines& lines) { return lines.inner > 1 && lines.inner < few_beside; }
/// Whether that is done block by block, in the cache.
template <class T>
bool has_few_in_blocks(const Lines& lines) {
  return has_few_beside(lines) && lines.size >= simd::lanes<T> && lines.size * lines.inner <= block_elements;
}

/// `rows` of for_lines, for lines beside few others.
template <class T, class Rows, class... In>
void for_lines_beside_few(const Lines& lines, const Rows& rows, T* y, const In*... in) {
  const int64_t size = lines.size, inner = lines.inner, group = size * inner;
  const auto turn = [](T* to, const T* from, int64_t height, int64_t width) {
    if (!transpose_few(to, height, from, width, height, width))
      transpose_matrix(to, height, from, width, height, width);
  };
  const int64_t together = std::clamp<int64_t>(block_elements / group, 1, block_columns / inner);
  parallel_for(0, lines.outer, std::max<int64_t>(1, grain_elements / group), [&](int64_t i, int64_t end) {
    alignas(64) T turned[sizeof...(In) + 1][block_elements];
    for (; i < end; i += together) {
      const int64_t some = std::min(together, end - i);
      for (int64_t k = 0; k < some; ++k) {
        std::size_t input = 1;
        (turn(turned[input++] + k * group, in + (i + k) * group, size, inner), ...);
      }
      [&]<std::size_t... k>(std::index_sequence<k...>) {
        rows(turned[0], static_cast<const T*>(turned[k + 1])..., size, some * inner);
      }
      (std::index_sequence_for<In...>());
      for (int64_t k = 0; k < some; ++k) turn(y + (i + k) * group, turned[0] + k * group, inner, size);
    }
  });
}

/// Calls `columns(y, in..., size, stride, n)` for n lines side by side, whose elements are `stride` apart, or
/// `rows(y, in..., size, n)` for n <= block_columns lines of neighbours, one behind the other. Those shorter
/// than a vector are turned to lie side by side. y may be the first input of `columns`.
template <class T, class Rows, class Columns, class... In>
void for_lines(const Lines& lines, const Rows& rows, const Columns& columns, T* y, const In*... in) {
  if (lines.outer == 0) return;
  const int64_t size = lines.size;
  if (lines.inner == 1 && size >= simd::lanes<T>) {
    const int64_t together = std::clamp<int64_t>(block_elements / size, 1, block_columns);
    return parallel_for(0, lines.outer, std::max<int64_t>(1, grain_elements / size),
                        [&](int64_t line, int64_t end) {
                          for (; line < end; line += together)
                            rows(y + line * size, in + line * size..., size, std::min(together, end - line));
                        });
  }
  if (lines.inner == 1)
    return parallel_for(0, lines.outer, std::max<int64_t>(block_columns, grain_elements / size),
                        [&](int64_t line, int64_t end) {
                          alignas(64) T turned[sizeof...(In)][simd::lanes<T> * block_columns];
                          for (; line < end; line += block_columns) {
                            const int64_t n = std::min(block_columns, end - line);
                            std::size_t input = 0;
                            (transpose_matrix(turned[input++], n, in + line * size, size, n, size), ...);
                            [&]<std::size_t... i>(std::index_sequence<i...>) {
                              columns(turned[0], static_cast<const T*>(turned[i])..., size, n, n);
                            }
                            (std::index_sequence_for<In...>());
                            transpose_matrix(y + line * size, size, turned[0], n, size, n);
                          }
                        });
  if (has_few_in_blocks<T>(lines)) return for_lines_beside_few(lines, rows, y, in...);
  const int64_t width = std::min(lines.inner, block_columns);
  const int64_t blocks = ceil_div(lines.inner, width);
  const int64_t grain = std::max<int64_t>(1, grain_elements / (size * width));
  parallel_for(0, lines.outer * blocks, grain, [&](int64_t item, int64_t end) {
    for (; item < end; ++item) {
      const int64_t column = item % blocks * width;
      const int64_t at = item / blocks * size * lines.inner + column;
      columns(y + at, in + at..., size, lines.inner, std::min(width, lines.inner - column));
    }
  });
}

/// What sums of exponentials become: what is taken off the logarithms, or times the exponentials.
template <class T>
void map_sums(T* y, const double* sums, int64_t n, bool logarithm) {
  if (logarithm)
    map(y, sums, n, [](double sum) { return static_cast<T>(vmath::log(sum)); });
  else
    map(y, sums, n, [](double sum) { return static_cast<T>(1 / sum); });
}

template <class T>
void softmax_rows(T* y, const T* x, int64_t size, int64_t n, bool logarithm) {
  Block<T> largest;
  Block<double> sums;
  reduction::row_exponentials(y, largest.data(), sums.data(), x, size, n, size);
  map_sums(sums.data(), sums.data(), n, logarithm);
  for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r, x += size, y += size) {
    const T last = static_cast<T>(sums[r]);
    if (logarithm)
      map_row(
          y, size, [=, from = exponent_shift(largest[r])](const auto& v) { return (v - from) - last; }, x);
    else
      map_row(
          y, size, [=](const auto& v) { return v * last; }, y);
  }
}

template <class T>
void softmax_columns(T* y, const T* x, int64_t size, int64_t stride, int64_t n, bool logarithm) {
  alignas(64) Block<T> largest;
  alignas(64) Block<T> last;
  alignas(64) Block<double> sums{};
  std::copy_n(x, n, largest.data());
  for (int64_t k = 1; k < size; ++k)
    map(largest.data(), largest.data(), x + k * stride, n, ExtremeStep<T, true>::better);
  map(largest.data(), largest.data(), n, exponent_shift<T>);
  const auto row = [=](int64_t k) { return x + k * stride; };
  if (logarithm) reduction::add_exponentials(sums.data(), size, row, largest.data(), n);
  for (int64_t k = 0; k < size && !logarithm; ++k) {
    T* const to = y + k * stride;
    map(to, row(k), largest.data(), n, [](T value, T most) { return vmath::exp(value - most); });
    map(sums.data(), sums.data(), to, n,
        [](double sum, T value) { return sum + static_cast<double>(value); });
  }
  map_sums(last.data(), sums.data(), n, logarithm);
  for (int64_t k = 0; k < size; ++k) {
    T* const to = y + k * stride;
    if (logarithm)
      map(to, x + k * stride, largest.data(), last.data(), n,
          [](T value, T most, T rest) { return (value - most) - rest; });
    else
      map(to, to, last.data(), n, [](T value, T scale) { return value * scale; });
  }
}

/// x with `dim` as the last and densest of its dimensions.
Tensor dim_last(const Tensor& x, int64_t dim) {
  const NoGrad off_the_tape;
  return to_format(transpose(x, dim, -1), MemoryFormat::contiguous);
}
/// The contrary, with the strides of `like`.
Tensor dim_back(const Tensor& y, int64_t dim, const Tensor& like) {
  const Tensor back = empty_like(like);
  const NoGrad off_the_tape;
  copy_into(back, transpose(y, dim, -1));
  return back;
}

/// Of a dense x.
template <class T>
Tensor softmax_of(const char* op, const Tensor& x, int64_t dim, bool logarithm) {
  const Lines lines(op, x, dim);
  if (has_few_beside(lines) && !has_few_in_blocks<T>(lines))
    return dim_back(softmax_of<T>(op, dim_last(x, dim), -1, logarithm), dim, x);
  const Tensor y = empty_like(x);
  for_lines(
      lines,
      [=](T* to, const T* from, int64_t size, int64_t n) { softmax_rows(to, from, size, n, logarithm); },
      [=](T* to, const T* from, int64_t size, int64_t stride, int64_t n) {
        softmax_columns(to, from, size, stride, n, logarithm);
      },
      y.data<T>(), static_cast<const T*>(x.data<T>()));
  return y;
}

/// dx = y (dy - sum of dy y), or dx = dy - exp(y) sum of dy.
template <class T>
void backward_rows(T* dx, const T* dy, const T* y, int64_t size, int64_t n, bool logarithm) {
  Block<double> sums;
  const bool is_long = size >= reduction::least_long_row;
  if (logarithm) {
    reduction::row_sums(sums.data(), dy, size, n, size);
    if (!is_long) map(dx, y, n * size, [](T out) { return vmath::exp(out); });
  } else {
    reduction::row_dots(sums.data(), dy, y, n, size);
  }
  for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r, dx += size, dy += size, y += size) {
    const T sum = static_cast<T>(sums[r]);
    if (logarithm && is_long)
      map(dx, dy, y, size, [=](T g, T out) { return g - vmath::exp(out) * sum; });
    else if (logarithm)
      map_row(
          dx, size, [=](const auto& g, const auto& share) { return g - share * sum; }, dy, dx);
    else
      map_row(
          dx, size, [=](const auto& g, const auto& out) { return out * (g - sum); }, dy, y);
  }
}

template <class T>
void backward_columns(T* dx, const T* dy, const T* y, int64_t size, int64_t stride, int64_t n,
                      bool logarithm) {
  alignas(64) Block<double> sums{};
  alignas(64) Block<T> rounded;
  const auto add = [](double sum, T g) { return sum + static_cast<double>(g); };
  const auto add_product = [](double sum, T g, T out) {
    return sum + static_cast<double>(g) * static_cast<double>(out);
  };
  for (int64_t at = 0; at < size * stride; at += stride) {
    if (logarithm)
      map(sums.data(), sums.data(), dy + at, n, add);
    else
      map(sums.data(), sums.data(), dy + at, y + at, n, add_product);
  }
  map(rounded.data(), sums.data(), n, [](double sum) { return static_cast<T>(sum); });
  const auto from_logarithm = [](T g, T out, T sum) { return g - vmath::exp(out) * sum; };
  const auto from_share = [](T g, T out, T sum) { return out * (g - sum); };
  for (int64_t at = 0; at < size * stride; at += stride) {
    if (logarithm)
      map(dx + at, dy + at, y + at, rounded.data(), n, from_logarithm);
    else
      map(dx + at, dy + at, y + at, rounded.data(), n, from_share);
  }
}

/// x in the type and with the strides of `like`.
Tensor laid_out_as(const Tensor& like, const Tensor& x) {
  if (x.dtype() == like.dtype() && x.strides() == like.strides()) return x;
  const Tensor y = empty_like(like);
  copy_into(y, x);
  return y;
}

/// Of a dense y, and dy of any strides.
template <class T>
Tensor gradient_of(const char* op, const Tensor& given_dy, const Tensor& y, int64_t dim, bool logarithm) {
  const Lines lines(op, y, dim);
  if (has_few_beside(lines) && !has_few_in_blocks<T>(lines))
    return dim_back(gradient_of<T>(op, dim_last(given_dy, dim), dim_last(y, dim), -1, logarithm), dim, y);
  const Tensor dy = laid_out_as(y, given_dy);
  const Tensor dx = empty_like(y);
  for_lines(
      lines,
      [=](T* to, const T* gradient, const T* result, int64_t size, int64_t n) {
        backward_rows(to, gradient, result, size, n, logarithm);
      },
      [=](T* to, const T* gradient, const T* result, int64_t size, int64_t stride, int64_t n) {
        backward_columns(to, gradient, result, size, stride, n, logarithm);
      },
      dx.data<T>(), static_cast<const T*>(dy.data<T>()), static_cast<const T*>(y.data<T>()));
  return dx;
}

}  // namespace

Tensor softmax_forward(const char* op, const Tensor& given, int64_t dim, bool logarithm) {
  const DType dtype = floating_result(given.dtype());
  if constexpr (with_cuda)
    if (given.device().is_cuda()) {
      const Tensor x = dense(cast(given, dtype));
      const Tensor y = empty_like(x);
      softmax_cuda(op, y, x, Lines(op, x, dim), logarithm);
      return y;
    }
  return dispatch_floating(op, dtype, [&]<class T>(Type<T>) {
    return cast(softmax_of<T>(op, dense(cast(given, dtype_of<T>())), dim, logarithm), dtype);
  });
}

Tensor softmax_backward(const char* op, const Tensor& given_dy, const Tensor& given_y, int64_t dim,
                        bool logarithm) {
  check<ShapeError>(given_dy.shape() == given_y.shape(), "{}: the gradient has shape {}, the result {}", op,
                    given_dy.shape(), given_y.shape());
  check<DeviceError>(given_dy.device() == given_y.device(),
                     "{}: gradient and result must be on one device, got {} and {}", op, given_dy, given_y);
  const DType dtype = promote(given_dy.dtype(), given_y.dtype());
  check_types<Floating>(op, dtype);
  if constexpr (with_cuda)
    if (given_y.device().is_cuda()) {
      const Tensor y = dense(cast(given_y, dtype));
      const Tensor dx = empty_like(y);
      softmax_backward_cuda(op, dx, laid_out_as(y, given_dy), y, Lines(op, y, dim), logarithm);
      return dx;
    }
  return dispatch_floating(op, dtype, [&]<class T>(Type<T>) {
    return cast(gradient_of<T>(op, given_dy, dense(cast(given_y, dtype_of<T>())), dim, logarithm), dtype);
  });
}

}  // namespace pleat::ops
