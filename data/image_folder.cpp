#include "pleat/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/image.h"
#include "pleat/data/picture_reader.h"
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
  fail<FileError>("pictures: '{}' cannot be read: {}", folder.string(), error.message());
}

void check_size(const char* what, const PictureSize& size) {
  constexpr int64_t most = 1 << 20;
  check<ValueError>(
      !size.given() ||
          (size.height() >= 1 && size.width() >= 1 && size.height() <= most && size.width() <= most),
      "ImageFolderOptions: {} must be a side, or height and width, within [1, {}], got {} and {}", what, most,
      size.height(), size.width());
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

void add_pictures(const fs::path& folder, const std::vector<std::string>& extensions,
                  std::set<fs::path>& seen, std::vector<fs::path>& files,
                  std::vector<ImageFolder::Skipped>& skipped) {
  std::error_code error;
  // Links are followed, and may lead back here.
  if (!seen.insert(fs::canonical(folder, error)).second) {
    skipped.push_back({folder, "it leads to a folder that is read already"});
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
    if (is_hidden(path)) {
      skipped.push_back({path, "it is hidden"});
    } else if (entry.is_directory(vanished)) {
      add_pictures(path, extensions, seen, files, skipped);
    } else if (std::ranges::find(extensions, extension) == extensions.end()) {
      skipped.push_back({path, fmt::format("its name ends in none of {}", fmt::join(extensions, " "))});
    } else if (!entry.is_regular_file(vanished)) {
      skipped.push_back({path, "it is not a regular file"});
    } else {
      files.push_back(path);
    }
  }
}

Tensor read_channels(const fs::path& file, const ImageFolderOptions& options) {
  return with_channels(read_image(file, {.memory_limit = options.memory_limit}), options.channels);
}

PicturePlace picture_place(const fs::path& file, int64_t old_height, int64_t old_width,
                           const ImageFolderOptions& options) {
  const PictureSize &resize = options.resize, &crop = options.crop;
  int64_t height = old_height, width = old_width;
  if (resize.given()) {
    const int64_t short_side = std::min(old_height, old_width);
    height = resize.is_side() ? resize.height() * old_height / short_side : resize.height();
    width = resize.is_side() ? resize.height() * old_width / short_side : resize.width();
    // A picture of one line of pixels must not become a huge one.
    constexpr int64_t most = int64_t{1} << 28;
    check<FileError>(
        height <= most / width,
        "read_picture: '{}' of {} x {} pixels would become {} x {}; give resize height and width",
        file.string(), old_width, old_height, width, height);
  }
  if (!crop.given()) return {old_height, old_width, height, width, 0, 0, height, width};
  const int64_t rows = height - crop.height(), columns = width - crop.width();
  check<FileError>(
      rows >= 0 && columns >= 0,
      "read_picture: '{}' has {} x {} pixels, too few to crop {} x {}; resize it first: .resize = {}",
      file.string(), width, height, crop.width(), crop.height(), std::max(crop.height(), crop.width()));
  return {old_height, old_width, height, width, middle(rows), middle(columns), crop.height(), crop.width()};
}

Tensor placed(const Tensor& image, const PicturePlace& to) {
  const Tensor resized = resize_bilinear(image, to.height, to.width);
  if (to.rows == to.height && to.columns == to.width) return resized;
  return crop_picture(resized, to.top, to.left, to.rows, to.columns);
}

}  // namespace

Tensor read_picture(const fs::path& file, const ImageFolderOptions& options) {
  check_options(options);
  const Tensor image = read_channels(file, options);
  return placed(image, picture_place(file, image.size(1), image.size(2), options));
}

void check_options(const ImageFolderOptions& options) {
  check<ValueError>(options.channels == 1 || options.channels == 3,
                    "ImageFolderOptions: channels must be 1 or 3, got {}", options.channels);
  check_size("resize", options.resize);
  check_size("crop", options.crop);
  const std::set<std::string> names(options.class_names.begin(), options.class_names.end());
  check<ValueError>(names.size() == options.class_names.size(),
                    "ImageFolderOptions: class_names has a name twice: {}",
                    fmt::join(options.class_names, ", "));
}

std::vector<std::string> as_extensions(std::vector<std::string> extensions) {
  check<ValueError>(!extensions.empty(), "ImageFolderOptions: extensions must name one at least");
  for (std::string& extension : extensions) {
    extension = lower(extension);
    if (!extension.starts_with('.')) extension = '.' + extension;
  }
  return extensions;
}

std::vector<fs::path> pictures_in(const fs::path& folder, const fs::path& root,
                                  const std::vector<std::string>& extensions,
                                  std::vector<ImageFolder::Skipped>& skipped) {
  std::error_code error;
  std::vector<fs::path> files;
  std::set<fs::path> seen;
  if (!root.empty()) seen.insert(fs::canonical(root, error));
  add_pictures(folder, extensions, seen, files, skipped);
  std::sort(files.begin(), files.end());
  return files;
}

PicturePlace read_into(const Tensor& inputs, int64_t i, const fs::path& file, const fs::path& first,
                       const ImageFolderOptions& options) {
  const Tensor whole = read_channels(file, options);
  const PicturePlace place = picture_place(file, whole.size(1), whole.size(2), options);
  const int64_t height = inputs.size(2), width = inputs.size(3);
  check<FileError>(place.rows == height && place.columns == width,
                   "pictures: '{}' has {} x {} pixels, but '{}' has {} x {}: bring all pictures to one "
                   "size by .resize = {{{}, {}}}, or by .crop",
                   file.string(), place.columns, place.rows, first.string(), width, height, height, width);
  const Tensor image = placed(whole, place);
  std::copy_n(image.data<uint8_t>(), image.numel(), inputs.data<uint8_t>() + i * image.numel());
  return place;
}

Tensor empty_inputs(const char* op, std::span<const int64_t> indices, std::size_t samples,
                    const Shape& image) {
  for (const int64_t index : indices)
    check<IndexError>(index >= 0 && index < static_cast<int64_t>(samples), "{}: index {} is outside [0, {})",
                      op, index, samples);
  return empty({static_cast<int64_t>(indices.size()), image[0], image[1], image[2]},
               {.dtype = uint8, .device = Device()});
}

ImageFolder::ImageFolder(const fs::path& root, ImageFolderOptions options) : options_(std::move(options)) {
  check_options(options_);
  options_.extensions = as_extensions(options_.extensions);
  list(root);
  image_ = read_picture(samples_.front().path, options_).shape();
}

std::shared_ptr<const Dataset> ImageFolder::copy() const { return std::make_shared<ImageFolder>(*this); }

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
    std::vector<fs::path> files = pictures_in(folder, root, options_.extensions, skipped_);
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
  Batch batch{empty_inputs("ImageFolder", indices, samples_.size(), image_),
              empty({std::ssize(indices)}, {.dtype = int64, .device = Device()})};
  auto* label = batch.targets.data<int64_t>();
  for (int64_t i = 0; i < batch.size(); ++i) {
    const Sample& from = sample(indices[static_cast<std::size_t>(i)]);
    read_into(batch.inputs, i, from.path, samples_.front().path, options_);
    label[i] = from.label;
  }
  return batch;
}

}  // namespace pleat::data
