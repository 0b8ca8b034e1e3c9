#include "pleat/data/image_folder.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/data/image.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/damage.h"
#include "pleat/tests/file_fixture.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::data;
using namespace pleat::test;
using namespace pleat_test;

namespace {

std::vector<unsigned char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

template <class Error, class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void add_picture(const std::filesystem::path& path, const std::string& fixture_name) {
  std::filesystem::create_directories(path.parent_path());
  write_bytes(path, file_bytes(fixture_case("files", fixture_name)));
}

}  // namespace

TEST_CASE("pictures that other programs write are read", "[data]") {
  const TemporaryDirectory directory;
  for (const Json& file : fixture_cases("files", "image")) {
    INFO(file.at("name"));
    write_bytes(directory / "x", file_bytes(file));
    const Tensor image = read_image(directory / "x");
    CHECK(image.dtype() == uint8);
    CHECK(holds(image, file.at("arrays").at("image")));
  }
}

TEST_CASE("PGM and PPM with text, comments and other depths", "[data]") {
  const TemporaryDirectory directory;
  const auto values = [&](const std::string& text) {
    write_bytes(directory / "x.pgm", bytes_of(text));
    return read_image(directory / "x.pgm").to_vector<int>();
  };
  CHECK(values("P2 2 1 255 7 200\n") == std::vector<int>{7, 200});
  CHECK(values("P2\n# a comment\n2 1 # another\n4\n0 3") == std::vector<int>{0, 191});
  CHECK(values("P3 1 2 255 1 2 3 4 5 6") == std::vector<int>{1, 4, 2, 5, 3, 6});
  CHECK(values(std::string("P5 2 1 15 ") + '\x0f' + '\x05') == std::vector<int>{255, 85});
  CHECK(values(std::string("P5 2 1 65535 ") + "\xff\xff\x80" + std::string(1, '\0')) ==
        std::vector<int>{255, 128});
}

TEST_CASE("bytes after a picture are ignored", "[data]") {
  const TemporaryDirectory directory;
  for (const Json& file : fixture_cases("files", "image"))
    for (const std::string& more :
         {std::string("x"), std::string(3, '\0'), std::string("\nP6 1 1 255 abc")}) {
      INFO(file.at("name"));
      auto bytes = file_bytes(file);
      bytes.insert(bytes.end(), more.begin(), more.end());
      write_bytes(directory / "x", bytes);
      CHECK(holds(read_image(directory / "x"), file.at("arrays").at("image")));
    }
}

TEST_CASE("PGM and PPM whose lines end as Windows ends them", "[data]") {
  const TemporaryDirectory directory;
  const auto values = [&](const std::string& text) {
    write_bytes(directory / "x.pgm", bytes_of(text));
    return read_image(directory / "x.pgm").to_vector<int>();
  };
  CHECK(values("P2\r\n# a comment\r\n2 1\r\n255\r\n7 200\r\n") == std::vector<int>{7, 200});
  CHECK(values("P5\r\n2 1\r\n255\r\nab") == std::vector<int>{'a', 'b'});
  CHECK(values("P5\r\n2 1\r\n255\r\n\nb") == std::vector<int>{'\n', 'b'});
  CHECK(values("P5\r2 1\r255\rab") == std::vector<int>{'a', 'b'});
  CHECK(values("P5\r2 1\r255\r\nb") == std::vector<int>{'\n', 'b'});
}

TEST_CASE("pictures that are none are refused with file, offset and cause", "[data]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x.ppm";
  const auto check_message = [&](const std::string& text, const std::string& part) {
    write_bytes(path, bytes_of(text));
    const std::string message = message_of<FileError>([&] { read_image(path); });
    INFO(message);
    CHECK(contains(message, part));
    CHECK(message.starts_with("read_image: '" + path.string() + "', byte "));
  };
  check_message("", "byte 0: is neither");
  check_message("GIF89a", "byte 0: is neither");
  check_message("P6 0 1 255 ", "byte 3: the width must be a number within [1, 1073741824]");
  check_message("P6 x 1 255 ", "the width must be");
  check_message("P6 1 99999999999999999999 255 ", "the height must be");
  check_message("P6 1 1 65536 abc", "the largest value must be");
  check_message("P6 1 1 255", "a single space");
  check_message("P6 1 1 255 ab", "truncated");
  check_message("P6 1073741824 1073741824 255 abc", "truncated");
  check_message("P5 1 1 15 \x10", "byte 10: a sample is 16, above the largest value of 15");
  check_message("P2 1 1 255 256", "a sample must be a number within [0, 255]");

  auto png = file_bytes(fixture_case("files", "rgb.png"));
  const auto as_text = [](const std::vector<unsigned char>& bytes) {
    return std::string(bytes.begin(), bytes.end());
  };
  check_message(as_text(png).substr(0, 60), "PNG: truncated: the file ends within the picture");
  png[20] ^= 1;  // the width
  check_message(as_text(png), "PNG: IHDR: CRC error");
}

TEST_CASE("damaged pictures load or are refused", "[data]") {
  const TemporaryDirectory directory;
  for (const char* name : {"rgb.png", "palette.png", "one bit.png", "rgba.png", "rgb.ppm", "gray.pgm"}) {
    INFO(name);
    const auto report = damage(file_bytes(fixture_case("files", name)), directory / "damaged", 2000,
                               [](const auto& path) { read_image(path); });
    CHECK(report.refused > 100);
  }
}

TEST_CASE("an image folder has its classes from folders", "[data]") {
  const TemporaryDirectory directory;
  add_picture(directory / "dog" / "b.PNG", "gray.png");
  add_picture(directory / "dog" / "a.ppm", "rgb.ppm");
  add_picture(directory / "cat" / "more" / "z.png", "rgb.png");
  add_picture(directory / "cat" / ".hidden.png", "rgb.png");
  add_picture(directory / ".git" / "x.png", "rgb.png");
  write_bytes(directory / "dog" / "notes.txt", bytes_of("not a picture"));
  write_bytes(directory / "readme.png", bytes_of("not in a class"));

  const ImageFolder folder(directory.path());
  CHECK(folder.class_names() == std::vector<std::string>{"cat", "dog"});
  REQUIRE(folder.size() == 3);
  CHECK(folder.path(0) == directory / "cat" / "more" / "z.png");
  std::map<std::string, std::string> skipped;
  for (const ImageFolder::Skipped& file : folder.skipped())
    skipped[std::filesystem::relative(file.path, directory.path()).generic_string()] = file.reason;
  CHECK(skipped == std::map<std::string, std::string>{
                       {".git", "it is hidden"},
                       {"cat/.hidden.png", "it is hidden"},
                       {"dog/notes.txt", "its name ends in none of .png .jpg .jpeg .ppm .pgm"},
                       {"readme.png", "it lies in no class"}});
  const std::array<int64_t, 4> indices = {2, 0, 1, 2};
  const Batch batch = folder.get(indices);
  CHECK(batch.inputs.shape() == Shape{4, 3, 5, 7});
  CHECK(batch.targets.to_vector<int64_t>() == std::vector<int64_t>{1, 0, 1, 1});
  const auto pixels = batch.inputs.to_vector<int>();
  const auto rgb = tensor_from(fixture_case("files", "rgb.png").at("arrays").at("image")).to_vector<int>();
  const auto gray = tensor_from(fixture_case("files", "gray.png").at("arrays").at("image")).to_vector<int>();
  CHECK(std::vector(pixels.begin() + 105, pixels.begin() + 210) == rgb);
  CHECK(std::vector(pixels.begin() + 35, pixels.begin() + 70) == gray);

  const ImageFolder in_gray(directory.path(), {.channels = 1});
  const auto luma = in_gray.get(std::span(indices).first(2)).inputs.to_vector<int>();
  CHECK(std::vector(luma.begin(), luma.begin() + 35) == gray);
  CHECK(luma[36] == (299 * rgb[1] + 587 * rgb[36] + 114 * rgb[71] + 500) / 1000);
  CHECK(in_gray.get({}).inputs.shape() == Shape{0, 1, 5, 7});
}

TEST_CASE("an image folder leaves out what systems put beside pictures", "[data]") {
  const TemporaryDirectory directory;
  add_picture(directory / "cat" / "1.PNG", "rgb.png");
  add_picture(directory / "cat" / ".ipynb_checkpoints" / "1-checkpoint.png", "rgb.png");
  for (const char* name : {"Thumbs.db", ".DS_Store", "desktop.ini", "._1.PNG"}) {
    write_bytes(directory / "cat" / name, bytes_of("no picture"));
    write_bytes(directory / name, bytes_of("no picture"));
  }
  const ImageFolder folder(directory.path());
  CHECK(folder.size() == 1);
  CHECK(folder.skipped().size() == 9);
}

TEST_CASE("parts of a set are not taken for classes", "[data]") {
  const TemporaryDirectory directory;
  for (const std::string part : {"test", "Train"})
    for (const std::string name : {"cat", "dog"}) add_picture(directory / part / name / "1.png", "rgb.png");
  const std::string message = message_of<FileError>([&] { ImageFolder{directory.path()}; });
  CHECK(contains(message, "holds Train and test, whose folders are the classes"));
  CHECK(contains(message, (directory / "test").string()));
  CHECK(message_of<FileError>([&] { ImageFolder{directory.path() / ""}; }) != "");
  CHECK(ImageFolder(directory / "test").class_names() == std::vector<std::string>{"cat", "dog"});
  // Pictures in the folders themselves are of classes of these names; so are all beside another name.
  add_picture(directory / "test" / "1.png", "rgb.png");
  CHECK(ImageFolder(directory.path()).class_names() == std::vector<std::string>{"Train", "test"});
  std::filesystem::remove(directory / "test" / "1.png");
  add_picture(directory / "bus" / "1.png", "rgb.png");
  CHECK(ImageFolder(directory.path()).class_names() == std::vector<std::string>{"Train", "bus", "test"});
}

TEST_CASE("an image folder takes the classes of another set", "[data]") {
  const TemporaryDirectory directory;
  add_picture(directory / "train/bird/1.png", "gray.png");
  add_picture(directory / "train/cat/1.png", "gray.png");
  add_picture(directory / "train/dog/1.png", "gray.png");
  add_picture(directory / "test/dog/1.png", "gray.png");
  add_picture(directory / "test/cat/1.png", "gray.png");
  const std::array<int64_t, 2> both = {0, 1};
  const ImageFolder train(directory / "train");
  const ImageFolder test(directory / "test", {.class_names = train.class_names()});
  CHECK(test.class_names() == train.class_names());
  CHECK(test.get(both).targets.to_vector<int64_t>() == std::vector<int64_t>{1, 2});
  const ImageFolder turned(directory / "test", {.class_names = {"dog", "cat"}});
  CHECK(turned.get(both).targets.to_vector<int64_t>() == std::vector<int64_t>{0, 1});
  CHECK(turned.path(0) == directory / "test/dog/1.png");
  CHECK(contains(message_of<FileError>([&] {
                   ImageFolder(directory / "test", {.class_names = {"cat", "bird"}});
                 }),
                 "dog' is none of the classes cat, bird"));
  CHECK(contains(message_of<ValueError>([&] {
                   ImageFolder(directory / "test", {.class_names = {"cat", "cat"}});
                 }),
                 "class_names has a name twice: cat, cat"));
}

TEST_CASE("an image folder says what is wrong with it", "[data]") {
  const TemporaryDirectory directory;
  const auto root = directory / "set";
  CHECK(contains(message_of<FileError>([&] { ImageFolder{root}; }), root.string()));
  std::filesystem::create_directory(root);
  CHECK(contains(message_of<FileError>([&] { ImageFolder{root}; }), "must hold a folder for each class"));
  add_picture(root / "a" / "1.png", "rgb.png");
  std::filesystem::create_directory(root / "b");
  CHECK(contains(message_of<FileError>([&] { ImageFolder{root}; }), "b' holds no picture"));
  write_bytes(root / "b" / "1.ppm", bytes_of("P2 2 1 255 7 200"));
  write_bytes(root / "b" / "2.png", bytes_of("no picture"));
  CHECK(contains(message_of<ValueError>([&] { ImageFolder(root, {.channels = 2}); }), "1 or 3, got 2"));

  const ImageFolder folder(root);
  const std::array<int64_t, 1> other_size = {1}, broken = {2}, outside = {3}, negative = {-1};
  const std::string message = message_of<FileError>([&] { folder.get(other_size); });
  CHECK(contains(message, "1.ppm' has 2 x 1 pixels, but"));
  CHECK(contains(message, "bring all pictures to one size by .resize = {5, 7}, or by .crop"));
  CHECK(contains(message_of<FileError>([&] { folder.get(broken); }), "2.png', byte 0: is neither"));
  CHECK_THROWS_AS(folder.get(outside), IndexError);
  CHECK_THROWS_AS(folder.get(negative), IndexError);
  CHECK_THROWS_AS(folder.path(3), IndexError);
}

TEST_CASE("an image folder takes the extensions it is told", "[data]") {
  const TemporaryDirectory directory;
  add_picture(directory / "a" / "1.png", "rgb.png");
  add_picture(directory / "a" / "2.picture", "rgb.png");
  add_picture(directory / "a" / "3.PICTURE", "rgb.ppm");
  CHECK(ImageFolder(directory.path()).size() == 1);
  CHECK(ImageFolder(directory.path()).skipped().size() == 2);
  const ImageFolder folder(directory.path(), {.extensions = {"Picture"}});
  CHECK(folder.size() == 2);
  CHECK(folder.get(std::array<int64_t, 2>{0, 1}).inputs.shape() == Shape{2, 3, 5, 7});
  CHECK(contains(message_of<FileError>([&] { ImageFolder(directory.path(), {.extensions = {".webp"}}); }),
                 "a' holds no picture (.webp)"));
  CHECK_THROWS_AS(ImageFolder(directory.path(), {.extensions = {}}), ValueError);
}

TEST_CASE("an image folder resizes and crops as torchvision does", "[data]") {
  const TemporaryDirectory directory;
  const Json& fixture = fixture_case("files", "noise and a ramp");
  std::filesystem::create_directory(directory / "a");
  write_bytes(directory / "a" / "1.png", file_bytes(fixture));
  const auto loaded = [&](ImageFolderOptions options) {
    options.channels = 1;
    return ImageFolder(directory.path(), options).get(std::array<int64_t, 1>{0}).inputs;
  };
  // Two sizes are height and width, to the bit what Pillow makes.
  for (const auto& [name, expected] : fixture.at("arrays").items()) {
    INFO(name);
    const int64_t height = std::stoi(name), width = std::stoi(name.substr(name.find('x') + 1));
    const Tensor resized = loaded({.resize = {height, width}});
    CHECK(resized.shape() == Shape{1, 1, height, width});
    CHECK(resized.to_vector<int>() == tensor_from(expected).to_vector<int>());
  }
  // One is the shorter side; the other is rounded down, as torchvision does.
  CHECK(loaded({.resize = 10}).shape() == Shape{1, 1, 10, 13});
  CHECK(loaded({.resize = 40}).shape() == Shape{1, 1, 40, 54});
  // The middle: of 19 rows and 26 columns rows 6-12 and columns 9-16 (Python rounds 9.5 to 10 and 6 stays).
  const auto whole = loaded({}).to_vector<int>();
  const auto middle = loaded({.crop = {7, 7}});
  CHECK(middle.shape() == Shape{1, 1, 7, 7});
  CHECK(middle.to_vector<int>()[0] == whole[6 * 26 + 10]);
  CHECK(loaded({.crop = {8, 6}}).to_vector<int>()[0] == whole[6 * 26 + 10]);   // 5.5 becomes 6
  CHECK(loaded({.crop = {10, 6}}).to_vector<int>()[0] == whole[4 * 26 + 10]);  // 4.5 becomes 4
  CHECK(loaded({.resize = {8, 9}, .crop = 5}).shape() == Shape{1, 1, 5, 5});
  CHECK(loaded({.crop = {19, 26}}).to_vector<int>() == whole);

  CHECK(contains(message_of<FileError>([&] { loaded({.crop = 20}); }),
                 "has 26 x 19 pixels, too few to crop 20 x 20; resize it first: .resize = 20"));
  CHECK_THROWS_AS(loaded({.resize = -3}), ValueError);
  CHECK_THROWS_AS(loaded({.resize = 0}), ValueError);
  CHECK_THROWS_AS(loaded({.resize = {0, 5}}), ValueError);
  CHECK_THROWS_AS(loaded({.crop = {5, -1}}), ValueError);
  CHECK_THROWS_AS(loaded({.crop = {5, 1 << 30}}), ValueError);
}

TEST_CASE("an image folder of pictures of all sizes", "[data]") {
  const TemporaryDirectory directory;
  add_picture(directory / "a" / "1.png", "rgb.png");
  std::filesystem::create_directory(directory / "b");
  write_bytes(directory / "b" / "1.ppm", bytes_of("P2 2 3 255 1 2 3 4 5 6"));
  const ImageFolder folder(directory.path(), {.resize = 3, .crop = 2});
  CHECK(folder.get(std::array<int64_t, 2>{0, 1}).inputs.shape() == Shape{2, 3, 2, 2});
  const ImageFolder fixed(directory.path(), {.resize = {4, 6}});
  CHECK(fixed.get(std::array<int64_t, 2>{0, 1}).inputs.shape() == Shape{2, 3, 4, 6});
  CHECK_THROWS_AS(ImageFolder(directory.path(), {.memory_limit = 10}), FileError);
}
