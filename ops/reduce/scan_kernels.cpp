// Host and device.
#include "pleat/ops/reduce/scan_kernels.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/lines.h"
#include "pleat/ops/reduce/scan_cpu.h"
#include "pleat/ops/reduce/scan_kernel.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {

using namespace reduction;

namespace {

template <class Step>
Tensor running(const char* op, const Tensor& x, int64_t dim, bool reverse, Step step) {
  const RecordOp range(op, x);
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : int64;
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      const Tensor in = dense(x);
      const Tensor out = empty_as(std::array{in}, in.shape(), dtype);
      const auto run = [&]<class T>(Type<T>) {
        using Scan = scans::Running<T, Step>;
        scans::scan_lines<Scan>(op, x.device(), Lines(op, in, dim), reverse,
                                scans::ElementSource<T, typename Scan::State>{in.raw(), in.dtype()},
                                scans::ResultSink<T>{out.raw(), out.dtype()});
      };
      is_floating(x.dtype()) ? run(Type<double>{}) : run(Type<int64_t>{});
      return out;
    }
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    const Tensor in = dense(cast(x, dtype_of<T>()));
    const Tensor out = empty_like(in);
    scan_on_cpu(Lines(op, in, dim), reverse, step, in.data<T>(), out.data<T>());
    return cast(out, dtype);
  });
}

}  // namespace

Tensor cumsum(const Tensor& x, Integer dim, Flag reverse) {
  return running("cumsum", x, dim, reverse, Plus{});
}

Tensor cumprod(const Tensor& x, Integer dim, Flag reverse) {
  return running("cumprod", x, dim, reverse, Times{});
}

Tensor linear_scan(const Tensor& a, const Tensor& b, Integer dim, Flag reverse) {
  const RecordOp range("linear_scan", a, b);
  check<ShapeError>(a.shape() == b.shape(), "linear_scan: a and b must have one shape, got {} and {}", a, b);
  check<DTypeError>(a.dtype() == b.dtype() && is_floating(a.dtype()),
                    "linear_scan: a and b must have one floating type, got {} and {}", a, b);
  check<DeviceError>(a.device() == b.device(), "linear_scan: a and b must be on one device, got {} and {}", a,
                     b);
  if constexpr (with_cuda)
    if (a.device().is_cuda()) {
      const Tensor out = empty(a.shape(), {.dtype = a.dtype(), .device = a.device()});
      const Tensor factors = to_format(a, MemoryFormat::contiguous);
      const Tensor terms = to_format(b, MemoryFormat::contiguous);
      const Lines lines("linear_scan", out, dim);
      scans::scan_lines<scans::Recurrence>(
          "linear_scan", out.device(), lines, reverse,
          scans::PairSource{factors.raw(), terms.raw(), a.dtype(), reverse ? lines.inner : 0, a.numel()},
          scans::ResultSink<double>{out.raw(), out.dtype()});
      return out;
    }
  return dispatch_read_floating(a.dtype(), [&]<class T>(Type<T>) {
    const Tensor factors = to_format(cast(a, dtype_of<T>()), MemoryFormat::contiguous);
    const Tensor terms = to_format(cast(b, dtype_of<T>()), MemoryFormat::contiguous);
    const Tensor out = empty(a.shape(), {.dtype = dtype_of<T>(), .device = Device()});
    recur_on_cpu(Lines("linear_scan", out, dim), reverse, factors.data<T>(), terms.data<T>(), out.data<T>());
    return cast(out, a.dtype());
  });
}

Tensor shifted(const Tensor& x, Integer dim, Integer by, Real fill) {
  const RecordOp range("shifted", x);
  const Tensor out = full_like(x, double{fill});
  if (x.rank() == 0) {
    normalize_dim(dim, 0, "shifted");
    if (by == 0) copy_into(out, x);
    return out;
  }
  const int64_t size = x.size(dim);
  const int64_t distance = std::clamp<int64_t>(by, -size, size);
  const int64_t moved = size - std::abs(distance);
  if (moved > 0)
    copy_into(narrow(out, dim, std::max<int64_t>(distance, 0), moved),
              narrow(x, dim, std::max<int64_t>(-distance, 0), moved));
  return out;
}

}  // namespace pleat::ops
