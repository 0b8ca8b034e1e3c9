#include "pleat/ops/conv/cuda/cudnn_plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <list>
#include <optional>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/cudnn_types.h"

/// A problem as a graph of cuDNN's, in all forms that it has for one; plans for it by cuDNN's heuristics,
/// less those that compute something else than was asked for. The plans of a thread are kept.

namespace pleat::ops {
namespace {

cudnnDataType_t compute_type(const ConvProblem& p) {
  return p.dtype == float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/// How a problem is put to cuDNN.
struct Form {
  ConvProblem problem;
  bool with_depth;    ///< three spatial dimensions; else the two inner ones
  bool depth_joined;  ///< the depth is the batch, see depth_is_batch
  bool fuses_bias;
};

std::vector<int64_t> spatial(const Form& form, const Spatial& values) {
  if (form.with_depth) return {values[0], values[1], values[2]};
  return {values[1], values[2]};
}

struct Extent {
  std::vector<int64_t> sizes, strides;
};

/// Of [outer, channels, spatial...], dense in the problem's format.
Extent dense(const Form& form, int64_t outer, int64_t channels, const Spatial& sizes) {
  Shape shape = {outer, channels};
  for (const int64_t size : spatial(form, sizes)) shape.push_back(size);
  const Strides strides = dense_strides(shape, form.problem.format);
  return {{shape.begin(), shape.end()}, {strides.begin(), strides.end()}};
}

/// Of the input or output.
Extent images(const Form& form, int64_t channels, const Spatial& sizes) {
  if (!form.depth_joined) return dense(form, form.problem.batch, channels, sizes);
  const int64_t slice = sizes[1] * sizes[2];
  return {{sizes[0], channels, sizes[1], sizes[2]}, {slice, sizes[0] * slice, sizes[2], 1}};
}

/// A virtual tensor exists inside of the graph only.
CudnnDescriptor tensor(const Extent& extent, cudnnDataType_t type, int64_t id, bool is_virtual = false) {
  CudnnDescriptor result(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  result.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extent.sizes);
  result.set(CUDNN_ATTR_TENSOR_STRIDES, extent.strides);
  result.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  result.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  if (is_virtual) result.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  result.finalize();
  return result;
}

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

CudnnDescriptor convolution(const Form& form) {
  const ConvProblem& p = form.problem;
  CudnnDescriptor result(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t compute = compute_type(p);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  result.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  result.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  result.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(spatial(form, p.stride).size()));
  result.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial(form, p.padding_low));
  result.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial(form, p.padding_high));
  result.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(form, p.stride));
  result.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(form, p.dilation));
  result.finalize();
  return result;
}

CudnnDescriptor addition(const ConvProblem& p) {
  CudnnDescriptor result(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  const cudnnDataType_t compute = compute_type(p);
  result.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  result.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  result.finalize();
  return result;
}

struct Graph {
  Form form;
  std::vector<CudnnDescriptor> parts;  ///< which the graph refers to
  CudnnDescriptor descriptor;
};

/// The graph of a form, or nothing when cuDNN has none like it; `why` is then set.
std::optional<Graph> make_graph(const Form& form, ConvPass pass, const CudnnTarget& target,
                                std::string& why) {
  const ConvProblem& p = form.problem;
  const cudnnDataType_t type = cuda::dnn_type(p.dtype);
  const Extent y_extent = images(form, p.out_channels, p.output);
  CudnnDescriptor x = tensor(images(form, p.in_channels, p.input), type, cudnn_input_id);
  CudnnDescriptor w = tensor(dense(form, p.out_channels, p.group_in(), p.kernel), type, cudnn_weight_id);
  CudnnDescriptor y = tensor(y_extent, type, cudnn_output_id);
  // Sums of half types are rounded once, after the bias.
  CudnnDescriptor sums = tensor(y_extent, compute_type(p), 's', true);
  CudnnDescriptor bias = tensor(dense(form, 1, p.out_channels, Spatial{1, 1, 1}), type, cudnn_bias_id);
  CudnnDescriptor conv = convolution(form);
  const Attributes names = attributes_of(pass);
  CudnnDescriptor operation(names.type);
  operation.set(names.x, x);
  operation.set(names.w, w);
  operation.set(names.y, form.fuses_bias ? sums : y);
  operation.set(names.convolution, conv);
  operation.set_number(names.alpha, 1, p.dtype == float64);
  operation.set_number(names.beta, 0, p.dtype == float64);
  operation.finalize();
  std::vector<cudnnBackendDescriptor_t> operations = {operation.raw()};
  Graph graph{form, {}, CudnnDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)};
  if (form.fuses_bias) {
    CudnnDescriptor pointwise = addition(p);
    CudnnDescriptor add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    add.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    add.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sums);
    add.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias);
    add.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add.finalize();
    operations.push_back(add.raw());
    for (CudnnDescriptor* part : {&pointwise, &add}) graph.parts.push_back(std::move(*part));
  }
  for (CudnnDescriptor* part : {&x, &w, &y, &sums, &bias, &conv, &operation})
    graph.parts.push_back(std::move(*part));
  target.graph(graph.descriptor);
  graph.descriptor.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                       static_cast<int64_t>(operations.size()), operations.data());
  if (const cudnnStatus_t status = graph.descriptor.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    why = cudnnGetErrorString(status);
    return std::nullopt;
  }
  return graph;
}

/// In which a key's problem can be put to cuDNN, the best first.
std::vector<Form> forms_of(const CudnnKey& key) {
  const ConvProblem& p = key.problem;
  std::vector<Form> forms;
  for (const bool joined : {true, false}) {
    if (joined && !depth_is_batch(p)) continue;
    for (const bool fused : {true, false}) {
      if (fused && !(p.bias && key.pass == ConvPass::forward)) continue;
      forms.push_back({p, !joined && has_depth(p), joined, fused});
    }
  }
  return forms;
}

/// Whether an engine computes what was asked for: not in fewer bits, no result with the rounding errors of
/// pixels that it does not read, and, where requested, with the same bits at each run.
bool is_allowed(const CudnnKey& key, const CudnnDescriptor& engine) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   static_cast<int64_t>(notes.size()), notes.data());
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    const auto end = notes.begin() + std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    return std::find(notes.begin(), end, note) != end;
  };
  if (key.deterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (has(CUDNN_NUMERICAL_NOTE_WINOGRAD) || has(CUDNN_NUMERICAL_NOTE_FFT)) return false;
  // Sums of half types are float32 here as everywhere.
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  if (key.problem.dtype != float32) return true;
  // Tensor cores take float32 as TF32 at best.
  if (key.problem.precision == Precision::highest && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return false;
  return key.problem.precision == Precision::medium || !has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
}

/// "eng37_k2=5_k13=1": the engine and what its knobs are set to. It means the same for one problem, device
/// and version of cuDNN, all of which are in the tuner's key.
std::string name_of(const Form& form, const CudnnDescriptor& config, const CudnnDescriptor& engine) {
  int64_t index = 0;
  engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
  std::string name = fmt::format("eng{}", index);
  for (const CudnnDescriptor& choice : config.get(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    cudnnBackendKnobType_t knob{};
    int64_t value = 0;
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob);
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    name += fmt::format("_k{}={}", static_cast<int>(knob), value);
  }
  if (form.problem.bias && !form.fuses_bias) name += "+add";
  if (depth_is_batch(form.problem) && !form.depth_joined) name += "+depth";
  return name;
}

/// Makes the plans of a key (one alone when it names it) in cuDNN's order until `take(plan)` is true. Returns
/// why there was none, in cuDNN's words, for messages.
std::string for_each_plan(const CudnnKey& key, const CudnnTarget& target,
                          const std::function<bool(CudnnPlan&&)>& take) {
  constexpr int64_t most = 64;
  std::string why;
  std::vector<Graph> graphs;
  for (const Form& form : forms_of(key))
    if (auto graph = make_graph(form, key.pass, target, why)) graphs.push_back(std::move(*graph));
  // The fallback engines of the best form come after the good ones of all.
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const Graph& graph : graphs) {
      CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor);
      target.heuristics(heuristics);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
      if (const cudnnStatus_t status = heuristics.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        why = cudnnGetErrorString(status);
        continue;
      }
      for (const CudnnDescriptor& config :
           heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most)) {
        const auto engines = config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
        if (engines.empty() || !is_allowed(key, engines[0])) continue;
        std::string name = name_of(graph.form, config, engines[0]);
        if (!key.plan.empty() && name != key.plan) continue;
        CudnnPlan plan{CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), std::move(name), 0,
                       graph.form.fuses_bias};
        target.plan(plan.descriptor);
        plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
        if (const cudnnStatus_t status = plan.descriptor.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
          why = cudnnGetErrorString(status);
          continue;
        }
        plan.descriptor.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &plan.workspace);
        if (plan.workspace > key.workspace_limit) {
          why = fmt::format("{} needs {} bytes of workspace", plan.name, plan.workspace);
          continue;
        }
        if (take(std::move(plan))) return {};
      }
    }
  return why.empty() ? "no engine computes it as precisely as asked" : why;
}

CudnnPlan find_plan(const CudnnKey& key, cudnnHandle_t handle) {
  std::optional<CudnnPlan> found;
  const std::string why = for_each_plan(key, cudnn_target(handle), [&](CudnnPlan&& plan) {
    found.emplace(std::move(plan));
    return true;
  });
  check<DeviceError>(
      found.has_value(),
      "conv: cuDNN {} has no plan{} for the {} on {} with {} bytes of workspace{} ({}); a larger "
      "workspace_limit in "
      "ConvPolicy, another implementation (\"unfold\") or, for float32, a lower precision may help",
      cuda::cudnn_version(), key.plan.empty() ? std::string() : fmt::format(" \"{}\"", key.plan),
      key.describe(), cuda::properties(key.problem.device).name, key.workspace_limit,
      key.deterministic ? ", deterministic" : "", why);
  return std::move(*found);
}

}  // namespace

std::string CudnnKey::describe() const {
  return fmt::format("{} pass of {} {} {}{}", ops::name(pass), problem.describe(), problem.dtype,
                     problem.format == MemoryFormat::channels_last ? "channels_last" : "contiguous",
                     problem.bias ? " with bias" : "");
}

CudnnPlan& cudnn_plan(const CudnnKey& key, cudnnHandle_t handle) {
  constexpr std::size_t most = 1024;
  struct Entry {
    CudnnKey key;
    cudnnHandle_t handle;
    CudnnPlan plan;
  };
  thread_local ThreadObject<std::list<Entry>> kept;
  std::list<Entry>& plans = *kept;  // the last used first
  for (auto entry = plans.begin(); entry != plans.end(); ++entry)
    if (entry->handle == handle && entry->key == key) {
      plans.splice(plans.begin(), plans, entry);
      return plans.front().plan;
    }
  plans.push_front({key, handle, find_plan(key, handle)});
  if (plans.size() > most) plans.pop_back();
  return plans.front().plan;
}

CudnnTarget cudnn_target(cudnnHandle_t handle) {
  const auto set = [handle](cudnnBackendAttributeName_t name) {
    return
        [handle, name](CudnnDescriptor& descriptor) { descriptor.set(name, CUDNN_TYPE_HANDLE, 1, &handle); };
  };
  return {set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE), [](CudnnDescriptor&) {},
          set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE)};
}

std::vector<std::string> cudnn_plan_names(const CudnnKey& key, const CudnnTarget& target) {
  std::vector<std::string> names;
  for_each_plan(key, target, [&](CudnnPlan&& plan) {
    if (std::find(names.begin(), names.end(), plan.name) == names.end()) names.push_back(plan.name);
    return false;
  });
  return names;
}

bool has_depth(const ConvProblem& p) { return p.input[0] != 1 || p.kernel[0] != 1 || p.output[0] != 1; }

std::string known_fault(const ConvProblem& p, int version) {
  if (!has_depth(p)) return {};
  const bool rounds = p.dtype == float32 && p.precision != Precision::highest;
  const char* const type = p.dtype == bfloat16 && version >= 90800 && version < 91100 ? "bfloat16"
                           : rounds && version >= 91002 && version < 91600            ? "TF32"
                                                                                      : nullptr;
  if (type == nullptr) return {};
  return fmt::format("cuDNN {}.{}.{} is known to compute convolutions of three dimensions wrongly in {}",
                     version / 10000, version / 100 % 100, version % 100, type);
}

bool depth_is_batch(const ConvProblem& p) {
  return p.format == MemoryFormat::contiguous && p.batch == 1 && p.input[0] > 1 && p.kernel[0] == 1 &&
         p.stride[0] == 1 && p.padding_low[0] == 0 && p.padding_high[0] == 0;
}

}  // namespace pleat::ops
