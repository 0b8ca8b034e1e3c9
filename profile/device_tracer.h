// Private header: not installed.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/profile/profile.h"

namespace pleat::profile {

/// The activities of GPUs, in times of the steady clock. Numbers join them with ranges: a launch
/// has a correlation, and a link names the range of a correlation.
struct DeviceTrace {
  struct Link {
    uint64_t correlation;
    uint64_t range;  ///< the id of an event
  };
  std::vector<DeviceActivity> activities;
  std::vector<Link> links;
  std::vector<std::string> warnings;
};

/// Records GPU activities from its construction to `finish`. The threads of the ranges call `enter`
/// and `leave`, nested.
class DeviceTracer {
 public:
  virtual ~DeviceTracer() = default;
  virtual void enter(uint64_t range, const RangeStart& start) noexcept = 0;
  virtual void leave(uint64_t range) noexcept = 0;
  /// Drops all activities so far.
  virtual void discard() = 0;
  /// Waits for the GPUs and returns the activities.
  virtual DeviceTrace finish() = 0;
};

/// By CUPTI's activity records. Null, with the reason in `obstacle`, when CUPTI cannot be used: not built in,
/// or held by another tool.
std::unique_ptr<DeviceTracer> make_cupti_tracer(std::string& obstacle);

/// By a pair of events around each op in the current stream of its first tensor on a GPU.
std::unique_ptr<DeviceTracer> make_event_tracer();

/// CUPTI's tracer if possible, else the one with events and a warning with the reason. Null where
/// there is no GPU.
std::unique_ptr<DeviceTracer> make_device_tracer(std::vector<std::string>& warnings);

/// Ranges for NVIDIA's tools (Nsight Systems); nothing in a build without CUDA. A pop belongs to the push of
/// the same thread.
bool has_nvtx();
void nvtx_push(const char* name) noexcept;
void nvtx_pop() noexcept;

}  // namespace pleat::profile
