#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"

namespace pleat::cuda {
namespace {

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }
cudaEvent_t native(const Event& event) { return static_cast<cudaEvent_t>(event.native()); }

/// Streams that are not in use at the moment, by device and priority. None is ever destroyed: the allocators
/// know a stream by its handle, which therefore must not come to mean another one.
class StreamPool {
 public:
  cudaStream_t take(int device, int priority) {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[{device, priority}];
    if (!idle.empty()) {
      cudaStream_t stream = idle.back();
      idle.pop_back();
      return stream;
    }
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "stream");
    return stream;
  }

  void give_back(int device, int priority, cudaStream_t stream) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      idle_[{device, priority}].push_back(stream);
    } catch (const std::bad_alloc&) {  // no room to remember it: it stays unused
    }
  }

 private:
  ForkMutex<std::mutex> mutex_;
  std::map<std::pair<int, int>, std::vector<cudaStream_t>> idle_;
};

StreamPool& pool() {
  static auto* result = new StreamPool;  // streams in static storage may come back late
  return *result;
}

std::vector<Stream>& current_streams() {
  thread_local ThreadObject<std::vector<Stream>> streams;
  for (int i = static_cast<int>(streams->size()); i < device_count(); ++i)
    streams->push_back(Stream::default_of({DeviceType::cuda, i}));
  return *streams;
}

Stream& current(Device device) { return current_streams()[static_cast<std::size_t>(device.index)]; }

/// cudaSuccess: done. cudaErrorNotReady: not yet, which is no failure.
bool is_ready(cudaError_t status, const char* op) {
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check_cuda(status, op);
  return true;
}

}  // namespace

Stream::Stream(StreamOptions options) : device_(options.device) {
  check_device("stream", options.device);
  const DeviceGuard guard(options.device);
  int least = 0;
  int greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream");
  check<ValueError>(options.priority <= least && options.priority >= greatest,
                    "stream: the priority must be from {} (first) to {}, got {}", greatest, least,
                    options.priority);
  const int index = options.device.index;
  const int priority = options.priority;
  const cudaStream_t stream = pool().take(index, priority);
  native_ = stream;
  owner_ = std::shared_ptr<void>(
      stream, [=](void* handle) { pool().give_back(index, priority, static_cast<cudaStream_t>(handle)); });
}

Stream Stream::default_of(Device device) {
  check_device("stream", device);
  return {device, nullptr, nullptr};
}

Stream Stream::from_native(void* stream, Device device) {
  check_device("stream", device);
  return {device, stream, nullptr};
}

void Stream::synchronize() const {
  Capture::refuse_to_wait("stream.synchronize");
  const DeviceGuard guard(device_);
  check_cuda(cudaStreamSynchronize(pleat::cuda::native(*this)), "stream.synchronize");
}

bool Stream::is_done() const {
  const DeviceGuard guard(device_);
  return is_ready(cudaStreamQuery(pleat::cuda::native(*this)), "stream.is_done");
}

void Stream::wait(const Event& event) const {
  const DeviceGuard guard(device_);
  check_cuda(cudaStreamWaitEvent(pleat::cuda::native(*this), pleat::cuda::native(event), 0), "stream.wait");
}

Stream current_stream(Device device) {
  check_device("current_stream", device);
  if (const Capture* capture = Capture::current(); capture != nullptr && capture->device() != device)
    capture->refuse("current_stream", "it works on another GPU than the graph");
  return current(device);
}

StreamGuard::StreamGuard(Stream stream)
    : device_(stream.device()), previous_(std::exchange(current(stream.device()), stream)) {
  if (const Capture* capture = Capture::current()) {
    current(previous_.device()) = previous_;
    capture->refuse("StreamGuard", "what is given to another stream would be no part of the graph");
  }
}

StreamGuard::~StreamGuard() { current(previous_.device()) = previous_; }

Event::Event(EventOptions options) : device_(options.device) {
  check_device("event", options.device);
  const DeviceGuard guard(options.device);
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, options.timing ? cudaEventDefault : cudaEventDisableTiming),
             "event");
  native_ =
      std::shared_ptr<void>(event, [](void* handle) { cudaEventDestroy(static_cast<cudaEvent_t>(handle)); });
}

void Event::record(const Stream& stream) const {
  check<DeviceError>(stream.device() == device_, "event.record: the event is on {}, the stream on {}",
                     device_, stream.device());
  const DeviceGuard guard(device_);
  check_cuda(cudaEventRecord(pleat::cuda::native(*this), pleat::cuda::native(stream)), "event.record");
}

bool Event::is_done() const { return is_ready(cudaEventQuery(pleat::cuda::native(*this)), "event.is_done"); }
void Event::synchronize() const {
  Capture::refuse_to_wait("event.synchronize");
  check_cuda(cudaEventSynchronize(pleat::cuda::native(*this)), "event.synchronize");
}

double elapsed_ms(const Event& start, const Event& end) {
  end.synchronize();
  float result = 0;
  check_cuda(cudaEventElapsedTime(&result, native(start), native(end)), "elapsed_ms");
  return static_cast<double>(result);
}

}  // namespace pleat::cuda
