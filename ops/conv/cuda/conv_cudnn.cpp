#include <array>
#include <cmath>
#include <cstdint>
#include <list>
#include <mutex>

#include <fmt/format.h>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/cuda/cudnn_plan.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/shape/shape.h"

/// The implementation `cudnn`: runs a plan of cuDNN's on operands at addresses that it takes. Kinds of
/// problems in which cuDNN has had faults are compared with the reference at their first use.

namespace pleat::ops {
namespace {

/// An operand that is read, at an address that plans take; results are fresh tensors, which are aligned.
Tensor aligned(const Tensor& t) { return reinterpret_cast<std::uintptr_t>(t.raw()) % 16 == 0 ? t : copy(t); }

/// The tensors of a pass; one of x, w and y is its result.
struct Operands {
  Tensor x, w, bias, y;
};

void execute(const CudnnKey& key, const Operands& operands) {
  const Device device = key.problem.device;
  const cuda::DeviceGuard guard(device);
  const cudnnHandle_t handle = cuda::dnn_handle(device);
  const CudnnPlan& plan = cudnn_plan(key, handle);
  const Tensor workspace = empty({plan.workspace}, {.dtype = uint8, .device = device});
  const std::array<int64_t, 4> ids = {cudnn_input_id, cudnn_weight_id, cudnn_output_id, cudnn_bias_id};
  const std::array<void*, 4> data = {operands.x.raw(), operands.w.raw(), operands.y.raw(),
                                     plan.adds_bias ? operands.bias.raw() : nullptr};
  const int64_t count = plan.adds_bias ? 4 : 3;
  void* const memory = workspace.raw();
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &memory);
  pack.finalize();
  const cudnnStatus_t status = cudnnBackendExecute(handle, plan.descriptor.raw(), pack.raw());
  if (status != CUDNN_STATUS_SUCCESS) {
    const std::string what = fmt::format("conv: plan {} for the {} (another implementation: \"unfold\")",
                                         plan.name, key.describe());
    cuda::check_dnn(status, what.c_str());
  }
  if (operands.bias.defined() && !plan.adds_bias)
    add_into(operands.y, operands.y, no_grad([&] {
               return reshape(operands.bias, {operands.bias.numel(), 1, 1, 1});
             }));
}

/// Faults that are not known yet, see known_fault: a kind of problem of three dimensions is compared with the
/// reference at its first use, and refused when it differs.
void check_first_use(const CudnnKey& key, const Operands& operands) {
  if (!has_depth(key.problem)) return;
  static auto& mutex = *new ForkMutex<std::mutex>;
  static auto& known = *new std::list<CudnnKey>;
  {
    const std::lock_guard lock(mutex);
    for (const CudnnKey& one : known)
      if (one == key) return;
  }
  // As large as rounding of the inputs to the type's mantissa can explain, with a margin.
  const ConvProblem& p = key.problem;
  const bool half = is_half(p.dtype) || (p.dtype == float32 && p.precision != Precision::highest);
  const double tolerance = half ? 3e-2 : p.dtype == float32 ? 1e-3 : 1e-9;
  const double error = reference_error(p, key.pass, operands.x, operands.w, operands.bias, operands.y);
  if (std::isnan(error)) return;  // the next call may show it
  check<DeviceError>(
      error <= tolerance,
      "conv: cuDNN {} computes the {} wrongly{}: relative error {:.1e}; use another implementation "
      "(\"unfold\") or another version of cuDNN",
      cuda::cudnn_version(), key.describe(),
      key.plan.empty() ? std::string() : fmt::format(" by plan {}", key.plan), error);
  const std::lock_guard lock(mutex);
  known.push_front(key);
  if (known.size() > 1024) known.pop_back();
}

class CudnnConv : public ConvImplementation {
 public:
  explicit CudnnConv(std::string plan = {})
      : plan_(std::move(plan)), name_(plan_.empty() ? "cudnn" : "cudnn:" + plan_) {}

  std::string_view name() const override { return name_; }
  bool runs_on(Device device) const override { return device.is_cuda(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    if (!problem.device.is_cuda()) return "it runs on CUDA";
    return known_fault(solved_problem(problem, *this), cuda::cudnn_version());
  }
  ConvLayout layout(const ConvProblem& p) const override {
    // float64 is known to cuDNN in row-major order only.
    if (p.dtype == float64) return ConvLayout::nchw;
    // A (1, 3, 3) kernel over contiguous videos: there is no one distance from slice to slice, and
    // conversions cost less than three dimensions do.
    if (p.is_pointwise(0) && p.input[0] > 1 && p.batch > 1) return ConvLayout::nhwc;
    return requested_layout(p);
  }
  bool takes(DType) const override { return true; }
  double cost(const ConvProblem& p, ConvPass) const override { return static_cast<double>(p.flops()) / 2; }
  int64_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const override {
    if (problem.batch == 0) return 0;
    const cuda::DeviceGuard guard(problem.device);
    return cudnn_plan(key_of(problem, pass), cuda::dnn_handle(problem.device)).workspace;
  }
  std::vector<std::string> plans(const ConvProblem& problem, ConvPass pass) const override {
    const cuda::DeviceGuard guard(problem.device);
    return cudnn_plan_names(key_of(problem, pass), cudnn_target(cuda::dnn_handle(problem.device)));
  }
  std::shared_ptr<const ConvImplementation> with_plan(const std::string& plan) const override {
    return std::make_shared<CudnnConv>(plan);
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    run(key_of(p, ConvPass::forward), {aligned(x), aligned(w), bias.defined() ? aligned(bias) : bias, y});
  }
  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    run(key_of(p, ConvPass::backward_input), {dx, aligned(w), {}, aligned(dy)});
  }
  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    run(key_of(p, ConvPass::backward_weight), {aligned(x), dw, {}, aligned(dy)});
  }

 private:
  CudnnKey key_of(const ConvProblem& problem, ConvPass pass) const {
    const ConvPolicyOptions& policy = ConvPolicy::current();
    return {problem, pass, policy.deterministic, policy.workspace_limit, plan_};
  }

  static void run(const CudnnKey& key, const Operands& operands) {
    execute(key, operands);
    check_first_use(key, operands);
  }

  std::string plan_;
  std::string name_;
};

}  // namespace

const ConvImplementation* cudnn_conv() {
  static const auto* const implementation = new CudnnConv;
  return implementation;
}

}  // namespace pleat::ops
