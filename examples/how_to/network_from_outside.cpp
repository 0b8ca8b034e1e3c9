// A network from an ONNX file, fine-tuned on pictures in folders, served by four threads, and exported again:
//
//   network_from_outside resnet18.onnx fc photos/train photos/test
//
// Without arguments it makes all of these itself: pictures of bars and crosses, and a small network that has
// learned other shapes.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <pleat/pleat.h>

using namespace pleat;

namespace {

/// Stands for PyTorch: writes a file of a network of ten classes that has seen `steps` batches of shapes.
void write_network(const std::filesystem::path& file, int64_t steps) {
  nn::Sequential net = models::resnet20({.num_classes = 10});
  optim::AdamW adam{net.parameters(), {.lr = 2e-3}};
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Tensor> images;
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < 50; ++i) {
      const data::SyntheticImage image = data::synthetic_shape(1, data::SyntheticSplit::train, 50 * step + i);
      images.push_back(from_span<uint8_t>(image.pixels, {3, 32, 32}));
      labels.push_back(image.label);
    }
    const Tensor loss = cross_entropy(net(stack(images, 0).to(float32) / 255), from_vector(labels));
    adam.zero_grad();
    loss.backward();
    adam.step();
  }
  onnx::export_onnx(file, net, randn({1, 3, 32, 32}));
}

/// Stands for photos: `count` pictures of bars and crosses in a folder for each class.
void draw(const std::filesystem::path& folder, int64_t count, Generator& random) {
  for (int64_t i = 0; i < count; ++i) {
    const double width = 2 + rand({1}, float64, random).item() * 2,
                 angle = rand({1}, float64, random).item() * 3;
    const Tensor x = unsqueeze(arange(32), 0) - 16, y = unsqueeze(arange(32), 1) - 16;
    const Tensor along = abs(std::cos(angle) * x + std::sin(angle) * y);
    const Tensor across = abs(std::cos(angle) * y - std::sin(angle) * x);
    Tensor inside = along < 5 * width && across < width;
    if (i % 2 == 1) inside = inside || (across < 5 * width && along < width);
    const std::filesystem::path of_class = folder / (i % 2 == 0 ? "bar" : "cross");
    std::filesystem::create_directories(of_class);
    data::write_png(of_class / (std::to_string(i) + ".png"),
                    0.3 + 0.4 * inside.to(float32) + 0.1 * randn({3, 32, 32}, float32, random));
  }
}

void fine_tune(const std::string& file, const std::string& head, const std::string& train_folder,
               const std::string& test_folder) {
  data::ImageFolderOptions options{.channels = 3, .resize = 32, .crop = 32};
  const data::ImageFolder train_set(train_folder, options);
  options.class_names = train_set.class_names();
  const data::ImageFolder test_set(test_folder, options);
  data::DataLoader loader(
      train_set,
      {.batch_size = 20, .shuffle = true, .transforms = {data::random_horizontal_flip(), data::to_float()}});
  data::DataLoader test_loader(test_set, {.batch_size = 20, .transforms = {data::to_float()}});

  onnx::ImportedNetwork net = onnx::import_onnx(file);
  const int64_t features = net.state_dict().at(head + ".weight").size(1);
  net.replace(head, nn::Linear{{.in_features = features, .out_features = std::ssize(options.class_names)}});

  optim::AdamW adam{net.parameters(), {.lr = 1e-3}};
  for (int epoch = 1; epoch <= 4; ++epoch) {
    for (const data::Batch& batch : loader) {
      const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
      adam.zero_grad();
      loss.backward();
      adam.step();
    }
    std::cout << "epoch " << epoch << "  test accuracy "
              << train::evaluate(net, test_loader, epoch).accuracy() << '\n';
  }

  const Tensor picture = narrow(test_loader.begin()->inputs, 0, 0, 1);
  const Inference engine(net, picture);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back([&] { (void)engine(picture); });
  for (std::thread& caller : callers) caller.join();
  onnx::export_onnx("fine_tuned.onnx", net, picture);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5) return fine_tune(argv[1], argv[2], argv[3], argv[4]), 0;
  manual_seed(1);
  Generator random(3);
  draw("photos/train", 120, random);
  draw("photos/test", 100, random);
  write_network("network.onnx", 60);
  fine_tune("network.onnx", "14", "photos/train", "photos/test");
}
