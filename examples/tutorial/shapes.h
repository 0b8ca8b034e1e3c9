// The data set and the network of the tutorial.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <pleat/pleat.h>

using namespace pleat;

inline const std::vector<std::string> class_names = {"disc", "square", "triangle"};
inline const std::string& name_of(int64_t c) { return class_names.at(static_cast<std::size_t>(c)); }

/// The pictures that a labels.csv lists. They are read when they are asked for.
class ShapePictures : public data::Dataset {
 public:
  explicit ShapePictures(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::ifstream list(folder_ / "labels.csv");
    if (!list) throw FileError((folder_ / "labels.csv").string() + ": cannot be read; run draw first");
    std::string line;
    std::getline(list, line);  // the names of the columns
    while (std::getline(list, line)) {
      const std::size_t comma = line.find(',');
      files_.push_back(line.substr(0, comma));
      classes_.push_back(std::stoll(line.substr(comma + 1)));
    }
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }

  /// Pictures [B, 1, 32, 32] uint8 with classes [B] int64.
  data::Batch get(std::span<const int64_t> indices) const override {
    std::vector<Tensor> pictures;
    std::vector<int64_t> classes;
    for (const int64_t i : indices) {
      const auto at = static_cast<std::size_t>(i);
      pictures.push_back(data::read_image(folder_ / files_.at(at)));
      classes.push_back(classes_.at(at));
    }
    return {stack(pictures, 0), from_vector(classes)};
  }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> files_;
  std::vector<int64_t> classes_;
};

/// Bytes as numbers with a mean near 0 and a deviation near 1.
inline Tensor prepared(const Tensor& bytes) { return (bytes.to(float32) / 255 - 0.36) / 0.18; }

inline data::DataLoader make_loader(const std::string& part, Flag shuffle) {
  const data::Transform prepare = [](data::Batch& batch, const data::SampleRandom&) {
    batch.inputs = prepared(batch.inputs);
  };
  return data::DataLoader(ShapePictures("shapes/" + part),
                          {.batch_size = 50, .shuffle = shuffle, .seed = 1, .transforms = {prepare}});
}

/// Pictures [N, 1, H, W] to logits [N, 3].
struct ShapeNet : nn::Module {
  nn::Conv2d conv1{{.in_channels = 1, .out_channels = 8, .kernel_size = 5, .padding = 2}};
  nn::BatchNorm2d norm1{{.num_features = 8}};
  nn::Conv2d conv2{{.in_channels = 8, .out_channels = 16, .kernel_size = 3, .padding = 1}};
  nn::BatchNorm2d norm2{{.num_features = 16}};
  nn::Conv2d conv3{{.in_channels = 16, .out_channels = 32, .kernel_size = 3, .padding = 1}};
  nn::BatchNorm2d norm3{{.num_features = 32}};
  nn::Linear head{{.in_features = 32, .out_features = 3}};

  Tensor forward(const Tensor& x) override {
    Tensor y = max_pool2d(relu(norm1(conv1(x))), {.kernel_size = 2});
    y = max_pool2d(relu(norm2(conv2(y))), {.kernel_size = 2});
    return head(mean(relu(norm3(conv3(y))), {2, 3}));
  }
  void members(nn::Members& m) override {
    m("conv1", conv1);
    m("norm1", norm1);
    m("conv2", conv2);
    m("norm2", norm2);
    m("conv3", conv3);
    m("norm3", norm3);
    m("head", head);
  }
};
