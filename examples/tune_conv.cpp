// Which implementation computes a convolution fastest here, and how to make a network use it.
#include <iostream>

#include "options.h"
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

void run(const std::string& file) {
  AtomicFile::check_writable("--output", file);
  const Tensor x = randn({8, 64, 32, 32});
  const Tensor w = randn({64, 64, 3, 3});

  // By hand: every implementation, each pass apart, the fastest first.
  for (const ops::ConvTiming& timing : ops::tune_conv(x, w, {.padding = 1}))
    std::cout << describe(timing) << '\n';

  // Or by itself: in this scope each convolution is timed at its first use, forward and backward.
  const ConvPolicy policy{{.benchmark = true}};
  const Tensor weight = randn({32, 64, 3, 3}).set_requires_grad();
  sum(conv2d(x, weight, {.stride = 2, .padding = 1})).backward();
  std::cout << "\n" << ops::ConvTuner::table();

  // The next process need not time them again.
  ops::ConvTuner::save(file);
  std::cout << ops::ConvTuner::load(file) << " problems in " << file << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  std::string file = "tuned.json";
  CLI::App app{"Times the implementations of a convolution, and keeps what was found.", "tune_conv"};
  app.add_option("--output", file, "File for what was found; it is replaced")
      ->check(not_empty())
      ->capture_default_str();
  return run_program(app, argc, argv, [&] { run(file); });
}
