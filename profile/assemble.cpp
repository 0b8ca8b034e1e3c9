// What the threads recorded becomes one profile, link by link.
#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "pleat/profile/recorder.h"

namespace pleat::profile {
namespace {

/// Appends the threads' events, with parents and times as the profile counts them.
void append_events(Profile& profile, Recording& recording) {
  for (std::size_t thread = 0; thread < recording.threads.size(); ++thread) {
    const std::size_t base = profile.events.size();
    for (Event& event : recording.threads[thread].events) {
      event.thread = static_cast<int>(thread);
      if (event.parent != none) event.parent += base;
      event.cut = event.end < 0;
      if (event.cut) event.end = recording.end;
      event.start -= recording.start;
      event.end -= recording.start;
      profile.events.push_back(std::move(event));
    }
    for (MemoryChange change : recording.threads[thread].memory) {
      change.time -= recording.start;
      if (change.event != none) change.event += base;
      profile.memory.push_back(change);
    }
  }
  std::ranges::stable_sort(profile.memory, {}, &MemoryChange::time);
}

void link_children(Profile& profile) {
  for (std::size_t i = 0; i < profile.events.size(); ++i)
    if (const std::size_t parent = profile.events[i].parent; parent != none)
      profile.events[parent].children.push_back(i);
  for (const MemoryChange& change : profile.memory) {
    if (change.event == none) continue;
    Event& event = profile.events[change.event];
    (change.device.is_cpu() ? event.self_cpu_memory : event.self_cuda_memory) += change.bytes;
  }
}

/// Nodes of the tape know by a number which op recorded them.
void link_backward(Profile& profile) {
  std::unordered_map<uint64_t, std::size_t> recorded;
  for (std::size_t i = 0; i < profile.events.size(); ++i) {
    const Event& event = profile.events[i];
    if (event.kind == RangeKind::op && event.sequence != 0) recorded.emplace(event.sequence, i);
  }
  for (Event& event : profile.events) {
    if (event.kind != RangeKind::backward) continue;
    if (const auto op = recorded.find(event.sequence); op != recorded.end()) event.forward = op->second;
  }
}

/// A range belongs to the module whose forward it runs in; a node of the tape, and what runs in it, to that
/// of its op. Forward ranges are of any thread, so they come first.
void name_modules(Profile& profile) {
  for (Event& event : profile.events) {
    if (event.kind == RangeKind::module)
      event.module = event.module.empty() ? event.name : event.module + " (" + event.name + ')';
    else if (event.parent != none)
      event.module = profile.events[event.parent].module;
  }
  for (Event& event : profile.events) {
    if (event.forward != none)
      event.module = profile.events[event.forward].module;
    else if (event.module.empty() && event.parent != none)
      event.module = profile.events[event.parent].module;
  }
}

void append_activities(Profile& profile, Recording& recording) {
  std::unordered_map<uint64_t, std::size_t> events;
  for (std::size_t i = 0; i < profile.events.size(); ++i) events.emplace(profile.events[i].id, i);
  std::unordered_map<uint64_t, std::size_t> launches;
  for (const DeviceTrace::Link& link : recording.device.links)
    if (const auto event = events.find(link.range); event != events.end())
      launches.emplace(link.correlation, event->second);

  for (DeviceActivity& activity : recording.device.activities) {
    // What was launched during warm-up may end later.
    if (activity.start < recording.start) continue;
    const auto launch = launches.find(activity.correlation);
    activity.event = activity.correlation == 0 || launch == launches.end() ? none : launch->second;
    activity.start -= recording.start;
    activity.end = std::max(activity.end - recording.start, activity.start);
    profile.activities.push_back(std::move(activity));
  }
  std::ranges::stable_sort(profile.activities, {}, &DeviceActivity::start);
  for (std::size_t i = 0; i < profile.activities.size(); ++i)
    if (const std::size_t event = profile.activities[i].event; event != none)
      profile.events[event].activities.push_back(i);
}

}  // namespace

Profile assemble(Recording recording) {
  Profile profile;
  profile.duration = recording.end - recording.start;
  profile.threads = static_cast<int>(recording.threads.size());
  append_events(profile, recording);
  link_children(profile);
  link_backward(profile);
  name_modules(profile);
  append_activities(profile, recording);
  profile.warnings = std::move(recording.warnings);
  std::move(recording.device.warnings.begin(), recording.device.warnings.end(),
            std::back_inserter(profile.warnings));
  return profile;
}

int64_t self_time(const Profile& profile, std::size_t event) {
  int64_t time = profile.events[event].duration();
  for (const std::size_t child : profile.events[event].children) time -= profile.events[child].duration();
  return time;
}

int64_t self_device_time(const Profile& profile, std::size_t event) {
  int64_t time = 0;
  for (const std::size_t activity : profile.events[event].activities)
    time += profile.activities[activity].duration();
  return time;
}

int64_t device_time(const Profile& profile, std::size_t event) {
  int64_t time = 0;
  std::vector<std::size_t> open{event};
  while (!open.empty()) {
    const std::size_t next = open.back();
    open.pop_back();
    time += self_device_time(profile, next);
    const auto& children = profile.events[next].children;
    open.insert(open.end(), children.begin(), children.end());
  }
  return time;
}

}  // namespace pleat::profile
