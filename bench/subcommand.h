#pragma once

#include <memory>
#include <string>
#include <utility>

#include "pleat/bench/options.h"
#include "pleat/bench/report.h"

namespace pleat::bench {

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

 private:
  std::string name_, summary_;
};

using SubcommandPointer = std::unique_ptr<Subcommand>;

SubcommandPointer make_conv();
SubcommandPointer make_ops();
SubcommandPointer make_step();
SubcommandPointer make_list();
SubcommandPointer make_ask();

}  // namespace pleat::bench
