#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/dtype.h"
#include "pleat/core/tensor/shape.h"
#include "pleat/examples/common/program.h"
#include "pleat/profile/timer.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pleat::bench {

/// What the user asked for makes no sense: the program says so and exits with status 2.
using ::UsageError;

inline constexpr int64_t most_count = int64_t{1} << 24;

/// What all subcommands take; `seconds`, `quick`, `cold_cache` and `fresh_memory` only those that time
/// something.
struct CommonOptions {
  std::string device = "auto";
  int threads = 0;     ///< 0: as many as Pleat takes by itself
  double seconds = 0;  ///< of runs of one subject; 0: by `quick`
  bool quick = false;
  bool cold_cache = false, fresh_memory = false;
  std::string json, csv, plot, baseline;  ///< files; empty: none. "-" for JSON is standard output

  /// Where to measure. Throws UsageError for a name that is none and for a device that is not there.
  Device chosen_device() const;
  /// A Timer's options for it. Throws as chosen_device.
  benchmark::TimerOptions timer() const;
};

void add_common_options(CLI::App& app, CommonOptions& options, bool is_timed);
/// An option whose value, at first its default, is one of `choice`.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choice, const std::string& description);

// What the values of --dtype, --format and --precision stand for.
inline const std::map<std::string, DType> dtypes{
    {"float64", float64}, {"float32", float32}, {"bfloat16", bfloat16}, {"float16", float16}};
inline const std::map<std::string, MemoryFormat> formats{{"contiguous", MemoryFormat::contiguous},
                                                         {"channels_last", MemoryFormat::channels_last}};
inline const std::map<std::string, Precision> precisions{
    {"highest", Precision::highest}, {"high", Precision::high}, {"medium", Precision::medium}};

/// "128": a number from 1 to most_count. Throws UsageError, naming the option.
int64_t parse_count(const std::string& option, const std::string& text);
bool contains(const std::vector<std::string>& list, const std::string& text);
/// Throws UsageError, which `must` begins, unless the name is among those that are known.
void check_known(const std::string& must, const std::string& name, const std::vector<std::string>& known);

/// For TimerOptions::on_progress: draws a bar with the time left on a terminal's standard error, as long as a
/// copy of the function lives; nothing elsewhere.
std::function<void(double share)> progress_bar(const std::string& label);

}  // namespace pleat::bench
