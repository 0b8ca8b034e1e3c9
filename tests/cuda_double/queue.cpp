#include "queue.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "finding.h"
#include "graph.h"
#include "host_tensors.h"
#include "memory.h"
#include <malloc.h>

namespace cuda_double {
namespace {

/// As many as a GPU's queue holds: then the host waits for the first ones.
constexpr std::size_t longest_queue = 1024;

void print_counts();

struct Machine {
  Lock lock;
  int turns = 0;  ///< see Turn
  std::mt19937_64 order;
  bool hurries = false;  ///< see set_seed
  Counts counts;
  Faults faults;
  int64_t launches_left = 0;  ///< until `at_launch`
  std::function<void()> at_launch;
  std::array<StreamState, devices> default_streams;
  std::map<cudaStream_t, std::unique_ptr<StreamState>> streams;
  std::map<cudaEvent_t, std::unique_ptr<EventState>> events;
  std::vector<std::unique_ptr<StreamState>> destroyed_streams;  // to which events may still refer,
  std::vector<std::unique_ptr<EventState>> destroyed_events;    // and to these tasks
  std::array<cudaError_t, devices> errors{};
  uintptr_t next_handle = 0x100;

  Machine() {
    // What the host let go holds no table that a late kernel could still take for its own.
    mallopt(M_PERTURB, 0xFF);
    const char* const seed = std::getenv("PLEAT_DOUBLE_SEED");
    begin_order(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
    for (int device = 0; device < devices; ++device) {
      default_streams[static_cast<std::size_t>(device)].device = device;
      default_streams[static_cast<std::size_t>(device)].blocking = true;
      default_streams[static_cast<std::size_t>(device)].is_default = true;
    }
    if (std::getenv("PLEAT_DOUBLE_COUNTS") != nullptr) std::atexit(print_counts);
  }

  void begin_order(uint64_t seed) {
    order.seed(seed);
    hurries = seed % 2 == 0;
  }
};

/// For the tests of programs: PLEAT_DOUBLE_COUNTS=1.
void print_counts() {
  const Counts c = counts();
  std::fprintf(
      stderr,
      "cuda double: launches %lld, calls_of_libraries %lld, graph_launches %lld, synchronisations %lld, "
      "blocking_copies %lld, collectives %lld\n",
      static_cast<long long>(c.launches), static_cast<long long>(c.calls_of_libraries),
      static_cast<long long>(c.graph_launches), static_cast<long long>(c.synchronisations),
      static_cast<long long>(c.blocking_copies), static_cast<long long>(c.collectives));
}

Machine& machine() {
  static auto* result = new Machine;
  return *result;
}

thread_local int thread_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

/// Handles are not addresses and must not be dereferenced.
template <class Handle>
Handle new_handle() {
  machine().next_handle += 0x10;
  return reinterpret_cast<Handle>(machine().next_handle);
}

/// The host goes on.
void end_turn() {
  set_activity("the host");
  open_devices(0);
  open_host_tensors();
}

/// While one exists, tasks run; at the end of the last the host goes on.
class Turn {
 public:
  Turn() { ++machine().turns; }
  ~Turn() {
    if (--machine().turns == 0) end_turn();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
};

/// Makes the memory accessible that a task may touch.
void open_for(const Task& task, const StreamState& stream) {
  set_activity(task.what);
  if (task.is_kernel)
    close_host_tensors();
  else
    open_host_tensors();
  open_devices(1u << stream.device | (task.peer >= 0 ? 1u << task.peer : 0u));
  watch_faults();
}

/// Runs the first task of a stream, or waits a moment when it cannot run yet. The caller looks whether what
/// it needs is done.
void run_first(StreamState& stream) {
  if (!try_first(stream)) suspend();
}

/// The default one first. A pointer stays valid after its stream was destroyed.
std::vector<StreamState*> streams_of(int device) {
  std::vector<StreamState*> result = {&machine().default_streams[static_cast<std::size_t>(device)]};
  for (auto& [handle, stream] : machine().streams)
    if (stream->device == device) result.push_back(stream.get());
  return result;
}

}  // namespace

Lock& lock() { return machine().lock; }
std::mt19937_64& draw() { return machine().order; }
Counts& counted() { return machine().counts; }
int& current_device() { return thread_device; }

bool fault(int64_t Faults::*which) {
  int64_t& left = machine().faults.*which;
  if (left == 0 || --left > 0) return false;
  if (machine().faults.lasting) left = 1;
  return true;
}

Counts counts() {
  const std::lock_guard guard(lock());
  return machine().counts;
}
void reset_counts() {
  const std::lock_guard guard(lock());
  machine().counts = {};
}
void set_faults(const Faults& faults) {
  const std::lock_guard guard(lock());
  machine().faults = faults;
}
bool is_due(int64_t Faults::*kind) {
  const std::lock_guard guard(lock());
  return machine().faults.*kind != 0;
}
Things things() {
  const std::lock_guard guard(lock());
  return {.events = static_cast<int64_t>(machine().events.size()),
          .streams = static_cast<int64_t>(machine().streams.size()),
          .blas_handles = blas_handles(),
          .dnn_handles = dnn_handles(),
          .dnn_descriptors = dnn_descriptors(),
          .nccl_communicators = nccl_communicators()};
}
void before_launch(int64_t n, std::function<void()> what) {
  const std::lock_guard guard(lock());
  machine().launches_left = n;
  machine().at_launch = std::move(what);
}
void on_launch() {
  if (machine().launches_left == 0 || --machine().launches_left > 0) return;
  std::exchange(machine().at_launch, {})();
}
void repair() {
  const std::lock_guard guard(lock());
  machine().errors = {};
  last_error = cudaSuccess;
}
void set_seed(uint64_t seed) {
  const std::lock_guard guard(lock());
  machine().begin_order(seed);
}

StreamState& stream_of(cudaStream_t stream) {
  if (stream == nullptr) return machine().default_streams[static_cast<std::size_t>(thread_device)];
  const auto found = machine().streams.find(stream);
  if (found == machine().streams.end()) finding("a stream is used that does not exist, or exists no more");
  return *found->second;
}

cudaStream_t make_stream(int device, bool blocking) {
  const auto handle = new_handle<cudaStream_t>();
  auto state = std::make_unique<StreamState>();
  state->device = device;
  state->blocking = blocking;
  machine().streams.emplace(handle, std::move(state));
  return handle;
}

bool destroy_stream(cudaStream_t stream) {
  const auto found = machine().streams.find(stream);
  if (found == machine().streams.end()) return false;
  finish(*found->second);
  // Another thread may have destroyed it meanwhile.
  auto gone = machine().streams.extract(stream);
  if (gone.empty()) return false;
  machine().destroyed_streams.push_back(std::move(gone.mapped()));
  return true;
}

cudaEvent_t make_event(int device, bool timing) {
  const auto handle = new_handle<cudaEvent_t>();
  auto state = std::make_unique<EventState>();
  state->device = device;
  state->timing = timing;
  machine().events.emplace(handle, std::move(state));
  return handle;
}

EventState& event_of(cudaEvent_t event) {
  const auto found = machine().events.find(event);
  if (found == machine().events.end()) finding("an event is used that does not exist, or exists no more");
  return *found->second;
}

bool destroy_event(cudaEvent_t event) {
  const auto found = machine().events.find(event);
  if (found == machine().events.end()) return false;
  machine().destroyed_events.push_back(std::move(found->second));
  machine().events.erase(found);
  return true;
}

void enqueue(StreamState& stream, Task task) {
  if (std::getenv("PLEAT_DOUBLE_LOG") != nullptr)
    std::fprintf(stderr, "cuda double: %s\n", task.what.c_str());
  if (stream.recording != nullptr) return keep(stream, std::move(task));
  while (stream.tasks.size() >= longest_queue) run_first(stream);
  if (stream.blocking) {
    StreamState& first = machine().default_streams[static_cast<std::size_t>(stream.device)];
    if (&first != &stream) {
      finish(first);
    } else {
      for (StreamState* const other : streams_of(stream.device))
        if (other->blocking && !other->is_default) finish(*other);
    }
  }
  if (task.marked != nullptr) {
    // The event speaks of this record from now on; a stream that waits for the one before has its number.
    task.number = ++task.marked->recorded;
    task.marked->stream = &stream;
  }
  stream.tasks.push_back(std::move(task));
  ++stream.given;
  if (machine().hurries && machine().order() % 2 == 0) {
    const Turn turn;
    while (!stream.tasks.empty() && try_first(stream)) continue;
  }
}

bool try_first(StreamState& stream) {
  const Turn turn;
  Task& first = stream.tasks.front();
  while (first.awaited != nullptr && first.awaited->done < first.number) {
    if (first.source->tasks.empty()) finding("a stream waits for an event whose record is lost");
    if (!try_first(*first.source)) return false;
  }
  // After an error nothing runs any more, as on a GPU.
  const auto lost = [&] { return machine().errors[static_cast<std::size_t>(stream.device)] != cudaSuccess; };
  if (first.begin && !lost()) {
    open_for(first, stream);
    std::exchange(first.begin, {})();
  }
  if (first.ready && !lost() && !first.ready()) return false;
  const Task task = std::move(first);
  stream.tasks.pop_front();
  ++stream.taken;
  if (task.marked != nullptr) {
    task.marked->done = std::max(task.marked->done, task.number);
    task.marked->time = now_ms();
  }
  if (!task.run || lost()) return true;
  if (task.is_kernel && fault(&Faults::kernel)) {
    machine().errors[static_cast<std::size_t>(stream.device)] = cudaErrorIllegalAddress;
    return true;
  }
  open_for(task, stream);
  task.run();
  check_ends(task.what, stream.device);
  return true;
}

void finish(StreamState& stream) {
  const Turn turn;
  const uint64_t last = stream.given;
  while (stream.taken < last) run_first(stream);
}

void finish(EventState& event) {
  if (event.recorded == 0) return;
  const Turn turn;
  // Others may record it again meanwhile.
  const uint64_t number = event.recorded;
  StreamState& stream = *event.stream;
  while (event.done < number) run_first(stream);
}

void finish_device(int device) {
  const Turn turn;
  struct Last {
    StreamState* stream;
    uint64_t number;
  };
  std::vector<Last> all;
  for (StreamState* const stream : streams_of(device)) all.push_back({stream, stream->given});
  for (;;) {
    std::erase_if(all, [](const Last& each) { return each.stream->taken >= each.number; });
    if (all.empty()) return;
    run_first(*all[machine().order() % all.size()].stream);
  }
}

void advance(EventState& event) {
  const Turn turn;
  while (event.done < event.recorded && try_first(*event.stream)) continue;
}

void make_progress(StreamState& stream) {
  if (!stream.tasks.empty() && machine().order() % 4 == 0) try_first(stream);
}

void suspend() {
  const int turns = std::exchange(machine().turns, 0);
  if (turns > 0) end_turn();
  const int depth = lock().release();
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  lock().take_again(depth);
  machine().turns = turns;
}

cudaError_t& device_error(int device) { return machine().errors[static_cast<std::size_t>(device)]; }

cudaError_t answer(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

cudaError_t last_answer() { return last_error; }
void forget_last_answer() { last_error = cudaSuccess; }

}  // namespace cuda_double
