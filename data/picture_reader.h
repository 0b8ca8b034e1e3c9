// Private header: not installed.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "pleat/data/image_folder.h"

/// What the data sets of pictures in folders share.

namespace pleat::data {

/// Throws ValueError for invalid options.
void check_options(const ImageFolderOptions& options);
/// Extensions as they are compared: lower case, from the dot on. Throws ValueError without any.
std::vector<std::string> as_extensions(std::vector<std::string> extensions);

/// The files with these extensions in a folder and in the folders in it, but not in `root`, sorted. What is
/// none is added to `skipped`.
std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder,
                                               const std::filesystem::path& root,
                                               const std::vector<std::string>& extensions,
                                               std::vector<ImageFolder::Skipped>& skipped);

/// What became of a picture by `.resize` and `.crop`: of all of it in another size, a part.
struct PicturePlace {
  int64_t old_height, old_width;
  int64_t height, width;  ///< of all of it
  int64_t top, left;      ///< of the part
  int64_t rows, columns;
};
/// Reads a picture as number `i` of `inputs` [B, channels, H, W] uint8. Throws FileError as read_picture
/// does, and unless it has the size of the others, of which `first` is one.
PicturePlace read_into(const Tensor& inputs, int64_t i, const std::filesystem::path& file,
                       const std::filesystem::path& first, const ImageFolderOptions& options);

/// Inputs for the samples of these indices, with images as this one. Throws IndexError, which begins with
/// `op`, where there is no such sample.
Tensor empty_inputs(const char* op, std::span<const int64_t> indices, std::size_t samples,
                    const Shape& image);

}  // namespace pleat::data
