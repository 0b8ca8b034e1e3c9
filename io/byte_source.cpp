#include "pleat/io/byte_source.h"

#include <algorithm>
#include <array>
#include <limits>

#include <zlib.h>

#include "pleat/core/base/format.h"

namespace pleat::io {

std::size_t ByteSource::read(std::span<std::byte> buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const std::size_t some = read_some(buffer.subspan(done));
    if (some == 0) break;
    done += some;
    position_ += static_cast<int64_t>(some);
  }
  return done;
}

void ByteSource::read_exactly(std::span<std::byte> buffer, std::string_view what) {
  const int64_t start = position_;
  const std::size_t got = read(buffer);
  if (got != buffer.size()) {
    fail_at(start,
            fmt::format("truncated: {} needs {} bytes, but only {} are left", what, buffer.size(), got));
  }
}

void ByteSource::expect_end() {
  const int64_t end = position_;
  std::byte extra;
  if (read({&extra, 1}) != 0) fail_at(end, "the data ends here, but more bytes follow");
}

void ByteSource::fail_at(int64_t position, const std::string& cause) const {
  pleat::fail<FileError>("{}, byte {}: {}", name_, position, cause);
}

void ByteSource::check_memory(int64_t bytes, std::string_view what) const {
  if (bytes > memory_.left()) fail(above_memory_limit(what, bytes, memory_));
}

FileSource::FileSource(const InputFile& file, int64_t begin, int64_t size)
    : ByteSource(file.name(), file.memory()), file_(file), begin_(begin), size_(size) {
  if (begin < 0 || size < 0 || begin > file.size() || size > file.size() - begin) {
    file.fail_at(begin,
                 fmt::format("{} bytes are said to start here, but the file has {}", size, file.size()));
  }
}

std::size_t FileSource::read_some(std::span<std::byte> buffer) {
  const auto some =
      static_cast<std::size_t>(std::min<int64_t>(size_ - position(), static_cast<int64_t>(buffer.size())));
  file_.read_at(begin_ + position(), buffer.first(some), "data");
  return some;
}

struct InflateSource::State {
  std::unique_ptr<ByteSource> compressed;
  Format format;
  std::array<std::byte, 1 << 16> input;
  z_stream stream{};
  bool ended = false;  // a deflate stream or gzip member is complete

  // Reads more input when there is none; false at the end of the source.
  bool fill() {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(compressed->read(input));
      stream.next_in = reinterpret_cast<Bytef*>(input.data());
    }
    return stream.avail_in != 0;
  }
};

InflateSource::InflateSource(std::unique_ptr<ByteSource> compressed, Format format)
    : ByteSource(compressed->name() + " (decompressed)", compressed->memory()),
      state_(std::make_unique<State>()) {
  state_->compressed = std::move(compressed);
  state_->format = format;
  // Negative window bits mean deflate without a header, 16 more mean gzip.
  const int window_bits = format == Format::gzip ? 16 + MAX_WBITS : -MAX_WBITS;
  if (inflateInit2(&state_->stream, window_bits) != Z_OK) {
    pleat::fail<OutOfMemoryError>("{}: zlib has no memory for a stream", name());
  }
}

InflateSource::~InflateSource() { inflateEnd(&state_->stream); }

std::size_t InflateSource::read_some(std::span<std::byte> buffer) {
  State& s = *state_;
  z_stream& stream = s.stream;
  const auto wanted =
      static_cast<uInt>(std::min<std::size_t>(buffer.size(), std::numeric_limits<uInt>::max()));
  stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
  stream.avail_out = wanted;
  while (stream.avail_out == wanted) {
    if (s.ended) {
      // A gzip file may hold several members one after the other.
      if (s.format == Format::deflate || !s.fill()) return 0;
      inflateReset(&stream);
      s.ended = false;
    }
    if (!s.fill()) fail("truncated: the compressed data ends too early");
    const int status = inflate(&stream, Z_NO_FLUSH);
    s.ended = status == Z_STREAM_END;
    if (status == Z_MEM_ERROR) pleat::fail<OutOfMemoryError>("{}: zlib has no memory to inflate", name());
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      fail(fmt::format("the compressed data is damaged: {}",
                       stream.msg != nullptr ? stream.msg : "zlib gives no reason"));
    }
  }
  return wanted - stream.avail_out;
}

void InflateSource::expect_end() {
  // Reading on until the end also verifies the checksum of a gzip member.
  ByteSource::expect_end();
  if (state_->stream.avail_in != 0 || state_->compressed->remaining_at_most() != 0) {
    fail("the compressed data ends here, but more bytes follow");
  }
}

int64_t InflateSource::remaining_at_most() const {
  // Deflate packs at most 258 bytes into two bits (zlib's technical notes: "1032:1").
  constexpr int64_t best_ratio = 1032;
  const int64_t left = state_->compressed->remaining_at_most() + state_->stream.avail_in;
  constexpr int64_t pending = 1 << 16;  // already in zlib's window
  if (left > (std::numeric_limits<int64_t>::max() - pending) / best_ratio) {
    return std::numeric_limits<int64_t>::max();
  }
  return left * best_ratio + pending;
}

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

uint64_t big_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<uint64_t>(byte);
  return value;
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string result = "'";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", byte);
    }
  }
  return result + (text.size() > longest ? "...'" : "'");
}

}  // namespace pleat::io
