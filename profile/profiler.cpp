#include "pleat/profile/profiler.h"

#include <string>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/profile/recorder.h"

namespace pleat::profile {

using Phase = Schedule::Phase;

Phase Schedule::phase(int64_t step) const {
  const int64_t cycle = wait + warmup + active;
  const int64_t counted = step - skip_first;
  if (counted < 0 || (repeat > 0 && counted / cycle >= repeat)) return Phase::off;
  const int64_t place = counted % cycle;
  if (place < wait) return Phase::off;
  if (place < wait + warmup) return Phase::warmup;
  return place == cycle - 1 ? Phase::record_and_save : Phase::record;
}

Profiler::Profiler(ProfilerOptions options) : options_(std::move(options)) {
  if (const auto& s = options_.schedule) {
    check<ValueError>(
        s->wait >= 0 && s->warmup >= 0 && s->repeat >= 0 && s->skip_first >= 0 && s->active >= 1,
        "Profiler: a schedule needs active >= 1 and nothing below 0, got wait {}, warmup {}, "
        "active {}, repeat {}, skip_first {}",
        s->wait, s->warmup, s->active, s->repeat, s->skip_first);
    if (s->warmup == 0 && s->wait == 0 && s->skip_first == 0)
      warnings_.push_back("the first step was recorded without a warm-up, with all that happens only once");
  }
  cuda_ = options_.activities == Activities::cpu_and_cuda ||
          (options_.activities == Activities::automatic && cuda::is_available());
  if (options_.nvtx && !has_nvtx())
    warnings_.push_back("there are no NVTX ranges: this Pleat was built without NVTX");
  enter(options_.schedule ? options_.schedule->phase(0) : Phase::record);
}

Profiler::~Profiler() {
  try {
    stop();
  } catch (...) {  // a destructor cannot report it
  }
}

void Profiler::start() {
  std::vector<std::string> warnings = warnings_;
  std::unique_ptr<DeviceTracer> tracer = cuda_ ? make_device_tracer(warnings) : nullptr;
  Recorder::instance().start({.shapes = options_.record_shapes,
                              .memory = options_.with_memory,
                              .modules = options_.with_modules,
                              .nvtx = options_.nvtx},
                             std::move(tracer));
  recording_ = true;
  start_warnings_ = std::move(warnings);
}

void Profiler::enter(Phase phase) {
  if (phase == Phase::off) return;
  if (!recording_) start();
  if (phase != Phase::warmup) begin_step();
}

void Profiler::begin_step() {
  if (!options_.schedule) return;
  const std::string name = "ProfilerStep#" + std::to_string(step_);
  step_range_ = Recorder::instance().begin({.kind = RangeKind::step, .name = name});
}

void Profiler::end_step() {
  if (step_range_ != 0) Recorder::instance().end(std::exchange(step_range_, 0));
}

void Profiler::step() {
  if (stopped_) return;
  end_step();
  if (!options_.schedule) {
    ++step_;
    return;
  }
  const Phase before = options_.schedule->phase(step_);
  const Phase now = options_.schedule->phase(++step_);
  if (before == Phase::record_and_save) save();
  if (before == Phase::warmup && (now == Phase::record || now == Phase::record_and_save))
    Recorder::instance().restart();
  enter(now);
}

void Profiler::stop() {
  if (std::exchange(stopped_, true)) return;
  end_step();
  if (!recording_) return;
  if (!options_.schedule || options_.schedule->phase(step_) != Phase::warmup) return save();
  recording_ = false;
  Recorder::instance().stop();
}

void Profiler::save() {
  recording_ = false;
  Recording recording = Recorder::instance().stop();
  recording.warnings = start_warnings_;
  profile_ = assemble(std::move(recording));
  profile_->on_cuda = cuda_ && cuda::is_available();
  profile_->with_shapes = options_.record_shapes;
  profile_->with_memory = options_.with_memory;
  profile_->with_flops = options_.with_flops;
  if (options_.on_trace_ready) options_.on_trace_ready(*profile_);
}

const Profile& Profiler::profile() const {
  check<Error>(profile_.has_value(),
               "Profiler: there is no profile yet; call stop() first, or enough steps for the schedule");
  return *profile_;
}

}  // namespace pleat::profile
