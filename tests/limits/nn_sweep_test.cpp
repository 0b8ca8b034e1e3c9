#include "pleat/core/memory/allocator.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/synthetic_shapes.h"
#include "pleat/data/transforms.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/init.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/nn/pool.h"
#include "pleat/nn/upsample.h"
#include "pleat/ops/image/image.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/limits/sweep.h"

using namespace pleat;
using namespace pleat_test;

TEST_CASE("modules take integers from all over int64", "[limits]") {
  const Tensor x = ones({1, 4, 3, 4});
  sweep("Linear", {4, 2},
        [&](const Integers& i) { return nn::Linear{{.in_features = i[0], .out_features = i[1]}}(x); });
  sweep("Embedding", {4, 2, 1, 0}, [](const Integers& i) {
    return nn::Embedding{{.num_embeddings = i[0], .embedding_dim = i[1], .padding_idx = i[2]}}(
        tensor({i[3]}));
  });
  sweep("Conv", {4, 2, 2, 1}, [&](const Integers& i) {
    return nn::Conv2d{{.in_channels = i[0], .out_channels = i[1], .kernel_size = i[2], .groups = i[3]}}(x);
  });
  for (const char* mode : {"zeros", "reflect", "replicate", "circular"})
    sweep("Conv", {1, 1, 1}, [&](const Integers& i) {
      return nn::Conv2d{{.in_channels = 4,
                         .out_channels = 2,
                         .kernel_size = 2,
                         .stride = i[0],
                         .padding = i[1],
                         .dilation = i[2],
                         .padding_mode = mode}}(x);
    });
  sweep("ConvTranspose", {4, 2, 2, 1, 1}, [&](const Integers& i) {
    return nn::ConvTranspose2d{
        {.in_channels = i[0], .out_channels = i[1], .kernel_size = i[2], .stride = i[3], .groups = i[4]}}(x);
  });
  sweep("ConvTranspose", {1, 0, 1}, [&](const Integers& i) {
    return nn::ConvTranspose2d{{.in_channels = 4,
                                .out_channels = 2,
                                .kernel_size = 2,
                                .padding = i[0],
                                .output_padding = i[1],
                                .dilation = i[2]}}(x);
  });
  sweep("BatchNorm", {4}, [&](const Integers& i) { return nn::BatchNorm2d{{.num_features = i[0]}}(x); });
  sweep("InstanceNorm", {4}, [&](const Integers& i) {
    return nn::InstanceNorm2d{{.num_features = i[0], .affine = true, .track_running_stats = true}}(x);
  });
  sweep("GroupNorm", {2, 4},
        [&](const Integers& i) { return nn::GroupNorm{{.num_groups = i[0], .num_channels = i[1]}}(x); });
  sweep("LayerNorm", {3, 4}, [&](const Integers& i) {
    return nn::LayerNorm{{.normalized_shape = Dims{i[0], i[1]}}}(x);
  });
  sweep("Flatten", {1, -1}, [&](const Integers& i) { return nn::Flatten{{.first = i[0], .last = i[1]}}(x); });
  sweep("Unflatten", {1, 2, 2}, [&](const Integers& i) {
    return nn::Unflatten{{.dim = i[0], .sizes = Shape{i[1], i[2]}}}(x);
  });
  sweep("Softmax", {1}, [&](const Integers& i) { return nn::Softmax{{.dim = i[0]}}(x); });
  sweep("LogSoftmax", {1}, [&](const Integers& i) { return nn::LogSoftmax{{.dim = i[0]}}(x); });
  sweep("Upsample", {2}, [&](const Integers& i) { return nn::Upsample{{.size = i[0]}}(x); });
  sweep("pools", {2}, [&](const Integers& i) {
    const MaxPoolOptions most = {.kernel_size = i[0]};
    const AvgPoolOptions average = {.kernel_size = i[0]};
    const AdaptivePoolOptions adaptive = {.output_size = i[0]};
    const auto run = [&](auto&& module) {
      try {
        (void)module(x);
      } catch (const Error&) {
      }
    };
    run(nn::MaxPool1d(most)), run(nn::MaxPool2d(most)), run(nn::MaxPool3d(most));
    run(nn::AvgPool1d(average)), run(nn::AvgPool2d(average)), run(nn::AvgPool3d(average));
    run(nn::AdaptiveMaxPool1d(adaptive)), run(nn::AdaptiveMaxPool2d(adaptive)),
        run(nn::AdaptiveMaxPool3d(adaptive));
    run(nn::AdaptiveAvgPool1d(adaptive)), run(nn::AdaptiveAvgPool2d(adaptive)),
        run(nn::AdaptiveAvgPool3d(adaptive));
  });
  sweep("dirac_", {1}, [](const Integers& i) { return nn::init::dirac_(zeros({4, 2, 3}), i[0]); });
}

TEST_CASE("schedules take integers from all over int64", "[limits]") {
  using namespace optim;
  const auto rate = [](const char* name, const Integers& usual, auto make) {
    sweep(name, usual, [&](const Integers& i) {
      const Rate schedule = make(i);
      (void)schedule.momentum(i.back());
      return schedule(i.back(), 0.1);
    });
  };
  rate("StepLR", {3, 5}, [](const Integers& i) { return Rate(StepLR{.step_size = i[0]}); });
  rate("MultiStepLR", {3, 5, 4}, [](const Integers& i) {
    return Rate(MultiStepLR{.milestones = std::vector<int64_t>{i[0], i[1]}});
  });
  rate("ExponentialLR", {3}, [](const Integers&) { return Rate(ExponentialLR{.gamma = 0.9}); });
  rate("CosineAnnealingLR", {3, 2}, [](const Integers& i) { return Rate(CosineAnnealingLR{.steps = i[0]}); });
  rate("CosineAnnealingWarmRestarts", {3, 2, 5},
       [](const Integers& i) { return Rate(CosineAnnealingWarmRestarts{.first = i[0], .mult = i[1]}); });
  rate("ConstantLR", {3, 5}, [](const Integers& i) { return Rate(ConstantLR{.steps = i[0]}); });
  rate("LinearLR", {3, 5}, [](const Integers& i) { return Rate(LinearLR{.steps = i[0]}); });
  rate("PolynomialLR", {3, 5}, [](const Integers& i) { return Rate(PolynomialLR{.steps = i[0]}); });
  rate("OneCycleLR", {9, 5},
       [](const Integers& i) { return Rate(OneCycleLR{.max_lr = 0.1, .total_steps = i[0]}); });
  rate("warm_up", {3, 5}, [](const Integers& i) { return Rate(warm_up(i[0], ConstantLR{})); });
}

TEST_CASE("images and transforms take integers from all over int64", "[limits]") {
  for (const DType dtype : {uint8, float32}) {
    const Tensor images = ones({2, 3, 4, 5}, {.dtype = dtype});
    for (const bool reflect : {false, true})
      sweep("shift_images", {1, -1, 0, 2}, [&](const Integers& i) {
        return ops::shift_images(images, std::vector<ops::ImageShift>{{i[0], i[1]}, {i[2], i[3], true, true}},
                                 reflect);
      });
    sweep("erase_boxes", {1, 1, 3, 3}, [&](const Integers& i) {
      return ops::erase_boxes(images, std::vector<ops::ImageBox>{{i[0], i[1], i[2], i[3]}, {}});
    });
    sweep("mix_images", {1, 1, 2, 3, 4}, [&](const Integers& i) {
      return ops::mix_images(images, std::vector<ops::ImageMix>{{i[0], 0.5, {i[1], i[2], i[3], i[4]}}, {}});
    });
    const auto transformed = [&](const char* name, const Integers& usual, auto make) {
      sweep(name, usual, [&](const Integers& i) {
        data::Batch batch{images, tensor({1, 2})};
        const std::vector<data::Transform> list = {make(i)};
        data::apply(list, batch, 1, i.back(), std::vector<int64_t>{0, 1});
        return batch.inputs;
      });
    };
    transformed("random_crop", {1, 0},
                [](const Integers& i) { return data::random_crop({.padding = i[0]}); });
    transformed("random_crop", {1, 0},
                [](const Integers& i) { return data::random_crop({.padding = i[0], .reflect = true}); });
    transformed("cutout", {2, 0}, [](const Integers& i) { return data::cutout(i[0]); });
    transformed("mixup", {3, 0}, [](const Integers& i) { return data::mixup(1, i[0]); });
    transformed("cutmix", {3, 0}, [](const Integers& i) { return data::cutmix(1, i[0]); });
  }
  sweep("synthetic_shape", {1, 5}, [](const Integers& i) {
    return data::synthetic_shape(static_cast<uint64_t>(i[0]), data::SyntheticSplit::train, i[1]).label;
  });
  sweep("synthetic_shape_label", {1, 5}, [](const Integers& i) {
    return data::synthetic_shape_label(static_cast<uint64_t>(i[0]), data::SyntheticSplit::test, i[1]);
  });
}

TEST_CASE("settings take integers from all over int64", "[limits]") {
  const int threads = num_threads();
  sweep("set_num_threads", {2}, [](const Integers& i) { set_num_threads(i[0]); });
  set_num_threads(threads);
  sweep("parallel_for", {0, 3, 1},
        [](const Integers& i) { parallel_for(i[0], i[1], i[2], [](int64_t, int64_t) {}); });
  sweep("parallel_chunks", {3}, [](const Integers& i) {
    if (i[0] < 1000) parallel_chunks(i[0], [](int64_t) {});  // a caller who wants 2^62 of them waits for them
  });
  sweep("allocate", {100}, [](const Integers& i) { return allocate(i[0]) != nullptr; });
  sweep("set_cache_limit", {100}, [](const Integers& i) { set_cache_limit(i[0]); });
  set_cache_limit(int64_t{1} << 30);
}
