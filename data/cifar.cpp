#include "pleat/data/cifar.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "pleat/core/checked_math.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"

namespace pleat::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t image_bytes = 3 * 32 * 32;

/// What differs between the two sets.
struct Layout {
  int64_t label_bytes;
  int64_t label_at;  ///< of the label bytes, which one counts
  int64_t classes;
  const char* names_file;

  int64_t record() const { return label_bytes + image_bytes; }
};

constexpr Layout cifar10{1, 0, 10, "batches.meta.txt"};
constexpr Layout cifar100{2, 1, 100, "fine_label_names.txt"};

int64_t records_in(const fs::path& file, const Layout& layout) {
  std::error_code error;
  const auto size = static_cast<int64_t>(fs::file_size(file, error));
  check<FileError>(!error, "{}: cannot be read: {}", file.string(), error.message());
  check<FileError>(
      size % layout.record() == 0 && size > 0,
      "{}: {} bytes are no whole number of records of {} bytes; the last one breaks off at offset {}",
      file.string(), size, layout.record(), size / layout.record() * layout.record());
  return size / layout.record();
}

void read_records(const fs::path& file, const Layout& layout, int64_t records, uint8_t* images,
                  int64_t* labels) {
  std::ifstream in(file, std::ios::binary);
  check<FileError>(in.good(), "{}: cannot be opened", file.string());
  std::vector<char> record(static_cast<std::size_t>(layout.record()));
  for (int64_t i = 0; i < records; ++i) {
    const int64_t offset = i * layout.record();
    check<FileError>(bool(in.read(record.data(), layout.record())), "{}: reading failed at offset {}",
                     file.string(), offset);
    const auto label = static_cast<uint8_t>(record[static_cast<std::size_t>(layout.label_at)]);
    check<FileError>(label < layout.classes, "{}: label {} at offset {} is outside 0-{}", file.string(),
                     label, offset + layout.label_at, layout.classes - 1);
    labels[i] = label;
    std::memcpy(images + i * image_bytes, record.data() + layout.label_bytes, image_bytes);
  }
}

std::vector<std::string> read_names(const fs::path& file, const Layout& layout) {
  std::vector<std::string> names;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (static_cast<int64_t>(names.size()) != layout.classes) names.clear();
  return names;
}

CifarDataset read(const fs::path& folder, const std::vector<fs::path>& files, const Layout& layout) {
  std::vector<int64_t> records;
  int64_t total = 0;
  for (const fs::path& file : files) {
    records.push_back(records_in(file, layout));
    total = checked_add(total, records.back(), "cifar");
  }
  const Tensor images = empty({total, 3, 32, 32}, {.dtype = uint8});
  const Tensor labels = empty({total}, {.dtype = int64});
  int64_t done = 0;
  for (std::size_t i = 0; i < files.size(); done += records[i++])
    read_records(files[i], layout, records[i], images.data<uint8_t>() + done * image_bytes,
                 labels.data<int64_t>() + done);
  return {images, labels, read_names(folder / layout.names_file, layout)};
}

std::vector<fs::path> training_batches(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with("data_batch_") && file.ends_with(".bin")) files.push_back(entry.path());
  }
  check<FileError>(!error, "{}: cannot be read: {}", folder.string(), error.message());
  check<FileError>(!files.empty(), "{}: there is no data_batch_1.bin; this is not CIFAR-10's binary version",
                   folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

CifarDataset read_cifar10(const fs::path& folder, Flag train) {
  return read(folder, train ? training_batches(folder) : std::vector{folder / "test_batch.bin"}, cifar10);
}

CifarDataset read_cifar100(const fs::path& folder, Flag train) {
  return read(folder, {folder / (train ? "train.bin" : "test.bin")}, cifar100);
}

}  // namespace pleat::data
