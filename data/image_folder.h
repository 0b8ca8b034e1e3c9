#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pleat/data/dataset.h"

namespace pleat::data {

struct ImageFolderOptions {
  int64_t channels = 3;  ///< 1: colours become their luma (Rec. 601); 3: grey becomes three equal channels
};

/// Pictures in a folder for each class: `root/cat/1.png`, `root/dog/a.ppm`. Only the names are read at first,
/// a picture whenever it is asked for.
///
/// Classes are numbered by name, samples are ordered by class and path (files in folders of a class's folder
/// count too). Files count whose names end in .png, .ppm or .pgm in any case; hidden ones do not.
class ImageFolder : public Dataset {
 public:
  /// Throws ValueError unless there are 1 or 3 channels; FileError when `root` cannot be read, has no folder,
  /// or a class has no picture, or as read_image does for the first picture, whose size all others must have.
  explicit ImageFolder(const std::filesystem::path& root, ImageFolderOptions options = {});

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  /// Inputs [B, channels, H, W] uint8 and targets [B] int64.
  /// Throws IndexError; FileError when a picture cannot be read or has another size.
  Batch get(std::span<const int64_t> indices) const override;

  const std::vector<std::string>& class_names() const { return class_names_; }
  /// Where a sample comes from. Throws IndexError.
  const std::filesystem::path& path(int64_t index) const { return sample(index).path; }

 private:
  struct Sample {
    std::filesystem::path path;
    int64_t label;
  };
  const Sample& sample(int64_t index) const;

  ImageFolderOptions options_;
  std::vector<std::string> class_names_;
  std::vector<Sample> samples_;
  int64_t height_ = 0;
  int64_t width_ = 0;
};

}  // namespace pleat::data
