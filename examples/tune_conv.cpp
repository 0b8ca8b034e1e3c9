// Which implementation computes a convolution fastest here, and how to make a network use it.
//
// Expected: a line for each implementation and pass, the fastest first: on a CPU "winograd" leads for 3x3
// filters.
#include <iostream>

#include "program.h"
#include <pleat/pleat.h>

using namespace pleat;

void run() {
  const Tensor x = randn({8, 64, 32, 32});
  const Tensor w = randn({64, 64, 3, 3});

  // By hand: every implementation, each pass apart, the fastest first.
  for (const ops::Timing& timing : ops::tune_conv(x, w, {.padding = 1}))
    std::cout << describe(timing) << '\n';

  // Or by itself: in this scope each convolution is timed at its first use, forward and backward.
  const ConvPolicy policy{{.benchmark = true}};
  const Tensor weight = randn({32, 64, 3, 3}).set_requires_grad();
  sum(conv2d(x, weight, {.stride = 2, .padding = 1})).backward();
  std::cout << "\n" << ops::Tuner::table();

  // The next process need not time them again.
  ops::Tuner::save("tuned.json");
  std::cout << ops::Tuner::load("tuned.json") << " problems in tuned.json\n";
}

int main(int argc, char** argv) {
  return run_program("tune_conv", "Times the implementations of a convolution; the results go to tuned.json.",
                     argc, argv, run);
}
