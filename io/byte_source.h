// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pleat/core/files/input_file.h"

/// Checked reading of files: every read names what it reads, and an error names the file, the
/// offset and the cause.

namespace pleat::io {

/// A sequence of bytes.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Fills `buffer` from its front and returns the number of bytes; fewer than asked for only at the end.
  std::size_t read(std::span<std::byte> buffer);
  /// Fills `buffer`. Throws FileError when the bytes end before, saying that `what` is truncated.
  void read_exactly(std::span<std::byte> buffer, std::string_view what);
  /// Throws FileError unless all bytes were read (and are intact, where a checksum tells).
  virtual void expect_end();
  /// An upper bound of the bytes left. A header that promises more is refused before memory is
  /// allocated for it.
  virtual int64_t remaining_at_most() const = 0;

  /// Throws FileError, with the remedy, when `bytes` of memory for `what` are above the limit.
  void check_memory(int64_t bytes, std::string_view what) const;
  MemoryBudget memory() const { return memory_; }

  /// Bytes read so far.
  int64_t position() const { return position_; }
  /// The origin of the bytes, as errors name it: "read_npy: 'x.npy'".
  const std::string& name() const { return name_; }
  /// Throws FileError "<name>, byte <position>: <cause>".
  [[noreturn]] void fail(const std::string& cause) const { fail_at(position_, cause); }
  [[noreturn]] void fail_at(int64_t position, const std::string& cause) const;

 protected:
  ByteSource(std::string name, MemoryBudget memory) : name_(std::move(name)), memory_(memory) {}

 private:
  virtual std::size_t read_some(std::span<std::byte> buffer) = 0;

  std::string name_;
  MemoryBudget memory_;
  int64_t position_ = 0;
};

/// The bytes [begin, begin + size) of a file, which must outlive the source.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const InputFile& file) : FileSource(file, 0, file.size()) {}
  FileSource(const InputFile& file, int64_t begin, int64_t size);
  int64_t remaining_at_most() const override { return size_ - position(); }

 private:
  std::size_t read_some(std::span<std::byte> buffer) override;

  const InputFile& file_;
  int64_t begin_;
  int64_t size_;
};

/// The decompressed bytes of a compressed source.
class InflateSource final : public ByteSource {
 public:
  enum class Format {
    deflate,  ///< RFC 1951, as in zip files
    gzip      ///< RFC 1952, one or more members; their checksums are verified at each end
  };
  InflateSource(std::unique_ptr<ByteSource> compressed, Format format);
  ~InflateSource() override;
  void expect_end() override;
  int64_t remaining_at_most() const override;

 private:
  struct State;
  std::size_t read_some(std::span<std::byte> buffer) override;

  std::unique_ptr<State> state_;
};

/// An unsigned number of 1 to 8 bytes, the least significant first.
uint64_t little_endian(std::span<const std::byte> bytes);
/// The same, the most significant first.
uint64_t big_endian(std::span<const std::byte> bytes);

/// Text of a file for a message: quoted, cut after 40 characters, unprintable bytes as \x7f.
std::string printable(std::string_view text);

}  // namespace pleat::io
