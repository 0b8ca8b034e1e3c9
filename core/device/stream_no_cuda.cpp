#include "pleat/core/device/cuda.h"

// Without CUDA there is no stream and no event: making one throws, so that what follows is never reached.
namespace pleat::cuda {

Stream::Stream(StreamOptions options) { check_device("stream", options.device); }

Stream Stream::default_of(Device device) {
  check_device("stream", device);
  return {device, nullptr, nullptr};
}

Stream Stream::from_native(void*, Device device) { return default_of(device); }
void Stream::synchronize() const { check_device("stream.synchronize", device_); }

bool Stream::is_done() const {
  check_device("stream.is_done", device_);
  return true;
}

void Stream::wait(const Event&) const { check_device("stream.wait", device_); }
Stream current_stream(Device device) { return Stream::default_of(device); }

StreamGuard::StreamGuard(Stream stream) : device_(stream.device()), previous_(stream) {}
StreamGuard::~StreamGuard() = default;

Event::Event(EventOptions options) { check_device("event", options.device); }
void Event::record(const Stream& stream) const { check_device("event.record", stream.device()); }

bool Event::is_done() const {
  check_device("event.is_done", device_);
  return true;
}

void Event::synchronize() const { check_device("event.synchronize", device_); }

double elapsed_ms(const Event& start, const Event&) {
  check_device("elapsed_ms", start.device());
  return 0;
}

}  // namespace pleat::cuda
