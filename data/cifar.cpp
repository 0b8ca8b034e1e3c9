#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/datasets.h"
#include "pleat/io/looks_like.h"

namespace pleat::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t image_bytes = 3 * 32 * 32;
constexpr std::string_view batch_prefix = "data_batch_", batch_suffix = ".bin";

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

int64_t records_in(const InputFile& file, const Layout& layout) {
  const int64_t size = file.size();
  check<FileError>(
      size % layout.record() == 0 && size > 0,
      "{}: {} bytes are no whole number of records of {} bytes; the last one breaks off at offset {}{}",
      file.name(), size, layout.record(), size / layout.record() * layout.record(),
      size < layout.record() ? io::looks_like(file) : "");
  return size / layout.record();
}

void read_records(const InputFile& file, const Layout& layout, uint8_t* images, int64_t* labels) {
  std::vector<std::byte> record(static_cast<std::size_t>(layout.record()));
  for (int64_t offset = 0; offset < file.size(); offset += layout.record()) {
    file.read_at(offset, record, "a record");
    const auto label = std::to_integer<int64_t>(record[static_cast<std::size_t>(layout.label_at)]);
    check<FileError>(label < layout.classes, "{}: label {} at offset {} is outside 0-{}", file.name(), label,
                     offset + layout.label_at, layout.classes - 1);
    *labels++ = label;
    std::memcpy(images, record.data() + layout.label_bytes, image_bytes);
    images += image_bytes;
  }
}

// Names are left out when they do not match the classes.
std::vector<std::string> read_names(const fs::path& path, const Layout& layout) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  const InputFile file("read_cifar", path);
  constexpr int64_t most_bytes = 1 << 16;
  if (file.size() > most_bytes) return {};
  std::vector<std::string> names;
  std::istringstream in(file.read_text(1));
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (static_cast<int64_t>(names.size()) != layout.classes) names.clear();
  return names;
}

CifarDataset read(const fs::path& folder, const std::vector<fs::path>& paths, const Layout& layout,
                  ReadOptions options) {
  std::vector<std::unique_ptr<InputFile>> files;
  MemoryBudget memory;
  int64_t total = 0;
  for (const fs::path& path : paths) {
    files.push_back(std::make_unique<InputFile>("read_cifar", path, options));
    const InputFile& file = *files.back();
    const int64_t records = records_in(file, layout);
    const int64_t bytes = records * (image_bytes + size_of(int64));
    memory.limit = options.memory_limit > 0 ? options.memory_limit : memory.limit + file.memory().limit;
    if (bytes > memory.left())
      file.fail_at(0, above_memory_limit(fmt::format("a set of {} records", records), bytes, memory));
    memory.taken += bytes;
    total += records;
  }
  return reading(files.front()->name(), [&]() -> CifarDataset {
    const Tensor images = empty({total, 3, 32, 32}, {.dtype = uint8, .device = Device()});
    const Tensor labels = empty({total}, {.dtype = int64, .device = Device()});
    int64_t done = 0;
    for (const auto& file : files) {
      read_records(*file, layout, images.data<uint8_t>() + done * image_bytes, labels.data<int64_t>() + done);
      done += file->size() / layout.record();
    }
    return {images, labels, read_names(folder / layout.names_file, layout)};
  });
}

// data_batch_10.bin comes after data_batch_9.bin: a name without a number comes last.
uint64_t number_of(const std::string& name) {
  const std::string digits =
      name.substr(batch_prefix.size(), name.size() - batch_prefix.size() - batch_suffix.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  return whole ? number : std::numeric_limits<uint64_t>::max();
}

std::vector<fs::path> training_batches(const fs::path& folder) {
  std::vector<std::pair<uint64_t, fs::path>> files;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(batch_prefix) && name.ends_with(batch_suffix) &&
        name.size() > batch_prefix.size() + batch_suffix.size())
      files.emplace_back(number_of(name), entry->path());
  }
  check<FileError>(!error, "read_cifar10: '{}' cannot be read: {}", folder.string(), error.message());
  check<FileError>(!files.empty(),
                   "read_cifar10: '{}' holds no data_batch_1.bin; this is not CIFAR-10's binary version "
                   "(cifar-10-binary.tar.gz, unpacked)",
                   folder.string());
  std::sort(files.begin(), files.end());
  std::vector<fs::path> paths;
  for (auto& [number, path] : files) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

CifarDataset read_cifar10(const fs::path& folder, Flag train, ReadOptions options) {
  return read(folder, train ? training_batches(folder) : std::vector{folder / "test_batch.bin"}, cifar10,
              options);
}

CifarDataset read_cifar100(const fs::path& folder, Flag train, ReadOptions options) {
  return read(folder, {folder / (train ? "train.bin" : "test.bin")}, cifar100, options);
}

std::shared_ptr<const Dataset> CifarDataset::copy() const { return std::make_shared<CifarDataset>(*this); }

}  // namespace pleat::data
