#include "pleat/data/image_folder.h"

#include <algorithm>
#include <cctype>

#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/data/image.h"

namespace pleat::data {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return !is_hidden(path) && (extension == ".png" || extension == ".ppm" || extension == ".pgm");
}

[[noreturn]] void cannot_read(const fs::path& folder, const std::error_code& error) {
  fail<FileError>("ImageFolder: '{}' cannot be read: {}", folder.string(), error.message());
}

std::vector<fs::path> folders_in(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (auto entry = fs::directory_iterator(root, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code vanished;
    if (entry->is_directory(vanished) && !is_hidden(entry->path())) folders.push_back(entry->path());
  }
  if (error) cannot_read(root, error);
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<fs::path> pictures_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code vanished;
    if (entry->is_regular_file(vanished) && is_picture(entry->path())) files.push_back(entry->path());
  }
  if (error) cannot_read(folder, error);
  std::sort(files.begin(), files.end());
  return files;
}

// Planes of `from` channels as planes of `to` channels.
void convert(const uint8_t* in, int64_t from, uint8_t* out, int64_t to, int64_t plane) {
  if (from == to) {
    std::copy_n(in, from * plane, out);
  } else if (from == 1) {
    for (int64_t c = 0; c < to; ++c) std::copy_n(in, plane, out + c * plane);
  } else {
    for (int64_t i = 0; i < plane; ++i) {
      out[i] =
          static_cast<uint8_t>((299 * in[i] + 587 * in[plane + i] + 114 * in[2 * plane + i] + 500) / 1000);
    }
  }
}

}  // namespace

ImageFolder::ImageFolder(const fs::path& root, ImageFolderOptions options) : options_(options) {
  check<ValueError>(options.channels == 1 || options.channels == 3,
                    "ImageFolder: channels must be 1 or 3, got {}", options.channels);
  for (const fs::path& folder : folders_in(root)) {
    const auto label = static_cast<int64_t>(class_names_.size());
    std::vector<fs::path> files = pictures_in(folder);
    check<FileError>(!files.empty(), "ImageFolder: '{}' holds no picture (.png, .ppm, .pgm)",
                     folder.string());
    class_names_.push_back(folder.filename().string());
    for (fs::path& file : files) samples_.push_back({std::move(file), label});
  }
  check<FileError>(!samples_.empty(), "ImageFolder: '{}' must hold a folder for each class, but holds none",
                   root.string());
  const Tensor first = read_image(samples_.front().path);
  height_ = first.size(1);
  width_ = first.size(2);
}

const ImageFolder::Sample& ImageFolder::sample(int64_t index) const {
  check<IndexError>(index >= 0 && index < size(), "ImageFolder: index {} is outside [0, {})", index, size());
  return samples_[static_cast<std::size_t>(index)];
}

Batch ImageFolder::get(std::span<const int64_t> indices) const {
  for (const int64_t index : indices) sample(index);
  const auto count = static_cast<int64_t>(indices.size());
  Batch batch{empty({count, options_.channels, height_, width_}, {.dtype = uint8}),
              empty({count}, {.dtype = int64})};
  auto* pixels = batch.inputs.data<uint8_t>();
  auto* label = batch.targets.data<int64_t>();
  const int64_t plane = height_ * width_;
  for (const int64_t index : indices) {
    const Sample& from = sample(index);
    const Tensor image = read_image(from.path);
    check<FileError>(
        image.size(1) == height_ && image.size(2) == width_,
        "ImageFolder: '{}' has {} x {} pixels, but '{}' has {} x {}: bring all pictures to one size",
        from.path.string(), image.size(2), image.size(1), samples_.front().path.string(), width_, height_);
    convert(image.data<uint8_t>(), image.size(0), pixels, options_.channels, plane);
    pixels += options_.channels * plane;
    *label++ = from.label;
  }
  return batch;
}

}  // namespace pleat::data
