#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace pleat::bench {

/// The program pleat-bench. `arguments` are without the program's name. Returns the exit status: 0; 1 when
/// something failed; 2 for arguments that make no sense.
int run_program(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace pleat::bench
