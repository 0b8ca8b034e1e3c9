#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "pleat/core/files/read_options.h"
#include "pleat/core/tensor/tensor.h"

/// The safetensors format: https://huggingface.co/docs/safetensors. It holds names and raw
/// elements, and nothing that is executed.

namespace pleat::io {

/// The content of a safetensors file.
struct SafetensorsContent {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  ///< the entry `__metadata__`
  /// The conversion of tensors whose type in the file Pleat does not have: {"w", "F8_E4M3 to
  /// float32"}.
  std::map<std::string, std::string> converted;
};

/// Reads a file. BOOL, U8, I32, I64, BF16, F16, F32 and F64 are kept; I8, I16 and U16 become int32,
/// U32 and U64 int64. F4 and the types F8_... become float32, without the scales that such models
/// keep in tensors beside them. C64 becomes float32 with a last dimension of 2. F6_E2M3 and F6_E3M2
/// become their bytes (uint8, one dimension). `converted` has the conversions by name.
///
/// Fields of an entry that the format does not name are ignored. Throws FileError, naming file,
/// offset and cause, for everything that the format forbids: a header that is too short, too long
/// (above 100,000,000 bytes), no JSON object, no UTF-8, padded with anything but space, or that has
/// a key twice; sizes whose product overflows; offsets that disagree with shape and type, overlap,
/// leave a hole, or reach beyond the file; and bytes after the last tensor. Also for a U64 above
/// the range of int64, and for a file that takes more memory than `options` allow. For another kind
/// of file the message names that kind, as far as its first bytes show it.
SafetensorsContent read_safetensors(const std::filesystem::path& path, ReadOptions options = {});

/// The entry `__metadata__` of a file alone, without reading its tensors. Throws FileError as above.
std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path,
                                                             ReadOptions options = {});

/// Writes tensors of any strides row-major, under a temporary name that replaces `path` only when all of it
/// is on disk. Every tensor starts at a multiple of its element size, one of a multiple of 64 bytes at such a
/// multiple. The same content gives the same bytes.
///
/// Throws ValueError when a name is `__metadata__`, or a name or the metadata is not UTF-8; FileError when
/// the file cannot be written.
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace pleat::io
