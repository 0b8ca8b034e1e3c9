// idx files as they are, gzipped by somebody else, and gzipped here, by which every input gets past the
// checksum.
#include <vector>

#include <zlib.h>

#include "pleat/data/datasets.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

namespace {

std::vector<uint8_t> gzipped(const uint8_t* data, std::size_t size) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::vector<uint8_t> bytes(deflateBound(&stream, size));
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(bytes.size());
  deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Tensor plain, unpacked;
  const fuzz::InputAsFile file(data, size);
  const bool accepted = fuzz::accepts([&] { plain = data::read_idx(file.path(), fuzz::limited); });
  const bool is_gzip = size >= 2 && data[0] == 0x1F && data[1] == 0x8B;
  if (is_gzip) return 0;
  const std::vector<uint8_t> packed = gzipped(data, size);
  const fuzz::InputAsFile packed_file(packed.data(), packed.size());
  const bool again = fuzz::accepts([&] { unpacked = data::read_idx(packed_file.path(), fuzz::limited); });
  fuzz::require(accepted == again, "idx: taken plain or gzipped only");
  fuzz::require(!accepted || fuzz::same_bits(plain, unpacked), "idx: gzipped it is another array");
  return 0;
}
