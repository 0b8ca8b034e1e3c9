#pragma once

#include <string>

namespace cuda_double {

/// Ends the process: what was done is wrong on every GPU.
[[noreturn]] void finding(const std::string& what);

}  // namespace cuda_double
