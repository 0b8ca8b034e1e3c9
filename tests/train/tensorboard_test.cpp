#include "pleat/train/tensorboard.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

namespace {

uint32_t masked_crc(std::span<const unsigned char> bytes) {
  uint32_t crc = ~0u;
  for (const unsigned char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const uint32_t low = (crc ^ static_cast<uint32_t>(byte >> bit)) & 1;
      crc = crc >> 1 ^ (low ? 0x82F63B78u : 0);
    }
  return std::rotr(~crc, 15) + 0xA282EAD8u;
}

template <class Number>
Number number_at(std::span<const unsigned char> bytes, std::size_t at) {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// The records of a file, with checked lengths and checksums.
std::vector<std::string> records_of(const std::filesystem::path& file) {
  const std::vector<unsigned char> all = read_bytes(file);
  const std::span<const unsigned char> bytes(all);
  std::vector<std::string> records;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = number_at<uint64_t>(bytes, at);
    REQUIRE(number_at<uint32_t>(bytes, at + 8) == masked_crc(bytes.subspan(at, 8)));
    const auto data = bytes.subspan(at + 12, length);
    REQUIRE(number_at<uint32_t>(bytes, at + 12 + length) == masked_crc(data));
    records.emplace_back(data.begin(), data.end());
    at += 16 + length;
  }
  return records;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("TensorBoard's events are records with checksums", "[train][cpu]") {
  // The check value of CRC-32C, masked.
  CHECK(masked_crc(std::span(reinterpret_cast<const unsigned char*>("123456789"), 9)) ==
        std::rotr(0xE3069283u, 15) + 0xA282EAD8u);
  const TemporaryDirectory folder;
  train::TensorBoard board(folder / "run");
  board.scalar("loss", 0.5, 3);
  board.image("picture", randint(0, 256, {3, 4, 5}).to(uint8), 3);
  board.histogram("weights", randn({100}), 3);
  board.histogram("none", full({3}, std::numeric_limits<double>::quiet_NaN(), float32), 3);
  board.scalar("nothing", std::numeric_limits<double>::quiet_NaN(), 4);
  board.scalar("samples", 16777217, 4);
  const auto records = records_of(board.file());
  REQUIRE(records.size() == 7);
  const std::string nan("\x15\0\0\xc0\x7f", 5);
  CHECK(has(records[5], nan));
  const double exact = 16777217;  // float32 has it not
  CHECK(has(records[6], std::string(reinterpret_cast<const char*>(&exact), sizeof exact)));
  CHECK(has(records[6], "scalars"));
  CHECK(has(records[0], "brain.Event:2"));
  CHECK(has(records[1], "loss"));
  CHECK(has(records[2], "\x89PNG"));
  const train::TensorBoard later(folder / "run", {.first_step = 4});
  CHECK(records_of(later.file()).size() == 2);
  CHECK(later.file() > board.file());
}

// PLEAT_TEST_PYTHON names a Python with tensorboard.
TEST_CASE("TensorBoard's own reader reads what was written", "[train][cpu]") {
  const char* python = std::getenv("PLEAT_TEST_PYTHON");
  if (python == nullptr ||
      std::system((std::string(python) + " -c 'import tensorboard' 2>/dev/null").c_str()) != 0)
    return skip("needs a Python with tensorboard, named by PLEAT_TEST_PYTHON");
  const TemporaryDirectory folder;
  {
    train::TensorBoard board(folder / "run");
    for (int step = 1; step <= 4; ++step) board.scalar("loss", 1.0 / step, step);
    board.image("picture", zeros({3, 4, 5}, uint8), 2);
    board.histogram("weights", tensor({0.0F, 1.0F, 1.0F, 4.0F}), 2);
  }
  train::TensorBoard later(folder / "run", {.first_step = 3});
  later.scalar("loss", 9, 3);
  for (const double samples : {1e3, 16777217.0, 1e39}) later.scalar("samples", samples, 3);
  write_bytes(folder / "read.py", std::string_view(R"(
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
run = EventAccumulator(sys.argv[1]); run.Reload()
assert [(e.step, round(e.value, 4)) for e in run.Scalars("loss")] == [(1, 1.0), (2, 0.5), (3, 9.0)], run.Scalars("loss")
# What TensorBoard's own pages read.
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator as Pages
from tensorboard.util.tensor_util import make_ndarray
pages = Pages(sys.argv[1]); pages.Reload()
samples = [make_ndarray(e.tensor_proto).item() for e in pages.Tensors("samples")]
assert samples == [1e3, 16777217, 1e39], samples
image = run.Images("picture")[0]
assert (image.step, image.width, image.height) == (2, 5, 4) and image.encoded_image_string[:4] == b"\x89PNG"
histogram = run.Histograms("weights")[0].histogram_value
assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (0, 4, 4, 6)
assert sum(histogram.bucket) == 4 and histogram.bucket_limit[-1] == 4
)"));
  const std::string command = std::string(python) + " '" + (folder / "read.py").string() + "' '" +
                              (folder / "run").string() + "' 2>'" + (folder / "errors").string() + '\'';
  CHECK(std::system(command.c_str()) == 0);
}
