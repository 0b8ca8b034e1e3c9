// Classifies volumes with Conv3d: AdrenalMNIST3D (MedMNIST) when its .npz file is given, else synthetic
// voxels.
#include <cstdio>
#include <iostream>

#include "classification.h"
#include "progress.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

struct Volumes {
  data::TensorDataset train;
  data::TensorDataset test;
};

/// Means of blocks of `factor` voxels along each side: [N, D, H, W] bytes to [N, 1, D / factor, ...] bytes.
Tensor shrink(const Tensor& volumes, int64_t factor) {
  const NoGrad guard;
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < volumes.size(0); first += 64) {
    const Tensor some = slice(volumes, 0, first, first + 64).to(float32);
    parts.push_back(avg_pool3d(unsqueeze(some, 1), {.kernel_size = factor}).to(uint8));
  }
  return cat(parts, 0);
}

Volumes read_volumes(const std::string& file, int64_t size) {
  const io::NpzReader npz(file);
  const auto part = [&](const std::string& name) {
    const Tensor images = npz.read(name + "_images");
    return data::TensorDataset(shrink(images, images.size(1) / size),
                               flatten(npz.read(name + "_labels")).to(int64));
  };
  return {part("train"), part("test")};
}

/// Balls (0) and boxes (1) of equal volume on average, anywhere, in noise.
data::TensorDataset make_volumes(int64_t count, int64_t size, uint64_t seed) {
  Generator generator(seed);
  const Tensor noise = randint(0, 80, {count, 1, size, size, size}, generator).to(uint8);
  const std::vector<double> draws = rand({count, 4}, {.dtype = float64}, generator).to_vector<double>();
  std::vector<int64_t> labels;
  for (int64_t n = 0; n < count; ++n) {
    const double* d = draws.data() + 4 * n;
    const double radius = static_cast<double>(size) * (0.18 + 0.12 * d[3]);
    const double range = static_cast<double>(size) - 2 * radius;
    const bool box = n % 2 == 1;
    const double reach = box ? radius * 0.806 : radius;  // a cube of the ball's volume
    uint8_t* voxel = noise.data<uint8_t>() + n * size * size * size;
    for (int64_t i = 0; i < size * size * size; ++i) {
      const double z = static_cast<double>(i / (size * size)) - radius - range * d[0];
      const double y = static_cast<double>(i / size % size) - radius - range * d[1];
      const double x = static_cast<double>(i % size) - radius - range * d[2];
      const bool inside = box ? std::abs(x) < reach && std::abs(y) < reach && std::abs(z) < reach
                              : x * x + y * y + z * z < reach * reach;
      if (inside) voxel[i] = static_cast<uint8_t>(voxel[i] + 120);
    }
    labels.push_back(box ? 1 : 0);
  }
  return data::TensorDataset(noise, from_vector(labels));
}

nn::Sequential network(int64_t size) {
  nn::Sequential net;
  int64_t in = 1;
  for (const int64_t out : {16, 32, 64}) {
    net.add(
        nn::Conv3d{{.in_channels = in, .out_channels = out, .kernel_size = 3, .padding = 1, .bias = false}});
    net.add(nn::BatchNorm3d{{.num_features = out}});
    net.add(nn::ReLU{});
    net.add(nn::MaxPool3d{{.kernel_size = 2}});
    in = out;
    size /= 2;
  }
  net.add(nn::AdaptiveAvgPool3d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = in, .out_features = 2}});
  return net;
}

void run(const std::string& file, int64_t epochs, int64_t size, uint64_t seed) {
  manual_seed(seed);
  const Volumes volumes = file.empty()
                              ? Volumes{make_volumes(1000, size, seed), make_volumes(200, size, seed + 1000)}
                              : read_volumes(file, size);
  data::DataLoader train_loader(
      volumes.train,
      {.batch_size = 32, .shuffle = true, .seed = seed, .transforms = {data::normalize({0.2F}, {0.3F})}});
  data::DataLoader test_loader(volumes.test,
                               {.batch_size = 32, .transforms = {data::normalize({0.2F}, {0.3F})}});
  nn::Sequential net = network(size);
  optim::AdamW adam{net.parameters(), {.lr = 2e-3, .weight_decay = 0.01}};
  optim::Schedule schedule{adam, optim::CosineAnnealingLR{.steps = epochs * train_loader.size()}};

  std::printf("%ld training and %ld test volumes of %ld voxels a side, %ld parameters\n",
              static_cast<long>(volumes.train.size()), static_cast<long>(volumes.test.size()),
              static_cast<long>(size), static_cast<long>(net.num_parameters()));
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    ClassificationScore score;
    ProgressBar bar("epoch " + std::to_string(epoch), train_loader.size());
    int64_t done = 0;
    for (const data::Batch& batch : train_loader) {
      const Tensor logits = net(batch.inputs);
      const Tensor loss = cross_entropy(logits, batch.targets);
      adam.zero_grad();
      loss.backward();
      adam.step();
      schedule.step();
      score.add(loss.detach(), logits.detach(), batch.targets);
      bar.update(++done, "loss " + std::to_string(score.loss()));
    }
    const ClassificationScore test = evaluate(net, test_loader);
    std::printf("epoch %2ld  train loss %.4f  train accuracy %.2f %%  test accuracy %.2f %%  %.1f s\n",
                static_cast<long>(epoch), score.loss(), 100 * score.accuracy(), 100 * test.accuracy(),
                bar.seconds());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  int64_t epochs = 6;
  int64_t size = 32;
  uint64_t seed = 1;
  CLI::App app{"Trains a Conv3d network on AdrenalMNIST3D, or on synthetic voxels when --data is not given."};
  app.add_option("--data", file, "adrenalmnist3d_64.npz of MedMNIST");
  app.add_option("--epochs", epochs, "Times through the training volumes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--size", size, "Voxels a side after shrinking")
      ->check(CLI::IsMember({16, 32, 64}))
      ->capture_default_str();
  app.add_option("--seed", seed, "Seed of everything random")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    run(file, epochs, size, seed);
  } catch (const std::exception& error) {
    std::cerr << "voxels: " << error.what() << '\n';
    return 1;
  }
}
