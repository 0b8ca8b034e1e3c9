// pleat-bench ceilings: what the machine does at best.
#include <CLI/CLI.hpp>

#include "pleat/bench/ceilings.h"
#include "pleat/bench/pictures.h"
#include "pleat/bench/subcommand.h"

namespace pleat::bench {
namespace {

class CeilingsCommand : public Subcommand {
 public:
  std::string name() const override { return "ceilings"; }
  std::string summary() const override {
    return "what the machine does at best: multiply-adds, matrix products on CUDA, copies";
  }
  void add_options(CLI::App&) override {}
  bool is_timed() const override { return false; }

  void run(const CommonOptions& common, Report& report) override {
    report.set_layout(
        {.columns = {label_column("ceiling", "problem"), value_column("GFLOP/s", "gflops", 1, 4),
                     value_column("GB/s", "gbytes", 1, 4), detail_column("measured by", "how")}});
    const Device device = common.chosen_device();
    const Ceilings& found = ceilings(device);
    std::vector<Record> records;
    const auto add = [&](const Ceiling& ceiling, const char* value) {
      Record record{.subcommand = name(),
                    .labels = {{"problem", ceiling.name}, {"device", pleat::name(device)}}};
      record.set_value(value, ceiling.value);
      record.set_detail("how", ceiling.how);
      records.push_back(std::move(record));
    };
    for (const Ceiling& peak : found.peaks) add(peak, "gflops");
    for (const Ceiling& bandwidth : found.bandwidths) add(bandwidth, "gbytes");
    report.add(records);
  }
};

}  // namespace

SubcommandPointer make_ceilings() { return std::make_unique<CeilingsCommand>(); }

}  // namespace pleat::bench
