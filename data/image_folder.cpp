#include "pleat/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/image.h"
#include "pleat/data/resize.h"

namespace pleat::data {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

[[noreturn]] void cannot_read(const fs::path& folder, const std::error_code& error) {
  fail<FileError>("ImageFolder: '{}' cannot be read: {}", folder.string(), error.message());
}

void check_size(const char* what, const PictureSize& size) {
  constexpr int64_t most = 1 << 20;
  check<ValueError>(!size.given() || (size.height() >= 1 && size.width() >= 1 && size.height() <= most &&
                                      size.width() <= most),
                    "ImageFolder: {} must be a side, or height and width, within [1, {}], got {} and {}",
                    what, most, size.height(), size.width());
}

void check_options(const ImageFolderOptions& options) {
  check<ValueError>(options.channels == 1 || options.channels == 3,
                    "ImageFolder: channels must be 1 or 3, got {}", options.channels);
  check_size("resize", options.resize);
  check_size("crop", options.crop);
  const std::set<std::string> names(options.class_names.begin(), options.class_names.end());
  check<ValueError>(names.size() == options.class_names.size(),
                    "ImageFolder: class_names has a name twice: {}", fmt::join(options.class_names, ", "));
}

// Planes of `from` channels as planes of `to` channels.
Tensor with_channels(const Tensor& image, int64_t to) {
  const int64_t from = image.size(0), plane = image.size(1) * image.size(2);
  if (from == to) return image;
  const Tensor result = empty({to, image.size(1), image.size(2)}, {.dtype = uint8, .device = Device()});
  const auto* in = image.data<uint8_t>();
  auto* out = result.data<uint8_t>();
  if (from == 1) {
    for (int64_t c = 0; c < to; ++c) std::copy_n(in, plane, out + c * plane);
  } else {
    for (int64_t i = 0; i < plane; ++i) {
      out[i] =
          static_cast<uint8_t>((299 * in[i] + 587 * in[plane + i] + 114 * in[2 * plane + i] + 500) / 1000);
    }
  }
  return result;
}

// Half of `rest`, a half pixel going to the even neighbour, as Python rounds.
int64_t middle(int64_t rest) { return rest / 2 + (rest % 4 == 3 ? 1 : 0); }

}  // namespace

Tensor read_picture(const fs::path& file, const ImageFolderOptions& options) {
  check_options(options);
  Tensor image = with_channels(read_image(file, {.memory_limit = options.memory_limit}), options.channels);
  const PictureSize& resize = options.resize;
  if (resize.given()) {
    int64_t height = resize.height(), width = resize.width();
    if (resize.is_side()) {
      const int64_t short_side = std::min(image.size(1), image.size(2));
      height = resize.height() * image.size(1) / short_side;
      width = resize.height() * image.size(2) / short_side;
    }
    // A picture of one line of pixels must not become a huge one.
    constexpr int64_t most = int64_t{1} << 28;
    check<FileError>(
        height <= most / width,
        "read_picture: '{}' of {} x {} pixels would become {} x {}; give resize height and width",
        file.string(), image.size(2), image.size(1), width, height);
    image = resize_bilinear(image, height, width);
  }
  const PictureSize& crop = options.crop;
  if (crop.given()) {
    const int64_t rows = image.size(1) - crop.height(), columns = image.size(2) - crop.width();
    check<FileError>(
        rows >= 0 && columns >= 0,
        "read_picture: '{}' has {} x {} pixels, too few to crop {} x {}; resize it first: .resize = {}",
        file.string(), image.size(2), image.size(1), crop.width(), crop.height(),
        std::max(crop.height(), crop.width()));
    image = crop_picture(image, middle(rows), middle(columns), crop.height(), crop.width());
  }
  return image;
}

ImageFolder::ImageFolder(const fs::path& root, ImageFolderOptions options) : options_(std::move(options)) {
  check_options(options_);
  check<ValueError>(!options_.extensions.empty(), "ImageFolder: extensions must name one at least");
  for (std::string& extension : options_.extensions) {
    extension = lower(extension);
    if (!extension.starts_with('.')) extension = '.' + extension;
  }
  list(root);
  const Tensor first = read_picture(samples_.front().path, options_);
  height_ = first.size(1);
  width_ = first.size(2);
}

void ImageFolder::list(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (auto entry = fs::directory_iterator(root, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code vanished;
    const bool is_folder = entry->is_directory(vanished);
    if (is_folder && !is_hidden(entry->path())) {
      folders.push_back(entry->path());
    } else {
      skipped_.push_back({entry->path(), is_folder ? "it is hidden" : "it lies in no class"});
    }
  }
  if (error) cannot_read(root, error);
  std::sort(folders.begin(), folders.end());
  class_names_ = options_.class_names;
  if (class_names_.empty())
    for (const fs::path& folder : folders) class_names_.push_back(folder.filename().string());
  for (const fs::path& folder : folders) {
    const auto name = std::find(class_names_.begin(), class_names_.end(), folder.filename().string());
    check<FileError>(name != class_names_.end(), "ImageFolder: '{}' is none of the classes {}",
                     folder.string(), fmt::join(class_names_, ", "));
    const auto label = static_cast<int64_t>(name - class_names_.begin());
    std::vector<fs::path> files;
    std::set<fs::path> seen{fs::canonical(root, error)};
    add_pictures(folder, seen, files);
    std::sort(files.begin(), files.end());
    check<FileError>(!files.empty(),
                     "ImageFolder: '{}' holds no picture ({}); remove the folder, or name other extensions",
                     folder.string(), fmt::join(options_.extensions, ", "));
    for (fs::path& file : files) samples_.push_back({std::move(file), label});
  }
  check<FileError>(!samples_.empty(), "ImageFolder: '{}' must hold a folder for each class, but holds none",
                   root.string());
  std::stable_sort(samples_.begin(), samples_.end(),
                   [](const Sample& a, const Sample& b) { return a.label < b.label; });
  check_not_parts(root);
  std::sort(skipped_.begin(), skipped_.end(),
            [](const Skipped& a, const Skipped& b) { return a.path < b.path; });
}

void ImageFolder::check_not_parts(const fs::path& root) const {
  const std::set<std::string> parts{"train", "training", "test", "testing", "val", "valid", "validation"};
  const bool named_so = class_names_.size() > 1 &&
                        std::all_of(class_names_.begin(), class_names_.end(),
                                    [&](const std::string& name) { return parts.contains(lower(name)); });
  const bool deeper = std::none_of(samples_.begin(), samples_.end(), [&](const Sample& sample) {
    return sample.path.parent_path() == root / class_names_[static_cast<std::size_t>(sample.label)];
  });
  check<FileError>(!named_so || !deeper,
                   "ImageFolder: '{}' holds {}, whose folders are the classes; name one of them: '{}'",
                   root.string(), fmt::join(class_names_, " and "), (root / class_names_.back()).string());
}

void ImageFolder::add_pictures(const fs::path& folder, std::set<fs::path>& seen,
                               std::vector<fs::path>& files) {
  std::error_code error;
  // Links are followed, and may lead back here.
  if (!seen.insert(fs::canonical(folder, error)).second) {
    skipped_.push_back({folder, "it leads to a folder that is read already"});
    return;
  }
  std::set<fs::directory_entry> entries;  // in the order of their names
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    entries.insert(*entry);
  if (error) cannot_read(folder, error);
  for (const fs::directory_entry& entry : entries) {
    std::error_code vanished;
    const fs::path& path = entry.path();
    const std::string extension = lower(path.extension().string());
    const bool named = std::find(options_.extensions.begin(), options_.extensions.end(), extension) !=
                       options_.extensions.end();
    if (is_hidden(path)) {
      skipped_.push_back({path, "it is hidden"});
    } else if (entry.is_directory(vanished)) {
      add_pictures(path, seen, files);
    } else if (!named) {
      skipped_.push_back(
          {path, fmt::format("its name ends in none of {}", fmt::join(options_.extensions, " "))});
    } else if (!entry.is_regular_file(vanished)) {
      skipped_.push_back({path, "it is not a regular file"});
    } else {
      files.push_back(path);
    }
  }
}

const ImageFolder::Sample& ImageFolder::sample(int64_t index) const {
  check<IndexError>(index >= 0 && index < size(), "ImageFolder: index {} is outside [0, {})", index, size());
  return samples_[static_cast<std::size_t>(index)];
}

Tensor ImageFolder::targets() const {
  std::vector<int64_t> labels;
  labels.reserve(samples_.size());
  for (const Sample& sample : samples_) labels.push_back(sample.label);
  return from_vector(labels, {size()}, Device{});
}

Batch ImageFolder::get(std::span<const int64_t> indices) const {
  for (const int64_t index : indices) sample(index);
  const auto count = static_cast<int64_t>(indices.size());
  Batch batch{empty({count, options_.channels, height_, width_}, {.dtype = uint8, .device = Device()}),
              empty({count}, {.dtype = int64, .device = Device()})};
  auto* pixels = batch.inputs.data<uint8_t>();
  auto* label = batch.targets.data<int64_t>();
  for (const int64_t index : indices) {
    const Sample& from = sample(index);
    const Tensor image = read_picture(from.path, options_);
    check<FileError>(image.size(1) == height_ && image.size(2) == width_,
                     "ImageFolder: '{}' has {} x {} pixels, but '{}' has {} x {}: bring all pictures to one "
                     "size by .resize = {{{}, {}}}, or by .crop",
                     from.path.string(), image.size(2), image.size(1), samples_.front().path.string(), width_,
                     height_, height_, width_);
    std::copy_n(image.data<uint8_t>(), image.numel(), pixels);
    pixels += image.numel();
    *label++ = from.label;
  }
  return batch;
}

}  // namespace pleat::data
