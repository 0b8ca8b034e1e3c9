#include "pleat/data/annotated_pictures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/image.h"
#include "pleat/data/picture_reader.h"
#include "pleat/io/csv.h"
#include "pleat/ops/image/image.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::data {
namespace {

namespace fs = std::filesystem;

/// A name in a folder without its extension.
fs::path stem(const fs::path& file, const fs::path& folder) {
  return file.lexically_relative(folder).replace_extension();
}

/// A mask [H, W] uint8 where its picture goes.
Tensor placed_mask(const Tensor& mask, const PicturePlace& to) {
  const auto line = [](int64_t from, int64_t size, int64_t first) {
    const double step = static_cast<double>(from) / static_cast<double>(size);
    return std::pair(static_cast<float>(step),
                     static_cast<float>((static_cast<double>(first) + 0.5) * step - 0.5));
  };
  const auto [down, top] = line(mask.size(0), to.height, to.top);
  const auto [right, left] = line(mask.size(1), to.width, to.left);
  const std::vector<ops::ImageMap> map{{.row = {down, 0, top}, .column = {0, right, left}}};
  return ops::map_images(
      reshape(mask, {1, 1, mask.size(0), mask.size(1)}), map,
      {.height = to.rows, .width = to.columns, .repeat_edge = true, .nearest = true})[0][0];
}

}  // namespace

SegmentationFolder::SegmentationFolder(const fs::path& pictures, const fs::path& masks,
                                       ImageFolderOptions options)
    : options_(std::move(options)) {
  check_options(options_);
  options_.extensions = as_extensions(options_.extensions);
  check<ValueError>(options_.class_names.empty(),
                    "SegmentationFolder: a mask's classes are numbers; leave out class_names");
  std::vector<ImageFolder::Skipped> skipped;
  std::map<fs::path, std::vector<fs::path>> named;
  for (fs::path& file : pictures_in(pictures, {}, options_.extensions, skipped))
    named[stem(file, pictures)].push_back(std::move(file));
  for (fs::path& mask : pictures_in(masks, {}, {".png"}, skipped)) {
    const std::vector<fs::path>& found = named[stem(mask, masks)];
    check<FileError>(found.size() == 1,
                     "SegmentationFolder: for the mask '{}' there must be one picture of its name in '{}', "
                     "but there are {}",
                     mask.string(), pictures.string(), found.size());
    samples_.push_back({found.front(), std::move(mask)});
  }
  check<FileError>(!samples_.empty(), "SegmentationFolder: '{}' holds no mask (.png)", masks.string());
  image_ = read_picture(samples_.front().picture, options_).shape();
}

std::shared_ptr<const Dataset> SegmentationFolder::copy() const {
  return std::make_shared<SegmentationFolder>(*this);
}

Batch SegmentationFolder::get(std::span<const int64_t> indices) const {
  const Tensor inputs = empty_inputs("SegmentationFolder", indices, samples_.size(), image_);
  const Tensor targets = empty({inputs.size(0), image_[1], image_[2]}, {.dtype = int64, .device = Device()});
  for (int64_t i = 0; i < inputs.size(0); ++i) {
    const auto& [file, mask_file] = samples_[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])];
    const PicturePlace place = read_into(inputs, i, file, samples_.front().picture, options_);
    const Tensor mask = read_mask(mask_file, {.memory_limit = options_.memory_limit});
    check<FileError>(mask.size(0) == place.old_height && mask.size(1) == place.old_width,
                     "SegmentationFolder: the mask '{}' has {} x {} pixels, but its picture '{}' {} x {}",
                     mask_file.string(), mask.size(1), mask.size(0), file.string(), place.old_width,
                     place.old_height);
    ops::copy_into(targets[i], placed_mask(mask, place));
  }
  return {inputs, targets};
}

DetectionFolder::DetectionFolder(const fs::path& folder, const fs::path& boxes, ImageFolderOptions options)
    : options_(std::move(options)) {
  check_options(options_);
  const std::vector<std::string> corners = {"x1", "y1", "x2", "y2"};
  std::map<std::string, io::ColumnType> types{{"file", io::ColumnType::text},
                                              {"label", io::ColumnType::text}};
  for (const std::string& corner : corners) types[corner] = io::ColumnType::float64;
  const io::Table table = io::read_csv(boxes, {.dtype = types, .memory_limit = options_.memory_limit});
  check<FileError>(table.rows() > 0, "DetectionFolder: '{}' has no rows", boxes.string());
  const auto [labels, names] = table.factorize("label", options_.class_names);
  class_names_ = names;
  const Tensor numbers = table.to_tensor(corners, float64);
  std::map<std::string, std::size_t> places;
  for (int64_t row = 0; row < table.rows(); ++row) {
    const std::string& file = table.text("file")[static_cast<std::size_t>(row)];
    check<FileError>(!table.missing("file").data<bool>()[row], "DetectionFolder: {}: there is no file",
                     table.place(row));
    const auto [place, is_new] = places.emplace(file, samples_.size());
    if (is_new) samples_.push_back({folder / file});
    const double* box = numbers.data<double>() + 4 * row;
    const int64_t label = labels.data<int64_t>()[row];
    if (label < 0 && std::all_of(box, box + 4, [](double x) { return std::isnan(x); })) continue;
    check<FileError>(
        label >= 0 && box[0] < box[2] && box[1] < box[3] && std::isfinite(box[0] + box[1] + box[2] + box[3]),
        "DetectionFolder: {}: needs a label and a box with x1 < x2 and y1 < y2, or none of them, "
        "got ({}, {}, {}, {})",
        table.place(row), box[0], box[1], box[2], box[3]);
    samples_[place->second].boxes.push_back({box[0], box[1], box[2], box[3], label, table.place(row)});
  }
  image_ = read_picture(samples_.front().picture, options_).shape();
}

std::shared_ptr<const Dataset> DetectionFolder::copy() const {
  return std::make_shared<DetectionFolder>(*this);
}

Batch DetectionFolder::get(std::span<const int64_t> indices) const {
  Batch batch{empty_inputs("DetectionFolder", indices, samples_.size(), image_), {}};
  std::vector<float> boxes;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const Sample& sample = samples_[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])];
    const PicturePlace place = read_into(batch.inputs, i, sample.picture, samples_.front().picture, options_);
    const auto height = static_cast<double>(place.old_height), width = static_cast<double>(place.old_width);
    for (const Box& box : sample.boxes) {
      check<FileError>(box.x1 < width && box.y1 < height && box.x2 > 0 && box.y2 > 0,
                       "DetectionFolder: {}: the box lies outside of '{}' of {} x {} pixels", box.place,
                       sample.picture.string(), width, height);
      const auto x = [&](double at) {
        return std::clamp(at * static_cast<double>(place.width) / width - static_cast<double>(place.left),
                          0.0, static_cast<double>(place.columns));
      };
      const auto y = [&](double at) {
        return std::clamp(at * static_cast<double>(place.height) / height - static_cast<double>(place.top),
                          0.0, static_cast<double>(place.rows));
      };
      if (x(box.x2) - x(box.x1) < 1 || y(box.y2) - y(box.y1) < 1) continue;
      for (const double number : {static_cast<double>(i), x(box.x1), y(box.y1), x(box.x2), y(box.y2)})
        boxes.push_back(static_cast<float>(number));
      labels.push_back(box.label);
    }
  }
  batch.extras["boxes"] = from_vector(boxes, {std::ssize(labels), 5}, Device{});
  batch.extras["labels"] = from_vector(labels, {std::ssize(labels)}, Device{});
  return batch;
}

}  // namespace pleat::data
