#include "pleat/profile/profiler.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pleat/autograd/tape.h"
#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/profile/device_tracer.h"
#include "pleat/profile/recorder.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/profile/profiles.h"

using namespace pleat;
using namespace pleat::profile;
using pleat_test::event, pleat_test::find, pleat_test::profile_of;

namespace {

std::vector<std::string> names(const Profile& profile) {
  std::vector<std::string> all;
  for (const Event& event : profile.events) all.push_back(event.name);
  return all;
}

std::string parent_of(const Profile& profile, const std::string& name) {
  const std::size_t parent = find(profile, name).parent;
  return parent == none ? "" : profile.events[parent].name;
}

/// A function as users write them, with a raw function of the same name.
Tensor twice(const Tensor& x) {
  Tensor y;
  {
    const RecordOp op("twice", x);
    op.details([] { return RangeDetails{.implementation = "test", .flops = 3}; });
    y = x.detach() * 2;
  }
  return record("twice", y, {grad_of(x, [](const Tensor& dy) {
                  const RecordOp op("twice_backward", dy, dy);
                  op.details([] { return RangeDetails{.implementation = "test_backward"}; });
                  return dy * 2;
                })});
}

}  // namespace

TEST_CASE("a profiler records the ranges of its time, nested as they ran", "[profile][cpu]") {
  const Tensor x = zeros({2, 3, 4}, {.format = MemoryFormat::channels_last});
  const RecordFunction early("early");
  Profiler profiler{{.activities = Activities::cpu}};
  {
    const RecordFunction outer("outer");
    const RecordOp op("op", x, Tensor());
    op.details([] { return RangeDetails{.implementation = "fast", .flops = 6, .bytes = 7}; });
    const RecordFunction inner("inner");
  }
  const RecordFunction open("open");
  profiler.stop();
  const RecordFunction late("late");

  const Profile& profile = profiler.profile();
  CHECK(names(profile) == std::vector<std::string>{"outer", "op", "inner", "open"});
  CHECK(parent_of(profile, "inner") == "op");
  CHECK(parent_of(profile, "op") == "outer");
  CHECK(parent_of(profile, "outer").empty());
  const Event& op = find(profile, "op");
  REQUIRE(op.inputs.size() == 2);
  CHECK(op.inputs[0] == TensorInfo{true, {2, 3, 4}, float32, MemoryFormat::channels_last, {}});
  CHECK_FALSE(op.inputs[1].defined);
  CHECK(op.implementation == "fast");
  CHECK(op.flops == 6);
  CHECK(op.bytes == 7);
  CHECK(find(profile, "open").cut);
  CHECK(find(profile, "open").end == profile.duration);
  CHECK_FALSE(op.cut);
}

TEST_CASE("ranges that end out of order, or in another thread, still nest", "[profile]") {
  Profiler profiler{{.activities = Activities::cpu}};
  auto a = std::make_unique<RecordFunction>("a");
  auto b = std::make_unique<RecordFunction>("b");
  auto c = std::make_unique<RecordFunction>("c");
  std::jthread([&] { c.reset(); }).join();
  a.reset();
  const RecordFunction d("d");
  b.reset();
  profiler.stop();
  const Profile& profile = profiler.profile();
  CHECK(names(profile) == std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(parent_of(profile, "c") == "b");
  CHECK(find(profile, "b").end == find(profile, "a").end);
  CHECK(parent_of(profile, "d").empty());
}

TEST_CASE("an op in a range of its name adds to it instead of opening another", "[profile]") {
  const Tensor x = zeros({3}).set_requires_grad();
  const Profile profile = profile_of([&] { sum(twice(x)).backward(); });
  const std::vector<std::string> all = names(profile);
  CHECK(std::count(all.begin(), all.end(), "twice_backward") == 1);
  const Event& node = find(profile, "twice_backward");
  CHECK(node.kind == RangeKind::backward);
  CHECK(node.implementation == "test_backward");
  CHECK(node.inputs.size() == 2);
  CHECK(find(profile, "twice").implementation == "test");
}

TEST_CASE("a node of the tape knows the op that recorded it", "[profile]") {
  const Tensor x = zeros({3}).set_requires_grad();
  const Profile profile = profile_of([&] {
    const Tensor y = twice(twice(twice(x))), unrecorded = twice(zeros({3}));
    sum(y).backward();
  });
  std::vector<std::size_t> forwards, nodes;
  for (std::size_t i = 0; i < profile.events.size(); ++i) {
    if (profile.events[i].name == "twice") forwards.push_back(i);
    if (profile.events[i].name == "twice_backward") nodes.push_back(i);
  }
  REQUIRE(forwards.size() == 4);
  REQUIRE(nodes.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(profile.events[nodes[i]].forward == forwards[2 - i]);
  CHECK(profile.events[forwards[3]].sequence == 0);
}

TEST_CASE("modules are ranges with their paths, and ops belong to them, forward and backward", "[profile]") {
  struct Twice : nn::Module {
    Tensor forward(const Tensor& x) override { return twice(x); }
    std::string type_name() const override { return "Twice"; }
  };
  nn::Sequential net{nn::Sequential{Twice{}, Twice{}}, Twice{}};
  const Tensor x = zeros({3}).set_requires_grad();
  for (const bool with_modules : {true, false}) {
    const Profile profile = profile_of([&] { sum(net(x)).backward(); }, {.with_modules = with_modules});
    std::vector<std::string> modules, forwards, nodes;
    for (const Event& event : profile.events) {
      if (event.kind == RangeKind::module) modules.push_back(event.module);
      if (event.name == "twice") forwards.push_back(event.module);
      if (event.name == "twice_backward") nodes.push_back(event.module);
    }
    if (!with_modules) {
      CHECK(modules.empty());
      CHECK(forwards == std::vector<std::string>(3));
      continue;
    }
    CHECK(modules == std::vector<std::string>{"Sequential", "0 (Sequential)", "0.0 (Twice)", "0.1 (Twice)",
                                              "1 (Twice)"});
    CHECK(forwards == std::vector<std::string>{"0.0 (Twice)", "0.1 (Twice)", "1 (Twice)"});
    CHECK(nodes == std::vector<std::string>{"1 (Twice)", "0.1 (Twice)", "0.0 (Twice)"});
  }
}

TEST_CASE("memory is counted where it is taken and given back", "[profile][cpu]") {
  Tensor kept;
  const auto work = [&] {
    {
      const RecordFunction outer("outer");
      {
        const RecordFunction inner("inner");
        kept = empty({1 << 20});
      }
      const Tensor passing = empty({1 << 20});
    }
    const RecordFunction last("last");
    kept = Tensor();
  };
  const Profile profile = profile_of(work, {.with_memory = true});
  const int64_t bytes = find(profile, "inner").self_cpu_memory;
  CHECK(bytes >= 4 << 20);
  CHECK(find(profile, "outer").self_cpu_memory == 0);
  CHECK(find(profile, "last").self_cpu_memory == -bytes);
  const KeyAverages averages = profile.key_averages();
  CHECK(averages.at("outer").cpu_memory == bytes);
  CHECK(averages.at("outer").self_cpu_memory == 0);
  int64_t balance = 0;
  for (const MemoryChange& change : profile.memory) balance += change.bytes;
  CHECK(balance == 0);
}

TEST_CASE("the ranges of other threads are theirs", "[profile]") {
  const Profile profile = profile_of([] {
    const RecordFunction around("around");
    for (int i = 0; i < 3; ++i)
      std::jthread([] {
        const RecordFunction outer("outer");
        const RecordFunction inner("inner");
      }).join();
  });
  CHECK(profile.threads == 4);
  CHECK(find(profile, "around").thread == 0);
  for (const Event& event : profile.events) {
    if (event.name == "outer") CHECK(event.parent == none);
    if (event.name == "inner") CHECK(profile.events[event.parent].thread == event.thread);
  }
}

TEST_CASE("many threads may begin and end ranges while profilers come and go", "[profile]") {
  std::atomic<bool> done{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!done) {
        const RecordFunction outer("outer");
        const RecordOp inner("inner");
        const Tensor memory = empty({16});
      }
    });
  for (int i = 0; i < 50; ++i) {
    Profiler profiler{{.activities = Activities::cpu, .with_memory = true}};
    std::this_thread::yield();
    profiler.stop();
    for (const Event& event : profiler.profile().events) {
      REQUIRE(event.end >= event.start);
      if (event.parent != none) REQUIRE(profiler.profile().events[event.parent].name == "outer");
    }
  }
  done = true;
}

TEST_CASE("a schedule says which steps are kept", "[profile]") {
  const Schedule schedule{.wait = 1, .warmup = 1, .active = 2, .repeat = 2, .skip_first = 1};
  using enum Schedule::Phase;
  const std::vector<Schedule::Phase> expected{
      off, off, warmup, record, record_and_save, off, warmup, record, record_and_save, off, off, off};
  for (std::size_t step = 0; step < expected.size(); ++step)
    CHECK(schedule.phase(static_cast<int64_t>(step)) == expected[step]);

  std::vector<std::vector<std::string>> traces;
  {
    Profiler profiler{
        {.activities = Activities::cpu, .schedule = schedule, .on_trace_ready = [&](const Profile& profile) {
           traces.push_back(names(profile));
           CHECK(profile.key_averages().at("ProfilerStep*").calls == 2);
           CHECK(profile.warnings.empty());
         }}};
    CHECK_FALSE(profiler.has_profile());
    for (int step = 0; step < 12; ++step) {
      const RecordFunction range("step " + std::to_string(step));
      if (step == 4) const RecordFunction inner("inner");
      profiler.step();
    }
  }
  // The range of a step is cut at its end, where the step before it ends.
  CHECK(traces == std::vector<std::vector<std::string>>{
                      {"ProfilerStep#3", "step 3", "ProfilerStep#4", "step 4", "inner"},
                      {"ProfilerStep#7", "step 7", "ProfilerStep#8", "step 8"}});
}

TEST_CASE("what a schedule began is kept when it is stopped early, but not a warm-up", "[profile]") {
  int profiles = 0;
  const auto count = [&](const Profile&) { ++profiles; };
  {
    Profiler profiler{
        {.activities = Activities::cpu, .schedule = Schedule{.active = 5}, .on_trace_ready = count}};
    profiler.step();
    profiler.stop();
    profiler.stop();
    profiler.step();
    CHECK(names(profiler.profile()) == std::vector<std::string>{"ProfilerStep#0", "ProfilerStep#1"});
    CHECK(profiler.profile().warnings ==
          std::vector<std::string>{
              "the first step was recorded without a warm-up, with all that happens only once"});
  }
  CHECK(profiles == 1);
  {
    Profiler profiler{
        {.activities = Activities::cpu, .schedule = Schedule{.warmup = 2}, .on_trace_ready = count}};
    profiler.step();
    profiler.stop();
    CHECK_THROWS_WITH(
        profiler.profile(),
        "Profiler: there is no profile yet; call stop() first, or enough steps for the schedule");
  }
  CHECK(profiles == 1);
}

TEST_CASE("a profiler says what it cannot do", "[profile]") {
  CHECK_THROWS_WITH(
      Profiler({.schedule = Schedule{.active = 0}}),
      "Profiler: a schedule needs active >= 1 and nothing below 0, got wait 0, warmup 0, active 0, repeat "
      "0, skip_first 0");
  {
    Profiler first{{.activities = Activities::cpu}};
    CHECK_THROWS_WITH(Profiler({.activities = Activities::cpu}),
                      "Profiler: another one is recording; only one can");
    const RecordFunction range("still recorded");
    first.stop();
    CHECK(names(first.profile()) == std::vector<std::string>{"still recorded"});
  }
  Profiler thrower{{.activities = Activities::cpu,
                    .on_trace_ready = [](const Profile&) { throw std::runtime_error("mine"); }}};
  CHECK_THROWS_WITH(thrower.stop(), "mine");
  CHECK(thrower.has_profile());
  {
    Profiler quiet{{.activities = Activities::cpu,
                    .on_trace_ready = [](const Profile&) { throw std::runtime_error("lost"); }}};
  }
  CHECK_FALSE(is_recording());
}

TEST_CASE("records of a GPU are joined to the ranges that launched them", "[profile]") {
  Recording recording;
  recording.start = 1000;
  recording.end = 9000;
  using enum RangeKind;
  recording.threads = {{{event("a", 1100, 2000, none, op, 11), event("b", 1200, 1300, 0, op, 12)}, {}},
                       {{event("c", 1150, 1250, none, op, 21)}, {}}};
  const auto kernel = [](const char* name, uint64_t correlation, int64_t start, int64_t end) {
    return DeviceActivity{.name = name, .start = start, .end = end, .correlation = correlation};
  };
  recording.device.activities = {kernel("of b, late", 3, 5000, 5400),
                                 kernel("of a", 2, 3000, 3100),
                                 kernel("of b", 1, 2000, 2200),
                                 kernel("before the start", 9, 900, 1100),
                                 kernel("of a range of another time", 4, 2500, 2600),
                                 kernel("of c", 5, 2300, 2400),
                                 kernel("of no launch", 77, 6000, 6001),
                                 kernel("without correlation", 0, 7000, 7002)};
  recording.device.links = {{1, 12}, {2, 11}, {3, 12}, {4, 999}, {5, 21}};
  recording.device.warnings = {"from the GPU"};
  recording.warnings = {"from the host"};
  Profile profile = assemble(std::move(recording));
  profile.on_cuda = true;

  CHECK(profile.warnings == std::vector<std::string>{"from the host", "from the GPU"});
  std::vector<std::pair<std::string, std::string>> launches;
  for (const DeviceActivity& activity : profile.activities)
    launches.emplace_back(activity.name, activity.event == none ? "" : profile.events[activity.event].name);
  CHECK(launches == std::vector<std::pair<std::string, std::string>>{{"of b", "b"},
                                                                     {"of c", "c"},
                                                                     {"of a range of another time", ""},
                                                                     {"of a", "a"},
                                                                     {"of b, late", "b"},
                                                                     {"of no launch", ""},
                                                                     {"without correlation", ""}});
  CHECK(profile.activities[0].start == 1000);
  CHECK(device_time(profile, 0) == 100 + 200 + 400);
  CHECK(self_device_time(profile, 0) == 100);
  const KeyAverages averages = profile.key_averages();
  CHECK(averages.at("a").cuda == 700);
  CHECK(averages.at("a").self_cuda == 100);
  CHECK(averages.at("b").kernel == "of b, late");
  CHECK(averages.at("c").cuda == 100);
  CHECK(averages.at("(outside of any range)").self_cuda == 100 + 1 + 2);
  CHECK(averages.cuda == 903);
  CHECK(averages.table().find("Self CUDA time total: 0.903us") != std::string::npos);
}

TEST_CASE("where there is no GPU to watch, the profile says so", "[profile]") {
  Profiler profiler{{.activities = Activities::cpu_and_cuda}};
  profiler.stop();
  if (profiler.profile().on_cuda) return;
  REQUIRE(profiler.profile().warnings.size() == 1);
  CHECK(profiler.profile().warnings[0].starts_with("no GPU was watched: "));
}

TEST_CASE("cuda: events around an op take its time, in the stream that it runs in", "[profile][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device gpu(DeviceType::cuda);
  const cuda::Stream side({.device = gpu});
  for (const cuda::Stream& stream : {cuda::Stream::default_of(gpu), side}) {
    const cuda::StreamGuard guard(stream);
    const Tensor x = ones({1 << 20}, {.device = gpu});
    const std::array<const Tensor*, 1> inputs = {&x};
    const auto tracer = make_event_tracer();
    const int64_t before = steady_now();
    tracer->enter(7, {.kind = RangeKind::op, .name = "outer", .inputs = inputs});
    for (int i = 0; i < 3; ++i) ops::fill(x, i + 2);
    tracer->enter(8, {.kind = RangeKind::op, .name = "inner", .inputs = inputs});
    ops::fill(x, 9);
    tracer->leave(8);
    tracer->leave(7);
    const DeviceTrace trace = tracer->finish();
    CHECK(trace.warnings.empty());
    REQUIRE(trace.activities.size() == 2);
    CHECK(trace.activities[0].name == "outer");
    CHECK(trace.activities[1].name == "inner");
    for (const DeviceActivity& activity : trace.activities) {
      CHECK(activity.device == gpu);
      CHECK(activity.stream == reinterpret_cast<uint64_t>(stream.native()));
      CHECK(activity.start >= before);
      CHECK(activity.duration() > 0);
    }
    REQUIRE(trace.links.size() == 2);
    CHECK(trace.links[0].range == 7);
    CHECK(trace.links[1].range == 8);
  }
}
