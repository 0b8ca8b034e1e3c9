// pleat-bench: times what Pleat computes (docs/benchmarks.md).
#include <exception>
#include <iostream>

#include "pleat/bench/program.h"
#include "pleat/examples/common/program.h"

int main(int argc, char** argv) {
  try {
    check_standard_streams();
    const int status = pleat::bench::run_program({argv + 1, argv + argc}, std::cout, std::cerr);
    flush_output();
    return status;
  } catch (const std::exception& error) {
    std::cerr << "pleat-bench: " << error.what() << '\n';
    return exit_failed;
  }
}
