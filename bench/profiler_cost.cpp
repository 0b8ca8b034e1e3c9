// What it costs to record ops: the time of a range, without a listener and with a profiler
// that listens, and of a whole small op; interleaved.
#include <functional>
#include <optional>

#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

#include "pleat/examples/common/options.h"
#include "pleat/examples/common/program.h"

using namespace pleat;

namespace {

/// Keeps the compiler from leaving out what nobody uses.
void keep(const void* p) { asm volatile("" : : "g"(p) : "memory"); }

using Options = profile::ProfilerOptions;

/// A function that does something `n` times, and the profiler that listens.
struct Variant {
  const char* name;
  std::function<void(int64_t n)> run;
  std::optional<Options> listening = {};
  benchmark::Measurement measured = {};
};

void run(int64_t times, int64_t rounds) {
  set_num_threads(1);
  const Tensor x = randn({8, 4, 2, 2}), w = randn({4, 4, 1, 1});
  const auto repeated = [](const auto& once) {
    return [once](int64_t n) {
      for (int64_t i = 0; i < n; ++i) once();
    };
  };
  const auto range = repeated([] {
    const RecordFunction r("range");
    keep(&r);
  });
  const auto op = repeated([x, w] {
    const RecordOp r("op", x, w);
    r.details([] { return RangeDetails{.implementation = "direct", .flops = 1}; });
    keep(&r);
  });
  const auto relu = repeated([x] { keep(&pleat::relu(x).impl()); });
  const Options plain{.activities = profile::Activities::cpu, .record_shapes = false};
  const Options shapes{.activities = profile::Activities::cpu};
  const Options memory{.activities = profile::Activities::cpu, .with_memory = true};
  std::vector<Variant> variants{{"an empty loop", repeated([] { keep(nullptr); })},
                                {"RecordFunction, nobody listens", range},
                                {"RecordOp of two tensors, nobody listens", op},
                                {"RecordFunction, profiler", range, plain},
                                {"RecordOp, profiler without shapes", op, plain},
                                {"RecordOp, profiler with shapes", op, shapes},
                                {"relu of 128 elements, nobody listens", relu},
                                {"relu of 128 elements, profiler with shapes", relu, shapes},
                                {"relu of 128 elements, profiler with shapes and memory", relu, memory}};
  const auto clock = benchmark::device_clock({});
  for (int64_t round = 0; round < rounds; ++round)
    for (Variant& variant : variants) {
      std::optional<profile::Profiler> profiler;
      if (variant.listening) profiler.emplace(*variant.listening);
      clock->start();
      variant.run(times);
      variant.measured.times.push_back(clock->stop().wall / static_cast<double>(times));
    }
  for (const Variant& variant : variants)
    print("%-54s %9.2f ns  (quartiles %.2f, %.2f)\n", variant.name, 1e9 * variant.measured.median(),
          1e9 * variant.measured.lower_quartile(), 1e9 * variant.measured.upper_quartile());
}

}  // namespace

int main(int argc, char** argv) {
  int64_t times = 20000, rounds = 31;
  CLI::App app{"Measures what ranges cost, in nanoseconds each.", "profiler_cost"};
  app.add_option("--times", times)->transform(whole_number(1))->capture_default_str();
  app.add_option("--rounds", rounds)->transform(whole_number(1, 1'000'000))->capture_default_str();
  return run_program(app, argc, argv, [&] { run(times, rounds); });
}
