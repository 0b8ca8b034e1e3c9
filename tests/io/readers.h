#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "pleat/data/datasets.h"
#include "pleat/data/image.h"
#include "pleat/io/npy.h"
#include "pleat/io/npz.h"
#include "pleat/io/safetensors.h"
#include "pleat/ops/tune/tuner.h"

namespace pleat_test {

struct Reader {
  const char* name;
  std::function<void(const std::filesystem::path&, pleat::ReadOptions)> read;
};

/// Every function that reads a file by its path.
inline std::vector<Reader> readers() {
  return {
      {"npy", [](const std::filesystem::path& path, pleat::ReadOptions o) { pleat::io::read_npy(path, o); }},
      {"npz", [](const std::filesystem::path& path, pleat::ReadOptions o) { pleat::io::read_npz(path, o); }},
      {"NpzReader",
       [](const std::filesystem::path& path, pleat::ReadOptions o) { pleat::io::NpzReader(path, o); }},
      {"safetensors",
       [](const std::filesystem::path& path, pleat::ReadOptions o) { pleat::io::read_safetensors(path, o); }},
      {"idx",
       [](const std::filesystem::path& path, pleat::ReadOptions o) { pleat::data::read_idx(path, o); }},
      {"image",
       [](const std::filesystem::path& path, pleat::ReadOptions o) { pleat::data::read_image(path, o); }},
      {"tuning",
       [](const std::filesystem::path& path, pleat::ReadOptions o) { pleat::ops::Tuner::load(path, o); }}};
}

}  // namespace pleat_test
