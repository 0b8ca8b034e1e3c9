#include "pleat/bench/options.h"

#include <CLI/CLI.hpp>

#include "pleat/core/parallel/parallel.h"
#include "pleat/examples/common/device.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {

Device CommonOptions::chosen_device() const { return choose_device(device); }

benchmark::TimerOptions CommonOptions::timer() const {
  return {.device = chosen_device(),
          .threads = threads,
          .min_run_time = seconds > 0 ? seconds
                          : quick     ? 0.02
                                      : 0.2,
          .min_blocks = quick ? 3 : 5,
          .cold_cache = cold_cache};
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  app.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "threads of the CPU; all of them when not given")
      ->transform(whole_number(1, max_num_threads()));
  app.add_option("--seconds", options.seconds, "how long to run each thing, at least (0.2; --quick: 0.02)")
      ->transform(real_number(1e-6, 3600));
  app.add_flag("--quick", options.quick, "short: smaller problems where there is a choice, fewer runs");
  app.add_flag("--cold-cache", options.cold_cache, "empty the caches before each run");
  app.add_option("--json", options.json,
                 "write all results to this file (-: to standard output, instead of tables)")
      ->check(not_empty());
  app.add_option("--csv", options.csv, "write all results to this file, as a table")->check(not_empty());
  app.add_option("--plot", options.plot, "draw the results into this SVG file")->check(not_empty());
  app.add_option("--baseline", options.baseline, "compare with what --json wrote before")
      ->check(CLI::ExistingFile);
  app.add_option("--color", options.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

}  // namespace pleat::bench
