// Private header: not installed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "pleat/io/byte_source.h"

namespace pleat::io {

/// Text about the kind of file that begins with these bytes (a thousand are enough), and the
/// function that reads it: "; it looks like a .npz archive: io::read_npz reads it". Empty for an
/// unknown kind.
std::string looks_like(std::span<const std::byte> start);
std::string looks_like(const InputFile& file);
/// The same for the bytes that were read from a source and those that follow.
std::string looks_like(ByteSource& source, std::span<const std::byte> start);

}  // namespace pleat::io
