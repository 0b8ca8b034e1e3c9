#pragma once

#include <string>

#include "pleat/bench/usage_error.h"
#include "pleat/core/base/device.h"
#include "pleat/profile/timer.h"

namespace CLI {
class App;
}

namespace pleat::bench {

/// What every subcommand that measures takes.
struct CommonOptions {
  std::string device = "auto";
  int threads = 0;     ///< 0: as many as Pleat takes by itself
  double seconds = 0;  ///< of runs of one subject; 0: by `quick`
  bool quick = false;
  bool cold_cache = false;
  std::string json, csv, plot, baseline;  ///< files; empty: none. "-" for JSON is standard output
  std::string color = "auto";

  /// Where to measure. Throws UsageError for a name that is none and for a device that is not there.
  Device chosen_device() const;
  /// A Timer's options for it. Throws as chosen_device.
  benchmark::TimerOptions timer() const;
};

void add_common_options(CLI::App& app, CommonOptions& options);

}  // namespace pleat::bench
