#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pleat/data/dataset.h"
#include "pleat/data/image_folder.h"

/// Pictures with masks or boxes beside them. `.resize` and `.crop` of the options, and the transforms of
/// data/transforms.h, move them with the pictures. Only names are read at first.

namespace pleat::data {

/// Pictures in one folder, and in another a mask of the same name for each: `pictures/a/1.jpg` and
/// `masks/a/1.png`, as read_mask reads it. Samples are in the order of the masks' paths; pictures without a
/// mask are none.
class SegmentationFolder : public Dataset {
 public:
  /// Throws ValueError for invalid options, and for `class_names`, which masks have not; FileError when a
  /// folder cannot be read, there is no mask, a mask has no picture or two, or as get() for the first one.
  SegmentationFolder(const std::filesystem::path& pictures, const std::filesystem::path& masks,
                     ImageFolderOptions options = {});

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  std::shared_ptr<const Dataset> copy() const override;
  /// Inputs [B, channels, H, W] uint8 and targets [B, H, W] int64; where a mask becomes another size its
  /// pixels are the nearest ones. Throws IndexError; FileError when a file cannot be read, a mask has another
  /// size than its picture, or a picture another than the others.
  Batch get(std::span<const int64_t> indices) const override;

 private:
  struct Sample {
    std::filesystem::path picture, mask;
  };
  ImageFolderOptions options_;
  std::vector<Sample> samples_;
  Shape image_;  ///< of all pictures
};

/// Pictures with any number of boxes each, from a CSV file (io::read_csv) with the columns file, x1, y1, x2,
/// y2 and label: a row for each box, from its left upper corner to its right lower one in pixels of the file,
/// which lies in `folder`; in a row of a picture without boxes all but the file is empty. Samples are the
/// files in the order of their first rows.
class DetectionFolder : public Dataset {
 public:
  /// The classes are the labels, sorted, or the options' `class_names`. Throws ValueError for invalid options
  /// and a column that is missing; FileError when the file cannot be read, has no row, a row has only some of
  /// its cells, no box or a label that is none of the classes, or as get() for the first picture.
  DetectionFolder(const std::filesystem::path& folder, const std::filesystem::path& boxes,
                  ImageFolderOptions options = {});

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  std::shared_ptr<const Dataset> copy() const override;
  /// Inputs [B, channels, H, W] uint8, and in `extras` the boxes of all pictures, one after the other:
  /// "boxes" [K, 5] float32, (place in the batch, x1, y1, x2, y2) as roi_align takes them, and their "labels"
  /// [K] int64. A box is cut off where the picture is, and left out where less than a pixel is left. Throws
  /// IndexError; FileError when a picture cannot be read or has another size than the others, or a box lies
  /// outside of its picture.
  Batch get(std::span<const int64_t> indices) const override;
  /// Undefined.
  Tensor targets() const override { return {}; }

  const std::vector<std::string>& class_names() const { return class_names_; }

 private:
  struct Box {
    double x1, y1, x2, y2;
    int64_t label;
    std::string place;  ///< in the file, for messages
  };
  struct Sample {
    std::filesystem::path picture;
    std::vector<Box> boxes = {};
  };
  ImageFolderOptions options_;
  std::vector<std::string> class_names_;
  std::vector<Sample> samples_;
  Shape image_;  ///< of all pictures
};

}  // namespace pleat::data
