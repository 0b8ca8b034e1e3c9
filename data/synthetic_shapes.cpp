#include "pleat/data/synthetic_shapes.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/philox.h"

namespace pleat::data {
namespace {

constexpr int side = synthetic_image_size;
constexpr int plane = side * side;

// Lengths within a shape are fixed-point numbers with unit = 1.0 for the radius of the circle around the
// shape. Squares of coordinates up to 2.0 then fit 32 bits.
constexpr int unit = 4096;
// Places on the image are counted in eighths of a pixel: 4 x 4 samples a pixel lie at its odd eighths.
constexpr int eighths = 8;

consteval int fixed(double value) { return static_cast<int>(value * unit + (value < 0 ? -0.5 : 0.5)); }

// The purpose of random numbers; part of the counter, so that no number is used twice.
enum class Purpose : uint32_t { label, image };

// The random numbers of one image: word n is a function of seed, split, purpose, index and n alone.
class Random {
 public:
  Random(uint64_t seed, SyntheticSplit split, Purpose purpose, int64_t index)
      : seed_(seed),
        index_(static_cast<uint64_t>(index)),
        stream_(static_cast<uint64_t>(purpose) << 40 | static_cast<uint64_t>(split) << 32) {}

  uint32_t bits() {
    if (next_ == words_.size()) {
      words_ = philox(seed_, index_, stream_++);
      next_ = 0;
    }
    return words_[next_++];
  }

  // Uniform in [low, high], but for a bias below 2^-20 with ranges below 4096, and below 2^-16 with the
  // widest used here.
  int in(int low, int high) {
    const auto range = static_cast<uint64_t>(high - low + 1);
    return low + static_cast<int>(bits() * range >> 32);
  }

 private:
  uint64_t seed_;
  uint64_t index_;
  uint64_t stream_;
  std::array<uint32_t, 4> words_{};
  std::size_t next_ = 4;
};

using Color = std::array<int, 3>;  // red, green, blue in [0, 255]

// Rec. 601 luma in 1/256.
int luma(const Color& c) { return (77 * c[0] + 150 * c[1] + 29 * c[2]) >> 8; }

Color random_color(Random& random) {
  const int hue = random.in(0, 6 * 256 - 1);
  const int saturation = random.in(70, 240);
  const int value = random.in(50, 250);
  const int low = value * (256 - saturation) >> 8;
  const int rest = hue & 255;
  const int rising = low + ((value - low) * rest >> 8);
  const int falling = low + ((value - low) * (255 - rest) >> 8);
  switch (hue >> 8) {
    case 0:
      return {value, rising, low};
    case 1:
      return {falling, value, low};
    case 2:
      return {low, value, rising};
    case 3:
      return {low, falling, value};
    case 4:
      return {rising, low, value};
    default:
      return {value, low, falling};
  }
}

constexpr int least_contrast = 64;  // least difference of luma between shape and background

Color contrasting_color(Random& random, const Color& background) {
  const int ground = luma(background);
  Color color{};
  for (int attempt = 0; attempt < 32; ++attempt) {
    color = random_color(random);
    if (std::abs(luma(color) - ground) >= least_contrast) return color;
  }
  // After 32 misses the colour is moved towards white or black, whichever is farther from the background.
  const int end = ground < 128 ? 255 : 0;
  for (int& channel : color) channel = (channel + 3 * end) / 4;
  return color;
}

// A shape's own coordinates of a place on the image: (x, y) = M (place - centre), where M is a rotation with
// scaling, in units of unit / 2^10 per eighth of a pixel.
struct Placement {
  int center_x;  // eighths of a pixel
  int center_y;
  int reach;  // radius of the circle around the shape, eighths of a pixel
  int xx, xy, yx, yy;
};

// A rotation by an angle that is nearly uniform, without sine and cosine: with t in [-tan(pi/8),
// tan(pi/8)] the point ((1 - t^2)/(1 + t^2), 2t/(1 + t^2)) runs over the quarter of the unit circle
// around (1, 0), with a density between 1 and 1.17; a random number of quarter turns follows.
std::pair<int, int> random_direction(Random& random) {
  constexpr int64_t one = 1 << 16;
  const int64_t t = random.in(-27146, 27146);  // tan(pi/8) * 2^16
  const int64_t square = t * t / one;
  int cosine = static_cast<int>((one - square) * unit / (one + square));
  int sine = static_cast<int>(2 * t * unit / (one + square));
  for (int turns = random.in(0, 3); turns > 0; --turns) cosine = -std::exchange(sine, cosine);
  return {cosine, sine};
}

Placement random_placement(Random& random) {
  Placement place{};
  const int radius = random.in(9 * eighths, 13 * eighths);
  // Up to a pixel of the enclosing circle may leave the image.
  const int margin = radius - eighths;
  place.center_x = random.in(margin, side * eighths - margin);
  place.center_y = random.in(margin, side * eighths - margin);
  // Proportions: one axis is up to an eighth shorter than the other.
  const int short_radius = radius * random.in(224, 256) / 256;
  const auto [cosine, sine] = random_direction(random);
  place.reach = radius + eighths;
  place.xx = cosine * 1024 / radius;
  place.xy = sine * 1024 / radius;
  place.yx = -sine * 1024 / short_radius;
  place.yy = cosine * 1024 / short_radius;
  return place;
}

constexpr int squared(int x) { return x * x; }

// Whether (x, y), in units of unit, lies within the shape of a class. All shapes fill the unit circle about
// equally.
bool inside(int label, int x, int y) {
  const int radius2 = squared(x) + squared(y);
  switch (label) {
    case 0:  // circle
      return radius2 <= squared(fixed(0.86));
    case 1:  // ring
      return radius2 <= squared(fixed(0.96)) && radius2 >= squared(fixed(0.56));
    case 2:  // crescent: a circle without another one
      return radius2 <= squared(fixed(0.98)) && squared(x - fixed(0.42)) + squared(y) >= squared(fixed(0.74));
    case 3: {  // heart: two circles, the wedge of their outer tangents below, and a box that closes the gap
               // between
      const int across = std::abs(x);
      if (y > fixed(-0.01)) {
        return squared(across - fixed(0.46)) + squared(y - fixed(0.32)) <= squared(fixed(0.5)) ||
               (across <= fixed(0.46) && y <= fixed(0.32));
      }
      return (fixed(0.751) * across - fixed(0.660) * y) / unit <= fixed(0.634);
    }
    case 4: {  // triangle, equilateral: three half-planes at distance 1/2
      const int slanted = 3547 * std::abs(x) / unit - y / 2;  // sqrt(3)/2
      return y <= fixed(0.5) && slanted <= fixed(0.5);
    }
    case 5:  // square
      return std::max(std::abs(x), std::abs(y)) <= fixed(0.74);
    case 6: {  // star of five points: at most one of the five lines through its points has it on the far side
      constexpr std::array<std::array<int, 2>, 5> normals = {{{fixed(1.0), 0},
                                                              {fixed(0.309016994), fixed(0.951056516)},
                                                              {fixed(-0.809016994), fixed(0.587785252)},
                                                              {fixed(-0.809016994), fixed(-0.587785252)},
                                                              {fixed(0.309016994), fixed(-0.951056516)}}};
      int beyond = 0;
      for (const auto& n : normals) beyond += (n[0] * x + n[1] * y) / unit > fixed(0.36);
      return beyond <= 1;
    }
    case 7:  // cross
      return std::min(std::abs(x), std::abs(y)) <= fixed(0.27) &&
             std::max(std::abs(x), std::abs(y)) <= fixed(0.94);
    case 8:  // stripes: three bars cut out of a circle
      return radius2 <= squared(fixed(0.98)) && std::abs(std::abs(x) - fixed(0.31)) >= fixed(0.15);
    default: {  // checkerboard of 4 x 4 fields
      const int field = fixed(0.41);
      if (std::max(std::abs(x), std::abs(y)) >= 2 * field) return false;
      return (((x + 2 * field) / field + (y + 2 * field) / field) & 1) == 0;
    }
  }
}

// How many of a pixel's 4 x 4 samples are covered, 0 to 16: covers(x, y) in eighths of a pixel.
template <class Covers>
int samples_in(int column, int row, const Covers& covers) {
  int count = 0;
  for (int y = 1; y < eighths; y += 2)
    for (int x = 1; x < eighths; x += 2) count += covers(column * eighths + x, row * eighths + y);
  return count;
}

int coverage(int label, const Placement& place, int column, int row) {
  const int dx = column * eighths + eighths / 2 - place.center_x;
  const int dy = row * eighths + eighths / 2 - place.center_y;
  if (squared(dx) + squared(dy) > squared(place.reach + eighths)) return 0;
  return samples_in(column, row, [&](int x, int y) {
    const int px = x - place.center_x, py = y - place.center_y;
    return inside(label, (place.xx * px + place.xy * py) / 1024, (place.yx * px + place.yy * py) / 1024);
  });
}

// All pixels of the part of an image within these bounds.
template <class Body>
void for_pixels(int left, int right, int top, int bottom, const Body& body) {
  for (int row = top; row <= bottom; ++row)
    for (int column = left; column <= right; ++column) body(column, row);
}

class Canvas {
 public:
  // A slope between two colours, with clouds of a coarse lattice in between.
  void paint_background(Random& random, const Color& from, const Color& to) {
    const auto slope = random_direction(random);
    constexpr int cells = 4;
    constexpr int cell = side / cells;
    std::array<std::array<int, cells + 1>, cells + 1> lattice{};
    const int strength = random.in(0, 120);
    for (auto& line : lattice)
      for (int& value : line) value = random.in(-strength, strength);
    for_pixels(0, side - 1, 0, side - 1, [&](int column, int row) {
      const int i = row / cell, j = column / cell, v = row % cell, u = column % cell;
      const int top = lattice[i][j] * (cell - u) + lattice[i][j + 1] * u;
      const int bottom = lattice[i + 1][j] * (cell - u) + lattice[i + 1][j + 1] * u;
      const int cloud = (top * (cell - v) + bottom * v) / (cell * cell);
      const int along =
          (slope.first * (2 * column - side + 1) + slope.second * (2 * row - side + 1)) / (unit / 4);
      blend(column, row, from, to, std::clamp(128 + along + cloud, 0, 256));
    });
  }

  // A short line or, with both ends alike, a dot: all places within `radius` of the segment.
  void paint_segment(int x0, int y0, int x1, int y1, int radius, const Color& color) {
    const int dx = x1 - x0, dy = y1 - y0;
    const int length2 = dx * dx + dy * dy;
    const auto covers = [&](int px, int py) {
      const int along = (px - x0) * dx + (py - y0) * dy;
      if (along <= 0) return squared(px - x0) + squared(py - y0) <= squared(radius);
      if (along >= length2) return squared(px - x1) + squared(py - y1) <= squared(radius);
      const int64_t across = static_cast<int64_t>(px - x0) * dy - static_cast<int64_t>(py - y0) * dx;
      return across * across <= static_cast<int64_t>(squared(radius)) * length2;
    };
    const auto first = [&](int a, int b) { return std::max(0, (std::min(a, b) - radius) / eighths); };
    const auto last = [&](int a, int b) { return std::min(side - 1, (std::max(a, b) + radius) / eighths); };
    for_pixels(first(x0, x1), last(x0, x1), first(y0, y1), last(y0, y1), [&](int column, int row) {
      const int count = samples_in(column, row, covers);
      if (count > 0) blend(column, row, at(column, row), color, 16 * count);
    });
  }

  void paint_distractors(Random& random) {
    for (int count = random.in(1, 4); count > 0; --count) {
      const int x = random.in(0, side * eighths), y = random.in(0, side * eighths);
      const bool dot = random.in(0, 1) == 0;
      const auto [cosine, sine] = random_direction(random);
      const int length = dot ? 0 : random.in(3 * eighths, 8 * eighths);
      const int radius = dot ? random.in(6, 12) : random.in(3, 5);
      paint_segment(x, y, x + cosine * length / unit, y + sine * length / unit, radius, random_color(random));
    }
  }

  // The shape in its colour, with a slope of light across it.
  void paint_shape(Random& random, int label, const Placement& place, const Color& color) {
    const auto slope = random_direction(random);
    const int light = random.in(0, 28);
    for_pixels(0, side - 1, 0, side - 1, [&](int column, int row) {
      const int count = coverage(label, place, column, row);
      if (count == 0) return;
      const int px = column * eighths + eighths / 2 - place.center_x;
      const int py = row * eighths + eighths / 2 - place.center_y;
      const int shade = (slope.first * px + slope.second * py) / place.reach * light / unit;
      blend(column, row, at(column, row), {color[0] + shade, color[1] + shade, color[2] + shade}, 16 * count);
    });
  }

  // Adds grain: the sum of two uniform numbers for each byte, so a triangular distribution.
  void write_with_noise(Random& random, std::array<uint8_t, synthetic_image_bytes>& bytes) const {
    const int strength = random.in(4, 24);
    for (int i = 0; i < synthetic_image_bytes; i += 2) {
      uint32_t bits = random.bits();
      for (int k = i; k < i + 2; ++k, bits >>= 16) {
        const int grain = static_cast<int>(bits & 255) + static_cast<int>(bits >> 8 & 255) - 255;
        bytes[k] = static_cast<uint8_t>(std::clamp(pixels_[k] + grain * strength / 256, 0, 255));
      }
    }
  }

 private:
  Color at(int column, int row) const {
    const int place = row * side + column;
    return {pixels_[place], pixels_[place + plane], pixels_[place + 2 * plane]};
  }

  // Sets a pixel to (1 - share) from + share to; `share` in 1/256.
  void blend(int column, int row, const Color& from, const Color& to, int share) {
    for (int channel = 0; channel < 3; ++channel) {
      const int value = (from[channel] * (256 - share) + to[channel] * share + 128) / 256;
      pixels_[channel * plane + row * side + column] = std::clamp(value, 0, 255);
    }
  }

  std::array<int, synthetic_image_bytes> pixels_{};
};

constexpr int64_t records_per_file = 10'000;
constexpr int64_t most_images = 10'000'000;

void check_index(const char* function, int64_t index) {
  check<ValueError>(index >= 0, "{}: index must not be negative, got {}", function, index);
}

void check_count(const char* name, int64_t count) {
  check<ValueError>(count >= 0 && count <= most_images,
                    "write_synthetic_shapes: {} must be between 0 and {}, got {}", name, most_images, count);
}

// Records [first, first + count) of a stream.
std::string records(uint64_t seed, SyntheticSplit split, int64_t first, int64_t count) {
  constexpr int64_t record = 1 + synthetic_image_bytes;
  std::string bytes(static_cast<std::size_t>(count * record), '\0');
  parallel_for(0, count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const SyntheticImage image = synthetic_shape(seed, split, first + i);
      char* to = bytes.data() + i * record;
      *to = static_cast<char>(image.label);
      std::copy(image.pixels.begin(), image.pixels.end(), to + 1);
    }
  });
  return bytes;
}

std::filesystem::path batch_path(const std::filesystem::path& directory, int64_t number) {
  return directory / ("data_batch_" + std::to_string(number) + ".bin");
}

}  // namespace

const std::array<std::string, synthetic_classes>& synthetic_shape_names() {
  static const auto& names = *new std::array<std::string, synthetic_classes>{
      "circle", "ring", "crescent", "heart",   "triangle",
      "square", "star", "cross",    "stripes", "checkerboard"};
  return names;
}

int synthetic_shape_label(uint64_t seed, SyntheticSplit split, int64_t index) {
  check_index("synthetic_shape_label", index);
  std::array<uint8_t, synthetic_classes> order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  Random random(seed, split, Purpose::label, index / synthetic_classes);
  for (int last = synthetic_classes - 1; last > 0; --last) std::swap(order[last], order[random.in(0, last)]);
  return order[index % synthetic_classes];
}

SyntheticImage synthetic_shape(uint64_t seed, SyntheticSplit split, int64_t index) {
  check_index("synthetic_shape", index);
  const int label = synthetic_shape_label(seed, split, index);
  Random random(seed, split, Purpose::image, index);

  const Color background = random_color(random);
  const Color foreground = contrasting_color(random, background);
  Color other = random_color(random);
  // The background's second colour stays near the first one, so that the shape keeps its contrast everywhere.
  for (int channel = 0; channel < 3; ++channel)
    other[channel] = (3 * background[channel] + other[channel]) / 4;

  Canvas canvas;
  canvas.paint_background(random, background, other);
  canvas.paint_distractors(random);
  const Placement place = random_placement(random);
  canvas.paint_shape(random, label, place, foreground);

  SyntheticImage image;
  image.label = static_cast<uint8_t>(label);
  canvas.write_with_noise(random, image.pixels);
  return image;
}

std::vector<std::filesystem::path> write_synthetic_shapes(const std::filesystem::path& directory,
                                                          const SyntheticShapesOptions& options) {
  check_count("train", options.train);
  check_count("test", options.test);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  check<FileError>(!error, "write_synthetic_shapes: cannot make directory '{}': {}", directory.string(),
                   error.message());
  const int64_t batches = (options.train + records_per_file - 1) / records_per_file;
  const auto stale = batch_path(directory, batches + 1);
  check<FileError>(!std::filesystem::exists(stale, error),
                   "write_synthetic_shapes: '{}' belongs to a larger set, and a reader would add it to this "
                   "one; remove it",
                   stale.string());

  std::vector<std::filesystem::path> paths;
  const auto write = [&paths](std::filesystem::path path, std::string_view bytes) {
    write_file("write_synthetic_shapes", path, bytes);
    paths.push_back(std::move(path));
  };
  for (int64_t batch = 0; batch < batches; ++batch) {
    const int64_t first = batch * records_per_file;
    write(batch_path(directory, batch + 1), records(options.seed, SyntheticSplit::train, first,
                                                    std::min(records_per_file, options.train - first)));
  }
  write(directory / "test_batch.bin", records(options.seed, SyntheticSplit::test, 0, options.test));
  std::string names;
  for (const std::string& name : synthetic_shape_names()) names += name + '\n';
  write(directory / "batches.meta.txt", names);
  return paths;
}

}  // namespace pleat::data
