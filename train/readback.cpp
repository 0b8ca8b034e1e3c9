#include "pleat/train/readback.h"

#include "pleat/core/tensor/copy.h"

namespace pleat::train {

Readback::Readback(const Tensor& number) : number_(number.detach()) {
  const Device device = number.device();
  if (device.is_cpu()) return;
  number_ = ops::to_device(number_, Device(), {.non_blocking = true});
  done_.emplace(cuda::EventOptions{.device = device});
  done_->record();
}

double Readback::value() const {
  if (!is_ready()) done_->synchronize();
  return number_.item();
}

}  // namespace pleat::train
