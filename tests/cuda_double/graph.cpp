#include "graph.h"

#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "finding.h"

namespace cuda_double {
namespace {

using Guard = std::lock_guard<Lock>;

std::set<Recording*>& recordings() {
  static auto* result = new std::set<Recording*>;
  return *result;
}

/// The address stands for the thread.
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/// What has been captured, and what was made of it. Their handles are the addresses.
struct Graph {
  int device = 0;
  std::vector<Task> tasks;
};
std::set<Graph*>& graphs() {
  static auto* result = new std::set<Graph*>;
  return *result;
}
std::set<Graph*>& executables() {
  static auto* result = new std::set<Graph*>;
  return *result;
}

cudaError_t invalidate(Recording& recording, cudaError_t status) {
  recording.invalid = true;
  return answer(status);
}

/// Ends the capture of all streams that take part.
void release(Recording* recording) {
  for (auto& [stream, joined] : recording->joined) stream->recording = nullptr;
  recording->origin->recording = nullptr;
  recordings().erase(recording);
  delete recording;
}

}  // namespace

cudaError_t may_enqueue(const StreamState& stream) {
  if (stream.recording != nullptr && stream.recording->invalid)
    return answer(cudaErrorStreamCaptureInvalidated);
  // Work in the default stream waits for all blocking ones, which a capture cannot.
  if (stream.is_default)
    for (Recording* recording : recordings())
      if (recording->origin->device == stream.device && recording->origin->blocking)
        return invalidate(*recording, cudaErrorStreamCaptureImplicit);
  return cudaSuccess;
}

cudaError_t forbidden_while_capturing() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (Recording* recording : recordings()) {
    const bool own = recording->thread == &thread_mode;
    if ((own && recording->mode != cudaStreamCaptureModeRelaxed) ||
        (recording->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal))
      return invalidate(*recording, cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

cudaError_t forbidden_to_wait_for(const StreamState& stream) {
  if (stream.recording != nullptr) return invalidate(*stream.recording, cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

cudaError_t forbidden_to_wait_for_device(int device) {
  for (Recording* recording : recordings())
    if (recording->origin->device == device) return invalidate(*recording, cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

void keep(StreamState& stream, Task task) {
  Recording& recording = *stream.recording;
  if (&stream != recording.origin) recording.joined[&stream] = false;
  recording.tasks.push_back(std::move(task));
}

void keep_record(StreamState& stream, EventState& event) {
  event.recording = stream.recording;
  event.stream = &stream;
  event.kept = stream.recording->tasks.size();
}

cudaError_t keep_wait(StreamState& stream, const EventState& event) {
  Recording* const recording = event.recording;
  if (recording == nullptr || !recordings().contains(recording)) {
    // Of work outside: a graph has no such thing.
    return invalidate(*stream.recording, cudaErrorStreamCaptureIsolation);
  }
  if (stream.recording != nullptr && stream.recording != recording)
    return invalidate(*recording, cudaErrorStreamCaptureMerge);
  if (stream.recording == nullptr) {
    stream.recording = recording;
    recording->joined[&stream] = true;
  }
  // All that the event's stream has been given so far is waited for if nothing came after the record.
  if (event.stream != recording->origin && event.kept == recording->tasks.size())
    recording->joined[event.stream] = true;
  return cudaSuccess;
}

}  // namespace cuda_double

using namespace cuda_double;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const Guard guard(lock());
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Guard guard(lock());
  StreamState& stream = stream_of(handle);
  if (handle == nullptr || stream.recording != nullptr) return answer(cudaErrorStreamCaptureUnsupported);
  auto* const recording = new Recording;
  recording->origin = &stream;
  recording->thread = &thread_mode;
  recording->mode = mode;
  stream.recording = recording;
  recordings().insert(recording);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Guard guard(lock());
  const Recording* const recording = stream_of(handle).recording;
  *status = recording == nullptr ? cudaStreamCaptureStatusNone
            : recording->invalid ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const Guard guard(lock());
  *graph = nullptr;
  StreamState& stream = stream_of(handle);
  Recording* const recording = stream.recording;
  if (recording == nullptr || recording->origin != &stream) return answer(cudaErrorStreamCaptureUnmatched);
  if (recording->mode != cudaStreamCaptureModeRelaxed && recording->thread != &thread_mode)
    return answer(cudaErrorStreamCaptureWrongThread);
  cudaError_t status = recording->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  for (const auto& [other, joined] : recording->joined)
    if (!joined && status == cudaSuccess) status = cudaErrorStreamCaptureUnjoined;
  if (status == cudaSuccess) {
    auto* const made = new Graph{stream.device, std::move(recording->tasks)};
    graphs().insert(made);
    *graph = reinterpret_cast<cudaGraph_t>(made);
  }
  release(recording);
  return answer(status);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  const Guard guard(lock());
  auto* const from = reinterpret_cast<Graph*>(graph);
  if (!graphs().contains(from)) finding("a graph is used that does not exist, or exists no more");
  auto* const made = new Graph(*from);
  executables().insert(made);
  *executable = reinterpret_cast<cudaGraphExec_t>(made);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  const Guard guard(lock());
  const auto* const graph = reinterpret_cast<Graph*>(executable);
  if (!executables().contains(const_cast<Graph*>(graph)))
    finding("a graph is launched that does not exist, or exists no more");
  StreamState& stream = stream_of(handle);
  if (device_error(stream.device) != cudaSuccess) return answer(device_error(stream.device));
  if (stream.recording != nullptr) return invalidate(*stream.recording, cudaErrorStreamCaptureUnsupported);
  if (fault(&Faults::launch)) return answer(cudaErrorLaunchOutOfResources);
  ++counted().graph_launches;
  for (const Task& task : graph->tasks) enqueue(stream, task);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Guard guard(lock());
  auto* const gone = reinterpret_cast<Graph*>(graph);
  if (graphs().erase(gone) == 0) return answer(cudaErrorInvalidValue);
  delete gone;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Guard guard(lock());
  auto* const gone = reinterpret_cast<Graph*>(executable);
  if (executables().erase(gone) == 0) return answer(cudaErrorInvalidValue);
  delete gone;
  return cudaSuccess;
}

}  // extern "C"
