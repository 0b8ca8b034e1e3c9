#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "pleat/bench/program.h"

namespace pleat::test {

/// What pleat-bench does with arguments.
struct BenchOutcome {
  int status;
  std::string out, err;
};

inline BenchOutcome run_bench(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int status = bench::run_program(arguments, out, err);
  return {status, out.str(), err.str()};
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace pleat::test
