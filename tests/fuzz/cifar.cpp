// The binary versions of CIFAR-10 and CIFAR-100. The input is every file of the folder, the names of the
// classes among them.
#include "pleat/data/datasets.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::filesystem::path folder = fuzz::scratch_folder() / "cifar";
  const fuzz::InputAsFile file(data, size);
  std::filesystem::create_directories(folder);
  for (const char* name : {"data_batch_1.bin", "data_batch_10.bin", "test_batch.bin", "train.bin", "test.bin",
                           "batches.meta.txt", "fine_label_names.txt"}) {
    std::filesystem::remove(folder / name);
    std::filesystem::create_symlink(file.path(), folder / name);
  }
  for (const bool train : {true, false}) {
    fuzz::accepts([&] {
      const auto set = data::read_cifar10(folder, train, fuzz::limited);
      fuzz::require(set.size() == static_cast<int64_t>(size) / 3073 * (train ? 2 : 1), "cifar: records lost");
    });
    fuzz::accepts([&] {
      const auto set = data::read_cifar100(folder, train, fuzz::limited);
      fuzz::require(set.size() == static_cast<int64_t>(size) / 3074, "cifar: records lost");
    });
  }
  return 0;
}
