#include "pleat/io/zip.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include <zlib.h>

#include "pleat/core/base/format.h"
#include "pleat/io/looks_like.h"

namespace pleat::io {
namespace {

// Signatures of the records (APPNOTE 4.3).
constexpr uint32_t local_header = 0x04034b50;
constexpr uint32_t central_header = 0x02014b50;
constexpr uint32_t end_record = 0x06054b50;
constexpr uint32_t zip64_end = 0x06064b50;
constexpr uint32_t zip64_locator = 0x07064b50;

constexpr int64_t local_header_size = 30;  // without name and extra field

constexpr uint32_t most_u32 = 0xffffffff;  // "see the zip64 record"
constexpr uint16_t most_u16 = 0xffff;

// Fields of a record by their offset in it.
class Record {
 public:
  explicit Record(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint16_t u16(std::size_t at) const { return static_cast<uint16_t>(little_endian(bytes_.subspan(at, 2))); }
  uint32_t u32(std::size_t at) const { return static_cast<uint32_t>(little_endian(bytes_.subspan(at, 4))); }
  uint64_t u64(std::size_t at) const { return little_endian(bytes_.subspan(at, 8)); }

 private:
  std::span<const std::byte> bytes_;
};

struct Directory {
  uint64_t entries;
  int64_t offset;
  int64_t size;
};

// Offset of the record that ends the archive: the last one whose comment reaches exactly to the end of the
// file.
int64_t find_end(const InputFile& file) {
  constexpr int64_t record_size = 22;
  constexpr int64_t longest_comment = 0xffff;
  if (file.size() < record_size)
    file.fail_at(0, "is not a zip file, which has at least 22 bytes" + looks_like(file));
  const int64_t tail = std::min(file.size(), record_size + longest_comment);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tail));
  file.read_at(file.size() - tail, bytes, "the end of a zip file");
  for (int64_t at = tail - record_size; at >= 0; --at) {
    const Record record{std::span(bytes).subspan(static_cast<std::size_t>(at))};
    if (record.u32(0) == end_record && record.u16(20) == tail - record_size - at)
      return file.size() - tail + at;
  }
  std::array<std::byte, 4> start;
  file.read_at(0, start, "the start of a zip file");
  if (Record(start).u32(0) == local_header)
    file.fail_at(file.size(), "truncated: there is no record that ends a zip file");
  file.fail_at(0, "is not a zip file: there is no record that ends one" + looks_like(file));
}

int64_t within_file(const InputFile& file, int64_t at, uint64_t value, const char* what) {
  if (value > static_cast<uint64_t>(file.size())) {
    file.fail_at(
        at, fmt::format("{} of {} lies outside of the file, which has {} bytes", what, value, file.size()));
  }
  return static_cast<int64_t>(value);
}

// `header` is the size of the local header with what follows it.
void check_room(const InputFile& file, const ZipEntry& entry, int64_t header) {
  if (entry.compressed_size + header > entry.end_offset - entry.header_offset) {
    file.fail_at(entry.header_offset,
                 fmt::format("entry {} of {} bytes reaches into what begins at byte {}: entries must not "
                             "share bytes",
                             printable(entry.name), entry.compressed_size, entry.end_offset));
  }
}

Directory find_directory(const InputFile& file) {
  const int64_t end = find_end(file);
  std::array<std::byte, 22> bytes;
  file.read_at(end, bytes, "the archive's last record");
  const Record record(bytes);
  if (record.u16(4) != 0 && record.u16(4) != most_u16)
    file.fail_at(end + 4, "archives of several disks are not read");

  uint64_t entries = record.u16(10);
  uint64_t size = record.u32(12);
  uint64_t offset = record.u32(16);
  std::array<std::byte, 20> locator_bytes;
  const bool needs_zip64 = entries == most_u16 || size == most_u32 || offset == most_u32;
  if (needs_zip64 && end >= 20) {
    file.read_at(end - 20, locator_bytes, "the zip64 locator");
    const Record locator(locator_bytes);
    if (locator.u32(0) == zip64_locator) {
      const int64_t at = within_file(file, end - 12, locator.u64(8), "the offset");
      std::array<std::byte, 56> zip64_bytes;
      file.read_at(at, zip64_bytes, "the zip64 record");
      const Record zip64(zip64_bytes);
      if (zip64.u32(0) != zip64_end) file.fail_at(at, "a zip64 record must start here");
      entries = zip64.u64(32);
      size = zip64.u64(40);
      offset = zip64.u64(48);
    }
  }
  Directory directory{entries, within_file(file, end + 16, offset, "the directory's offset"),
                      within_file(file, end + 12, size, "the directory's size")};
  if (directory.size > end - directory.offset) {
    file.fail_at(
        end + 12,
        fmt::format("the directory is said to have {} bytes from byte {} on, which is beyond its end",
                    directory.size, directory.offset));
  }
  return directory;
}

// Replaces the values that the central header leaves to the zip64 field (APPNOTE 4.5.3).
void read_zip64_field(const InputFile& file, int64_t at, std::span<const std::byte> extra, uint64_t& size,
                      uint64_t& compressed_size, uint64_t& offset) {
  while (extra.size() >= 4) {
    const Record field(extra);
    const std::size_t length = field.u16(2);
    if (length > extra.size() - 4) break;
    std::span<const std::byte> values = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (field.u16(0) != 1) continue;
    for (uint64_t* value : {&size, &compressed_size, &offset}) {
      if (*value != most_u32) continue;
      if (values.size() < 8) file.fail_at(at, "an entry's zip64 field is too short");
      *value = little_endian(values.first(8));
      values = values.subspan(8);
    }
    return;
  }
}

// Sets where each entry must end. In an archive whose entries share bytes (a bomb, or a damaged
// file) an entry begins before the previous one can end.
void find_ends(const InputFile& file, const Directory& directory, std::vector<ZipEntry>& entries) {
  std::vector<ZipEntry*> by_place;
  by_place.reserve(entries.size());
  for (ZipEntry& entry : entries) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->header_offset < b->header_offset; });
  for (std::size_t i = 0; i < by_place.size(); ++i) {
    ZipEntry& entry = *by_place[i];
    entry.end_offset = i + 1 < by_place.size() ? by_place[i + 1]->header_offset : directory.offset;
    check_room(file, entry, local_header_size + static_cast<int64_t>(entry.name.size()));
  }
}

class ZipSource final : public ByteSource {
 public:
  ZipSource(std::unique_ptr<ByteSource> content, const ZipEntry& entry, std::string name, MemoryBudget memory)
      : ByteSource(std::move(name), memory),
        content_(std::move(content)),
        size_(entry.size),
        crc_(entry.crc) {}

  int64_t remaining_at_most() const override {
    return std::min(size_ - position(), content_->remaining_at_most());
  }

  void expect_end() override {
    if (position() != size_) fail(fmt::format("the data ends here, but the entry has {} bytes", size_));
    content_->expect_end();
    if (running_crc_ != crc_) {
      fail(fmt::format("the entry is damaged: its CRC is {:08x}, but must be {:08x}", running_crc_, crc_));
    }
  }

 private:
  std::size_t read_some(std::span<std::byte> buffer) override {
    // zlib counts in 32 bits.
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    const int64_t wanted = std::min({size_ - position(), static_cast<int64_t>(buffer.size()), most});
    const std::size_t got = content_->read(buffer.first(static_cast<std::size_t>(wanted)));
    running_crc_ = static_cast<uint32_t>(
        crc32(running_crc_, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(got)));
    return got;
  }

  std::unique_ptr<ByteSource> content_;
  int64_t size_;
  uint32_t crc_;
  uint32_t running_crc_ = 0;
};

}  // namespace

std::vector<ZipEntry> read_zip_directory(const InputFile& file) {
  const Directory directory = find_directory(file);
  // An entry has at least 46 bytes here, and about three hundred in memory.
  constexpr int64_t expansion = 8;
  if (directory.size > file.memory().limit / expansion)
    file.fail_at(directory.offset,
                 above_memory_limit("the archive's directory", directory.size * expansion, file.memory()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(directory.size));
  file.read_at(directory.offset, bytes, "the archive's directory");

  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  std::span<const std::byte> rest = bytes;
  int64_t room = directory.offset;  // for local headers: a file with many entries is a large one
  while (!rest.empty()) {
    constexpr std::size_t fixed = 46;
    const int64_t at = directory.offset + static_cast<int64_t>(bytes.size() - rest.size());
    const Record record(rest);
    if (rest.size() < fixed || record.u32(0) != central_header)
      file.fail_at(at, "an entry of the directory must start here");
    const std::size_t name_length = record.u16(28);
    const std::size_t extra_length = record.u16(30);
    const std::size_t total = fixed + name_length + extra_length + record.u16(32);
    if (total > rest.size()) file.fail_at(at, "an entry of the directory is longer than the directory");
    uint64_t compressed_size = record.u32(20);
    uint64_t size = record.u32(24);
    uint64_t offset = record.u32(42);
    read_zip64_field(file, at, rest.subspan(fixed + name_length, extra_length), size, compressed_size,
                     offset);
    if ((record.u16(8) & 1) != 0) file.fail_at(at + 8, "an encrypted entry cannot be read");
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      file.fail_at(at + 24, fmt::format("an entry of {} bytes is larger than any memory", size));
    }

    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(rest.data()) + fixed, name_length);
    entry.method = record.u16(10);
    entry.crc = record.u32(16);
    entry.compressed_size = within_file(file, at + 20, compressed_size, "a compressed size");
    entry.size = static_cast<int64_t>(size);
    entry.header_offset = within_file(file, at + 42, offset, "the offset of an entry");
    room -= local_header_size + static_cast<int64_t>(name_length);
    if (room < 0)
      file.fail_at(at, fmt::format("entry {} has no room before the directory: entries must not share bytes",
                                   printable(entry.name)));
    if (!names.insert(entry.name).second)
      file.fail_at(at, fmt::format("there are two entries {}", printable(entry.name)));
    entries.push_back(std::move(entry));
    rest = rest.subspan(total);
  }
  if (entries.size() != directory.entries) {
    file.fail_at(directory.offset,
                 fmt::format("the directory has {} entries, but the archive is said to have {}",
                             entries.size(), directory.entries));
  }
  find_ends(file, directory, entries);
  return entries;
}

std::unique_ptr<ByteSource> open_zip_entry(const InputFile& file, const ZipEntry& entry,
                                           MemoryBudget memory) {
  constexpr int64_t fixed = local_header_size;
  std::array<std::byte, fixed> bytes;
  file.read_at(entry.header_offset, bytes, "an entry's header");
  const Record record(bytes);
  if (record.u32(0) != local_header) {
    file.fail_at(entry.header_offset, fmt::format("the entry {} must start here", printable(entry.name)));
  }
  std::string name(record.u16(26), '\0');
  file.read_at(entry.header_offset + fixed, std::as_writable_bytes(std::span(name)), "an entry's name");
  if (name != entry.name) {
    file.fail_at(entry.header_offset + fixed,
                 fmt::format("the directory says {}, but here the entry is called {}", printable(entry.name),
                             printable(name)));
  }
  const int64_t header = fixed + record.u16(26) + record.u16(28);
  check_room(file, entry, header);
  const int64_t begin = entry.header_offset + header;
  auto content =
      std::unique_ptr<ByteSource>(std::make_unique<FileSource>(file, begin, entry.compressed_size));
  if (entry.method == 8) {
    content = std::make_unique<InflateSource>(std::move(content), InflateSource::Format::deflate);
  } else if (entry.method != 0) {
    file.fail_at(entry.header_offset + 8,
                 fmt::format("entry {} is compressed by method {}; 0 (stored) and 8 (deflate) "
                             "are known",
                             printable(entry.name), entry.method));
  }
  return std::make_unique<ZipSource>(std::move(content), entry,
                                     fmt::format("{}, entry {}", file.name(), printable(entry.name)), memory);
}

}  // namespace pleat::io
