#include "pleat/ops/shape/pad_kernels.h"

#include <algorithm>
#include <numeric>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"

namespace pleat::ops {
namespace {

/// One dimension of the loop over the padded tensor: its step there, and in the other one either a step or,
/// where it is padded, an offset for each place.
struct LoopDim {
  int64_t size = 1;
  int64_t padded_step = 0;
  int64_t step = 0;
  std::vector<int64_t> offsets;
  /// Places [begin, end) follow one another in the other tensor, too, from `first` on.
  int64_t begin = 0;
  int64_t end = 1;
  int64_t first = 0;

  int64_t offset(int64_t i) const {
    return offsets.empty() ? i * step : offsets[static_cast<std::size_t>(i)];
  }
};

/// A loop over all elements of `padded`, each with the one of `plain` that it is read from. Dimensions that
/// are not padded are divided among threads: then no two of them use the same element of `plain`.
class PaddedLoop {
 public:
  PaddedLoop(const Tensor& padded, const Tensor& plain, const std::vector<PadWidths>& widths, PadMode mode) {
    std::vector<std::size_t> order(padded.shape().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return padded.strides()[a] > padded.strides()[b]; });
    std::erase_if(order, [&](std::size_t d) { return padded.shape()[d] == 1 && plain.shape()[d] == 1; });
    for (const std::size_t d : order) {
      LoopDim dim{padded.shape()[d], padded.strides()[d], plain.strides()[d], {}};
      dim.begin = std::clamp<int64_t>(widths[d].before, 0, dim.size);
      dim.first = dim.begin - widths[d].before;
      dim.end = std::clamp(plain.shape()[d] + widths[d].before, dim.begin, dim.size);
      const bool is_padded = widths[d].before != 0 || widths[d].after != 0;
      if (is_padded) check_host_memory("pad", checked_multiply(dim.size, sizeof(int64_t), "pad"));
      if (is_padded)
        for (int64_t i = 0; i < dim.size; ++i)
          dim.offsets.push_back(pad_source(mode, i - widths[d].before, plain.shape()[d]) * dim.step);
      if (d == order.back())
        run_ = std::move(dim);
      else
        (is_padded ? inner_ : outer_).push_back(std::move(dim));
    }
  }

  /// Calls `visit(T& padded, T& plain)` for all pairs.
  template <class T, class Visit>
  void for_each(T* padded, T* plain, const Visit& visit) const {
    int64_t outer = 1;
    int64_t inner = 1;
    for (const LoopDim& dim : outer_) outer *= dim.size;
    for (const LoopDim& dim : inner_) inner *= dim.size;
    if (outer == 0 || inner == 0 || run_.size == 0) return;
    const int64_t work = inner * run_.size;
    parallel_for(0, outer, std::max<int64_t>(1, 16384 / work), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          T* p = padded;
          T* q = plain;
          move(outer_, o, p, q);
          move(inner_, i, p, q);
          visit_places(p, q, 0, run_.begin, visit);
          visit_run(p + run_.begin * run_.padded_step, q + run_.first * run_.step, visit);
          visit_places(p, q, run_.end, run_.size, visit);
        }
    });
  }

 private:
  /// What is padded of the densest dimension.
  template <class T, class Visit>
  void visit_places(T* p, T* q, int64_t first, int64_t last, const Visit& visit) const {
    for (int64_t r = first; r < last; ++r)
      visit(p[r * run_.padded_step], q[run_.offsets[static_cast<std::size_t>(r)]]);
  }

  /// The rest, where it is read as it lies.
  template <class T, class Visit>
  void visit_run(T* p, T* q, const Visit& visit) const {
    const int64_t n = run_.end - run_.begin;
    if (run_.padded_step == 1 && run_.step == 1) {
      PLEAT_INDEPENDENT_ITERATIONS
      for (int64_t r = 0; r < n; ++r) visit(p[r], q[r]);
    } else {
      for (int64_t r = 0; r < n; ++r) visit(p[r * run_.padded_step], q[r * run_.step]);
    }
  }

  template <class T>
  static void move(const std::vector<LoopDim>& dims, int64_t index, T*& padded, T*& plain) {
    for (std::size_t d = dims.size(); d-- > 0;) {
      const int64_t i = d == 0 ? index : index % dims[d].size;
      if (d > 0) index /= dims[d].size;
      padded += i * dims[d].padded_step;
      plain += dims[d].offset(i);
    }
  }

  std::vector<LoopDim> outer_;  // not padded
  std::vector<LoopDim> inner_;  // padded
  LoopDim run_;                 // the densest
};

}  // namespace

Tensor pad_forward(const Tensor& x, const Shape& shape, const std::vector<PadWidths>& widths, PadMode mode) {
  const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device(), .format = x.memory_format()});
  if (y.numel() == 0) return y;
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      pad_cuda(y, x, widths, mode);
      return y;
    }
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    PaddedLoop(y, x, widths, mode).for_each(y.data<T>(), x.data<T>(), [](T& padded, const T& plain) {
      padded = plain;
    });
  });
  return y;
}

Tensor pad_backward(const Tensor& dy, const Shape& shape, const std::vector<PadWidths>& widths,
                    PadMode mode) {
  const bool on_gpu = with_cuda && dy.device().is_cuda();
  const Tensor wide = on_gpu ? dy : cast(dy, compute_dtype(dy.dtype()));
  const TensorOptions like{.dtype = wide.dtype(), .device = dy.device(), .format = dy.memory_format()};
  if constexpr (with_cuda)
    if (on_gpu && dy.numel() > 0) {
      const Tensor dx = empty(shape, like);
      pad_backward_cuda(dx, dy, widths, mode);
      return dx;
    }
  const Tensor dx = zeros(shape, like);
  const auto add = [&]<class T>(Type<T>) {
    PaddedLoop(wide, dx, widths, mode).for_each(wide.data<T>(), dx.data<T>(), [](const T& padded, T& plain) {
      plain += padded;
    });
  };
  if (dy.numel() > 0) wide.dtype() == float64 ? add(Type<double>{}) : add(Type<float>{});
  return cast(dx, dy.dtype());
}

}  // namespace pleat::ops
