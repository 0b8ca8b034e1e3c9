// Writes the synthetic image set: ten kinds of shapes in the binary format of CIFAR-10.
//
//   make_shapes --output shapes                        10,000 training images and 2,000 test images
//   make_shapes --output shapes --preview shapes.ppm   ... and a sheet of a hundred of them to look at

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "checks.h"
#include <CLI/CLI.hpp>

#include "pleat/core/error.h"
#include "pleat/data/synthetic_shapes.h"

namespace {

namespace data = pleat::data;

// A row for each class, with the first ten training images that show it, as a binary PPM.
void write_preview(const std::filesystem::path& path, std::uint64_t seed) {
  constexpr int per_class = 10;
  constexpr int gap = 2;
  constexpr int tile = data::kSyntheticImageSize + gap;
  constexpr int width = per_class * tile + gap;
  constexpr int height = data::kSyntheticClasses * tile + gap;
  constexpr int plane = data::kSyntheticImageSize * data::kSyntheticImageSize;
  std::vector<unsigned char> sheet(3 * width * height, 255);
  // Ten consecutive images show each class once.
  for (int index = 0; index < per_class * data::kSyntheticClasses; ++index) {
    const data::SyntheticImage image = data::synthetic_shape(seed, data::SyntheticSplit::train, index);
    const int left = gap + index / data::kSyntheticClasses * tile;
    const int top = gap + image.label * tile;
    for (int place = 0; place < plane; ++place) {
      const int y = top + place / data::kSyntheticImageSize;
      const int x = left + place % data::kSyntheticImageSize;
      for (int channel = 0; channel < 3; ++channel) {
        sheet[3 * (y * width + x) + channel] = image.pixels[channel * plane + place];
      }
    }
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << "P6\n" << width << ' ' << height << "\n255\n";
  file.write(reinterpret_cast<const char*>(sheet.data()), static_cast<std::streamsize>(sheet.size()));
  file.close();
  if (!file) throw pleat::FileError("make_shapes: cannot write '" + path.string() + "'");
}

}  // namespace

int main(int argc, char** argv) try {
  std::filesystem::path output;
  std::filesystem::path preview;
  data::SyntheticShapesOptions options;

  CLI::App app{
      "Writes the synthetic image set (32 x 32 pixels, ten kinds of shapes) in CIFAR-10's binary format."};
  app.add_option("--output", output, "Directory for data_batch_*.bin, test_batch.bin and batches.meta.txt");
  app.add_option("--train", options.train, "Number of training images")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--test", options.test, "Number of test images")->check(at_least(0))->capture_default_str();
  app.add_option("--seed", options.seed, "Seed; every seed gives other images")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--preview", preview,
                 "Write a contact sheet of ten images of each class into this PPM file");
  app.require_option(1, 0);
  CLI11_PARSE(app, argc, argv);
  if (output.empty() && preview.empty()) throw pleat::ValueError("make_shapes: give --output or --preview");

  if (!preview.empty()) {
    write_preview(preview, options.seed);
    std::cout << "preview in " << preview.string() << '\n';
  }
  if (!output.empty()) {
    const auto start = std::chrono::steady_clock::now();
    const auto files = data::write_synthetic_shapes(output, options);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%lld training and %lld test images of %d classes in %s: %zu files, %.2f s\n",
                static_cast<long long>(options.train), static_cast<long long>(options.test),
                data::kSyntheticClasses, output.c_str(), files.size(), seconds.count());
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
