#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pleat/profile/event.h"
#include "pleat/profile/key_averages.h"

namespace pleat::profile {

/// The result of a recording.
struct Profile {
  std::vector<Event> events;  ///< parents before children; those of one parent in the order in which they ran
  std::vector<DeviceActivity> activities;  ///< by their start
  std::vector<MemoryChange> memory;        ///< by time; empty unless asked for
  int64_t duration = 0;                    ///< ns
  int threads = 0;                         ///< number of threads that had ranges
  bool on_cuda = false;                    ///< whether GPUs were recorded
  bool with_shapes = false;
  bool with_memory = false;
  bool with_flops = false;
  std::vector<std::string> warnings;  ///< sentences about what is missing or inexact

  /// One row for all ranges with the same name (and, with `options`, the same shapes, modules ...).
  KeyAverages key_averages(KeyAveragesOptions options = {}) const;

  /// The events, flows and memory as a trace for chrome://tracing and https://ui.perfetto.dev. See
  /// profile/chrome_trace.h.
  void export_chrome_trace(const std::filesystem::path& file) const;
};

/// The CPU time of a range without that of the ranges in it.
int64_t self_time(const Profile& profile, std::size_t event);
/// The time that GPUs were busy with what the range launched, by itself and by all ranges in it. Activities
/// that ran at the same time both count.
int64_t device_time(const Profile& profile, std::size_t event);
int64_t self_device_time(const Profile& profile, std::size_t event);

}  // namespace pleat::profile
