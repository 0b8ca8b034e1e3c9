#include "pleat/train/tensorboard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/files/make_folder.h"
#include "pleat/core/files/protobuf.h"
#include "pleat/core/system/process.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/data/image.h"

namespace pleat::train {
namespace fs = std::filesystem;

using protobuf::bytes_field, protobuf::double_field, protobuf::doubles_field, protobuf::float_field,
    protobuf::integer_field, protobuf::little_endian;

namespace {

// --- records: https://www.tensorflow.org/tutorials/load_data/tfrecord

/// CRC-32C (Castagnoli).
uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return std::rotr(~crc, 15) + 0xA282EAD8u;
}

std::string record(const std::string& data) {
  const std::string length = little_endian(uint64_t{data.size()});
  return length + little_endian(masked_crc(length)) + data + little_endian(masked_crc(data));
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

fs::path new_file(const fs::path& folder) {
  make_folder("TensorBoard", folder);
  // TensorBoard reads the files of a folder in the order of their names.
  static std::atomic<int> counter = 0;
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<int64_t>(now()),
                              system::host_name(), system::process_id(), counter++);
}

}  // namespace

TensorBoard::TensorBoard(const fs::path& folder, TensorBoardOptions options)
    : path_(new_file(folder)), file_("TensorBoard", path_) {
  write_event(0, bytes_field(3, "brain.Event:2"));
  file_.commit();
  constexpr int64_t start = 1;
  if (options.first_step > 0) write_event(options.first_step, bytes_field(7, integer_field(1, start)));
}

void TensorBoard::write_event(int64_t step, const std::string& fields) {
  file_.write(record(double_field(1, now()) + integer_field(2, step) + fields));
}

void TensorBoard::write_value(const std::string& tag, int64_t step, const std::string& fields) {
  write_event(step, bytes_field(5, bytes_field(1, bytes_field(1, tag) + fields)));
}

void TensorBoard::scalar(const std::string& tag, Real number, int64_t step) {
  const double value = number;
  const auto single = static_cast<float>(value);
  if (single == value || (std::trunc(value) != value && single != 0))
    return write_value(tag, step, float_field(2, single));
  // An integer that float32 would change, or what is outside of its range: a tensor of one double.
  constexpr int64_t type_double = 2;
  write_value(tag, step,
              bytes_field(8, integer_field(1, type_double) + bytes_field(2, "") + doubles_field(6, {value})) +
                  bytes_field(9, bytes_field(1, bytes_field(1, "scalars"))));
}

void TensorBoard::image(const std::string& tag, const Tensor& image, int64_t step) {
  const std::string png = data::encode_png(image);
  write_value(tag, step,
              bytes_field(4, integer_field(1, image.size(1)) + integer_field(2, image.size(2)) +
                                 integer_field(3, image.size(0)) + bytes_field(4, png)));
}

void TensorBoard::histogram(const std::string& tag, const Tensor& values, int64_t step) {
  std::vector<double> finite =
      ops::cast(ops::to_device(values.detach(), Device{}), float64).to_vector<double>();
  std::erase_if(finite, [](double value) { return !std::isfinite(value); });
  const auto [low, high] =
      finite.empty() ? std::ranges::minmax_result<double>{} : std::ranges::minmax(finite);
  constexpr std::size_t bins = 30;
  // Bin i holds what lies above limit i - 1, up to limit i.
  std::vector<double> limits, counts(bins, 0);
  for (std::size_t i = 1; i <= bins; ++i)
    limits.push_back(std::lerp(low, high, static_cast<double>(i) / static_cast<double>(bins)));
  double sum = 0, squares = 0;
  for (const double value : finite) {
    sum += value, squares += value * value;
    counts[static_cast<std::size_t>(std::lower_bound(limits.begin(), limits.end() - 1, value) -
                                    limits.begin())] += 1;
  }
  write_value(
      tag, step,
      bytes_field(5, double_field(1, low) + double_field(2, high) +
                         double_field(3, static_cast<double>(finite.size())) + double_field(4, sum) +
                         double_field(5, squares) + doubles_field(6, limits) + doubles_field(7, counts)));
}

}  // namespace pleat::train
