// Draws discs, squares and triangles, and writes them as pictures with a list of their classes.
#include <filesystem>
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

/// A picture [1, 32, 32] of numbers around 0 to 1: a shape somewhere, in noise.
Tensor draw(int64_t kind, Generator& random) {
  const std::vector<double> r = rand({4}, float64, random).to_vector<double>();
  const double radius = 6 + 4 * r[2];
  const Tensor x = unsqueeze(arange(32), 0) - (10 + 12 * r[0]);  // [1, 32]
  const Tensor y = unsqueeze(arange(32), 1) - (10 + 12 * r[1]);  // [32, 1]
  Tensor inside;                                                 // [32, 32]
  if (kind == 0) inside = x * x + y * y < radius * radius;
  if (kind == 1) inside = abs(x) < 0.85 * radius && abs(y) < 0.85 * radius;
  if (kind == 2) inside = y < 0.7 * radius && y > 2 * abs(x) - radius;
  const Tensor noise = 0.13 * randn({32, 32}, float32, random);
  return unsqueeze(0.3 + (0.2 + 0.3 * r[3]) * inside.to(float32) + noise, 0);
}

void draw_set(const std::filesystem::path& folder, int64_t count, Generator& random) {
  std::filesystem::create_directories(folder);
  io::CsvWriter labels(folder / "labels.csv", {"file", "class"});
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i) + ".png";
    data::write_png(folder / name, draw(i % 3, random));
    labels.row({name, i % 3});
  }
  std::cout << count << " pictures in " << folder.string() << '\n';
}

int main() {
  Generator random(1);
  draw_set("shapes/train", 1200, random);
  draw_set("shapes/test", 300, random);
}
