// pleat-bench ceilings: what the machine does at best.
#include "pleat/bench/ceilings.h"
#include "pleat/bench/subcommand.h"

namespace pleat::bench {
namespace {

class CeilingsCommand : public Subcommand {
 public:
  CeilingsCommand()
      : Subcommand("ceilings",
                   "what the machine does at best: multiply-adds, matrix products on CUDA, copies") {}
  bool is_timed() const override { return false; }

  void run(const CommonOptions& common, Report& report) override {
    report.set_layout(
        {.columns = {label_column("ceiling", "problem"), value_column("GFLOP/s", "gflops", 1, 4),
                     value_column("GB/s", "gbytes", 1, 4), detail_column("measured by", "how")}});
    const Device device = common.chosen_device();
    std::vector<Record> records;
    const auto add = [&](const std::vector<Ceiling>& list, const char* value) {
      for (const Ceiling& ceiling : list) {
        Record& record = records.emplace_back(
            Record{.subcommand = name(),
                   .labels = {{"problem", ceiling.name}, {"device", pleat::name(device)}},
                   .details = {{"how", ceiling.how}}});
        record.set_value(value, ceiling.value);
      }
    };
    add(ceilings(device).peaks, "gflops");
    add(ceilings(device).bandwidths, "gbytes");
    report.add(records);
  }
};

}  // namespace

SubcommandPointer make_ceilings() { return std::make_unique<CeilingsCommand>(); }

}  // namespace pleat::bench
