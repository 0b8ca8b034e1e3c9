// Private header: not installed.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/profile/event.h"

namespace pleat::profile {

/// What was seen of the GPUs, in times of the steady clock. Activities and ranges are joined by numbers:
/// a launch has a correlation, and links say in which range it happened.
struct DeviceTrace {
  struct Link {
    uint64_t correlation;
    uint64_t range;  ///< the id of an event
  };
  std::vector<DeviceActivity> activities;
  std::vector<Link> links;
  std::vector<std::string> warnings;
};

/// Watches GPUs from its making to `finish`. `enter` and `leave` come from the threads of the ranges, which
/// nest.
class DeviceTracer {
 public:
  virtual ~DeviceTracer() = default;
  virtual void enter(uint64_t range, const RangeStart& start) noexcept = 0;
  virtual void leave(uint64_t range) noexcept = 0;
  /// Forgets what was seen so far.
  virtual void discard() = 0;
  /// Waits for the GPUs and gives what was seen.
  virtual DeviceTrace finish() = 0;
};

/// By CUPTI's activity records. Null, with the reason in `obstacle`, when CUPTI cannot be used: not built in,
/// or held by another tool.
std::unique_ptr<DeviceTracer> make_cupti_tracer(std::string& obstacle);

/// By a pair of events around each op in the current stream of its first tensor on a GPU.
std::unique_ptr<DeviceTracer> make_event_tracer();

/// The better of the two that can be had; a warning says why it is not the first. Null where there is no GPU.
std::unique_ptr<DeviceTracer> make_device_tracer(std::vector<std::string>& warnings);

/// Ranges for NVIDIA's tools (Nsight Systems); nothing in a build without CUDA. A pop belongs to the push of
/// the same thread.
bool has_nvtx();
void nvtx_push(const char* name) noexcept;
void nvtx_pop() noexcept;

}  // namespace pleat::profile
