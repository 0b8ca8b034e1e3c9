// Host and device.
#include "pleat/ops/reduce/scan_kernels.h"

#include <array>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/reduce/lines.h"
#include "pleat/ops/reduce/scan_kernel.h"

namespace pleat::ops {
namespace {

template <class T, class Step>
void run(const char* op, const Tensor& x, int64_t dim, bool reverse, const Tensor& y) {
  using Scan = scans::Running<T, Step>;
  if constexpr (with_cuda)
    scans::scan_lines<Scan>(op, x.device(), Lines(op, x, dim), reverse,
                            scans::ElementSource<T, typename Scan::State>{x.raw(), x.dtype()},
                            scans::ResultSink<T>{y.raw(), y.dtype()});
}

}  // namespace

Tensor running(const char* op, const Tensor& x, int64_t dim, bool reverse, bool is_product) {
  if (x.device().is_cuda()) {
    const Tensor in = dense(x);
    const Tensor out = empty_as(std::array{in}, in.shape(), is_floating(x.dtype()) ? x.dtype() : int64);
    const auto by_type = [&]<class T>(Type<T>) {
      is_product ? run<T, Times>(op, in, dim, reverse, out) : run<T, Plus>(op, in, dim, reverse, out);
    };
    is_floating(x.dtype()) ? by_type(Type<double>{}) : by_type(Type<int64_t>{});
    return out;
  }
  return running_on_cpu(op, x, dim, reverse, is_product);
}

Tensor recurrence(const Tensor& a, const Tensor& b, int64_t dim, bool reverse) {
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
  return recurrence_on_cpu(a, b, dim, reverse);
}

}  // namespace pleat::ops
