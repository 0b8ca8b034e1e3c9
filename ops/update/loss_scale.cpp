// Host and device.
#include "pleat/ops/update/loss_scale.h"

#include <cstring>
#include <limits>

#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"

namespace pleat::ops {
namespace {

constexpr const char* op = "GradScaler";

struct PutLossScale {
  LossScale* scale;
  LossScale value;

  PLEAT_HOST_DEVICE void operator()(int64_t) const { *scale = value; }
};

struct PutLossFactor {
  LossScale* scale;
  double factor;

  PLEAT_HOST_DEVICE void operator()(int64_t) const {
    scale->scale = factor;
    scale->inverse = 1 / factor;
  }
};

template <class T>
struct CopyLossFactor {
  const LossScale* scale;
  T* to;

  PLEAT_HOST_DEVICE void operator()(int64_t) const { *to = static_cast<T>(scale->scale); }
};

struct NextLossScale {
  LossScale* scale;
  const int32_t* found;

  PLEAT_HOST_DEVICE void operator()(int64_t) const {
    constexpr double least = std::numeric_limits<float>::min();
    LossScale s = *scale;
    s.stuck = 0;
    if (*found != 0) {
      const double smaller = s.scale * s.backoff_factor;
      s.growth_tracker = 0;
      if (smaller >= least)
        s.scale = smaller;
      else
        s.stuck = 1;
    } else if (++s.growth_tracker == s.growth_interval) {
      const double larger = s.scale * s.growth_factor;
      // Gradients are multiplied by its reciprocal.
      if (1 / larger >= least) s.scale = larger;
      s.growth_tracker = 0;
    }
    s.inverse = 1 / s.scale;
    *scale = s;
  }
};

struct JoinFound {
  int32_t* into;
  const int32_t* from;

  PLEAT_HOST_DEVICE void operator()(int64_t) const {
    if (*from != 0) *into = 1;
  }
};

LossScale* pointer(const Tensor& scale) { return reinterpret_cast<LossScale*>(scale.raw()); }

template <class F>
void run(Device device, const F& f) {
  for_each_index(op, device, 1, f);
}

}  // namespace

Tensor make_loss_scale(const LossScale& value, Device device) {
  const Tensor scale = empty({sizeof(LossScale)}, {.dtype = uint8, .device = device});
  put_loss_scale(scale, value);
  return scale;
}

LossScale read_loss_scale(const Tensor& scale) { return loss_scale_of(to_device(scale, Device())); }

LossScale loss_scale_of(const Tensor& bytes) {
  LossScale value;
  std::memcpy(&value, bytes.raw(), sizeof value);
  return value;
}

void put_loss_scale(const Tensor& scale, const LossScale& value) {
  run(scale.device(), PutLossScale{pointer(scale), value});
}

void put_loss_factor(const Tensor& scale, double factor) {
  run(scale.device(), PutLossFactor{pointer(scale), factor});
}

Tensor loss_factor(const Tensor& scale, DType dtype) {
  const Tensor factor = empty({}, {.dtype = dtype, .device = scale.device()});
  if (dtype == float64)
    run(scale.device(), CopyLossFactor<double>{pointer(scale), factor.data<double>()});
  else
    run(scale.device(), CopyLossFactor<float>{pointer(scale), factor.data<float>()});
  return factor;
}

const double* inverse_loss_factor(const Tensor& scale) { return &pointer(scale)->inverse; }

void next_loss_scale(const Tensor& scale, const Tensor& found) {
  run(scale.device(), NextLossScale{pointer(scale), found.data<int32_t>()});
}

void join_found(const Tensor& into, const Tensor& from) {
  const Tensor here = to_device(from, into.device());
  run(into.device(), JoinFound{into.data<int32_t>(), here.data<int32_t>()});
}

}  // namespace pleat::ops
