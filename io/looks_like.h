// Private header: not installed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "pleat/io/byte_source.h"

namespace pleat::io {

/// What a file seems to be, by its first bytes (a thousand are enough), and what to do with such a file:
/// "; it looks like a .npz archive: io::read_npz reads it". Empty when they say nothing.
std::string looks_like(std::span<const std::byte> start);
std::string looks_like(const InputFile& file);
/// By the bytes that were read from a source, and those that follow.
std::string looks_like(ByteSource& source, std::span<const std::byte> start);

}  // namespace pleat::io
