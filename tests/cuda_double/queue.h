#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "double.h"
#include "lock.h"
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
  /// Of a task that meets other processes: `begin` runs once when the task is the first of its stream and
  /// what it awaits is done, with the device's memory open. Then the task waits until `ready` says true.
  std::function<void()> begin = {};
  std::function<bool()> ready = {};
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
  std::deque<Task> tasks;          ///< those that have not run; the first may be waiting
  uint64_t given = 0;              ///< tasks in all,
  uint64_t taken = 0;              ///< and how many of them are done
  Recording* recording = nullptr;  ///< while it is captured (graph.h)
};

/// One lock for everything: calls of the host come one at a time.
Lock& lock();
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
int64_t nccl_communicators();

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

/// Puts a task behind those of a stream. A task that marks an event is its next record.
void enqueue(StreamState& stream, Task task);
/// Runs what is in the stream, and what that waits for. Like the next two it takes what was given before the
/// call, and lets go of the lock while it waits for other processes: then other threads' calls come in
/// between.
void finish(StreamState& stream);
/// Runs what makes an event done.
void finish(EventState& event);
/// Runs everything that a device has been given.
void finish_device(int device);
/// Runs the first task of a stream that has one, and before it what it awaits. False when one of them waits
/// for other processes: then the task stays the first. The host does not wait.
bool try_first(StreamState& stream);
/// Runs what makes an event done, up to a task that waits for other processes.
void advance(EventState& event);
/// Perhaps runs a little of a stream, as time goes by while the host asks.
void make_progress(StreamState& stream);
/// Lets other threads call for a moment, as often as the caller holds the lock. It must look afterwards what
/// they changed.
void suspend();

/// What the device's calls answer: cudaSuccess, or what has gone wrong in it.
cudaError_t& device_error(int device);
/// What cudaGetLastError answers in this thread; returns `status`.
cudaError_t answer(cudaError_t status);
cudaError_t last_answer();
void forget_last_answer();

}  // namespace cuda_double
