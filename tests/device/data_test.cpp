// Batches changed on another device, and training in mixed precision there.

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/copy.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/data/dataset.h"
#include "pleat/data/loader.h"
#include "pleat/data/transforms.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/image/image.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;

namespace {

/// The relative distance of what `f` gives on the two devices.
template <class F>
double difference(const F& f, const Tensor& x) {
  const Tensor wanted = f(x);
  const Device other(DeviceType::cuda);
  const Tensor got = f(ops::to_device(x, other));
  CHECK(got.device() == other);
  CHECK(got.dtype() == wanted.dtype());
  return test::relative_error(ops::to_device(got, Device()), wanted);
}

}  // namespace

TEST_CASE("device: images are changed alike", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  manual_seed(5);
  const Tensor floats = rand({4, 3, 9, 10});
  const Tensor bytes = randint(0, 256, {4, 3, 9, 10}).to(uint8);
  const std::vector<ops::ImageShift> shifts = {
      {}, {.down = 3, .right = -2}, {.right = 4, .mirror_columns = true}, {.mirror_rows = true}};
  const std::vector<ops::ImageBox> boxes = {{}, {1, 2, 5, 6}, {-3, -2, 4, 4}, {5, 5, 30, 30}};
  const std::vector<ops::ImageMap> maps = {{},
                                           {.row = {0.9F, 0.2F, -1.3F}, .column = {-0.2F, 0.9F, 0.7F}},
                                           {.row = {0, 1, 0}, .column = {1, 0, 0}},
                                           {.row = {3, 0, -5}, .column = {0, -2, 15}}};
  const std::vector<ops::ImageMix> mixes = {
      {}, {.partner = 3, .share = 0.25F}, {.partner = 1, .box = {1, 1, 4, 5}}, {.partner = 0, .share = 0}};
  const std::vector<ops::ImageColors> colors = {{}, {0.5F, 1, 1}, {1, 0.25F, 1}, {1.25F, 0.75F, 0}};
  for (const Tensor& x : {floats, bytes}) {
    CHECK(difference([&](const Tensor& t) { return ops::shift_images(t, shifts); }, x) == 0);
    CHECK(difference([&](const Tensor& t) { return ops::shift_images(t, shifts, true); }, x) == 0);
    CHECK(difference([&](const Tensor& t) { return ops::erase_boxes(t, boxes); }, x) == 0);
    for (const bool repeat_edge : {false, true})
      CHECK(difference(
                [&](const Tensor& t) {
                  return ops::map_images(t, maps, {7, 12, repeat_edge});
                },
                x) < (x.dtype() == uint8 ? 0.01 : 1e-5));
    std::vector<ops::ImageMap> without_ties = maps;
    without_ties[1] = {.row = {0.87F, 0.21F, -1.33F}, .column = {-0.21F, 0.87F, 0.72F}};
    CHECK(difference(
              [&](const Tensor& t) {
                return ops::map_images(t, without_ties, {.height = 7, .width = 12, .nearest = true});
              },
              x) == 0);
    CHECK(difference(
              [](const Tensor& t) {
                return ops::scale_channels(t, std::vector{0.5F, 2.0F, 3.0F}, std::vector{0.1F, 0.2F, 0.3F});
              },
              x) < 1e-6);
    CHECK(difference(
              [](const Tensor& t) {
                return ops::take_rows(t, std::vector<int64_t>{3, 0, 3, 2, 1});
              },
              x) == 0);
  }
  CHECK(difference([&](const Tensor& t) { return ops::mix_images(t, mixes); }, floats) < 1e-6);
  CHECK(difference([&](const Tensor& t) { return ops::adjust_colors(t, colors); }, floats) < 1e-6);
}

TEST_CASE("device: a loader gives the same batches of a data set there, and of one that is copied",
          "[device]") {
  if (pleat_test::lacks_gpus()) return;
  manual_seed(6);
  const data::TensorDataset here(randint(0, 256, {50, 3, 8, 8}).to(uint8), randint(0, 10, {50}));
  data::LoaderOptions options{
      .batch_size = 16,
      .shuffle = true,
      .seed = 3,
      .workers = 2,
      .transforms = {data::random_crop({.padding = 2}), data::random_horizontal_flip(), data::cutout(3)}};
  std::vector<data::Batch> wanted;
  data::DataLoader on_cpu(here, options);
  for (const data::Batch& batch : on_cpu) wanted.push_back(batch);

  const Device other(DeviceType::cuda);
  CHECK(here.fits(other));
  CHECK(here.fits(other, 0) == other.is_cpu());
  const data::TensorDataset there = here.to(other);
  options.device = other;
  for (const data::TensorDataset& set : {there, here}) {
    data::DataLoader loader(set, options);
    std::size_t i = 0;
    for (const data::Batch& batch : loader) {
      CHECK(batch.inputs.device() == other);
      CHECK((batch.inputs.to_vector() == wanted.at(i).inputs.to_vector()));
      CHECK((batch.targets.to_vector<int64_t>() == wanted.at(i).targets.to_vector<int64_t>()));
      ++i;
    }
    CHECK(i == wanted.size());
  }
}

TEST_CASE("device: a step in mixed precision agrees with float32 on the CPU", "[device][amp]") {
  if (pleat_test::lacks_gpus()) return;
  /// The change of all parameters by one step.
  const auto changes = [](Device device, std::optional<DType> half) {
    manual_seed(8);
    nn::Sequential net{nn::Conv2d{{.in_channels = 3, .out_channels = 8, .kernel_size = 3}},
                       nn::BatchNorm2d{{.num_features = 8}},
                       nn::ReLU{},
                       nn::AdaptiveAvgPool2d{{.output_size = 2}},
                       nn::Flatten{},
                       nn::Linear{{.in_features = 32, .out_features = 5}}};
    const Tensor x = randn({32, 3, 12, 12});
    const Tensor target = randint(0, 5, {32});
    const nn::StateDict before = nn::clone(net.state_dict());
    net.to(device);
    optim::SGD sgd{net.parameters(), {.lr = 0.5}};
    optim::GradScaler scaler{{.init_scale = 1024, .enabled = half == float16}};
    Tensor loss;
    {
      const Autocast guard{half.value_or(float16), {.enabled = half.has_value()}};
      const Tensor logits = net(ops::to_device(x, device));
      CHECK(logits.dtype() == half.value_or(float32));
      loss = cross_entropy(logits, ops::to_device(target, device));
    }
    scaler.scale(loss).backward();
    CHECK(scaler.step(sgd));
    scaler.update();
    std::vector<double> all;
    for (const auto& [name, tensor] : net.state_dict()) {
      const auto after = tensor.to_vector<double>();
      const auto start = before.at(name).to_vector<double>();
      if (is_floating(tensor.dtype()))
        for (std::size_t i = 0; i < after.size(); ++i) all.push_back(after[i] - start[i]);
    }
    return all;
  };
  const std::vector<double> wanted = changes(Device(), {});
  const Device other(DeviceType::cuda);
  CHECK(test::relative_error(changes(other, {}), wanted) < 1e-4);
  // A few roundings forward and backward, of which each can be half a unit of 2^-10 or 2^-7, and cancellation
  // in batch norm's backward.
  CHECK(test::relative_error(changes(other, float16), wanted) < 0.01);
  CHECK(test::relative_error(changes(other, bfloat16), wanted) < 0.08);
}
