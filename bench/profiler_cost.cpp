// What it costs that ops announce themselves: nanoseconds for each range, with nobody listening and with a
// profiler that listens, and for a whole small op. The median of several rounds, in which the variants take
// turns.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

#include "pleat/examples/common/options.h"
#include "pleat/examples/common/program.h"

using namespace pleat;

namespace {

/// Keeps the compiler from leaving out what nobody uses.
void keep(const void* p) { asm volatile("" : : "g"(p) : "memory"); }

struct Variant {
  std::string name;
  std::function<void(int64_t)> run;  ///< so many times
  bool listening = false;
  profile::ProfilerOptions options = {};
  std::vector<double> nanoseconds = {};
};

double measure(const Variant& variant, int64_t times) {
  const auto time = [&] {
    const auto start = std::chrono::steady_clock::now();
    variant.run(times);
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
           static_cast<double>(times);
  };
  if (!variant.listening) return time();
  profile::Profiler profiler(variant.options);
  return time();
}

void run(int64_t times, int rounds) {
  set_num_threads(1);
  const Tensor x = randn({8, 4, 2, 2});
  const Tensor w = randn({4, 4, 1, 1});
  const auto nothing = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) keep(&i);
  };
  const auto range = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const RecordFunction r("range");
      keep(&r);
    }
  };
  const auto op = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const RecordOp r("op", x, w);
      r.details([] { return RangeDetails{.implementation = "direct", .flops = 1}; });
      keep(&r);
    }
  };
  const auto relu = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) keep(&ops::relu(x).impl());
  };
  const profile::ProfilerOptions plain{.activities = profile::Activities::cpu, .record_shapes = false};
  const profile::ProfilerOptions shapes{.activities = profile::Activities::cpu};
  const profile::ProfilerOptions memory{.activities = profile::Activities::cpu, .with_memory = true};
  std::vector<Variant> variants{
      {"an empty loop", nothing},
      {"RecordFunction, nobody listens", range},
      {"RecordOp of two tensors, nobody listens", op},
      {"RecordFunction, profiler", range, true, plain},
      {"RecordOp, profiler without shapes", op, true, plain},
      {"RecordOp, profiler with shapes", op, true, shapes},
      {"relu of 128 elements, nobody listens", relu},
      {"relu of 128 elements, profiler with shapes", relu, true, shapes},
      {"relu of 128 elements, profiler with shapes and memory", relu, true, memory}};
  for (int round = 0; round < rounds; ++round)
    for (Variant& variant : variants) variant.nanoseconds.push_back(measure(variant, times));
  for (Variant& variant : variants) {
    std::sort(variant.nanoseconds.begin(), variant.nanoseconds.end());
    const auto at = [&](double share) {
      return variant.nanoseconds[static_cast<std::size_t>(share * static_cast<double>(rounds - 1))];
    };
    print("%-54s %9.2f ns  (quartiles %.2f, %.2f)\n", variant.name.c_str(), at(0.5), at(0.25), at(0.75));
  }
}

}  // namespace

int main(int argc, char** argv) {
  int64_t times = 20000;
  int rounds = 31;
  CLI::App app{"Measures what ranges cost, in nanoseconds each.", "profiler_cost"};
  app.add_option("--times", times)->transform(whole_number(1))->capture_default_str();
  app.add_option("--rounds", rounds)->transform(whole_number(1, 1'000'000))->capture_default_str();
  return run_program(app, argc, argv, [&] { run(times, rounds); });
}
