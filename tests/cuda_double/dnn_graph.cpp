// cuDNN's graph interface, for graphs of one convolution, alone or followed by the addition of a bias. A
// descriptor keeps what it is told; what it refers to is kept with it, as cuDNN copies it.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "convolution.h"
#include "dnn.h"
#include "dnn_library.h"
#include "finding.h"
#include "memory.h"
#include "queue.h"

using namespace cuda_double;

namespace {

using Guard = std::lock_guard<Lock>;

struct State;
using Part = std::shared_ptr<State>;

struct Value {
  cudnnBackendAttributeType_t type{};
  int64_t count = 0;
  std::vector<std::byte> bytes;  ///< of all but descriptors
  std::vector<Part> parts;
};

struct State {
  explicit State(cudnnBackendDescriptorType_t kind) : type(kind), mirrored(kind) {}
  cudnnBackendDescriptorType_t type;
  LibraryDescriptor mirrored;  ///< the same in NVIDIA's cuDNN
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Value> values;
  // What the double itself puts into the results of heuristics.
  Part graph;
  int engine = -1;
};

/// What a cudnnBackendDescriptor_t points to.
struct Descriptor {
  Part state;
};

std::set<const void*>& descriptors() {
  static auto* result = new std::set<const void*>;
  return *result;
}

State& state_of(cudnnBackendDescriptor_t descriptor) {
  if (descriptors().count(descriptor) == 0)
    finding("cuDNN: a descriptor is used that does not exist, or exists no more");
  return *static_cast<Descriptor*>(descriptor)->state;
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

const Value* find(const State& state, cudnnBackendAttributeName_t name) {
  const auto found = state.values.find(name);
  return found == state.values.end() ? nullptr : &found->second;
}

template <class T>
T value(const State& state, cudnnBackendAttributeName_t name, T otherwise) {
  const Value* const found = find(state, name);
  if (found == nullptr || found->bytes.size() < sizeof(T)) return otherwise;
  T result;
  std::memcpy(&result, found->bytes.data(), sizeof(T));
  return result;
}

std::vector<int64_t> numbers(const State& state, cudnnBackendAttributeName_t name) {
  const Value* const found = find(state, name);
  if (found == nullptr || found->type != CUDNN_TYPE_INT64) return {};
  std::vector<int64_t> result(static_cast<std::size_t>(found->count));
  std::memcpy(result.data(), found->bytes.data(), found->bytes.size());
  return result;
}

Part part(const State& state, cudnnBackendAttributeName_t name) {
  const Value* const found = find(state, name);
  return found == nullptr || found->parts.empty() ? nullptr : found->parts.front();
}

double factor(const State& state, cudnnBackendAttributeName_t name, double otherwise) {
  const Value* const found = find(state, name);
  if (found == nullptr) return otherwise;
  if (found->type == CUDNN_TYPE_DOUBLE) return value(state, name, otherwise);
  return static_cast<double>(value(state, name, static_cast<float>(otherwise)));
}

// --- Graphs

/// A graph as one convolution; its tensors have no memory yet.
struct Understood {
  Convolution convolution;
  std::map<int64_t, TensorView*> by_id() {
    std::map<int64_t, TensorView*> result = {
        {x_id, &convolution.x}, {w_id, &convolution.w}, {y_id, &convolution.y}};
    if (has_bias) result[bias_id] = &convolution.bias;
    return result;
  }
  int64_t x_id = 0, w_id = 0, y_id = 0, bias_id = 0;
  bool has_bias = false;
  std::map<int64_t, int64_t> alignments;
};

/// False where it is no tensor that a convolution takes.
bool view(const State& tensor, TensorView& result, int64_t& id, std::map<int64_t, int64_t>& alignments) {
  const auto sizes = numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = numbers(tensor, CUDNN_ATTR_TENSOR_STRIDES);
  const auto type = value(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_INT8);
  if (sizes.size() != strides.size() || sizes.size() < 3 || sizes.size() > 5 || !type_of(type, result.type))
    return false;
  result.sizes = {sizes[0], sizes[1], 1, 1, 1};
  result.strides = {strides[0], strides[1], 0, 0, 0};
  const std::size_t spatial = sizes.size() - 2;
  for (std::size_t d = 0; d < spatial; ++d) {
    result.sizes[5 - spatial + d] = sizes[2 + d];
    result.strides[5 - spatial + d] = strides[2 + d];
  }
  id = value<int64_t>(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
  alignments[id] = value<int64_t>(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
  return true;
}

struct Names {
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

bool names_of(cudnnBackendDescriptorType_t type, Pass& pass, Names& names) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      pass = Pass::forward;
      names = {
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      pass = Pass::backward_data;
      names = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      pass = Pass::backward_filter;
      names = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
      return true;
    default:
      return false;
  }
}

/// What a graph computes; CUDNN_STATUS_SUCCESS unless cuDNN would not take it.
cudnnStatus_t understand(const State& graph, Understood& result) {
  const Value* const operations = find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations == nullptr || operations->parts.empty()) return CUDNN_STATUS_BAD_PARAM;
  if (operations->parts.size() > 2) return CUDNN_STATUS_NOT_SUPPORTED;
  const State& operation = *operations->parts[0];
  Convolution& c = result.convolution;
  Names names{};
  if (!names_of(operation.type, c.pass, names)) return CUDNN_STATUS_NOT_SUPPORTED;
  const Part x = part(operation, names.x), w = part(operation, names.w), y = part(operation, names.y),
             convolution = part(operation, names.convolution);
  if (!x || !w || !y || !convolution) return CUDNN_STATUS_BAD_PARAM;
  if (!view(*x, c.x, result.x_id, result.alignments) || !view(*w, c.w, result.w_id, result.alignments) ||
      !view(*y, c.y, result.y_id, result.alignments))
    return CUDNN_STATUS_BAD_PARAM;
  const auto stride = numbers(*convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilation = numbers(*convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const auto low = numbers(*convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto high = numbers(*convolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const std::size_t spatial = stride.size();
  if (spatial < 1 || spatial > 3 || dilation.size() != spatial || low.size() != spatial ||
      high.size() != spatial || numbers(*x, CUDNN_ATTR_TENSOR_DIMENSIONS).size() != spatial + 2)
    return CUDNN_STATUS_BAD_PARAM;
  for (std::size_t d = 0; d < spatial; ++d) {
    const std::size_t at = 3 - spatial + d;
    c.stride[at] = stride[d];
    c.dilation[at] = dilation[d];
    c.padding[at] = low[d];
    if (stride[d] < 1 || dilation[d] < 1 || low[d] < 0 || high[d] < 0) return CUDNN_STATUS_BAD_PARAM;
    const int64_t room = c.x.sizes[2 + at] + low[d] + high[d] - (c.w.sizes[2 + at] - 1) * dilation[d] - 1;
    if (room < 0 || room / stride[d] + 1 != c.y.sizes[2 + at]) return CUDNN_STATUS_BAD_PARAM;
  }
  if (c.x.sizes[0] != c.y.sizes[0] || c.y.sizes[1] != c.w.sizes[0] || c.w.sizes[1] < 1 ||
      c.x.sizes[1] % c.w.sizes[1] != 0 || c.w.sizes[0] % (c.x.sizes[1] / c.w.sizes[1]) != 0)
    return CUDNN_STATUS_BAD_PARAM;
  c.in_double = value(*convolution, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT) == CUDNN_DATA_DOUBLE;
  if (c.in_double != (c.x.type == Type::f64) || c.x.type != c.w.type) return CUDNN_STATUS_NOT_SUPPORTED;
  c.alpha = factor(operation, names.alpha, 1);
  c.beta = factor(operation, names.beta, 0);
  if (operations->parts.size() == 1)
    return c.y.type == c.x.type ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;

  const State& addition = *operations->parts[1];
  const Part pointwise = part(addition, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const Part bias = part(addition, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  const Part out = part(addition, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  if (addition.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR || !pointwise || !bias || !out ||
      part(addition, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != y ||
      value(*pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_MUL) != CUDNN_POINTWISE_ADD ||
      !value(*y, CUDNN_ATTR_TENSOR_IS_VIRTUAL, false) || c.pass != Pass::forward)
    return CUDNN_STATUS_NOT_SUPPORTED;
  result.alignments.erase(result.y_id);
  result.has_bias = true;
  const auto sizes = c.y.sizes;
  if (!view(*out, c.y, result.y_id, result.alignments) ||
      !view(*bias, c.bias, result.bias_id, result.alignments) || c.y.sizes != sizes ||
      c.bias.sizes[1] != c.y.sizes[1])
    return CUDNN_STATUS_BAD_PARAM;
  return CUDNN_STATUS_SUCCESS;
}

// --- Engines

/// What engines of cuDNN are like: exact ones, some that round operands (or have errors like that), some whose
/// sums change from run to run, some that need much memory.
struct Engine {
  int64_t index;
  std::vector<cudnnBackendNumericalNote_t> notes;
  int64_t workspace;  ///< for each element of the filters and the output
  bool fuses_addition;
  int mantissa_bits;
};

std::vector<Engine> engines_for(const Understood& graph, bool fallback) {
  const bool single = graph.convolution.x.type == Type::f32;
  const bool backward = graph.convolution.pass != Pass::forward;
  if (fallback) return {{0, {}, 0, false, 0}};
  std::vector<Engine> result = {{1, {}, 0, true, 0}, {3, {}, 4, false, 0}};
  if (single) result.insert(result.begin(), {5, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 0, true, 10});
  if (single) result.insert(result.begin(), {11, {CUDNN_NUMERICAL_NOTE_WINOGRAD}, 0, true, 10});
  if (single) result.insert(result.begin(), {13, {CUDNN_NUMERICAL_NOTE_FFT}, 0, true, 10});
  if (backward) result.push_back({7, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0, false, 0});
  if (single && backward)
    result.push_back(
        {9, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 8, false, 10});
  if (graph.has_bias) std::erase_if(result, [](const Engine& each) { return !each.fuses_addition; });
  return result;
}

int64_t workspace_of(const Engine& engine, const Understood& graph) {
  int64_t elements = 0;
  for (const TensorView* each : {&graph.convolution.w, &graph.convolution.y}) {
    int64_t count = 1;
    for (const int64_t size : each->sizes) count *= size;
    elements += count;
  }
  return engine.workspace * elements;
}

/// The engine of what heuristics gave.
Engine engine_of(const State& state) {
  Understood graph;
  understand(*state.graph, graph);
  for (const bool fallback : {false, true})
    for (const Engine& each : engines_for(graph, fallback))
      if (each.index == state.engine) return each;
  finding("cuDNN: an engine that heuristics did not give");
}

// --- Reading

template <class T>
cudnnStatus_t give(const std::vector<T>& values, int64_t most, int64_t* count, void* into) {
  *count = static_cast<int64_t>(values.size());
  if (into != nullptr)
    std::memcpy(into, values.data(), static_cast<std::size_t>(std::min(most, *count)) * sizeof(T));
  return CUDNN_STATUS_SUCCESS;
}

/// Fills the descriptors that the caller made, `fill(its state, number)`.
template <class Fill>
cudnnStatus_t give_parts(int64_t available, int64_t most, int64_t* count, void* into, const Fill& fill) {
  *count = available;
  for (int64_t i = 0; into != nullptr && i < std::min(most, available); ++i) {
    State& state = state_of(static_cast<cudnnBackendDescriptor_t*>(into)[i]);
    fill(state, i);
    state.finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

constexpr int64_t tile_knob = 2;

}  // namespace

int64_t cuda_double::dnn_descriptors() { return static_cast<int64_t>(descriptors().size()); }

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  const Guard guard(lock());
  auto* const made = new Descriptor{std::make_shared<State>(type)};
  descriptors().insert(made);
  *descriptor = made;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  const Guard guard(lock());
  state_of(descriptor);
  descriptors().erase(descriptor);
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  const Guard guard(lock());
  State& state = state_of(descriptor);
  if (state.finalized || count < 0 || (count > 0 && values == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  Value value{type, count, {}, {}};
  std::vector<const LibraryDescriptor*> parts;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      auto* const given = static_cast<const cudnnBackendDescriptor_t*>(values)[i];
      if (!state_of(given).finalized) return CUDNN_STATUS_BAD_PARAM;
      value.parts.push_back(static_cast<Descriptor*>(given)->state);
      parts.push_back(&value.parts.back()->mirrored);
    }
  } else {
    const auto* const from = static_cast<const std::byte*>(values);
    value.bytes.assign(from, from + static_cast<std::size_t>(count) * bytes_of(type));
  }
  const cudnnStatus_t status = state.mirrored.set(name, type, count, values, parts);
  if (status == CUDNN_STATUS_SUCCESS) state.values[name] = std::move(value);
  return status;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const Guard guard(lock());
  State& state = state_of(descriptor);
  if (state.finalized) return CUDNN_STATUS_BAD_PARAM;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  switch (state.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: {
      const auto sizes = numbers(state, CUDNN_ATTR_TENSOR_DIMENSIONS);
      const auto strides = numbers(state, CUDNN_ATTR_TENSOR_STRIDES);
      const auto alignment = value<int64_t>(state, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
      if (sizes.empty() || sizes.size() != strides.size() || alignment < 1 ||
          (alignment & (alignment - 1)) != 0 || find(state, CUDNN_ATTR_TENSOR_DATA_TYPE) == nullptr ||
          find(state, CUDNN_ATTR_TENSOR_UNIQUE_ID) == nullptr ||
          *std::min_element(sizes.begin(), sizes.end()) < 1)
        status = CUDNN_STATUS_BAD_PARAM;
      break;
    }
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: {
      Understood graph;
      status = understand(state, graph);
      break;
    }
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      if (!part(state, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) ||
          find(state, CUDNN_ATTR_ENGINEHEUR_MODE) == nullptr)
        status = CUDNN_STATUS_BAD_PARAM;
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      if (!part(state, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)) status = CUDNN_STATUS_BAD_PARAM;
      break;
    default:
      break;
  }
  if (status == CUDNN_STATUS_SUCCESS) status = state.mirrored.finalize();
  state.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t* count,
                                       void* into) {
  const Guard guard(lock());
  const Part state = static_cast<Descriptor*>(descriptor)->state;
  if (!state_of(descriptor).finalized) return CUDNN_STATUS_BAD_PARAM;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const Part graph = part(*state, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      Understood understood;
      understand(*graph, understood);
      const bool fallback =
          value(*state, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A) == CUDNN_HEUR_MODE_FALLBACK;
      const auto engines = engines_for(understood, fallback);
      return give_parts(static_cast<int64_t>(engines.size()), most, count, into,
                        [&](State& config, int64_t i) {
                          config.graph = graph;
                          config.engine = static_cast<int>(engines[static_cast<std::size_t>(i)].index);
                        });
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      return give_parts(1, most, count, into, [&](State& engine, int64_t) {
        engine.graph = state->graph;
        engine.engine = state->engine;
      });
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      return give_parts(1, most, count, into, [&](State& knob, int64_t) {
        knob.graph = state->graph;
        knob.engine = state->engine;
      });
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return give(std::vector<cudnnBackendKnobType_t>{static_cast<cudnnBackendKnobType_t>(tile_knob)}, most,
                  count, into);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return give(std::vector<int64_t>{state->engine * 10}, most, count, into);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give(std::vector<int64_t>{state->engine}, most, count, into);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give(engine_of(*state).notes, most, count, into);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      const Part config = part(*state, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      Understood graph;
      understand(*config->graph, graph);
      return give(std::vector<int64_t>{workspace_of(engine_of(*config), graph)}, most, count, into);
    }
    default:
      break;
  }
  const Value* const found = find(*state, name);
  if (found == nullptr || found->type != type || type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *count = found->count;
  if (into != nullptr)
    std::memcpy(into, found->bytes.data(), static_cast<std::size_t>(std::min(most, *count)) * bytes_of(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const Guard guard(lock());
  const char* const what = "cudnnBackendExecute";
  const cudnnContext& own = handle_of(handle, what);
  const State& made = state_of(plan);
  const State& given = state_of(pack);
  if (!made.finalized || !given.finalized) return CUDNN_STATUS_BAD_PARAM;
  if (device_error(own.device) != cudaSuccess || fault(&Faults::dnn)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (value<cudnnHandle_t>(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, nullptr) != handle)
    finding("cudnnBackendExecute: the plan was made for another handle");
  const Part config = part(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  Understood graph;
  understand(*config->graph, graph);
  const Engine engine = engine_of(*config);
  graph.convolution.mantissa_bits = engine.mantissa_bits;

  const auto ids = numbers(given, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const Value* const pointers = find(given, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (pointers == nullptr || pointers->count != static_cast<int64_t>(ids.size()))
    return CUDNN_STATUS_BAD_PARAM;
  auto tensors = graph.by_id();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = tensors.find(ids[i]);
    if (found == tensors.end()) continue;
    std::memcpy(&found->second->memory, pointers->bytes.data() + i * sizeof(void*), sizeof(void*));
  }
  for (const auto& [id, tensor] : tensors) {
    if (tensor->memory == nullptr) return CUDNN_STATUS_BAD_PARAM;
    int64_t last = 0;
    for (std::size_t d = 0; d < 5; ++d) last += (tensor->sizes[d] - 1) * tensor->strides[d];
    require_on_device("cudnnBackendExecute, a tensor", tensor->memory,
                      static_cast<std::size_t>(last + 1) * size_of(tensor->type), own.device);
    if (reinterpret_cast<uintptr_t>(tensor->memory) % static_cast<uintptr_t>(graph.alignments[id]) != 0)
      finding("cudnnBackendExecute: a tensor is not aligned as its descriptor says");
  }
  const int64_t workspace = workspace_of(engine, graph);
  auto* const memory = value<void*>(given, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  if (workspace > 0)
    require_on_device("cudnnBackendExecute, the workspace", memory, static_cast<std::size_t>(workspace),
                      own.device);
  ++counted().calls_of_libraries;
  enqueue(stream_of(own.stream), {.what = what, .run = [convolution = graph.convolution, memory, workspace] {
                                    // An engine leaves its own in the workspace.
                                    if (workspace > 0)
                                      std::memset(memory, 0xA5, static_cast<std::size_t>(workspace));
                                    convolve(convolution);
                                  }});
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
