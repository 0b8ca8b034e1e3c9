// The command line of pleat-bench: an argument a line. The last ones are an option that there is not (twice,
// since an option before it may take it for its value), so that all values are read and nothing is measured.
#include <sstream>

#include "pleat/bench/program.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::istringstream in(fuzz::text_of(data, size));
  std::vector<std::string> arguments;
  for (std::string line; std::getline(in, line);) {
    // "--" would make a file name of what follows.
    if (line != "--") arguments.push_back(line);
  }
  if (arguments.empty()) return 0;
  arguments.insert(arguments.end(), 2, "--no-such-option");
  fuzz::accepts([&] {
    std::ostringstream out, err;
    const int status = bench::run_program(arguments, out, err);
    fuzz::require(status == 2 || (status == 0 && !out.str().empty()),
                  "command line: neither refused nor answered with help");
    fuzz::require(status == 0 || !err.str().empty(), "command line: refused without a word");
  });
  return 0;
}
