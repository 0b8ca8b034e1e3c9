#include "pleat/data/idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/io/byte_source.h"

namespace pleat::data {
namespace {

namespace fs = std::filesystem;

DType dtype_of_code(const io::ByteSource& source, std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return uint8;
    case 0x0C:
      return int32;
    case 0x0D:
      return float32;
    case 0x0E:
      return float64;
    default:
      source.fail_at(2, fmt::format("the type code is 0x{:02X}; 0x08, 0x0C, 0x0D and 0x0E are known",
                                    std::to_integer<int>(code)));
  }
}

/// Big-endian elements as this machine has them.
void to_native_order(const Tensor& x) {
  if constexpr (std::endian::native == std::endian::big) return;
  const int64_t size = size_of(x.dtype());
  std::byte* element = x.raw();
  for (int64_t i = 0; i < x.numel(); ++i, element += size) std::reverse(element, element + size);
}

Tensor read_elements(io::ByteSource& source) {
  std::array<std::byte, 4> head{};
  source.read_exactly(head, "the magic number");
  if (head[0] != std::byte{0} || head[1] != std::byte{0})
    source.fail_at(0, "an idx file begins with two zero bytes; this is none");
  const DType dtype = dtype_of_code(source, head[2]);
  Shape shape;
  for (int d = 0; d < std::to_integer<int>(head[3]); ++d) {
    std::array<std::byte, 4> size{};
    source.read_exactly(size, "a size");
    shape.push_back(static_cast<int64_t>(io::big_endian(size)));
  }
  // A size of 0 must not hide others that no file could hold.
  int64_t bytes = size_of(dtype);
  bool fits = true;
  for (const int64_t size : shape)
    fits = fits && !__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) bytes = 0;
  if (!fits || bytes > source.remaining_at_most())
    source.fail(fmt::format("sizes {} promise more than the file holds", shape));
  const Tensor x = empty(shape, {.dtype = dtype});
  source.read_exactly({x.raw(), static_cast<std::size_t>(bytes)}, "the elements");
  source.expect_end();
  to_native_order(x);
  return x;
}

/// The file, or the file with .gz.
fs::path find(const fs::path& folder, const std::string& name) {
  for (const fs::path& path : {folder / name, folder / (name + ".gz")})
    if (fs::exists(path)) return path;
  fail<FileError>("read_mnist: '{}' holds neither {} nor {}.gz", folder.string(), name, name);
}

}  // namespace

Tensor read_idx(const fs::path& path) {
  const io::File file("read_idx", path);
  std::array<std::byte, 2> magic{};
  if (file.size() >= 2) file.read_at(0, magic, "the magic number");
  const bool gzipped = magic[0] == std::byte{0x1F} && magic[1] == std::byte{0x8B};
  auto plain = std::make_unique<io::FileSource>(file);
  if (!gzipped) return read_elements(*plain);
  io::InflateSource source(std::move(plain), io::InflateSource::Format::gzip);
  return read_elements(source);
}

TensorDataset read_mnist(const fs::path& folder, Flag train) {
  const std::string part = train ? "train" : "t10k";
  const fs::path image_file = find(folder, part + "-images-idx3-ubyte");
  const fs::path label_file = find(folder, part + "-labels-idx1-ubyte");
  const Tensor images = read_idx(image_file);
  const Tensor labels = read_idx(label_file);
  check<FileError>(images.rank() == 3 && images.dtype() == uint8,
                   "read_mnist: '{}' must hold images [N, H, W] uint8, got {}", image_file.string(),
                   images.describe());
  check<FileError>(labels.rank() == 1 && labels.size(0) == images.size(0) && labels.dtype() == uint8,
                   "read_mnist: '{}' must hold {} labels uint8, got {}", label_file.string(), images.size(0),
                   labels.describe());
  Shape shape = images.shape();
  shape.insert(shape.begin() + 1, 1);
  return TensorDataset(images.as_strided(shape, dense_strides(shape), 0), ops::cast(labels, int64));
}

}  // namespace pleat::data
