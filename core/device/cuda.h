#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pleat/core/base/device.h"

/// NVIDIA GPUs: devices, streams and events. Everything here exists in a build without CUDA, too: questions
/// are answered
/// ("no device"), actions throw DeviceError.
///
/// Work on a GPU is queued in a stream and runs later; a function that computes returns before its result is
/// there. What is queued in one stream runs in order, so nothing waits until the host reads a value
/// (`item`, `to_vector`, `to("cpu")`), which waits by itself. Only work in several streams needs
/// events.

namespace pleat {

class Tensor;

namespace cuda {

// --- Devices

/// Whether this Pleat was built with CUDA.
bool is_built();
/// GPUs that can be used: 0 in a build without CUDA, without a driver, or when none is visible.
int device_count();
/// Whether there is a GPU to use.
inline bool is_available() { return device_count() > 0; }
/// Why `is_available()` is false, in the words of the driver; empty when it is true.
std::string unavailable_reason();

/// Throws DeviceError, naming `op` and saying how many GPUs there are, unless `device` is one of them.
void check_device(const char* op, Device device);

struct DeviceProperties {
  std::string name;          ///< "NVIDIA H200"
  std::string uuid;          ///< "GPU-8f6d...", as nvidia-smi -L has it: no other GPU's, on any machine
  int major = 0, minor = 0;  ///< compute capability
  int64_t total_memory = 0;  ///< bytes
  int multiprocessors = 0;   ///< SMs
  int64_t l2_cache = 0;      ///< bytes
  int max_threads_per_multiprocessor = 0;
  int64_t shared_memory_per_block = 0;        ///< bytes, by default
  int64_t shared_memory_per_block_optin = 0;  ///< bytes, for kernels that request more
};

/// Throws DeviceError when there is no such GPU.
const DeviceProperties& properties(Device device = DeviceType::cuda);

/// Free bytes of the device's memory, and all of them.
struct MemoryInfo {
  int64_t free = 0;
  int64_t total = 0;
};
MemoryInfo memory_info(Device device = DeviceType::cuda);

/// Versions of what is in use; 0 for what is not. CUDA: 13000 is 13.0; cuDNN: 91900 is 9.19.0.
struct Versions {
  int runtime = 0;
  int driver = 0;  ///< newest CUDA that the driver supports
  int cublas = 0;
  int cudnn = 0;
};
Versions versions();

/// The GPU that CUDA calls of this thread go to. Throws DeviceError when there is none.
Device current_device();

/// Makes a GPU the thread's current one until the scope ends. Does nothing for the CPU.
class DeviceGuard {
 public:
  /// Throws DeviceError when there is no such GPU.
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  [[maybe_unused]] int previous_ = -1;  ///< -1: nothing to put back, as always without CUDA
};

/// Waits for all work on the device. Throws what went wrong in it, see DeviceLostError.
void synchronize(Device device = DeviceType::cuda);

// --- Streams and events

class Event;

struct StreamOptions {
  Device device = DeviceType::cuda;
  int priority =
      0;  ///< negative: its work goes first. Throws ValueError outside of what the device has (0 to -5).
};

/// A queue of work on a device. A handle: copies are the same stream. When the last one goes, the stream is
/// kept for the next request; its work goes on.
class Stream {
 public:
  /// A stream of its own. Throws DeviceError, ValueError.
  explicit Stream(StreamOptions options);
  /// The stream that a device has from the start.
  static Stream default_of(Device device);
  /// A stream (cudaStream_t) of another library, which keeps it alive.
  static Stream from_native(void* stream, Device device);

  Device device() const { return device_; }
  /// The cudaStream_t.
  void* native() const { return native_; }
  /// Waits until all its work is done. Throws what went wrong in it, see DeviceLostError.
  void synchronize() const;
  /// Whether all its work is done.
  bool is_done() const;
  /// What is given to this stream from now on runs after the event. The host does not wait. An event that was
  /// never recorded counts as done.
  void wait(const Event& event) const;
  bool operator==(const Stream& other) const { return device_ == other.device_ && native_ == other.native_; }

 private:
  Stream(Device device, void* native, std::shared_ptr<void> owner)
      : device_(device), native_(native), owner_(std::move(owner)) {}

  Device device_;
  void* native_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// The stream into which this thread's work on a device goes: the default one until a StreamGuard says
/// otherwise.
Stream current_stream(Device device = DeviceType::cuda);

/// Makes a stream the thread's current one on its device, and that device the current one, until the scope
/// ends.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  DeviceGuard device_;
  Stream previous_;
};

struct EventOptions {
  Device device = DeviceType::cuda;
  bool timing = false;  ///< whether `elapsed_ms` can be asked
};

/// A point in a stream's work, to wait for or to take the time of. A handle: copies are the same event.
class Event {
 public:
  /// Throws DeviceError.
  explicit Event(EventOptions options);

  /// Marks the work that is in the stream now. Throws DeviceError when the stream is on another device.
  void record(const Stream& stream) const;
  /// The same in the current stream of the event's device.
  void record() const { record(current_stream(device_)); }
  /// Whether the marked work is done; true before the first `record`.
  bool is_done() const;
  /// Waits for the marked work.
  void synchronize() const;
  Device device() const { return device_; }
  /// The cudaEvent_t.
  void* native() const { return native_.get(); }

 private:
  Device device_;
  std::shared_ptr<void> native_;
};

/// Milliseconds between two recorded events with timing, once both are done: waits for `end`.
/// Throws DeviceError when one was made without timing or never recorded.
double elapsed_ms(const Event& start, const Event& end);

/// Announces that work in `stream` uses the tensor, so that its memory is not reused for other streams before
/// that work is done. To be called for tensors that another stream than the one they were made in reads or
/// writes.
void record_stream(const Tensor& tensor, const Stream& stream);

}  // namespace cuda
}  // namespace pleat
