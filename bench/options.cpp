#include "pleat/bench/options.h"

#include <CLI/CLI.hpp>

#include "pleat/core/atomic_file.h"
#include "pleat/core/cuda.h"
#include "pleat/core/format.h"

namespace pleat::bench {

Device CommonOptions::chosen_device() const {
  if (device == "auto") return cuda::is_available() ? Device(DeviceType::cuda) : Device();
  try {
    const Device chosen(device);
    if (chosen.is_cuda()) cuda::check_device("--device", chosen);
    return chosen;
  } catch (const DeviceError& error) {
    throw UsageError(error.what());
  } catch (const ValueError& error) {
    fail<UsageError>("--device: must be auto, cpu, cuda or cuda:N, got \"{}\"", device);
  }
}

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
      ->check(CLI::Range(1, 4096));
  app.add_option("--seconds", options.seconds, "how long to run each thing, at least (0.2; --quick: 0.02)")
      ->check(CLI::Range(1e-6, 3600.0));
  app.add_flag("--quick", options.quick, "short: smaller problems where there is a choice, fewer runs");
  app.add_flag("--cold-cache", options.cold_cache, "empty the caches before each run");
  app.add_option("--json", options.json,
                 "write all results to this file (-: to standard output, instead of tables)");
  app.add_option("--csv", options.csv, "write all results to this file, as a table");
  app.add_option("--plot", options.plot, "draw the results into this SVG file");
  app.add_option("--baseline", options.baseline, "compare with what --json wrote before")
      ->check(CLI::ExistingFile);
  app.add_option("--color", options.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

void check_writable(const std::string& option, const std::string& file) {
  const AtomicFile probe(option, file);
}

}  // namespace pleat::bench
