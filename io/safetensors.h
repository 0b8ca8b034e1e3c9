#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "pleat/core/tensor.h"

/// The safetensors format: https://huggingface.co/docs/safetensors. Names and raw elements, and nothing that
/// is executed.

namespace pleat::io {

/// What a safetensors file holds.
struct SafetensorsContent {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  ///< the entry `__metadata__`
};

/// Reads a file. All eight element types are known; files with others (8-bit floats, 16-bit integers ...) are
/// refused.
///
/// Throws FileError, naming file, offset and cause, for everything that the format forbids: a header that is
/// too short, too long (above 100,000,000 bytes), no JSON object, no UTF-8, or that has a key twice; sizes
/// whose product overflows; offsets that disagree with shape and type, overlap, leave a hole, or reach beyond
/// the file; and bytes after the last tensor.
SafetensorsContent read_safetensors(const std::filesystem::path& path);

/// Writes tensors of any strides row-major, under a temporary name that replaces `path` only when all of it
/// is on disk. Every tensor starts at a multiple of its element size. The same content gives the same bytes.
///
/// Throws ValueError when a name is `__metadata__`, or a name or the metadata is not UTF-8; FileError when
/// the file cannot be written.
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace pleat::io
