#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "pleat/core/files/atomic_file.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::train {

struct TensorBoardOptions {
  /// Figures of this step and later ones that earlier files of the folder hold are dropped by
  /// TensorBoard: what a run wrote after the checkpoint from which it goes on.
  int64_t first_step = 0;
};

/// Writes figures for TensorBoard (`tensorboard --logdir FOLDER`): a file events.out.tfevents.... in a
/// folder, to which each call appends one record. The format is that of TensorFlow's event files
/// (tensorflow/core/util/event.proto, summary.proto): records with masked CRC-32C.
class TensorBoard {
 public:
  /// Makes the folder and a new file in it. Throws FileError.
  explicit TensorBoard(const std::filesystem::path& folder, TensorBoardOptions options = {});

  // All throw FileError when the file cannot be written.

  /// A float32, as TensorBoard draws it; an integer that float32 would round, and a number outside of its
  /// range, are written as float64. Throws ValueError for an integer that float64 would round.
  void scalar(const std::string& tag, Real value, int64_t step);
  /// An image [C, H, W] of 1 or 3 channels: uint8, or floating numbers from 0 to 1. Throws what
  /// data::encode_png throws.
  void image(const std::string& tag, const Tensor& image, int64_t step);
  /// How the elements of a tensor are distributed, in 30 bins from the least to the greatest. NaN and
  /// infinities are left out.
  void histogram(const std::string& tag, const Tensor& values, int64_t step);

  const std::filesystem::path& file() const { return path_; }

 private:
  void write_event(int64_t step, const std::string& fields);
  void write_value(const std::string& tag, int64_t step, const std::string& fields);

  std::filesystem::path path_;
  AtomicFile file_;
};

}  // namespace pleat::train
