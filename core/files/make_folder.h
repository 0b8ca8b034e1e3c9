// Private header: not installed.
#pragma once

#include <filesystem>
#include <string>

namespace pleat {

/// Makes a folder and those it lies in, where they are missing. Throws FileError, which begins with `op`.
void make_folder(const std::string& op, const std::filesystem::path& folder);

}  // namespace pleat
