#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/bench/options.h"
#include "pleat/bench/record.h"
#include "pleat/bench/report.h"

namespace CLI {
class App;
}

namespace pleat::bench {

using OutputFile = std::pair<std::string, std::string>;

/// One thing that pleat-bench can do. To add one: a file that derives from this, a function below, and a line
/// in all_subcommands().
class Subcommand {
 public:
  virtual ~Subcommand() = default;
  virtual std::string name() const = 0;
  /// A line for the help.
  virtual std::string summary() const = 0;
  /// Options of its own, beside the common ones.
  virtual void add_options(CLI::App& app) = 0;
  /// Measures and gives what it finds to the report. Throws UsageError for options that make no sense, before
  /// it measures anything.
  virtual void run(const CommonOptions& common, Report& report) = 0;
  /// Whether it runs things for --seconds, or --quick.
  virtual bool is_timed() const { return true; }
  /// Options of its own that name files to write, with the files ("": none).
  virtual std::vector<OutputFile> files() const { return {}; }
  /// Whether there is something to draw, as far as the options tell.
  virtual bool has_plot() const { return false; }
  /// What --plot writes: an SVG. Throws UsageError where nothing was timed.
  virtual std::string plot(const std::vector<Record>&) const { return {}; }
};

using SubcommandPointer = std::unique_ptr<Subcommand>;

SubcommandPointer make_conv();
SubcommandPointer make_list();
SubcommandPointer make_norm();
SubcommandPointer make_unfold();
SubcommandPointer make_elementwise();
SubcommandPointer make_matmul();
SubcommandPointer make_step();
SubcommandPointer make_ceilings();
SubcommandPointer make_ask();
SubcommandPointer make_selftest();

/// All of them, in the order of the help.
std::vector<SubcommandPointer> all_subcommands();

}  // namespace pleat::bench
