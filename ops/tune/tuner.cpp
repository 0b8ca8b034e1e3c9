#include "pleat/ops/tune/tuner.h"

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/ops/tune/cache.h"

namespace pleat::ops {

TuneCache& known_timings() {
  static auto& cache = *new TuneCache(4096);
  return cache;
}

std::string describe(const Timing& timing) {
  if (!timing.failure.empty())
    return fmt::format("{:<15} {:<24} failed: {}", timing.pass, timing.implementation, timing.failure);
  return fmt::format("{:<15} {:<24} {:>10.4f} ms  (best {:.4f})  {:>9.1f} GFLOP/s  workspace {}", timing.pass,
                     timing.implementation, timing.milliseconds, timing.fastest, timing.gflops,
                     text_of_bytes(timing.workspace_bytes));
}

std::size_t Tuner::size() { return known_timings().size(); }
std::size_t Tuner::limit() { return known_timings().limit(); }
void Tuner::set_limit(std::size_t most) {
  check<ValueError>(most >= 1, "Tuner::set_limit: needs at least 1");
  known_timings().set_limit(most);
}
void Tuner::clear() { known_timings().clear(); }

std::string Tuner::table() {
  std::string text;
  for (const TuneEntry& entry : known_timings().entries()) {
    text += fmt::format("{}\n  on {} ({})\n", entry.key.problem, entry.key.machine, entry.key.versions);
    for (const Timing& timing : entry.timings) text += "  " + describe(timing) + '\n';
  }
  return text;
}

void Tuner::save(const std::filesystem::path& path) {
  write_file("Tuner::save", path, tuning_text(known_timings().entries()));
}

std::size_t Tuner::load(const std::filesystem::path& path, ReadOptions options) {
  const std::vector<TuneEntry> entries = read_tuning(path.string(), options);
  known_timings().put(entries);
  return entries.size();
}

}  // namespace pleat::ops
