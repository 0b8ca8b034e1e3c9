// Private header: not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pleat/io/byte_source.h"

/// The part of the zip format that .npz files use:
/// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT

namespace pleat::io {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;  ///< 0: stored, 8: deflated
  uint32_t crc = 0;
  int64_t compressed_size = 0;
  int64_t size = 0;
  int64_t header_offset = 0;  ///< of the local header
  int64_t end_offset = 0;     ///< where the next entry, or the directory, begins
};

/// The entries of the central directory, in its order. Reads Zip64. Throws FileError, also for
/// archives of several disks and entries that share bytes.
std::vector<ZipEntry> read_zip_directory(const InputFile& file);

/// The content of an entry, of at most `entry.size` bytes; expect_end() verifies size and CRC.
/// `memory` bounds the memory for its content. `file` must outlive the source. Throws FileError for
/// an encrypted entry or an unknown method.
std::unique_ptr<ByteSource> open_zip_entry(const InputFile& file, const ZipEntry& entry, MemoryBudget memory);

}  // namespace pleat::io
