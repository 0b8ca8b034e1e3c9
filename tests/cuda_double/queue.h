#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "double.h"
#include <cuda_runtime_api.h>

/// Streams, events and the state of the devices. What is given to a stream waits until somebody must have it:
/// then those tasks run that this takes, and no others, in the thread that waits. So work of a stream that
/// nobody waits for runs as late as it can on a GPU, and whoever forgot to wait for it reads what was there
/// before. With an even seed much of it runs as early as it can, and who uses memory again too soon finds in
/// it what others wrote.

namespace cuda_double {

struct StreamState;
struct Recording;

struct EventState {
  int device;
  bool timing;
  uint64_t recorded = 0;           ///< how often, as given to streams
  uint64_t done = 0;               ///< how often, as run
  StreamState* stream = nullptr;   ///< of the last record
  double time = 0;                 ///< milliseconds, of the last that is done
  Recording* recording = nullptr;  ///< of the last record, where it went into a capture (graph.h),
  std::size_t kept = 0;            ///< behind so many of its tasks
};

struct Task {
  std::string what;
  std::function<void()> run = {};
  bool is_kernel = false;         ///< which must not touch memory of the host
  int peer = -1;                  ///< another device whose memory it copies
  EventState* awaited = nullptr;  ///< the task waits until `number` records of it are done,
  StreamState* source = nullptr;  ///< the last of them in this stream
  EventState* marked = nullptr;   ///< it is record `number` of this one
  uint64_t number = 0;
};

struct StreamState {
  int device;
  bool blocking = false;  ///< waits for the default stream, and it for this one
  bool is_default = false;
  std::deque<Task> tasks;
  Recording* recording = nullptr;  ///< while it is captured (graph.h)
};

/// One lock for everything: calls of the host come one at a time.
std::recursive_mutex& lock();
std::mt19937_64& draw();
Counts& counted();
/// Whether the call is the one that shall fail.
bool fault(int64_t Faults::*which);
/// Does what before_launch asked for, when it is time.
void on_launch();
/// How many there are.
int64_t blas_handles();
int64_t dnn_handles();
int64_t dnn_descriptors();

/// The thread's current device.
int& current_device();
/// Any stream: nullptr is the current device's default one. Ends the process for one that is not of the
/// current device, or was destroyed.
StreamState& stream_of(cudaStream_t stream);
cudaStream_t make_stream(int device, bool blocking);
bool destroy_stream(cudaStream_t stream);

cudaEvent_t make_event(int device, bool timing);
EventState& event_of(cudaEvent_t event);
bool destroy_event(cudaEvent_t event);

/// Puts a task behind those of a stream.
void enqueue(StreamState& stream, Task task);
/// Runs what is in the stream, and what that waits for.
void finish(StreamState& stream);
/// Runs what makes an event done.
void finish(EventState& event);
/// Runs everything that a device has been given.
void finish_device(int device);
/// Perhaps runs a little of a stream, as time goes by while the host asks.
void make_progress(StreamState& stream);

/// What the device's calls answer: cudaSuccess, or what has gone wrong in it.
cudaError_t& device_error(int device);
/// What cudaGetLastError answers in this thread; returns `status`.
cudaError_t answer(cudaError_t status);
cudaError_t last_answer();
void forget_last_answer();

}  // namespace cuda_double
