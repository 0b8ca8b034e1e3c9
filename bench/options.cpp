#include "pleat/bench/options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/examples/common/device.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

/// The one of `values` that has this name.
template <class Value, std::size_t n, class Name>
Value named(const char* option, const std::string& text, const std::array<Value, n>& values,
            const Name& name_of) {
  std::string names;
  for (std::size_t i = 0; i < n; ++i) {
    if (text == name_of(values[i])) return values[i];
    names += (i == 0 ? "" : i + 1 == n ? " or " : ", ") + std::string(name_of(values[i]));
  }
  fail<UsageError>("{}: must be {}, got \"{}\"", option, names, text);
}

}  // namespace

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

DType parse_dtype(const std::string& text) {
  return named("--dtype", text, std::array<DType, 4>{float32, float64, float16, bfloat16},
               [](DType dtype) { return name(dtype); });
}

MemoryFormat parse_format(const std::string& text) {
  return named("--format", text, std::array{MemoryFormat::contiguous, MemoryFormat::channels_last},
               [](MemoryFormat format) { return name(format); });
}

Precision parse_precision(const std::string& text) {
  return named("--precision", text, std::array{Precision::highest, Precision::high, Precision::medium},
               text_of_precision);
}

std::string text_of_precision(Precision precision) {
  return precision == Precision::highest ? "highest" : precision == Precision::high ? "high" : "medium";
}

int64_t parse_count(const std::string& option, const std::string& text) {
  constexpr int64_t most = int64_t{1} << 24;
  const auto count = parse_number<int64_t>(text);
  check<UsageError>(count && *count >= 1 && *count <= most,
                    "{}: must be a whole number from 1 to {}, got \"{}\"", option, most, text);
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

void check_known(const std::string& must, const std::string& name, const std::vector<std::string>& known) {
  check<UsageError>(std::find(known.begin(), known.end(), name) != known.end(), "{} {}, got \"{}\"", must,
                    fmt::join(known, ", "), name);
}

}  // namespace pleat::bench
