#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <cudnn.h>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/cuda.h"
#include "pleat/core/cuda_handles.h"
#include "pleat/core/format.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/reference_check.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/view.h"

/// cuDNN through its graph interface: a graph of one convolution, engines proposed by cuDNN's heuristics, and
/// the first of them whose properties and workspace are allowed becomes a plan. Plans are kept by everything
/// they depend on.

namespace pleat::ops {
namespace {

constexpr const char* op = "conv";

// --- Descriptors
// ---------------------------------------------------------------------------------------------------

/// A cudnnBackendDescriptor_t that is destroyed with its owner.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    cuda::check_dnn(cudnnBackendCreateDescriptor(type, &descriptor_), op);
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values) {
    cuda::check_dnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values), op);
  }
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  void set_number(cudnnBackendAttributeName_t name, double value, bool in_double) {
    const auto single = static_cast<float>(value);
    if (in_double)
      set(name, CUDNN_TYPE_DOUBLE, 1, &value);
    else
      set(name, CUDNN_TYPE_FLOAT, 1, &single);
  }
  void finalize() { cuda::check_dnn(cudnnBackendFinalize(descriptor_), op); }
  /// Whether cuDNN takes it: an engine may turn out not to support a graph.
  bool try_finalize() { return cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS; }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case float64:
      return CUDNN_DATA_DOUBLE;
    case float16:
      return CUDNN_DATA_HALF;
    case bfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

// --- Problems
// ------------------------------------------------------------------------------------------------------

/// What a plan depends on: the key of the cache, compared whole.
struct Key {
  ConvProblem problem;
  ConvPass pass;
  bool deterministic;
  int64_t workspace_limit;

  bool operator==(const Key&) const = default;
};

Key key_of(const ConvProblem& problem, ConvPass pass) {
  const ConvPolicyOptions& policy = ConvPolicy::current();
  return {problem, pass, policy.deterministic, policy.workspace_limit};
}

/// float64 is known to cuDNN in row-major order only.
bool is_channels_last(const ConvProblem& p) { return p.dtype != float64; }

/// Two spatial dimensions are the best supported number: one of size 1 in front is left away.
bool needs_depth(const ConvProblem& p) { return p.input[0] != 1 || p.kernel[0] != 1 || p.output[0] != 1; }

std::vector<int64_t> spatial(const ConvProblem& p, const Spatial& values) {
  if (needs_depth(p)) return {values[0], values[1], values[2]};
  return {values[1], values[2]};
}

Descriptor tensor(const ConvProblem& p, int64_t id, int64_t outer, int64_t channels, const Spatial& sizes) {
  Shape dims = {outer, channels};
  for (const int64_t size : spatial(p, sizes)) dims.push_back(size);
  const Strides strides =
      dense_strides(dims, is_channels_last(p) ? MemoryFormat::channels_last : MemoryFormat::contiguous);
  Descriptor result(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const cudnnDataType_t type = data_type(p.dtype);
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  result.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<int64_t>(dims.begin(), dims.end()));
  result.set(CUDNN_ATTR_TENSOR_STRIDES, std::vector<int64_t>(strides.begin(), strides.end()));
  result.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  result.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  result.finalize();
  return result;
}

constexpr int64_t input_id = 'x';
constexpr int64_t weight_id = 'w';
constexpr int64_t output_id = 'y';

/// Names of an operation's attributes for each pass.
struct Attributes {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

Attributes attributes_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvPass::backward_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvPass::backward_weight:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

Descriptor convolution(const ConvProblem& p) {
  Descriptor result(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t compute = p.dtype == float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  result.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  result.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  result.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(spatial(p, p.stride).size()));
  result.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial(p, p.padding_low));
  result.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial(p, p.padding_high));
  result.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(p, p.stride));
  result.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(p, p.dilation));
  result.finalize();
  return result;
}

// --- Plans
// ---------------------------------------------------------------------------------------------------------

struct Plan {
  Descriptor descriptor;
  int64_t workspace = 0;  ///< bytes
};

/// Whether an engine computes what was asked for: not in fewer bits, and, where wanted, always the same.
bool is_allowed(const Key& key, const Descriptor& config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t count = 0;
  cuda::check_dnn(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
                  op);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  cuda::check_dnn(
      cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               static_cast<int64_t>(notes.size()), &count, notes.data()),
      op);
  const bool true_float32 = key.problem.dtype == float32 && key.problem.precision == Precision::highest;
  for (int64_t i = 0; i < count; ++i) {
    const cudnnBackendNumericalNote_t note = notes[static_cast<std::size_t>(i)];
    if (key.deterministic && note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
    if (true_float32 &&
        (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
      return false;
    // Sums of half types are float32 here as everywhere.
    if (note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) return false;
  }
  return true;
}

std::optional<Plan> make_plan(const Key& key, cudnnHandle_t handle, const Descriptor& config) {
  if (!is_allowed(key, config)) return std::nullopt;
  Plan plan{Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
  plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (!plan.descriptor.try_finalize()) return std::nullopt;
  int64_t count = 0;
  cuda::check_dnn(cudnnBackendGetAttribute(plan.descriptor.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &count, &plan.workspace),
                  op);
  if (plan.workspace > key.workspace_limit) return std::nullopt;
  return plan;
}

std::vector<Descriptor> propose(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  constexpr int64_t most = 32;
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (!heuristics.try_finalize()) return {};
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < most; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().get());
  }
  int64_t count = 0;
  cuda::check_dnn(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, raw.data()),
                  op);
  while (static_cast<int64_t>(configs.size()) > count) configs.pop_back();
  return configs;
}

Plan find_plan(const Key& key, cudnnHandle_t handle) {
  const ConvProblem& p = key.problem;
  const Attributes names = attributes_of(key.pass);
  const Descriptor x = tensor(p, input_id, p.batch, p.in_channels, p.input);
  const Descriptor w = tensor(p, weight_id, p.out_channels, p.group_in(), p.kernel);
  const Descriptor y = tensor(p, output_id, p.batch, p.out_channels, p.output);
  const Descriptor conv = convolution(p);
  Descriptor operation(names.type);
  operation.set(names.x, x);
  operation.set(names.w, w);
  operation.set(names.y, y);
  operation.set(names.convolution, conv);
  operation.set_number(names.alpha, 1, p.dtype == float64);
  operation.set_number(names.beta, 0, p.dtype == float64);
  operation.finalize();

  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();

  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& config : propose(graph, mode))
      if (std::optional<Plan> plan = make_plan(key, handle, config)) return std::move(*plan);
  fail<DeviceError>(
      "conv: cuDNN {} has no plan for the {} pass of {} {} with {} bytes of workspace{}; a larger "
      "workspace_limit in "
      "ConvPolicy or another implementation (\"unfold\") may help",
      cuda::cudnn_version(), name(key.pass), p.describe(), p.dtype, key.workspace_limit,
      key.deterministic ? ", deterministic" : "");
}

/// Plans of one thread, the last used first: plans are bound to the handle, which is the thread's.
Plan& plan_for(const Key& key, cudnnHandle_t handle) {
  constexpr std::size_t most = 512;
  struct Entry {
    Key key;
    cudnnHandle_t handle;
    Plan plan;
  };
  thread_local std::list<Entry> plans;
  for (auto entry = plans.begin(); entry != plans.end(); ++entry)
    if (entry->handle == handle && entry->key == key) {
      plans.splice(plans.begin(), plans, entry);
      return plans.front().plan;
    }
  plans.push_front({key, handle, find_plan(key, handle)});
  if (plans.size() > most) plans.pop_back();
  return plans.front().plan;
}

void execute(const Key& key, const Tensor& x, const Tensor& w, const Tensor& y) {
  const Device device = key.problem.device;
  const cuda::DeviceGuard guard(device);
  const cudnnHandle_t handle = cuda::dnn_handle(device);
  const Plan& plan = plan_for(key, handle);
  const Tensor workspace = empty({plan.workspace}, {.dtype = uint8, .device = device});
  const std::array<int64_t, 3> ids = {input_id, weight_id, output_id};
  const std::array<void*, 3> data = {x.raw(), w.raw(), y.raw()};
  void* const memory = workspace.raw();
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &memory);
  pack.finalize();
  cuda::check_dnn(cudnnBackendExecute(handle, plan.descriptor.get(), pack.get()), op);
}

// --- The implementation
// --------------------------------------------------------------------------------------------

/// At an address that plans take.
Tensor operand(const Tensor& t) { return reinterpret_cast<std::uintptr_t>(t.raw()) % 16 == 0 ? t : copy(t); }

/// Several releases of cuDNN 9 computed convolutions of three dimensions wrongly (9.8 to 9.15 with bfloat16
/// or TF32): a kind of problem is compared with the reference at its first use, and refused when it differs.
void check_first_use(const Key& key, const Tensor& x, const Tensor& w, const Tensor& y) {
  if (!needs_depth(key.problem)) return;
  static std::mutex mutex;
  static std::list<Key> known;
  {
    const std::lock_guard lock(mutex);
    for (const Key& one : known)
      if (one == key) return;
  }
  // As large as rounding of the inputs to the type's mantissa can explain, with a margin.
  const bool half =
      is_half(key.problem.dtype) || (key.problem.dtype == float32 && key.problem.precision != Precision::highest);
  const double tolerance = half ? 3e-2 : key.problem.dtype == float32 ? 1e-3 : 1e-9;
  const double error = reference_error(key.problem, key.pass, x, w, y);
  check<DeviceError>(
      error <= tolerance,
      "conv: cuDNN {} computes the {} pass of {} {} wrongly: relative error {:.1e}; use another "
      "implementation (\"unfold\") or another version of cuDNN",
      cuda::cudnn_version(), name(key.pass), key.problem.describe(), key.problem.dtype, error);
  const std::lock_guard lock(mutex);
  known.push_front(key);
  if (known.size() > 512) known.pop_back();
}

void run(const ConvProblem& p, ConvPass pass, const Tensor& x, const Tensor& w, const Tensor& y) {
  const Key key = key_of(p, pass);
  const Tensor own_x = operand(x);
  const Tensor own_w = operand(w);
  const Tensor own_y = operand(y);
  execute(key, own_x, own_w, own_y);
  check_first_use(key, own_x, own_w, own_y);
}

class CudnnConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "cudnn"; }
  bool runs_on(Device device) const override { return device.is_cuda(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    return problem.device.is_cuda() ? std::string() : std::string("it runs on CUDA");
  }
  ConvLayout layout(const ConvProblem& problem) const override {
    return is_channels_last(problem) ? ConvLayout::rows : ConvLayout::planes;
  }
  bool takes_half() const override { return true; }
  int64_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const override {
    const cuda::DeviceGuard guard(problem.device);
    return plan_for(key_of(problem, pass), cuda::dnn_handle(problem.device)).workspace;
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    run(p, ConvPass::forward, x, w, y);
    if (bias.defined()) add_into(y, y, reshape(bias, {bias.numel(), 1, 1, 1}));
  }
  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    run(p, ConvPass::backward_input, dx, w, dy);
  }
  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    run(p, ConvPass::backward_weight, x, dw, dy);
  }
};

}  // namespace

const ConvImplementation& cudnn_conv() {
  static const CudnnConv implementation;
  return implementation;
}

}  // namespace pleat::ops
