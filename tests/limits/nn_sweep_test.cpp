#include <limits>
#include <string>
#include <vector>

#include "pleat/core/memory/allocator.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/synthetic_shapes.h"
#include "pleat/data/transforms.h"
#include "pleat/models/char_transformer.h"
#include "pleat/models/dcgan.h"
#include "pleat/models/lenet.h"
#include "pleat/models/make_classifier.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/next_token.h"
#include "pleat/models/unet.h"
#include "pleat/models/vision_transformer.h"
#include "pleat/models/voxel_net.h"
#include "pleat/nn/distributions.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/init.h"
#include "pleat/nn/loss_modules.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/nn/recurrent.h"
#include "pleat/nn/transformer.h"
#include "pleat/ops/image/image.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/limits/sweep.h"
#include "pleat/tests/nn/module_cases.h"

using namespace pleat;
using namespace pleat_test;

TEST_CASE("modules take integers from all over int64", "[limits]") {
  for (const test::ModuleCase& c : test::module_cases()) {
    if (c.usual.empty()) continue;
    const Tensor x = c.make_input().to(c.classes > 0 ? int64 : float32);
    sweep(c.name, c.usual, [&](const Integers& i) { return (*c.make_with(i))(x); });
  }
  sweep("Embedding of an index", {1}, [](const Integers& i) {
    return nn::Embedding{{.num_embeddings = 4, .embedding_dim = 2}}(tensor({i[0]}));
  });
  sweep("Normal::sample", {2, 3}, [](const Integers& i) {
    return distributions::Normal(ones({2}), ones({2})).sample({i[0], i[1]});
  });
  sweep("Categorical::sample", {2, 3}, [](const Integers& i) {
    return distributions::Categorical{{.probs = ones({2})}}.sample({i[0], i[1]});
  });
  sweep("Categorical::log_prob", {1}, [](const Integers& i) {
    return distributions::Categorical{{.probs = ones({2})}}.log_prob(tensor({i[0]}));
  });
  sweep("next_token", {2}, [](const Integers& i) {
    return models::next_token(ones({2, 3}), {.top_k = i[0]});
  });
  sweep("dirac_", {1}, [](const Integers& i) { return nn::init::dirac_(zeros({4, 2, 3}), i[0]); });
}

TEST_CASE("modules too large for any machine are refused before the memory is taken", "[limits]") {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> huge = {int64_t{1} << 40, int64_t{1} << 61, int64_t{1} << 62, most - 1, most};
  for (const test::ModuleCase& c : test::module_cases())
    for (std::size_t a = 0; a < c.usual.size(); ++a)
      for (const int64_t size : huge) {
        Integers i = c.usual;
        i[a] = size;
        INFO(c.name << ", integer " << a << ": " << size);
        try {
          (void)c.make_with(i);
        } catch (const Error&) {
          // a stride or a padding may be as large
        }
      }
  const auto layered = [](int64_t n) {
    using namespace nn;
    const TransformerEncoderLayerOptions layer{.d_model = 1, .nhead = 1, .dim_feedforward = 1};
    CHECK_THROWS_AS(LSTM({.input_size = 1, .hidden_size = 1, .num_layers = n}), Error);
    CHECK_THROWS_AS(GRU({.input_size = 1, .hidden_size = 1, .num_layers = n, .bidirectional = true}), Error);
    CHECK_THROWS_AS(RNN({.input_size = 1, .hidden_size = 1, .num_layers = n, .bias = false}), Error);
    CHECK_THROWS_AS(TransformerEncoder({.layer = layer, .num_layers = n}), Error);
    CHECK_THROWS_AS(TransformerDecoder({.layer = layer, .num_layers = n}), Error);
    CHECK_THROWS_AS(Transformer({.d_model = 1, .nhead = 1, .num_encoder_layers = n}), Error);
    CHECK_THROWS_AS(Transformer({.d_model = 1, .nhead = 1, .num_decoder_layers = n}), Error);
    CHECK_THROWS_AS(
        models::CharTransformer({.characters = 1, .length = 1, .width = 1, .heads = 1, .layers = n}), Error);
  };
  for (const int64_t layers : {int64_t{1} << 34, int64_t{1} << 40, most}) {
    layered(layers);
    CHECK_THROWS_AS(models::VisionTransformer({2, 4, 2, layers, 1, 2, 2}), Error);
  }
  for (const int64_t size : huge) {
    for (const std::string& name : models::classifier_names()) {
      CHECK_THROWS_AS(models::make_classifier(name, {.num_classes = size}), Error);
      CHECK_THROWS_AS(models::make_classifier(name, {.num_classes = 2, .in_channels = size}), Error);
      try {
        (void)models::make_classifier(name, {.num_classes = 2, .image_size = size / 32 * 32});
      } catch (const Error&) {
        // some take pictures of any size
      }
    }
    CHECK_THROWS_AS(models::lenet({.num_classes = size, .in_channels = 1}), Error);
    CHECK_THROWS_AS(models::lenet({.num_classes = 2, .in_channels = 1, .image_size = size}), Error);
    CHECK_THROWS_AS(models::dcgan_generator(size), Error);
    CHECK_THROWS_AS(models::dcgan_discriminator(size), Error);
    CHECK_THROWS_AS(models::unet({.num_classes = size}), Error);
    CHECK_THROWS_AS(models::unet({.num_classes = 2, .widths = {size, size}}), Error);
    CHECK_THROWS_AS(models::voxel_net({.num_classes = size}), Error);
    CHECK_THROWS_AS(models::imagenet::mobilenet_v3_small({.num_classes = size}), Error);
    const auto vit = [](int64_t classes, int64_t image, int64_t patch, int64_t width, int64_t hidden) {
      models::VisionTransformer({classes, image, patch, 1, 1, width, hidden});
    };
    CHECK_THROWS_AS(vit(size, 4, 2, 2, 2), Error);
    CHECK_THROWS_AS(vit(2, size, 1, 2, 2), Error);
    CHECK_THROWS_AS(vit(2, size, size, 2, 2), Error);
    CHECK_THROWS_AS(vit(2, 4, 2, size, 2), Error);
    CHECK_THROWS_AS(vit(2, 4, 2, 2, size), Error);
  }
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
  rate("CyclicLR", {3, 4, 5}, [](const Integers& i) {
    return Rate(CyclicLR{.base_lr = 0.1, .max_lr = 0.2, .steps_up = i[0], .steps_down = i[1]});
  });
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
    sweep("map_images", {2, 3}, [&](const Integers& i) {
      return ops::map_images(images, std::vector<ops::ImageMap>(2), {i[0], i[1]});
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
    transformed("random_resized_crop", {2, 3, 0}, [](const Integers& i) {
      return data::random_resized_crop({.size = {i[0], i[1]}});
    });
    transformed("random_affine", {0},
                [](const Integers&) { return data::random_affine({.degrees = 20, .translate = 0.5}); });
    transformed("random_erasing", {0}, [](const Integers&) { return data::random_erasing(); });
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

TEST_CASE("modules of losses take integers from all over int64", "[limits]") {
  const Tensor x = ones({2, 4});
  sweep("CrossEntropyLoss", {1, -100}, [&](const Integers& i) {
    return nn::CrossEntropyLoss{{.ignore_index = i[1]}}(x, tensor({i[0], int64_t{0}}));
  });
  sweep("NLLLoss", {1, -100}, [&](const Integers& i) {
    return nn::NLLLoss{{.ignore_index = i[1]}}(x, tensor({i[0], int64_t{0}}));
  });
  sweep("MultiMarginLoss", {1, 2}, [&](const Integers& i) {
    const MultiMarginOptions options{.p = i[0]};
    nn::detail::check_options(nn::detail::LayerName{"MultiMarginLoss"}, options);
    return nn::MultiMarginLoss{options}(x, tensor({i[1], int64_t{0}}));
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
