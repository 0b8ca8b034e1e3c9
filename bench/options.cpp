#include "pleat/bench/options.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/progress.h"
#include "pleat/core/base/format.h"
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
  app.add_option("--json", options.json,
                 "write all results to this file (-: to standard output, instead of tables)")
      ->check(not_empty());
  app.add_option("--csv", options.csv, "write all results to this file, as a table")->check(not_empty());
  app.add_option("--plot", options.plot, "draw the results into this SVG file")->check(not_empty());
  app.add_option("--baseline", options.baseline, "compare with what --json wrote before")
      ->check(CLI::ExistingFile);
  add_choice(app, "--color", options.color, {"auto", "always", "never"}, "auto, always or never");
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choice, const std::string& description) {
  return app.add_option(name, value, description)->check(CLI::IsMember(choice))->capture_default_str();
}

CLI::Option* add_number(CLI::App& app, const std::string& name, int64_t& value, int64_t least,
                        const std::string& description, int64_t most) {
  return app.add_option(name, value, description)
      ->transform(whole_number(least, most))
      ->capture_default_str();
}

int64_t parse_count(const std::string& option, const std::string& text) {
  const auto count = parse_number<int64_t>(text);
  check<UsageError>(count && *count >= 1 && *count <= most_count,
                    "{}: must be a whole number from 1 to {}, got \"{}\"", option, most_count, text);
  return *count;
}

Shape parse_sizes(const std::string& option, const std::string& text) {
  std::string commas = text;
  std::replace(commas.begin(), commas.end(), 'x', ',');
  std::vector<int64_t> sizes;
  for (const std::string& part : ::split(commas)) {
    // Sizes that no memory holds are told apart from typing errors later, by whoever multiplies them.
    const auto size = part.size() <= 12 ? parse_number<int64_t>(part) : std::nullopt;
    check<UsageError>(size && *size >= 1, "{}: must be sizes of at least 1, as in 128,64,32,32, got \"{}\"",
                      option, text);
    sizes.push_back(*size);
  }
  return Shape(sizes);
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

void check_known(const std::string& must, const std::string& name, const std::vector<std::string>& known) {
  check<UsageError>(contains(known, name), "{} {}, got \"{}\"", must, fmt::join(known, ", "), name);
}

}  // namespace pleat::bench
