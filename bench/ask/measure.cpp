#include "pleat/bench/ask/measure.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/ops/conv/conv.h"

namespace pleat::bench::ask {

void time_in_turns(const AskOptions& options, const std::vector<Way>& ways, Answer& answer) {
  // What earlier sizes have left would take the room that these need.
  empty_cache(options.device);
  std::vector<benchmark::Subject> subjects;
  for (const Way& way : ways) subjects.push_back({.run = way.run, .tune = way.tune, .label = way.what});
  const benchmark::Timer timer(options.timer);
  for (const benchmark::Measurement& measured : timer.measure_in_turns(subjects))
    answer.times.push_back({measured.label, Time(measured)});
}

const Time& time_of(const Answer& answer, const std::string& what) {
  const auto found =
      std::find_if(answer.times.begin(), answer.times.end(), [&](const Timed& t) { return t.what == what; });
  check<ValueError>(found != answer.times.end(), "ask: nothing was measured under the name \"{}\"", what);
  return found->time;
}

std::vector<std::string> fast_implementations(Device device) {
  std::vector<std::string> names = ops::conv_implementations(device);
  std::erase(names, "reference");
  return names;
}

}  // namespace pleat::bench::ask
