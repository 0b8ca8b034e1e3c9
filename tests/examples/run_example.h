#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pleat_test {

struct ExampleOptions {
  int columns = 0;        ///< of a terminal that both streams go to (then all is in `out`); 0: no terminal
  int later_columns = 0;  ///< of the terminal once something was said; 0: as before
  std::string stdout_to = {};  ///< a file for standard output; "-": closed
  std::vector<std::string> environment = {};
};

struct ExampleOutcome {
  int status;  ///< exit status; negative: the signal that ended it
  std::string out, err;
};

/// Runs one of the programs of examples/ or bench/ to its end.
ExampleOutcome run_example(const std::string& program, const std::vector<std::string>& arguments,
                           const ExampleOptions& options = {});

/// Starts one and returns its process id; its output is thrown away.
int start_example(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace pleat_test
