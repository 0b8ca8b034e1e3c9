#include "pictures.h"

#include <algorithm>

#include "program.h"

using namespace pleat;
namespace fs = std::filesystem;

namespace {

Pictures read_cifar10(const fs::path& folder, int64_t image_size) {
  if (image_size != 32)
    throw UsageError("--image-size " + std::to_string(image_size) +
                     ": CIFAR-10's images have 32 pixels a side");
  const data::CifarDataset train = data::read_cifar10(folder, true);
  std::vector<std::string> names = train.class_names;
  for (int i = static_cast<int>(names.size()); i < 10; ++i) names.push_back(std::to_string(i));
  return {train,
          data::read_cifar10(folder, false),
          names,
          {{data::cifar10_mean.begin(), data::cifar10_mean.end()},
           {data::cifar10_std.begin(), data::cifar10_std.end()}}};
}

data::ImageFolder image_folder(const fs::path& folder, int64_t image_size,
                               const std::vector<std::string>& class_names = {}) {
  return data::ImageFolder(folder, {.resize = image_size, .crop = image_size, .class_names = class_names});
}

}  // namespace

bool is_cifar10(const fs::path& folder) {
  return fs::exists(folder / "test_batch.bin") || fs::exists(folder / "data_batch_1.bin");
}

Pictures read_pictures(const fs::path& folder, int64_t image_size, uint64_t seed) {
  if (is_cifar10(folder)) return read_cifar10(folder, image_size);
  const fs::path test_folder = fs::is_directory(folder / "test") ? folder / "test" : folder / "val";
  if (fs::is_directory(folder / "train") && fs::is_directory(test_folder)) {
    const data::ImageFolder train = image_folder(folder / "train", image_size);
    const data::ImageFolder test = image_folder(test_folder, image_size, train.class_names());
    const data::TensorDataset images = data::in_memory(train);
    return {images, data::in_memory(test), train.class_names(), data::channel_statistics(images)};
  }
  const data::ImageFolder all = image_folder(folder, image_size);
  const auto parts = data::random_split(all, {0.8, 0.2}, {.seed = seed, .stratify = true});
  const data::TensorDataset train = data::in_memory(parts[0]);
  return {train, data::in_memory(parts[1]), all.class_names(), data::channel_statistics(train)};
}
