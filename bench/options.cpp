#include "pleat/bench/options.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/examples/common/device.h"
#include "pleat/examples/common/options.h"
#include "pleat/train/progress.h"

namespace pleat::bench {

Device CommonOptions::chosen_device() const { return choose_device(device); }

benchmark::TimerOptions CommonOptions::timer() const {
  return {.device = chosen_device(),
          .threads = threads,
          .min_run_time = seconds > 0 ? seconds
                          : quick     ? 0.02
                                      : 0.2,
          .min_blocks = quick ? 3 : 5,
          .cold_cache = cold_cache,
          .on_progress = progress_bar("timing")};
}

void add_common_options(CLI::App& app, CommonOptions& options, bool is_timed) {
  app.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "threads of the CPU; all of them when not given")
      ->transform(whole_number(1, max_num_threads()));
  if (is_timed) {
    app.add_option("--seconds", options.seconds, "how long to run each thing, at least (0.2; --quick: 0.02)")
        ->transform(real_number(1e-6, 3600));
    app.add_flag("--quick", options.quick, "short: smaller problems where there is a choice, fewer runs");
    app.add_flag("--cold-cache", options.cold_cache, "empty the caches before each run");
    app.add_flag("--fresh-memory", options.fresh_memory,
                 "take each tensor's memory from the system, not from what was used before");
  }
  for (const auto& [name, file, what] :
       {std::tuple{"--json", &options.json,
                   "write all results to this file (-: to standard output, instead of tables)"},
        {"--csv", &options.csv, "write all results to this file, as a table"},
        {"--plot", &options.plot, "draw the times as bars into this SVG file"}})
    app.add_option(name, *file, what)->check(not_empty());
  app.add_option("--baseline", options.baseline, "compare with what --json wrote before")
      ->check(CLI::ExistingFile);
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choice, const std::string& description) {
  return app.add_option(name, value, description)->check(CLI::IsMember(choice))->capture_default_str();
}

int64_t parse_count(const std::string& option, const std::string& text) {
  const auto count = parse_number<int64_t>(text);
  check<UsageError>(count && *count >= 1 && *count <= most_count,
                    "{}: must be a whole number from 1 to {}, got \"{}\"", option, most_count, text);
  return *count;
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

void check_known(const std::string& must, const std::string& name, const std::vector<std::string>& known) {
  check<UsageError>(contains(known, name), "{} {}, got \"{}\"", must, fmt::join(known, ", "), name);
}

std::function<void(double share)> progress_bar(const std::string& label) {
  constexpr int64_t steps = 1000;
  return [bar = std::make_shared<train::ProgressBar>(label, steps)](double share) {
    bar->update(std::llround(steps * share), {});
  };
}

}  // namespace pleat::bench
