#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pleat/core/base/record_function.h"
#include "pleat/profile/profile.h"

/// Records where the time of a program goes.
///
///   profile::Profiler profiler{{.with_flops = true}};
///   train_some_steps();
///   profiler.stop();
///   std::cout << profiler.profile().key_averages().table({.row_limit = 10});
///   profiler.profile().export_chrome_trace("trace.json");
///
/// Every op, forward and backward, every module, optimiser step and RecordFunction of every thread
/// is recorded (core/base/record_function.h). On a GPU, kernels and copies belong to the ranges that
/// launched them.

namespace pleat::profile {

enum class Activities : unsigned char {
  automatic,  ///< cpu_and_cuda where there is a GPU, else cpu
  cpu,
  cpu_and_cuda  ///< without a GPU: a warning in the profile
};

/// Which steps of a loop are recorded: after `skip_first` steps, repeatedly `wait` steps not
/// recorded, `warmup` steps recorded and dropped (they may contain work that happens only once),
/// `active` steps kept. All are non-negative, `active` is positive.
struct Schedule {
  int64_t wait = 0;
  int64_t warmup = 0;
  int64_t active = 1;
  int64_t repeat = 0;  ///< number of repetitions; 0: until the end
  int64_t skip_first = 0;

  enum class Phase : unsigned char { off, warmup, record, record_and_save };
  /// The phase of a step, counted from 0.
  Phase phase(int64_t step) const;
};

struct ProfilerOptions {
  Activities activities = Activities::automatic;
  std::optional<Schedule> schedule = {};  ///< none: everything between construction and `stop`
  bool record_shapes = true;              ///< shapes, types and memory formats of inputs
  bool with_memory = false;               ///< memory that tensors allocate and free
  bool with_flops = false;                ///< operations of convolutions and matrix products
  bool with_modules = true;               ///< ranges of modules
  bool nvtx = false;                      ///< also makes all ranges NVTX ranges, for Nsight Systems
  std::function<void(const Profile&)> on_trace_ready = {};  ///< called with each profile
};

/// Records from its construction to `stop`, or by its schedule. Only one at a time in a process.
class Profiler {
 public:
  /// Throws ValueError for an invalid schedule, Error when another Profiler is recording.
  explicit Profiler(ProfilerOptions options = {});
  /// Stops. An exception of on_trace_ready is lost here; call `stop` to get it.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Ends a step of the loop and begins the next. Call it in the thread that runs the loop, at the
  /// end of its body. With a schedule, steps are ranges of their own ("ProfilerStep#7").
  void step();
  /// Ends the recording. A part of the schedule's active steps is kept as it is.
  void stop();

  /// The last completed profile. Throws Error when there is none yet.
  const Profile& profile() const;
  /// Whether there is a completed profile.
  bool has_profile() const { return profile_.has_value(); }

 private:
  void start();
  void enter(Schedule::Phase phase);
  void begin_step();
  void end_step();
  void save();

  ProfilerOptions options_;
  bool recording_ = false;
  bool stopped_ = false;
  int64_t step_ = 0;
  uint64_t step_range_ = 0;
  bool cuda_ = false;
  std::vector<std::string> warnings_;        ///< of the options
  std::vector<std::string> start_warnings_;  ///< and of the present recording
  std::optional<Profile> profile_;
};

}  // namespace pleat::profile
