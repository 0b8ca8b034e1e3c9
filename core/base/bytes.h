// Private header: not installed.
#pragma once

#include <cstdint>
#include <string>

namespace pleat {

/// "512 bytes", "1.5 MiB", "79.2 GiB".
std::string text_of_bytes(int64_t bytes);

}  // namespace pleat
