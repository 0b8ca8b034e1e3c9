#pragma once

#include <map>
#include <string>
#include <vector>

#include "queue.h"
#include <cuda_runtime_api.h>

/// What is given to a stream while it is captured: kept, and run when its graph is launched.

namespace cuda_double {

struct Recording {
  StreamState* origin = nullptr;
  /// Of the thread that began it, and whether calls of all threads matter, only that one's, or none's.
  const void* thread = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::vector<Task> tasks;  ///< in an order that the streams and events allow
  /// Streams that take part, and whether the origin has waited for all of their work.
  std::map<StreamState*, bool> joined;
  /// A call came that a capture forbids, and there will be no graph.
  bool invalid = false;
};

/// What a call answers that gives work to a stream: cudaSuccess, or why the stream takes none.
cudaError_t may_enqueue(const StreamState& stream);
/// What a call answers that a capture forbids in this thread, such as an allocation; it makes the capture
/// invalid.
cudaError_t forbidden_while_capturing();
/// The same of a call that waits for a stream, or for any of a device, or asks about it.
cudaError_t forbidden_to_wait_for(const StreamState& stream);
cudaError_t forbidden_to_wait_for_device(int device);

/// Keeps a task. Only for a stream that is captured.
void keep(StreamState& stream, Task task);
/// An event that is recorded into a stream that is captured, and a stream that waits for such an event.
void keep_record(StreamState& stream, EventState& event);
cudaError_t keep_wait(StreamState& stream, const EventState& event);

}  // namespace cuda_double
