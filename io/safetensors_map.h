// Private header: not installed.
#pragma once

#include <filesystem>
#include <string_view>

#include "pleat/io/safetensors.h"

namespace pleat::io {

/// As read_safetensors, but tensors lie where the file is mapped, which must not be written to: processes
/// that map one file share its pages, and those that nobody reads take no memory. Tensors of types that are
/// converted, or where the file does not align them, are read. A file that is replaced by another, as
/// AtomicFile does, stays what it was; one that becomes shorter in its place ends the process that reads it.
/// `op` opens the error messages.
SafetensorsContent map_safetensors(std::string_view op, const std::filesystem::path& path,
                                   ReadOptions options = {});

}  // namespace pleat::io
