// Pictures in a folder for each class: reading them, looking at them, varying them, and classifying one.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numbers>

#include <pleat/pleat.h>

using namespace pleat;

/// Stands for pictures of your own: bars and crosses of any direction and size in noise, and a file of notes.
void draw(const std::filesystem::path& folder, int64_t count, Generator& random) {
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<double> r = rand({4}, float64, random).to_vector<double>();
    const int64_t side = 40 + static_cast<int64_t>(16 * r[0]);
    const double width = 0.06 * static_cast<double>(side), length = width * (4 + 2 * r[2]);
    const double angle = 2 * std::numbers::pi * r[1];
    const Tensor x = unsqueeze(arange(side), 0) - side / 2;
    const Tensor y = unsqueeze(arange(side), 1) - side / 2;
    const Tensor along = abs(std::cos(angle) * x + std::sin(angle) * y);
    const Tensor across = abs(std::cos(angle) * y - std::sin(angle) * x);
    Tensor inside = along < length && across < width;
    if (i % 2 == 1) inside = inside || (across < length && along < width);
    const Tensor noise = 0.1 * randn({3, side, side}, float32, random);
    const std::filesystem::path of_class = folder / (i % 2 == 0 ? "bar" : "cross");
    std::filesystem::create_directories(of_class);
    data::write_png(of_class / (std::to_string(i) + ".png"),
                    0.3 + (0.2 + 0.3 * r[3]) * inside.to(float32) + noise);
  }
  std::ofstream(folder / "cross" / "notes.txt") << "drawn by a program\n";
}

/// A transform: multiplies each picture by a factor from 1 - by to 1 + by.
data::Transform random_strength(double by) {
  return [by](data::Batch& batch, const data::SampleRandom& random) {
    std::vector<double> factors;
    for (int64_t i = 0; i < batch.size(); ++i) factors.push_back(1 + by * (2 * random.uniform(i) - 1));
    batch.inputs = batch.inputs * from_vector(factors, {batch.size(), 1, 1, 1}).to(float32);
  };
}

/// Pictures [rows * columns, C, H, W] beside each other: [C, rows * H, columns * W].
Tensor sheet(const Tensor& pictures, int64_t columns) {
  const int64_t rows = pictures.size(0) / columns, c = pictures.size(1), h = pictures.size(2),
                w = pictures.size(3);
  const Tensor apart = reshape(pictures, {rows, columns, c, h, w});
  return reshape(permute(apart, {2, 0, 3, 1, 4}), {c, rows * h, columns * w});
}

/// Probabilities [N, classes]: the mean over each picture and its mirror images.
Tensor from_four_sides(nn::Module& net, const Tensor& x) {
  const Tensor mirrored = flip(x, 3);
  Tensor sum = zeros({});
  for (const Tensor& side : {x, mirrored, flip(x, 2), flip(mirrored, 2)}) sum = sum + softmax(net(side), 1);
  return sum / 4;
}

int main() {
  Generator random(3);
  draw("pictures/train", 240, random);
  draw("pictures/test", 80, random);

  data::ImageFolderOptions options{.channels = 3, .resize = 32, .crop = 32};
  const data::ImageFolder train_folder("pictures/train", options);
  options.class_names = train_folder.class_names();  // the same numbers, also where a class is missing
  const data::ImageFolder test_folder("pictures/test", options);
  std::cout << train_folder.size() << " pictures\n";
  for (const std::string& name : train_folder.class_names()) std::cout << "class " << name << '\n';
  for (const auto& file : train_folder.skipped())
    std::cout << "left out: " << file.path.generic_string() << ", " << file.reason << '\n';

  const data::TensorDataset train_set = data::in_memory(train_folder);
  const data::TensorDataset test_set = data::in_memory(test_folder);
  const data::ChannelStatistics colours = data::channel_statistics(train_set);
  const data::Transform normalize = data::normalize(colours.mean, colours.std);
  data::DataLoader train_loader(
      train_set, {.batch_size = 40,
                  .shuffle = true,
                  .seed = 1,
                  .transforms = {data::random_horizontal_flip(), normalize, data::random_rotation(45),
                                 data::random_crop({.padding = 2}), random_strength(0.2)}});
  data::DataLoader test_loader(test_set, {.batch_size = 40, .transforms = {normalize}});

  const data::Batch batch = *train_loader.begin();
  data::write_png("pictures/batch.png", sheet(batch.inputs / 6 + 0.5, 8));
  std::cout << batch.inputs.describe() << ", " << batch.targets.describe() << '\n';
  train_loader.set_epoch(0);

  manual_seed(1);
  train::Classifier classifier = train::make_classifier(
      "small", {.num_classes = 2}, train_folder.class_names(), colours.mean, colours.std);
  optim::Adam adam{classifier.net.parameters()};
  constexpr int epochs = 8;
  optim::Schedule schedule{adam,
                           optim::OneCycleLR{.max_lr = 3e-3, .total_steps = epochs * train_loader.size()}};
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (const data::Batch& b : train_loader) {
      const Tensor loss = cross_entropy(classifier.net(b.inputs), b.targets);
      adam.zero_grad();
      loss.backward();
      adam.step();
      schedule.step();
    }
    std::cout << "epoch " << epoch << "  test accuracy "
              << train::evaluate(classifier.net, test_loader, epoch).accuracy() << '\n';
  }
  train::write_classifier("pictures/weights.safetensors", classifier);

  train::Classifier again = train::read_classifier("pictures/weights.safetensors");
  for (const train::ClassProbability& c : train::classify(again, "pictures/test/cross/1.png"))
    std::cout << c.name << "  " << c.probability << '\n';

  const NoGrad off_the_tape;
  again.net.eval();
  int64_t right = 0;
  for (const data::Batch& b : test_loader)
    right += sum(argmax(from_four_sides(again.net, b.inputs), 1) == b.targets).item<int64_t>();
  std::cout << "from four sides " << static_cast<double>(right) / static_cast<double>(test_set.size())
            << '\n';
}
