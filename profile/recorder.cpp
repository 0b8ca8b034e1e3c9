// The recorder: a log for each thread that runs ranges, written under the log's own mutex, and collected when
// a profiler stops. Sessions keep what is open from an earlier recording out of a later one.
#include "pleat/profile/recorder.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "pleat/core/base/error.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::profile {
namespace {

/// Bit of a token: the range is part of the one around it, and its end is ignored.
constexpr uint64_t joined = uint64_t{1} << 63;

/// Ids of different threads differ.
constexpr int id_bits_of_thread = 40;

std::vector<TensorInfo> describe(std::span<const Tensor* const> tensors) {
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const Tensor* t : tensors)
    infos.push_back(t->defined() ? TensorInfo{true, t->shape(), t->dtype(), t->memory_format(), t->device()}
                                 : TensorInfo{});
  return infos;
}

}  // namespace

int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Belongs to a thread; the mutex is for the one that collects.
struct Recorder::Log {
  struct Open {
    uint64_t id;
    std::size_t event;
  };

  std::mutex mutex;
  uint64_t session = 0;  ///< what is below belongs to
  ThreadLog ranges;
  std::vector<Open> stack;
  std::size_t first_new = 0;  ///< events from here on began after the tape last recorded something
  uint64_t next_id = 0;
  bool owner_gone = false;

  /// The innermost range that is open.
  std::size_t around() const { return stack.empty() ? none : stack.back().event; }
};

/// Held by the thread.
struct Recorder::LogOwner {
  std::shared_ptr<Log> log;
  ~LogOwner() {
    if (!log) return;
    const std::lock_guard lock(log->mutex);
    log->owner_gone = true;
  }
};

Recorder& Recorder::instance() {
  static auto* recorder = new Recorder;
  return *recorder;
}

Recorder::Log* Recorder::own_log() {
  constinit thread_local ThreadObject<LogOwner> own;
  LogOwner& owner = *own;
  if (!owner.log) {
    auto log = std::make_shared<Log>();
    const std::lock_guard lock(logs_mutex_);
    log->next_id = ++threads_seen_ << id_bits_of_thread;
    logs_.push_back(log);
    owner.log = std::move(log);
  }
  return owner.log.get();
}

/// With the mutex of the logs held: in a child of fork() the logs of other threads are as these were, in the
/// middle of a write, and their mutexes are locked for ever.
void Recorder::leave_other_threads(const Log* own) {
  if (process_.is_here()) return;
  const auto others = std::partition(logs_.begin(), logs_.end(),
                                     [&](const std::shared_ptr<Log>& log) { return log.get() == own; });
  for (auto log = others; log != logs_.end(); ++log) keep_for_ever(std::move(*log));
  logs_.erase(others, logs_.end());
  process_ = {};
}

/// With the log's mutex held: whether to write into it. A log of an earlier session is emptied.
bool Recorder::prepare(Log& log) {
  if (!active_.load(std::memory_order_acquire)) return false;
  const uint64_t session = session_.load(std::memory_order_relaxed);
  if (log.session == session) return true;
  // Ranges that were open when the earlier session ended: the stacks that CUPTI and NVTX keep for this thread
  // have them still.
  for (; !log.stack.empty(); log.stack.pop_back()) {
    if (tracer_) tracer_->leave(log.stack.back().id);
    if (options_.nvtx) nvtx_pop();
  }
  log.session = session;
  log.ranges = {};
  log.first_new = 0;
  return true;
}

/// Gives `work` the log of this thread while a recording is on. What finds no memory is missing from the
/// profile.
template <class Work>
void Recorder::with_log(const Work& work) noexcept {
  try {
    Log& log = *own_log();
    const std::lock_guard lock(log.mutex);
    if (prepare(log)) work(log);
  } catch (...) {
  }
}

void Recorder::start(RecorderOptions options, std::unique_ptr<DeviceTracer> tracer) {
  check<Error>(!active_.load(), "Profiler: another one is recording; only one can");
  {
    const Log* const own = own_log();
    const std::lock_guard lock(logs_mutex_);
    leave_other_threads(own);
    std::erase_if(logs_, [](const std::shared_ptr<Log>& log) {
      const std::lock_guard log_lock(log->mutex);
      return log->owner_gone;
    });
  }
  options_ = options;
  tracer_ = std::move(tracer);
  start_time_ = steady_now();
  ++session_;
  active_.store(true, std::memory_order_release);
  set_range_observer(this);
}

void Recorder::restart() {
  const std::lock_guard lock(logs_mutex_);
  // Ranges that are open leave the tracer as they do NVTX: when they end.
  if (tracer_) tracer_->discard();
  start_time_ = steady_now();
  ++session_;
}

Recording Recorder::stop() {
  set_range_observer(nullptr);
  Log* const own = own_log();
  Recording recording;
  recording.start = start_time_;
  active_.store(false, std::memory_order_release);
  const std::lock_guard lock(logs_mutex_);
  leave_other_threads(own);
  const uint64_t session = session_.load();
  for (const std::shared_ptr<Log>& log : logs_) {
    // A thread that held this mutex before is done with tracer and options; later ones see that nothing is
    // active.
    const std::lock_guard own_lock(log->mutex);
    if (log->session != session) continue;
    log->session = 0;
    if (log->ranges.events.empty() && log->ranges.memory.empty()) continue;
    recording.threads.insert(log.get() == own ? recording.threads.begin() : recording.threads.end(),
                             std::exchange(log->ranges, {}));
  }
  recording.end = steady_now();
  const std::unique_ptr<DeviceTracer> tracer = std::move(tracer_);
  if (tracer) try {
      recording.device = tracer->finish();
    } catch (const Error& error) {
      // The host's events show where the program was when the GPU was lost.
      recording.device = {};
      recording.device.warnings.push_back(std::string("GPU times are missing: ") + error.what());
    }
  return recording;
}

uint64_t Recorder::begin(const RangeStart& start) noexcept {
  uint64_t token = 0;
  with_log([&](Log& log) {
    if (start.kind == RangeKind::module && !options_.modules) return;
    if (start.kind == RangeKind::op && !log.stack.empty()) {
      Event& around = log.ranges.events[log.stack.back().event];
      const bool computes = around.kind == RangeKind::op || around.kind == RangeKind::backward;
      if (computes && around.name == start.name) {
        if (options_.shapes && start.inputs.size() > around.inputs.size())
          around.inputs = describe(start.inputs);
        token = around.id | joined;
        return;
      }
    }
    token = open(log, start);
  });
  return token;
}

uint64_t Recorder::open(Log& log, const RangeStart& start) {
  Event event;
  event.name = start.name;
  if (start.kind == RangeKind::backward) event.name += "_backward";
  event.kind = start.kind;
  event.id = ++log.next_id;
  event.end = -1;
  event.parent = log.around();
  event.sequence = start.sequence;
  event.module = start.module_path;
  if (options_.shapes) event.inputs = describe(start.inputs);
  const uint64_t id = event.id;
  if (options_.nvtx) nvtx_push(event.name.c_str());
  log.ranges.events.push_back(std::move(event));
  log.stack.push_back({id, log.ranges.events.size() - 1});
  if (tracer_) tracer_->enter(id, start);
  log.ranges.events.back().start = steady_now();  // last: our own work is not the range's
  return id;
}

void Recorder::end(uint64_t token) noexcept {
  const int64_t now = steady_now();
  if ((token & joined) != 0) return;
  with_log([&](Log& log) {
    for (std::size_t depth = log.stack.size(); depth-- > 0;)
      if (log.stack[depth].id == token) return close(log, depth, now);
  });
}

/// Ends the range at `depth` of the stack with all in it: there are none left where ranges end in the order
/// in which scopes do.
void Recorder::close(Log& log, std::size_t depth, int64_t now) {
  while (log.stack.size() > depth) {
    const Log::Open open = log.stack.back();
    log.stack.pop_back();
    log.ranges.events[open.event].end = now;
    if (tracer_) tracer_->leave(open.id);
    if (options_.nvtx) nvtx_pop();
  }
}

void Recorder::add(uint64_t token, const RangeDetails& details) noexcept {
  with_log([&](Log& log) {
    for (auto open = log.stack.rbegin(); open != log.stack.rend(); ++open) {
      if (open->id != (token & ~joined)) continue;
      Event& event = log.ranges.events[open->event];
      if (!details.implementation.empty()) event.implementation = details.implementation;
      event.flops += details.flops;
      event.bytes += details.bytes;
      return;
    }
  });
}

void Recorder::recorded(std::string_view name, uint64_t sequence) noexcept {
  with_log([&](Log& log) {
    // The function was recorded and still runs, ...
    auto& events = log.ranges.events;
    const std::size_t around = log.around();
    if (around != none && events[around].kind == RangeKind::op && events[around].name == name) {
      events[around].sequence = sequence;
      return;
    }
    // ... or it was computed by a raw function of its name, which ended since something was recorded last.
    const std::size_t first = std::max(log.first_new, around == none ? 0 : around + 1);
    log.first_new = events.size();
    for (std::size_t i = events.size(); i-- > first;) {
      Event& event = events[i];
      if (event.parent != around || event.kind != RangeKind::op || event.name != name) continue;
      event.sequence = sequence;
      return;
    }
  });
}

void Recorder::memory(const void*, int64_t bytes, Device device) noexcept {
  with_log([&](Log& log) {
    if (options_.memory) log.ranges.memory.push_back({steady_now(), bytes, device, log.around()});
  });
}

}  // namespace pleat::profile
