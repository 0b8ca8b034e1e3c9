// pleat-bench ceilings: what the machine does at best. pleat-bench selftest: whether its times can be
// trusted, by the Timer beside an independent stopwatch, on a sleep and on a matrix product.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "pleat/bench/machine.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

class CeilingsCommand : public Subcommand {
 public:
  CeilingsCommand()
      : Subcommand("ceilings",
                   "what the machine does at best: multiply-adds, matrix products on CUDA, copies") {}
  bool is_timed() const override { return false; }

  void run(const CommonOptions& common, Report& report) override {
    report.set_layout({.columns = {"ceiling", "peak_gflops", "peak_gbytes", "how"}});
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

class Selftest : public Subcommand {
 public:
  Selftest() : Subcommand("selftest", "check the timer against a stopwatch of its own") {}
  void add_options(CLI::App& app) override {
    add_number(app, "--size", size_, 16, "of the matrices that are multiplied", 16384);
  }

  void run(const CommonOptions& common, Report& report) override {
    report.set_layout({.columns = {"what", "median", "quartiles", "runs", "stopwatch", "ratio"}});
    const auto options = common.timer();
    const benchmark::Timer timer(options);
    std::vector<Record> records;
    const auto compare = [&](const std::string& what, const std::function<void()>& work) {
      // Both time the same runs, so that other work on the machine cannot come between them.
      std::vector<double> readings;
      const benchmark::Measurement measured = timer.measure([&] {
        constexpr clockid_t stopwatch = CLOCK_MONOTONIC_RAW;  // which the Timer does not use
        const double start = seconds_of(stopwatch);
        work();
        if (options.device.is_cuda()) cuda::synchronize(options.device);
        readings.push_back(seconds_of(stopwatch) - start);
      });
      readings.erase(readings.begin(), readings.end() - measured.runs());  // first call and warm-up
      Record record{.subcommand = name(),
                    .labels = {{"what", what}, {"device", pleat::name(options.device)}},
                    .time = Time(measured)};
      const double by_stopwatch = benchmark::quantile(readings, 0.5);
      record.set_value("stopwatch", by_stopwatch);
      record.set_value("ratio", measured.wall_median() / by_stopwatch);
      records.push_back(std::move(record));
    };
    compare("sleep of 10 ms", [] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); });
    const Tensor a = randn({size_, size_}, {.device = options.device});
    const Tensor b = randn({size_, size_}, {.device = options.device});
    compare(fmt::format("matrix product {0}x{0}x{0}", size_), [&] { (void)ops::matmul(a, b); });
    report.add(records);

    double worst = 0;
    for (const Record& record : records)
      worst = std::max(worst, std::abs(record.value("ratio").value_or(0) - 1));
    report.say(fmt::format("The timer is within {:.1f} % of the stopwatch: {}.", 100 * worst,
                           worst <= 0.03 ? "times can be trusted" : "more than 3 %, do not trust them"));
  }

 private:
  int64_t size_ = 768;
};

}  // namespace

SubcommandPointer make_ceilings() { return std::make_unique<CeilingsCommand>(); }
SubcommandPointer make_selftest() { return std::make_unique<Selftest>(); }

}  // namespace pleat::bench
