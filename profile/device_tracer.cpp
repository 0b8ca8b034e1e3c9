// The tracer of GPUs without CUPTI: an event before and after each op, in the stream of its tensors. Which
// tracer a profiler gets is decided here, too.
#include "pleat/profile/device_tracer.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/profile/recorder.h"

namespace pleat::profile {
namespace {

/// For use without CUPTI: the time between two events around an op, less that of the ops in it. It
/// includes the gaps between the kernels of an op.
class EventTracer final : public DeviceTracer {
 public:
  void enter(uint64_t range, const RangeStart& start) noexcept override {
    try {
      const std::lock_guard lock(mutex_);
      auto& stack = open_[std::this_thread::get_id()];
      const Device device = gpu_of(start);
      if (start.kind != RangeKind::op || device.is_cpu()) return stack.push_back({range, none});
      const cuda::Stream stream = cuda::current_stream(device);
      begin_clock(device, stream);
      const cuda::EventOptions timed{.device = device, .timing = true};
      Pair pair{std::string(start.name),
                range,
                device,
                reinterpret_cast<uint64_t>(stream.native()),
                around(stack),
                cuda::Event(timed),
                cuda::Event(timed)};
      pair.start.record(stream);
      stack.push_back({range, pairs_.size()});
      pairs_.push_back(std::move(pair));
    } catch (...) {
      ++lost_;
    }
  }

  void leave(uint64_t range) noexcept override {
    try {
      const std::lock_guard lock(mutex_);
      auto& stack = open_[std::this_thread::get_id()];
      if (stack.empty() || stack.back().range != range) return;
      const std::size_t index = stack.back().pair;
      stack.pop_back();
      if (index >= pairs_.size()) return;
      Pair& pair = pairs_[index];
      pair.end.record(cuda::current_stream(pair.device));
      pair.complete = true;
    } catch (...) {
      ++lost_;
    }
  }

  void discard() override {
    const std::lock_guard lock(mutex_);
    pairs_.clear();
    open_.clear();
    lost_ = 0;
  }

  DeviceTrace finish() override {
    const std::lock_guard lock(mutex_);
    std::vector<double> self(pairs_.size(), 0);  // milliseconds
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (!pairs_[i].complete) continue;
      const double elapsed = cuda::elapsed_ms(pairs_[i].start, pairs_[i].end);
      self[i] += elapsed;
      if (pairs_[i].parent < pairs_.size()) self[pairs_[i].parent] -= elapsed;
    }
    DeviceTrace trace;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const Pair& pair = pairs_[i];
      if (!pair.complete) continue;
      const Clock& clock = clocks_.at(pair.device.index);
      const int64_t start = clock.host + nanoseconds(cuda::elapsed_ms(clock.event, pair.start));
      trace.activities.push_back({.kind = DeviceActivity::Kind::measured,
                                  .name = pair.name,
                                  .start = start,
                                  .end = start + nanoseconds(std::max(0.0, self[i])),
                                  .device = pair.device,
                                  .stream = pair.stream,
                                  .correlation = i + 1});
      trace.links.push_back({i + 1, pair.range});
    }
    if (lost_ > 0)
      trace.warnings.push_back(fmt::format("{} events could not be recorded; GPU times are missing", lost_));
    pairs_.clear();
    open_.clear();
    return trace;
  }

 private:
  struct Pair {
    std::string name;
    uint64_t range;
    Device device;
    uint64_t stream;
    std::size_t parent;  ///< the pair around it
    cuda::Event start, end;
    bool complete = false;
  };
  struct Open {
    uint64_t range;
    std::size_t pair;
  };
  /// A moment of both clocks.
  struct Clock {
    cuda::Event event;
    int64_t host;
  };

  static int64_t nanoseconds(double ms) { return static_cast<int64_t>(ms * 1e6); }

  static Device gpu_of(const RangeStart& start) {
    for (const Tensor* input : start.inputs)
      if (input->defined() && input->device().is_cuda()) return input->device();
    return {};
  }

  static std::size_t around(const std::vector<Open>& stack) {
    for (auto open = stack.rbegin(); open != stack.rend(); ++open)
      if (open->pair != none) return open->pair;
    return none;
  }

  void begin_clock(Device device, const cuda::Stream& stream) {
    if (clocks_.contains(device.index)) return;
    cuda::Event event({.device = device, .timing = true});
    event.record(stream);
    event.synchronize();
    clocks_.emplace(device.index, Clock{event, steady_now()});
  }

  std::mutex mutex_;
  std::vector<Pair> pairs_;
  std::unordered_map<std::thread::id, std::vector<Open>> open_;
  std::map<int, Clock> clocks_;
  int64_t lost_ = 0;
};

}  // namespace

std::unique_ptr<DeviceTracer> make_event_tracer() { return std::make_unique<EventTracer>(); }

std::unique_ptr<DeviceTracer> make_device_tracer(std::vector<std::string>& warnings) {
  if (!cuda::is_available()) {
    warnings.push_back("no GPU was watched: " + cuda::unavailable_reason());
    return nullptr;
  }
  std::string obstacle;
  std::unique_ptr<DeviceTracer> tracer = make_cupti_tracer(obstacle);
  if (tracer) return tracer;
  warnings.push_back(
      "times on the GPU are from events around each op, with the gaps between its kernels, instead of from "
      "CUPTI: " +
      obstacle);
  return make_event_tracer();
}

}  // namespace pleat::profile
