#include <algorithm>
#include <array>
#include <memory>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/datasets.h"
#include "pleat/io/byte_source.h"
#include "pleat/io/elements.h"
#include "pleat/io/looks_like.h"

namespace pleat::data {
namespace {

namespace fs = std::filesystem;

io::StoredType type_of_code(const io::ByteSource& source, std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return {'u', 1, false, uint8};
    case 0x09:
      return {'i', 1, false, int32};
    case 0x0B:
      return {'i', 2, true, int32};
    case 0x0C:
      return {'i', 4, true, int32};
    case 0x0D:
      return {'f', 4, true, float32};
    case 0x0E:
      return {'f', 8, true, float64};
    default:
      source.fail_at(2,
                     fmt::format("the type code is 0x{:02X}; 0x08, 0x09, 0x0B, 0x0C, 0x0D and 0x0E are known",
                                 std::to_integer<int>(code)));
  }
}

Tensor read_array(io::ByteSource& source) {
  std::array<std::byte, 4> head{};
  source.read_exactly(head, "the magic number");
  if (head[0] != std::byte{0} || head[1] != std::byte{0})
    source.fail_at(0, "an idx file begins with two zero bytes; this is none" + io::looks_like(source, head));
  const io::StoredType type = type_of_code(source, head[2]);
  Shape shape;
  for (int d = 0; d < std::to_integer<int>(head[3]); ++d) {
    std::array<std::byte, 4> size{};
    source.read_exactly(size, "a size");
    shape.push_back(static_cast<int64_t>(io::big_endian(size)));
  }
  // A size of 0 must not hide others that no file could hold, nor memory: an element has at most 8 bytes.
  int64_t most = 8;
  bool fits = true;
  for (const int64_t size : shape)
    fits = fits && !__builtin_mul_overflow(most, std::max<int64_t>(size, 1), &most);
  const int64_t elements = fits ? count(shape) : 0;
  if (!fits || elements * static_cast<int64_t>(type.size) > source.remaining_at_most())
    source.fail(fmt::format("sizes {} promise more than the file holds", shape));
  source.check_memory(elements * size_of(type.dtype), fmt::format("an array of sizes {}", shape));
  const Tensor x = empty(shape, {.dtype = type.dtype, .device = Device()});
  io::read_elements(source, type, x.raw(), static_cast<std::size_t>(elements));
  source.expect_end();
  return x;
}

/// The file of `name`, with a point instead of the dash before idx, or with .gz: all are in use. There is a
/// distribution with folders of the same names.
fs::path find(const fs::path& folder, const std::string& name) {
  std::string other = name;
  other[name.find("-idx")] = '.';
  for (const std::string& stem : {name, other})
    for (const fs::path& path : {folder / stem, folder / (stem + ".gz")}) {
      std::error_code error;
      if (fs::exists(path, error) && !fs::is_directory(path, error)) return path;
    }
  fail<FileError>(
      "read_mnist: '{}' holds neither {} nor {}, nor one of them with .gz; name the folder that does",
      folder.string(), name, other);
}

}  // namespace

Tensor read_idx(const fs::path& path, ReadOptions options) {
  const InputFile file("read_idx", path, options);
  return reading(file.name(), [&] {
    std::array<std::byte, 2> magic{};
    if (file.size() >= 2) file.read_at(0, magic, "the magic number");
    const bool gzipped = magic[0] == std::byte{0x1F} && magic[1] == std::byte{0x8B};
    auto plain = std::make_unique<io::FileSource>(file);
    if (!gzipped) return read_array(*plain);
    io::InflateSource source(std::move(plain), io::InflateSource::Format::gzip);
    return read_array(source);
  });
}

TensorDataset read_mnist(const fs::path& folder, Flag train, ReadOptions options) {
  const std::string part = train ? "train" : "t10k";
  const fs::path image_file = find(folder, part + "-images-idx3-ubyte");
  const fs::path label_file = find(folder, part + "-labels-idx1-ubyte");
  const Tensor images = read_idx(image_file, options);
  const Tensor labels = read_idx(label_file, options);
  check<FileError>(images.rank() == 3 && images.dtype() == uint8,
                   "read_mnist: '{}' must hold images [N, H, W] uint8, got {}", image_file.string(), images);
  check<FileError>(labels.rank() == 1 && labels.size(0) == images.size(0) && labels.dtype() == uint8,
                   "read_mnist: '{}' must hold {} labels uint8, got {}", label_file.string(), images.size(0),
                   labels);
  Shape shape = images.shape();
  shape.insert(shape.begin() + 1, 1);
  return TensorDataset(images.as_strided(shape, dense_strides(shape), 0), ops::cast(labels, int64));
}

}  // namespace pleat::data
