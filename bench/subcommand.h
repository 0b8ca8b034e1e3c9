#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/bench/options.h"
#include "pleat/bench/report.h"

namespace pleat::bench {

/// A file that an option of the subcommand names ("": none), and what is written to it.
struct OutputFile {
  std::string option, path;
  std::function<std::string(const Results&)> content = {};
};

/// One thing that pleat-bench can do. To add one: a file that derives from this, a function below, and its
/// name in all_subcommands().
class Subcommand {
 public:
  /// `summary` is a line for the help.
  Subcommand(std::string name, std::string summary) : name_(std::move(name)), summary_(std::move(summary)) {}
  virtual ~Subcommand() = default;
  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }

  /// Options of its own, beside the common ones.
  virtual void add_options(CLI::App&) {}
  /// Measures and gives what it finds to the report. Throws UsageError for options that make no sense, before
  /// it measures anything.
  virtual void run(const CommonOptions& common, Report& report) = 0;
  /// Whether it runs things for --seconds, or --quick.
  virtual bool is_timed() const { return true; }
  /// Those of its own options.
  virtual std::vector<OutputFile> files() const { return {}; }
  /// Whether there is something to draw, as far as the options tell.
  virtual bool has_plot() const { return false; }
  /// What --plot writes: an SVG. Throws UsageError where nothing was timed.
  virtual std::string plot(const std::vector<Record>&) const { return {}; }

 private:
  std::string name_, summary_;
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

}  // namespace pleat::bench
