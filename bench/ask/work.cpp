#include "pleat/bench/ask/work.h"

#include <algorithm>

#include <fmt/format.h>

#include "pleat/bench/ask/ratio.h"
#include "pleat/core/base/bytes.h"
#include "pleat/profile/profiler.h"

namespace pleat::bench::ask {
namespace {

constexpr double alike = 1.1;  // counts whose ratio is less explain nothing

/// The names that sentences have for counters.
struct Counter {
  const char *name, *words;
};
constexpr Counter counters[] = {
    {"bytes", "the memory traffic"}, {"flops", "the arithmetic"}, {"calls", "as many calls"}};

std::string text_of(const Record& record) {
  return fmt::format("{} makes {} call{}, {:.3g} MFLOP of products, moves {}", record.label("way"),
                     *record.value("calls"), *record.value("calls") == 1 ? "" : "s",
                     1e-6 * *record.value("flops"),
                     text_of_bytes(static_cast<int64_t>(*record.value("bytes"))));
}

bool is_inside_another(const profile::Event& event, const profile::Profile& profile) {
  return event.parent != profile::none && profile.events[event.parent].kind == RangeKind::op;
}

double bytes_of(const profile::TensorInfo& tensor) {
  return tensor.defined ? static_cast<double>(count(tensor.shape) * size_of(tensor.dtype)) : 0;
}

}  // namespace

Work work_of(const std::function<void()>& run) {
  profile::Profiler profiler{{.with_memory = true, .with_flops = true}};
  run();
  profiler.stop();
  const profile::Profile& profile = profiler.profile();
  Work work;
  for (const profile::Event& event : profile.events) {
    // Memory belongs to the innermost range, so that nothing is counted twice.
    work.bytes += static_cast<double>(std::max<int64_t>(0, event.self_cpu_memory) +
                                      std::max<int64_t>(0, event.self_cuda_memory));
    work.flops += event.flops;
    if (event.kind != RangeKind::op || is_inside_another(event, profile)) continue;
    ++work.calls;
    for (const profile::TensorInfo& input : event.inputs) work.bytes += bytes_of(input);
  }
  if (!profile.activities.empty()) work.calls = static_cast<double>(profile.activities.size());
  return work;
}

void set_work(Record& record, const Work& work) {
  record.set_value("calls", work.calls);
  record.set_value("flops", work.flops);
  record.set_value("bytes", work.bytes);
}

void add_work(Record& sum, const Record& more) {
  for (const Counter& counter : counters)
    if (sum.value(counter.name) && more.value(counter.name))
      sum.set_value(counter.name, *sum.value(counter.name) + *more.value(counter.name));
}

std::string why(const Record& slow, const Record& fast) {
  if (!slow.value("calls") || !fast.value("calls")) return "";
  const Verdict longer = ratio(*slow.time, *fast.time).verdict();
  if (longer == Verdict::level) return "";
  double most = alike;
  const Counter* cause = nullptr;
  for (const Counter& counter : counters)
    if (const double less = *fast.value(counter.name), more = *slow.value(counter.name);
        less > 0 && more > most * less) {
      most = more / less;
      cause = &counter;
    }
  return fmt::format("{}; {}: {}{}.", text_of(slow), text_of(fast),
                     cause == nullptr ? "no more work, but done in another way or another order of memory"
                                      : fmt::format("{:.3g} times {}", most, cause->words),
                     longer == Verdict::differs ? "" : "; that it takes longer is not sure");
}

}  // namespace pleat::bench::ask
