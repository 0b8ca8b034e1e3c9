#include "pleat/data/annotated_pictures.h"

#include <array>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/image.h"
#include "pleat/data/loader.h"
#include "pleat/data/subset.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/damage.h"
#include "pleat/tests/file_fixture.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::data;
using namespace pleat::test;
using namespace pleat_test;
using Catch::Contains;

namespace {

/// Grey [1, height, width], each pixel its place, from `first` on.
Tensor ramp(int64_t height, int64_t width, int64_t first = 0) {
  return reshape(arange(first, first + height * width, 1, {.device = Device{}}), {1, height, width})
      .to(uint8);
}

void write(const std::filesystem::path& path, const Tensor& image) {
  std::filesystem::create_directories(path.parent_path());
  write_png(path, image);
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  write_bytes(path, std::string_view(text));
}

}  // namespace

TEST_CASE("a mask is read as the numbers that are in its file", "[data]") {
  const TemporaryDirectory directory;
  const auto path = directory / "mask.png";
  write(path, ramp(3, 4, 250 - 12));
  CHECK(read_mask(path).shape() == Shape{3, 4});
  CHECK(read_mask(path).to_vector<int>()[11] == 249);
  write_bytes(path, file_bytes(fixture_case("files", "one bit.png")));
  const Tensor bits = read_mask(path);
  for (const int value : bits.to_vector<int>()) CHECK((value == 0 || value == 1));
  CHECK(read_image(path).to_vector<int>().size() == bits.to_vector<int>().size());
  // Places in a palette, of which read_image gives the colours.
  write_bytes(path, file_bytes(fixture_case("files", "palette.png")));
  CHECK(read_image(path).size(0) == 3);
  CHECK(read_mask(path).shape() == Shape{read_image(path).size(1), read_image(path).size(2)});
  const auto damaged = damage(file_bytes(fixture_case("files", "palette.png")), directory / "damaged", 500,
                              [](const auto& file) { read_mask(file); });
  CHECK(damaged.refused > 50);
  write_bytes(path, file_bytes(fixture_case("files", "rgb.png")));
  CHECK_THROWS_WITH(read_mask(path), Contains("has colours, and a pixel must be a class"));
  write_bytes(path, file_bytes(fixture_case("files", "gray.pgm")));
  CHECK_THROWS_WITH(read_mask(path), Contains("is no PNG file"));
}

TEST_CASE("pictures with masks of their names", "[data]") {
  const TemporaryDirectory directory;
  const auto pictures = directory / "pictures", masks = directory / "masks";
  for (const std::string name : {"b", "deep/a", "without"}) {
    write(pictures / (name + ".png"), ramp(6, 8));
    if (name != "without") write(masks / (name + ".png"), ramp(6, 8));
  }
  const SegmentationFolder set(pictures, masks, {.channels = 1});
  CHECK(set.size() == 2);
  const std::array<int64_t, 2> both = {1, 0};
  const Batch batch = set.get(both);
  CHECK(batch.inputs.shape() == Shape{2, 1, 6, 8});
  CHECK(batch.targets.shape() == Shape{2, 6, 8});
  CHECK(batch.targets.dtype() == int64);
  CHECK(batch.targets.to_vector<int>() == batch.inputs.to_vector<int>());
  // The mask goes where the picture goes, pixel by pixel.
  const Batch cropped = SegmentationFolder(pictures, masks, {.channels = 1, .crop = {3, 4}}).get(both);
  CHECK(cropped.targets.to_vector<int>() == cropped.inputs.to_vector<int>());
  const Batch large =
      SegmentationFolder(pictures, masks, {.channels = 1, .resize = {12, 16}, .crop = {12, 14}}).get(both);
  CHECK(large.targets.shape() == Shape{2, 12, 14});
  const auto to = large.targets.to_vector<int>();
  for (int64_t h = 0; h < 12; ++h)
    for (int64_t w = 0; w < 14; ++w)
      CHECK(to[static_cast<std::size_t>(h * 14 + w)] == h / 2 * 8 + (w + 1) / 2);
  const Batch small = SegmentationFolder(pictures, masks, {.channels = 1, .resize = {3, 4}}).get(both);
  CHECK(small.targets.to_vector<int>()[0] == 9);  // as Pillow's NEAREST
  DataLoader loader(set,
                    {.batch_size = 2, .transforms = {random_horizontal_flip(1), normalize({0.5}, {0.5})}});
  CHECK((*loader.begin()).targets[0][0].to_vector<int>() == std::vector<int>{7, 6, 5, 4, 3, 2, 1, 0});

  CHECK_THROWS_AS(set.get(std::array<int64_t, 1>{2}), IndexError);
  CHECK_THROWS_AS(SegmentationFolder(pictures, masks, {.class_names = {"a"}}), ValueError);
  CHECK_THROWS_AS(SegmentationFolder(pictures, masks, {.channels = 2}), ValueError);
  CHECK_THROWS_WITH(SegmentationFolder(pictures, directory / "none"), Contains("none' cannot be read"));
  write(pictures / "b.ppm.png", ramp(6, 8));
  write(masks / "b.ppm.png", ramp(5, 8));
  CHECK_THROWS_WITH(SegmentationFolder(pictures, masks).get(std::array<int64_t, 1>{1}),
                    Contains("b.ppm.png' has 8 x 5 pixels, but its picture"));
  write(pictures / "b.jpg", ramp(6, 8));
  CHECK_THROWS_WITH(SegmentationFolder(pictures, masks),
                    Contains("b.png' there must be one picture") && Contains("but there are 2"));
  std::filesystem::create_directory(directory / "empty");
  CHECK_THROWS_WITH(SegmentationFolder(pictures, directory / "empty"), Contains("holds no mask (.png)"));
}

TEST_CASE("pictures with any number of boxes", "[data]") {
  const TemporaryDirectory directory;
  const auto csv = directory / "boxes.csv";
  for (const std::string name : {"a", "b", "c"}) write(directory / (name + ".png"), ramp(6, 8));
  const std::string head = "file,x1,y1,x2,y2,label\n";
  write_text(csv, head +
                      "b.png,0,1,4,3,dog\n"
                      "a.png,,,,,\n"
                      "c.png,2.5,0,8.5,6,cat\n"
                      "b.png,5,0,8,6,cat\n");
  const DetectionFolder set(directory.path(), csv);
  CHECK(set.size() == 3);
  CHECK(set.class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK_FALSE(set.targets().defined());
  const std::array<int64_t, 3> all = {1, 2, 0};
  const Batch batch = set.get(all);
  CHECK(batch.inputs.shape() == Shape{3, 3, 6, 8});
  CHECK_FALSE(batch.targets.defined());
  CHECK(batch.extras.at("boxes").dtype() == float32);
  CHECK(batch.extras.at("boxes").to_vector<double>() ==
        std::vector<double>{1, 2.5, 0, 8, 6, 2, 0, 1, 4, 3, 2, 5, 0, 8, 6});
  CHECK(batch.extras.at("labels").to_vector<int64_t>() == std::vector<int64_t>{0, 1, 0});
  const Batch none = set.get(std::array<int64_t, 1>{1});
  CHECK(none.extras.at("boxes").shape() == Shape{0, 5});
  // Resized to twice the size; of 16 columns the ones from 4 to 12 are left.
  const DetectionFolder changed(directory.path(), csv,
                                {.resize = {12, 16}, .crop = {12, 8}, .class_names = {"dog", "bird", "cat"}});
  const Batch moved = changed.get(all);
  CHECK(moved.extras.at("boxes").to_vector<double>() ==
        std::vector<double>{1, 1, 0, 8, 12, 2, 0, 2, 4, 6, 2, 6, 0, 8, 12});
  CHECK(moved.extras.at("labels").to_vector<int64_t>() == std::vector<int64_t>{2, 0, 2});
  const DetectionFolder part(directory.path(), csv, {.crop = {6, 2}});
  CHECK(part.get(all).extras.at("labels").to_vector<int64_t>() == std::vector<int64_t>{0, 1});
  // By the loader, with flips, workers and a subset.
  DataLoader loader(Subset(set, {1, 0}),
                    {.batch_size = 2, .workers = 2, .transforms = {random_horizontal_flip(1)}});
  const Batch flipped = *loader.begin();
  CHECK(flipped.extras.at("boxes").to_vector<double>() == std::vector<double>{1, 4, 1, 8, 3, 1, 0, 0, 3, 6});
  CHECK_THROWS_WITH(ConcatDataset({set, set}).get(all), Contains("boxes name pictures by their places"));

  CHECK_THROWS_AS(set.get(std::array<int64_t, 1>{-1}), IndexError);
  const auto refused = [&](const std::string& text, const std::string& part_of_message) {
    write_text(csv, text);
    CHECK_THROWS_WITH(DetectionFolder(directory.path(), csv).get(std::array<int64_t, 1>{0}),
                      Contains(part_of_message));
  };
  refused("file,x1\n", "has no column 'label'");
  refused(head, "has no rows");
  refused(head + "a.png,1,2,3,,dog\n", "boxes.csv', line 2: needs a label and a box");
  refused(head + "a.png,1,2,3,4,\n", "line 2: needs a label and a box");
  refused(head + "a.png,3,2,1,4,dog\n", "got (3, 2, 1, 4)");
  refused(head + "a.png,1,2,inf,4,dog\n", "line 2: needs a label and a box");
  refused(head + ",1,2,3,4,dog\n", "line 2: there is no file");
  refused(head + "a.png,1,x,3,4,dog\n", "line 2, column 'y1': 'x' is no float64");
  refused(head + "none.png,1,2,3,4,dog\n", "none.png': cannot open");
  refused(head + "a.png,8,2,9,4,dog\n", "line 2: the box lies outside of");
  write_text(csv, head + "a.png,1,2,3,4,dog\n");
  CHECK_THROWS_WITH(DetectionFolder(directory.path(), csv, {.class_names = {"cat"}}),
                    Contains("column 'label': 'dog' is none of cat"));
}
