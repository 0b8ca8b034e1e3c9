// Writes the synthetic image set: ten kinds of shapes in the binary format of CIFAR-10.
//
//   make_shapes --output shapes                        10,000 training images and 2,000 test images
//   make_shapes --output shapes --preview shapes.ppm   ... and a sheet of a hundred of them to look at

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "options.h"
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/core/files/atomic_file.h>
#include <pleat/data/synthetic_shapes.h>

namespace {

namespace data = pleat::data;

// A row for each class, with the first ten training images that show it, as a binary PPM.
void write_preview(const std::filesystem::path& path, uint64_t seed) {
  constexpr int per_class = 10;
  constexpr int gap = 2;
  constexpr int tile = data::synthetic_image_size + gap;
  constexpr int width = per_class * tile + gap;
  constexpr int height = data::synthetic_classes * tile + gap;
  constexpr int plane = data::synthetic_image_size * data::synthetic_image_size;
  std::vector<unsigned char> sheet(3 * width * height, 255);
  // Ten consecutive images show each class once.
  for (int index = 0; index < per_class * data::synthetic_classes; ++index) {
    const data::SyntheticImage image = data::synthetic_shape(seed, data::SyntheticSplit::train, index);
    const int left = gap + index / data::synthetic_classes * tile;
    const int top = gap + image.label * tile;
    for (int place = 0; place < plane; ++place) {
      const int y = top + place / data::synthetic_image_size;
      const int x = left + place % data::synthetic_image_size;
      for (int channel = 0; channel < 3; ++channel) {
        sheet[3 * (y * width + x) + channel] = image.pixels[channel * plane + place];
      }
    }
  }
  std::string file = "P6\n" + std::to_string(width) + ' ' + std::to_string(height) + "\n255\n";
  file.append(sheet.begin(), sheet.end());
  pleat::write_file("--preview", path, file);
}

void run(const std::filesystem::path& output, const std::filesystem::path& preview,
         const data::SyntheticShapesOptions& options) {
  if (!preview.empty()) {
    write_preview(preview, options.seed);
    print("preview in %s\n", preview.string().c_str());
  }
  if (output.empty()) return;
  const auto start = std::chrono::steady_clock::now();
  const auto files = data::write_synthetic_shapes(output, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  print("%lld training and %lld test images of %d classes in %s: %lld files, %.2f s\n",
        static_cast<long long>(options.train), static_cast<long long>(options.test), data::synthetic_classes,
        output.string().c_str(), static_cast<long long>(files.size()), seconds.count());
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path output;
  std::filesystem::path preview;
  data::SyntheticShapesOptions options;
  constexpr int64_t most_images = 10'000'000;

  CLI::App app{
      "Writes the synthetic image set (32 x 32 pixels, ten kinds of shapes) in CIFAR-10's binary format.",
      "make_shapes"};
  CLI::Option* to = app.add_option("--output", output,
                                   "Directory for data_batch_*.bin, test_batch.bin and batches.meta.txt")
                        ->check(not_empty());
  app.add_option("--train", options.train, "Number of training images")
      ->transform(whole_number(0, most_images))
      ->capture_default_str()
      ->needs(to);
  app.add_option("--test", options.test, "Number of test images")
      ->transform(whole_number(0, most_images))
      ->capture_default_str()
      ->needs(to);
  app.add_option("--seed", options.seed, "Seed; every seed gives other images")
      ->transform(seed_number())
      ->capture_default_str();
  app.add_option("--preview", preview, "Write a contact sheet of ten images of each class into this PPM file")
      ->check(not_empty());
  return run_program(app, argc, argv, [&] {
    if (output.empty() && preview.empty()) throw UsageError("give --output or --preview");
    run(output, preview, options);
  });
}
