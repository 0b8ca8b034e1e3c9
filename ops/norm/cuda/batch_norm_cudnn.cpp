#include <limits>
#include <utility>

#include <cudnn.h>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/cuda_handles.h"
#include "pleat/core/kernels/cudnn_types.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/limit.h"
#include "pleat/ops/norm/cuda/norm_cuda.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/running_statistics.h"

/// cuDNN's cudnnBatchNormalization functions. They read parameters and give statistics in float32 (float64
/// beside float64). Running statistics are not left to them: Pleat's are of other types and momenta. Adding a
/// residual and a relu or its like are passes of their own here: cuDNN fuses them for few layouts and types
/// only, and then wants the result back in backward.

namespace pleat::ops {
namespace {

constexpr const char* op = "batch_norm";

/// A cudnnTensorDescriptor_t that is destroyed with its owner.
class Descriptor {
 public:
  Descriptor() { cuda::check_dnn(cudnnCreateTensorDescriptor(&descriptor_), op); }
  ~Descriptor() { cudnnDestroyTensorDescriptor(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  cudnnTensorDescriptor_t get() const { return descriptor_; }

 private:
  cudnnTensorDescriptor_t descriptor_ = nullptr;
};

/// The persistent mode may be faster; in contiguous tensors it limits the range of values. cuDNN's own kernel
/// for channels-last float16 needs the functions ending in Ex, with memory that is kept until backward.
cudnnBatchNormMode_t mode_of(const BatchNormProblem& problem) {
  const bool rows = problem.view.channels_last && problem.view.pixels > 1;
  return problem.training && rows ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
}

/// What one call works with: descriptors, and the numbers in the types that cuDNN takes.
class Call {
 public:
  explicit Call(const BatchNormProblem& problem)
      : problem_(problem), guard_(problem.device), handle_(cuda::dnn_handle(problem.device)) {
    const ChannelView& view = problem.view;
    const auto images = static_cast<int>(view.images);
    const auto channels = static_cast<int>(view.channels);
    const auto pixels = static_cast<int>(view.pixels);
    const bool last = view.channels_last;
    cuda::check_dnn(cudnnSetTensor4dDescriptorEx(x_.get(), cuda::dnn_type(problem.dtype), images, channels,
                                                 pixels, 1, channels * pixels, last ? 1 : pixels,
                                                 last ? channels : 1, last ? channels : 1),
                    op);
    cuda::check_dnn(cudnnDeriveBNTensorDescriptor(channels_.get(), x_.get(), mode_of(problem)), op);
  }

  cudnnHandle_t handle() const { return handle_; }
  cudnnBatchNormMode_t mode() const { return mode_of(problem_); }
  /// Of x, y, dy and dx.
  cudnnTensorDescriptor_t x() const { return x_.get(); }
  /// Of everything that has a number for each channel.
  cudnnTensorDescriptor_t channels() const { return channels_.get(); }

  /// Factors of the results: 1, and 0 for what was there before.
  const void* one() const { return in_double() ? static_cast<const void*>(&ones_) : &one_; }
  const void* zero() const { return in_double() ? static_cast<const void*>(&zeros_) : &zero_; }

  Tensor numbers(const Tensor& t, double otherwise) const {
    const TensorOptions options = number_options();
    if (!t.defined()) return full({problem_.view.channels}, otherwise, options);
    return to_format(cast(t, options.dtype), MemoryFormat::contiguous);
  }
  Tensor new_numbers() const { return empty({problem_.view.channels}, number_options()); }

 private:
  bool in_double() const { return problem_.dtype == float64; }
  TensorOptions number_options() const {
    return {.dtype = in_double() ? float64 : float32, .device = problem_.device};
  }

  const BatchNormProblem& problem_;
  cuda::DeviceGuard guard_;
  cudnnHandle_t handle_;
  Descriptor x_, channels_;
  float one_ = 1, zero_ = 0;
  double ones_ = 1, zeros_ = 0;
};

class CudnnBatchNorm final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "cudnn"; }
  bool runs_on(Device device) const override { return device.is_cuda(); }
  std::string unsupported(const BatchNormProblem& problem, BatchNormPass pass) const override {
    // What PyTorch found to be the largest batches that cuDNN takes in this mode.
    const int64_t most_images = problem.training ? 880801 : 65535;
    if (!problem.device.is_cuda()) return "it runs on CUDA";
    if (pass == BatchNormPass::backward && !problem.training)
      return "cuDNN has no backward pass of evaluation, where statistics are constants";
    if (problem.view.numel() > std::numeric_limits<int>::max()) return "cuDNN counts elements in 32 bits";
    if (problem.view.images > most_images)
      return fmt::format("cuDNN takes at most {} images here", most_images);
    if (problem.eps < CUDNN_BN_MIN_EPSILON)
      return fmt::format("cuDNN needs an eps of at least {}", CUDNN_BN_MIN_EPSILON);
    return {};
  }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    const Call call(problem);
    const Tensor weight = call.numbers(t.weight, 1);
    const Tensor bias = call.numbers(t.bias, 0);
    if (problem.training) {
      const Tensor mean = call.new_numbers();
      const Tensor rstd = call.new_numbers();
      cuda::check_dnn(cudnnBatchNormalizationForwardTraining(
                          call.handle(), call.mode(), call.one(), call.zero(), call.x(), t.x.raw(), call.x(),
                          t.y.raw(), call.channels(), weight.raw(), bias.raw(), 1, nullptr, nullptr,
                          problem.eps, mean.raw(), rstd.raw()),
                      op);
      copy_into(t.mean, mean);
      copy_into(t.rstd, rstd);
      variance_from_reciprocal(t.rstd, problem.eps, t.variance);
    } else {
      const Tensor mean = call.numbers(t.mean, 0);
      const Tensor variance = call.numbers(t.variance, 1);
      cuda::check_dnn(
          cudnnBatchNormalizationForwardInference(
              call.handle(), call.mode(), call.one(), call.zero(), call.x(), t.x.raw(), call.x(), t.y.raw(),
              call.channels(), weight.raw(), bias.raw(), mean.raw(), variance.raw(), problem.eps),
          op);
    }
    if (t.residual.defined()) add_into(t.y, t.y, t.residual);
    if (problem.bounds.any()) limit_into(t.y, t.y, problem.bounds);
    if (problem.training && t.running.defined()) update_running(t.running, t.mean, t.variance);
  }

  void backward(const BatchNormProblem& problem, const BatchNormBackward& t) const override {
    const Call call(problem);
    const Tensor dy = problem.bounds.any() ? open_gradient(problem, t) : t.dy;
    const Tensor dx = t.dx.defined() ? t.dx : empty_like(t.x);
    const Tensor weight = call.numbers(t.weight, 1);
    const Tensor mean = call.numbers(t.mean, 0);
    const Tensor rstd = call.numbers(t.rstd, 1);
    const Tensor dweight = call.new_numbers();
    const Tensor dbias = call.new_numbers();
    cuda::check_dnn(cudnnBatchNormalizationBackward(
                        call.handle(), call.mode(), call.one(), call.zero(), call.one(), call.zero(),
                        call.x(), t.x.raw(), call.x(), dy.raw(), call.x(), dx.raw(), call.channels(),
                        weight.raw(), dweight.raw(), dbias.raw(), problem.eps, mean.raw(), rstd.raw()),
                    op);
    copy_into(t.dweight, dweight);
    copy_into(t.dbias, dbias);
  }
};

}  // namespace

const BatchNormImplementation* cudnn_batch_norm() {
  static const auto* const implementation = new CudnnBatchNorm;
  return implementation;
}

}  // namespace pleat::ops
