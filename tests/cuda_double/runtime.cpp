// The CUDA runtime's functions, as far as Pleat calls them. NVIDIA's documentation of the CUDA runtime API
// says what each does; here it is done by queue.h and memory.h.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "finding.h"
#include "graph.h"
#include "launch.h"
#include "memory.h"
#include "queue.h"
#include <cuda_runtime_api.h>
#include <unistd.h>

using namespace cuda_double;

namespace {

using Guard = std::lock_guard<Lock>;

bool has(int device) { return device >= 0 && device < devices; }

/// What a call answers that comes after an error of the current device.
cudaError_t standing() { return device_error(current_device()); }

void count_wait() { ++counted().synchronisations; }

}  // namespace

namespace cuda_double {

std::string kernel_name(const std::string& function) {
  // "... [with Expected = {long int, Relu<float>}; Given = ..." of g++, "[Expected = <long, Relu<float>>,
  // ..." of clang.
  const std::string mark = "Expected = ";
  const std::size_t begin = function.find(mark);
  const std::size_t end = function.find("Given = ", begin);
  if (begin == std::string::npos || end == std::string::npos || begin + mark.size() + 4 > end)
    return function;
  const std::size_t from = begin + mark.size() + 1;
  return "kernel (" + function.substr(from, end - 3 - from) + ")";
}

cudaError_t launch(const cudaLaunchConfig_t& config, const std::string& name, std::size_t bytes,
                   std::function<void()> grid) {
  const Guard guard(lock());
  watch_faults();
  if (standing() != cudaSuccess) return answer(standing());
  const dim3 blocks = config.gridDim, threads = config.blockDim;
  const uint64_t in_block = uint64_t{threads.x} * threads.y * threads.z;
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || in_block == 0 || blocks.x > 0x7fffffffu ||
      blocks.y > 65535 || blocks.z > 65535 || in_block > 1024 || threads.z > 64 ||
      config.dynamicSmemBytes > (48u << 10))
    return answer(cudaErrorInvalidConfiguration);
  if (bytes > 32764) finding(name + ": " + std::to_string(bytes) + " bytes of arguments; a kernel has 32764");
  on_launch();
  if (fault(&Faults::launch)) return answer(cudaErrorLaunchOutOfResources);
  StreamState& stream = stream_of(config.stream);
  if (const cudaError_t status = may_enqueue(stream); status != cudaSuccess) return status;
  if (stream.device != current_device())
    finding(name + " is launched on device " + std::to_string(current_device()) +
            " into a stream of device " + std::to_string(stream.device));
  ++counted().launches;
  enqueue(stream, {.what = name, .run = std::move(grid), .is_kernel = true});
  return cudaSuccess;
}

}  // namespace cuda_double

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t result = last_answer();
  forget_last_answer();
  return result;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define PLEAT_NAME(name) \
  case name:             \
    return #name;
    PLEAT_NAME(cudaSuccess)
    PLEAT_NAME(cudaErrorInvalidValue)
    PLEAT_NAME(cudaErrorMemoryAllocation)
    PLEAT_NAME(cudaErrorInvalidConfiguration)
    PLEAT_NAME(cudaErrorInsufficientDriver)
    PLEAT_NAME(cudaErrorInvalidDevice)
    PLEAT_NAME(cudaErrorInvalidResourceHandle)
    PLEAT_NAME(cudaErrorIllegalAddress)
    PLEAT_NAME(cudaErrorNotReady)
    PLEAT_NAME(cudaErrorLaunchOutOfResources)
    PLEAT_NAME(cudaErrorPeerAccessAlreadyEnabled)
    PLEAT_NAME(cudaErrorStreamCaptureUnsupported)
    PLEAT_NAME(cudaErrorStreamCaptureInvalidated)
    PLEAT_NAME(cudaErrorStreamCaptureMerge)
    PLEAT_NAME(cudaErrorStreamCaptureUnmatched)
    PLEAT_NAME(cudaErrorStreamCaptureUnjoined)
    PLEAT_NAME(cudaErrorStreamCaptureIsolation)
    PLEAT_NAME(cudaErrorStreamCaptureImplicit)
    PLEAT_NAME(cudaErrorCapturedEvent)
    PLEAT_NAME(cudaErrorStreamCaptureWrongThread)
#undef PLEAT_NAME
    default:
      return "cudaErrorUnknown";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchOutOfResources:
      return "too many resources requested for launch";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "another error";
  }
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (!has(device)) return answer(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!has(device)) return answer(cudaErrorInvalidDevice);
  *properties = {};
  std::strncpy(properties->name, "CUDA double", sizeof properties->name - 1);
  properties->major = 9;
  properties->totalGlobalMem = device_memory;
  properties->multiProcessorCount = 132;
  properties->l2CacheSize = 50 << 20;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  // Each process has devices of its own, unless they shall look like those of one machine.
  const pid_t owner = std::getenv("PLEAT_DOUBLE_SHARED_DEVICES") != nullptr ? 0 : getpid();
  std::memcpy(properties->uuid.bytes, "a double", 8);
  std::memcpy(properties->uuid.bytes + 8, &owner, sizeof owner);
  std::memcpy(properties->uuid.bytes + 12, &device, sizeof device);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Guard guard(lock());
  *free = free_bytes(current_device());
  *total = device_memory;
  return standing();
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (!has(peer) || peer == current_device()) return answer(cudaErrorInvalidDevice);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const Guard guard(lock());
  if (const cudaError_t status = forbidden_to_wait_for_device(current_device()); status != cudaSuccess)
    return status;
  count_wait();
  finish_device(current_device());
  return answer(standing());
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const Guard guard(lock());
  if (const cudaError_t status = forbidden_while_capturing(); status != cudaSuccess) return status;
  if (standing() != cudaSuccess) return answer(standing());
  ++counted().allocations;
  *memory = fault(&Faults::allocation) ? nullptr : allocate_device(current_device(), bytes);
  return answer(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void* memory) {
  const Guard guard(lock());
  if (memory == nullptr) return cudaSuccess;
  if (const cudaError_t status = forbidden_while_capturing(); status != cudaSuccess) return status;
  const auto block = block_of(memory);
  if (!block || block->begin != memory) finding("cudaFree: the address is not that of a block");
  ++counted().frees;
  count_wait();
  finish_device(block->device);
  free_device(memory);
  return answer(standing());
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const Guard guard(lock());
  if (const cudaError_t status = forbidden_while_capturing(); status != cudaSuccess) return status;
  if (standing() != cudaSuccess) return answer(standing());
  *memory = fault(&Faults::host_allocation) ? nullptr : allocate_pinned(bytes);
  return answer(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeHost(void* memory) {
  const Guard guard(lock());
  if (memory == nullptr) return cudaSuccess;
  if (const cudaError_t status = forbidden_while_capturing(); status != cudaSuccess) return status;
  // As in practice: it waits for all devices.
  for (int device = 0; device < devices; ++device) finish_device(device);
  if (!free_pinned(memory)) finding("cudaFreeHost: the address is not that of pinned memory");
  return answer(standing());
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t handle) {
  const Guard guard(lock());
  if (standing() != cudaSuccess) return answer(standing());
  if (bytes == 0) return cudaSuccess;
  if (fault(&Faults::copy)) return answer(cudaErrorInvalidValue);
  StreamState& stream = stream_of(handle);
  if (const cudaError_t status = may_enqueue(stream); status != cudaSuccess) return status;
  const Kind to_kind = kind_of(to), from_kind = kind_of(from);
  if (to_kind == Kind::device) require_on_device("a copy", to, bytes, stream.device);
  if (from_kind == Kind::device) require_on_device("a copy", from, bytes, stream.device);
  ++counted().copies;
  counted().bytes_copied += static_cast<int64_t>(bytes);
  // Memory that is not pinned is read before the call returns, or written: the host waits.
  const bool pageable = to_kind == Kind::pageable || from_kind == Kind::pageable;
  if (pageable) {
    if (const cudaError_t status = forbidden_to_wait_for(stream); status != cudaSuccess) return status;
  }
  if (from_kind == Kind::pageable && to_kind == Kind::device) {
    const auto staged = std::make_shared<std::vector<std::byte>>(static_cast<const std::byte*>(from),
                                                                 static_cast<const std::byte*>(from) + bytes);
    ++counted().blocking_copies;
    enqueue(stream, {.what = "a copy to the device", .run = [=] { std::memcpy(to, staged->data(), bytes); }});
    return cudaSuccess;
  }
  enqueue(stream, {.what = "a copy", .run = [=] { std::memmove(to, from, bytes); }});
  if (pageable) {
    ++counted().blocking_copies;
    count_wait();
    finish(stream);
  }
  return answer(standing());
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t handle) {
  const Guard guard(lock());
  if (standing() != cudaSuccess) return answer(standing());
  if (fault(&Faults::copy)) return answer(cudaErrorInvalidValue);
  StreamState& stream = stream_of(handle);
  if (const cudaError_t status = may_enqueue(stream); status != cudaSuccess) return status;
  require_on_device("a copy between devices", to, bytes, to_device);
  require_on_device("a copy between devices", from, bytes, from_device);
  ++counted().copies;
  counted().bytes_copied += static_cast<int64_t>(bytes);
  enqueue(stream, {.what = "a copy between devices",
                   .run = [=] { std::memcpy(to, from, bytes); },
                   .peer = to_device != stream.device ? to_device : from_device});
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t handle) {
  const Guard guard(lock());
  if (standing() != cudaSuccess) return answer(standing());
  if (fault(&Faults::fill)) return answer(cudaErrorInvalidValue);
  StreamState& stream = stream_of(handle);
  if (const cudaError_t status = may_enqueue(stream); status != cudaSuccess) return status;
  require_on_device("cudaMemsetAsync", to, bytes, stream.device);
  ++counted().fills;
  enqueue(stream, {.what = "cudaMemsetAsync", .run = [=] { std::memset(to, value, bytes); }});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  const Guard guard(lock());
  if (standing() != cudaSuccess) return answer(standing());
  if (fault(&Faults::stream)) return answer(cudaErrorMemoryAllocation);
  *stream = make_stream(current_device(), (flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Guard guard(lock());
  return answer(destroy_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const Guard guard(lock());
  StreamState& stream = stream_of(handle);
  if (const cudaError_t status = forbidden_to_wait_for(stream); status != cudaSuccess) return status;
  count_wait();
  finish(stream);
  return answer(device_error(stream.device));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const Guard guard(lock());
  StreamState& stream = stream_of(handle);
  if (const cudaError_t status = forbidden_to_wait_for(stream); status != cudaSuccess) return status;
  if (device_error(stream.device) != cudaSuccess) return answer(device_error(stream.device));
  make_progress(stream);
  return answer(stream.tasks.empty() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const Guard guard(lock());
  EventState& state = event_of(event);
  StreamState& stream = stream_of(handle);
  if (const cudaError_t status = may_enqueue(stream); status != cudaSuccess) return status;
  if (stream.recording != nullptr || state.recording != nullptr) return keep_wait(stream, state);
  if (state.recorded > 0)
    enqueue(stream, {.what = "waiting for an event",
                     .awaited = &state,
                     .source = state.stream,
                     .number = state.recorded});
  return answer(standing());
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Guard guard(lock());
  if (standing() != cudaSuccess) return answer(standing());
  if (fault(&Faults::event)) return answer(cudaErrorMemoryAllocation);
  *event = make_event(current_device(), (flags & cudaEventDisableTiming) == 0);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Guard guard(lock());
  return answer(destroy_event(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const Guard guard(lock());
  EventState& state = event_of(event);
  StreamState& stream = stream_of(handle);
  if (state.device != stream.device) return answer(cudaErrorInvalidResourceHandle);
  if (fault(&Faults::record)) return answer(cudaErrorLaunchOutOfResources);
  if (const cudaError_t status = may_enqueue(stream); status != cudaSuccess) return status;
  if (stream.recording != nullptr) {
    keep_record(stream, state);
    return cudaSuccess;
  }
  state.recording = nullptr;
  enqueue(stream, {.what = "recording an event", .marked = &state});
  return answer(standing());
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Guard guard(lock());
  EventState& state = event_of(event);
  if (state.recording != nullptr) return answer(cudaErrorCapturedEvent);
  if (const cudaError_t status = forbidden_while_capturing(); status != cudaSuccess) return status;
  if (device_error(state.device) != cudaSuccess) return answer(device_error(state.device));
  if (state.done < state.recorded && draw()() % 4 == 0) advance(state);
  return answer(state.done < state.recorded ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Guard guard(lock());
  count_wait();
  EventState& state = event_of(event);
  if (state.recording != nullptr) return answer(cudaErrorCapturedEvent);
  if (const cudaError_t status = forbidden_while_capturing(); status != cudaSuccess) return status;
  finish(state);
  return answer(device_error(state.device));
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  const Guard guard(lock());
  const EventState& from = event_of(start);
  const EventState& to = event_of(end);
  if (!from.timing || !to.timing || from.recorded == 0 || to.recorded == 0 || from.device != to.device)
    return answer(cudaErrorInvalidResourceHandle);
  if (from.done < from.recorded || to.done < to.recorded) return answer(cudaErrorNotReady);
  *ms = static_cast<float>(to.time - from.time);
  return cudaSuccess;
}

}  // extern "C"
