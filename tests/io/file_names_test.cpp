#include <filesystem>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/image.h"
#include "pleat/io/csv.h"
#include "pleat/io/npy.h"
#include "pleat/io/safetensors.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"
#include "pleat/train/run_folder.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat_test::TemporaryDirectory;
namespace fs = std::filesystem;

TEST_CASE("names of files are UTF-8, as text and as a path", "[io][train]") {
  const TemporaryDirectory directory;
  const fs::path folder = directory / "gr\u00f6\u00dfe \u6570";
  fs::create_directory(folder);
  const auto named = [&](const std::string& ending) { return (folder / ("\u03a9 x" + ending)).string(); };
  const Tensor x = tensor({1, 2, 3});
  io::write_npy(named(".npy"), x);
  CHECK(io::read_npy(named(".npy")).to_vector<int>() == std::vector<int>{1, 2, 3});
  io::write_safetensors(named(".safetensors"), {{"x", x}});
  CHECK(io::read_safetensors(named(".safetensors")).tensors.at("x").numel() == 3);
  data::write_png(named(".png"), full({3, 2, 2}, 7, uint8));
  CHECK(data::read_image(named(".png")).shape() == Shape{3, 2, 2});
  io::CsvWriter(named(".csv"), {"a"}).row({1});
  CHECK(io::read_csv(named(".csv")).column("a").item<int>() == 1);
  write_file("test", named(".txt"), "two\nlines\n");
  CHECK(fs::file_size(named(".txt")) == 10);
  train::RunFolder run(folder / "run", {"metrics.csv"});
  CHECK(fs::exists(folder / "run"));
  CHECK_THROWS_WITH(io::read_npy(named(".none")), Contains("\u03a9 x.none'") && Contains("No such file"));
  std::error_code error;
  CHECK(std::distance(fs::directory_iterator(folder, error), {}) == 6);
}
