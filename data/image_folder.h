#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/files/read_options.h"
#include "pleat/data/dataset.h"

namespace pleat::data {

/// The size of a picture in an option: `.resize = 256` is one side, `.resize = {224, 320}` height and width.
class PictureSize {
 public:
  PictureSize() = default;  ///< not given
  template <std::integral Side>
  requires(!std::same_as<Side, bool>) PictureSize(Side side) : PictureSize(side, side) { is_side_ = true; }
  template <std::integral Height, std::integral Width>
  requires(!std::same_as<Height, bool> && !std::same_as<Width, bool>) PictureSize(Height height, Width width)
      : height_(static_cast<int64_t>(height)), width_(static_cast<int64_t>(width)), given_(true) {}

  bool given() const { return given_; }
  /// Whether it is one side; then both functions below return it.
  bool is_side() const { return is_side_; }
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

 private:
  int64_t height_ = 0;
  int64_t width_ = 0;
  bool given_ = false;
  bool is_side_ = false;
};

struct ImageFolderOptions {
  int64_t channels = 3;  ///< 1: colours become their luma (Rec. 601); 3: grey becomes three equal channels
  /// One side: the shorter one of each picture becomes this long, the other in proportion. Two:
  /// height and width of all. Bilinear with antialias, as torchvision's Resize of Pillow pictures.
  PictureSize resize = {};
  /// The middle of each picture, after resizing: one side for a square. As torchvision's CenterCrop, but a
  /// picture that is smaller is an error.
  PictureSize crop = {};
  /// Files whose names end in one of these, in upper or lower case, are samples; all others are
  /// skipped.
  std::vector<std::string> extensions = {".png", ".jpg", ".jpeg", ".ppm", ".pgm"};
  /// Bytes that one picture may take; see ReadOptions.
  int64_t memory_limit = 0;
  /// The classes, in the order of their numbers: those of the set for training, so that a test set has the
  /// same numbers where it lacks a class. A folder of another name is an error. Empty: the folders there are.
  std::vector<std::string> class_names = {};
};

/// A picture [channels, H, W] uint8 as an ImageFolder of these options gives it. Throws ValueError for
/// invalid options; FileError as read_image does, and when the picture is too small to be cropped.
Tensor read_picture(const std::filesystem::path& file, const ImageFolderOptions& options = {});

/// Pictures in a folder for each class: `root/cat/1.png`, `root/dog/a.jpg`. Only the names are read
/// at first; a picture is read at each request.
///
/// Classes are numbered by name, samples are ordered by class and path, both byte by byte as torchvision's
/// ImageFolder orders them: 10.png comes before 9.png. Files in folders of a class's folder count too. Links
/// to files and folders are followed; a folder counts once in a class. What is hidden (.name) is skipped.
class ImageFolder : public Dataset {
 public:
  /// A file that is no sample, and the reason.
  struct Skipped {
    std::filesystem::path path;
    std::string reason;  ///< "its name ends in none of .png .jpg", "it is hidden", "it lies in no class"
  };

  /// Throws ValueError for invalid options; FileError when `root` cannot be read, has no folder, or
  /// a class has no picture; when a folder is none of the classes; when its folders are "train", "test" and
  /// the like, with the classes in them; or as read_image does for the first picture. Unless `resize` or
  /// `crop` give all pictures one size, they must have that of the first.
  explicit ImageFolder(const std::filesystem::path& root, ImageFolderOptions options = {});

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  std::shared_ptr<const Dataset> copy() const override;
  /// Inputs [B, channels, H, W] uint8 and targets [B] int64.
  /// Throws IndexError; FileError when a picture cannot be read, or has another size than the others or one
  /// that is too small to be cropped.
  Batch get(std::span<const int64_t> indices) const override;

  /// The labels, [size] int64, without reading a picture.
  Tensor targets() const override;

  const std::vector<std::string>& class_names() const { return class_names_; }
  /// The file of a sample. Throws IndexError.
  const std::filesystem::path& path(int64_t index) const { return sample(index).path; }
  /// The files in the folder that are no samples, in the order of their paths.
  const std::vector<Skipped>& skipped() const { return skipped_; }

 private:
  struct Sample {
    std::filesystem::path path;
    int64_t label;
  };
  const Sample& sample(int64_t index) const;
  void list(const std::filesystem::path& root);
  void check_not_parts(const std::filesystem::path& root) const;

  ImageFolderOptions options_;
  std::vector<std::string> class_names_;
  std::vector<Sample> samples_;
  std::vector<Skipped> skipped_;
  Shape image_;  ///< of all pictures
};

}  // namespace pleat::data
