#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <pleat/pleat.h>

/// Pictures to train and test with, in memory.
struct Pictures {
  pleat::data::TensorDataset train, test;  ///< [N, C, H, W] uint8 with classes [N]
  std::vector<std::string> class_names;
  pleat::data::ChannelStatistics statistics;  ///< of the training pictures, for normalisation
};

/// Reads a folder: CIFAR-10's binary files, or one's own pictures with a subfolder for each class, which
/// become squares of `image_size` pixels. Where there are folders "train" and "test" (or "val"), they have
/// the classes; else a fifth of each class, drawn by the seed, is for tests. Throws FileError.
Pictures read_pictures(const std::filesystem::path& folder, int64_t image_size, uint64_t seed);

/// Whether a folder has CIFAR-10's binary files.
bool is_cifar10(const std::filesystem::path& folder);
