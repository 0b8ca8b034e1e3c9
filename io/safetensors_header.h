// Private header: not installed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/core/tensor/shape.h"
#include "pleat/io/byte_source.h"
#include "pleat/io/elements.h"

namespace pleat::io {

/// The longest header, as in the format's reference implementation.
inline constexpr uint64_t most_safetensors_header = 100'000'000;
inline constexpr const char* safetensors_metadata = "__metadata__";

/// An element type of the format.
struct SafetensorsType {
  enum class As {
    stored,      ///< elements as in `stored`
    float_code,  ///< codes of `bits` bits, low ones first in a byte, whose values are `values[code]`
    complex,     ///< pairs of float32
    bytes        ///< kept as bytes
  };
  std::string_view name;
  int bits;  ///< of an element
  As as;
  StoredType stored;              ///< of `stored`
  const float* values = nullptr;  ///< of `float_code`

  /// The type of the tensor that is read.
  DType dtype() const;
  /// "F8_E4M3 to float32"; empty where nothing changes.
  std::string conversion() const;
};

/// Null for a name that the format does not have.
const SafetensorsType* find_safetensors_type(std::string_view name);
/// The name of the type that keeps these elements as they are.
std::string_view safetensors_type_name(DType dtype);

struct SafetensorsEntry {
  std::string name;
  const SafetensorsType* type = nullptr;
  Shape shape;         ///< in the file
  uint64_t begin = 0;  ///< from the end of the header
  uint64_t end = 0;

  int64_t elements() const { return count(shape); }
  /// The shape of the tensor that is read.
  Shape result_shape() const;
  int64_t result_bytes() const;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  /// In the order of their bytes, which fill the rest of the file.
  std::vector<SafetensorsEntry> entries;
};

/// Reads length and header; the data are the next bytes of the source. Throws FileError for
/// everything that the format forbids.
SafetensorsHeader read_safetensors_header(const InputFile& file, FileSource& source);

}  // namespace pleat::io
