#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pleat/core/base/record_function.h"
#include "pleat/profile/profiler.h"
#include "pleat/profile/recorder.h"
#include "pleat/tests/catch.h"

/// Profiles for tests: of some work, of random trees, and made up.

namespace pleat_test {

/// What the work did on the CPU.
template <class Work>
pleat::profile::Profile profile_of(const Work& work, pleat::profile::ProfilerOptions options = {}) {
  options.activities = pleat::profile::Activities::cpu;
  pleat::profile::Profiler profiler(options);
  work();
  profiler.stop();
  return profiler.profile();
}

/// All events of a name.
inline std::vector<const pleat::profile::Event*> all_of(const pleat::profile::Profile& profile,
                                                        const std::string& name) {
  std::vector<const pleat::profile::Event*> found;
  for (const pleat::profile::Event& event : profile.events)
    if (event.name == name) found.push_back(&event);
  return found;
}

/// The first event of a name.
inline const pleat::profile::Event& find(const pleat::profile::Profile& profile, const std::string& name) {
  const auto found = all_of(profile, name);
  CAPTURE(name);
  REQUIRE_FALSE(found.empty());
  return *found[0];
}

inline const pleat::profile::Event& the_only(const pleat::profile::Profile& profile,
                                             const std::string& name) {
  CAPTURE(name);
  REQUIRE(all_of(profile, name).size() == 1);
  return find(profile, name);
}

/// An event of a made-up profile.
inline pleat::profile::Event event(const std::string& name, int64_t start, int64_t end,
                                   std::size_t parent = pleat::profile::none,
                                   pleat::RangeKind kind = pleat::RangeKind::op, uint64_t id = 0) {
  return {.name = name, .kind = kind, .id = id, .start = start, .end = end, .parent = parent};
}

/// A GPU that works on whatever ranges it hears of, as the seed says: each range launches up to three
/// activities, which run later, and each activity is linked to it.
class FakeTracer final : public pleat::profile::DeviceTracer {
 public:
  explicit FakeTracer(uint64_t seed) : random_(seed) {}

  void enter(uint64_t range, const pleat::RangeStart&) noexcept override {
    const std::lock_guard lock(mutex_);
    for (uint64_t n = random_() % 4; n > 0; --n) {
      const uint64_t correlation = trace_.activities.size() + 1;
      launch(correlation);
      trace_.links.push_back({correlation, range});
    }
  }
  void leave(uint64_t) noexcept override {}
  void discard() override {
    const std::lock_guard lock(mutex_);
    trace_ = {};
  }
  pleat::profile::DeviceTrace finish() override {
    const std::lock_guard lock(mutex_);
    launch(trace_.activities.size() + 1);  // of no range
    return trace_;
  }

 private:
  void launch(uint64_t correlation) {
    const int64_t start = pleat::profile::steady_now() + static_cast<int64_t>(random_() % 5000);
    trace_.activities.push_back({.name = "kernel" + std::to_string(random_() % 3),
                                 .start = start,
                                 .end = start + static_cast<int64_t>(random_() % 20000),
                                 .stream = 7 + random_() % 2,
                                 .correlation = correlation});
  }

  std::mutex mutex_;
  std::mt19937_64 random_;
  pleat::profile::DeviceTrace trace_;
};

/// Ranges in ranges, some of one name, some of no length.
inline void run_tree(std::mt19937_64& random, int depth) {
  for (uint64_t n = random() % 4; n > 0; --n) {
    const bool op = random() % 2 == 0;
    const std::string name = (op ? "op" : "range") + std::to_string(random() % 3);
    if (!op) {
      const pleat::RecordFunction range(name);
      if (depth > 0) run_tree(random, depth - 1);
    } else {
      const pleat::RecordOp range(name.c_str());
      if (random() % 3 == 0)
        range.details([] { return pleat::RangeDetails{.implementation = "fast", .flops = 10}; });
      if (depth > 0) run_tree(random, depth - 1);
    }
  }
}

/// A profile of random trees in three threads, and of what a GPU did with them.
inline pleat::profile::Profile random_profile(uint64_t seed) {
  auto& recorder = pleat::profile::Recorder::instance();
  recorder.start({}, std::make_unique<FakeTracer>(seed));
  std::vector<std::jthread> threads;
  for (uint64_t thread = 1; thread < 3; ++thread)
    threads.emplace_back([seed, thread] {
      std::mt19937_64 random(seed + 1000 * thread);
      run_tree(random, 5);
    });
  std::mt19937_64 random(seed);
  run_tree(random, 5);
  threads.clear();
  pleat::profile::Profile profile = assemble(recorder.stop());
  profile.on_cuda = true;
  profile.with_flops = true;
  return profile;
}

}  // namespace pleat_test
