// pleat-bench: times what Pleat computes (docs/benchmarks.md).
#include <iostream>

#include "pleat/bench/program.h"

int main(int argc, char** argv) {
  return pleat::bench::run_program({argv + 1, argv + argc}, std::cout, std::cerr);
}
