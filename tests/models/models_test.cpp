#include <cmath>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("classifiers take images and give a number for each class", "[models]") {
  manual_seed(1);
  const std::map<std::string, int64_t> parameters{{"small", 113'962},          {"resnet20", 272'474},
                                                  {"resnet18", 11'173'962},    {"vgg11", 9'228'362},
                                                  {"mobilenet_v2", 2'236'682}, {"convnext_atto", 3'376'290}};
  for (const std::string& name : models::classifier_names()) {
    CAPTURE(name);
    nn::Sequential net = models::make_classifier(name, {.num_classes = 10});
    CHECK(net(randn({2, 3, 32, 32})).shape() == Shape{2, 10});
    CHECK(net.num_parameters() == parameters.at(name));
    nn::Sequential other =
        models::make_classifier(name, {.num_classes = 3, .in_channels = 1, .image_size = 64});
    CHECK(other(randn({2, 1, 64, 64})).shape() == Shape{2, 3});
  }
  CHECK_THROWS_WITH(models::make_classifier("big", {.num_classes = 2}),
                    Contains("there are small, resnet20"));
  CHECK_THROWS_AS(models::small_cnn({.num_classes = 2, .image_size = 30}), ValueError);
  CHECK_THROWS_AS(models::vgg11({.num_classes = 2, .image_size = 48}), ValueError);
}

TEST_CASE("networks of other kinds", "[models]") {
  manual_seed(1);
  CHECK(models::lenet({.num_classes = 10})(randn({2, 1, 28, 28})).shape() == Shape{2, 10});
  CHECK(
      models::lenet({.num_classes = 3, .in_channels = 3, .image_size = 32})(randn({1, 3, 32, 32})).shape() ==
      Shape{1, 3});
  CHECK(
      models::unet({.num_classes = 4, .in_channels = 1, .widths = {8, 16}})(randn({1, 1, 12, 20})).shape() ==
      Shape{1, 4, 12, 20});
  CHECK(models::voxel_net({.num_classes = 3, .in_channels = 2})(randn({2, 2, 8, 16, 8})).shape() ==
        Shape{2, 3});
  const Tensor images = models::dcgan_generator(8)(randn({2, 100, 1, 1}));
  CHECK(images.shape() == Shape{2, 3, 64, 64});
  CHECK(models::dcgan_discriminator(8)(images).shape() == Shape{2, 1, 1, 1});
  models::CharTransformer text({.characters = 7, .length = 6, .width = 16, .heads = 4, .layers = 2});
  CHECK(text(randint(0, 7, {3, 5})).shape() == Shape{3, 5, 7});
  CHECK_THROWS_WITH(text(randint(0, 7, {3, 7})), Contains("at most 6 characters"));
  CHECK_THROWS_WITH(models::CharTransformer({.width = 10, .heads = 4}),
                    Contains("heads = 4 must divide width = 10"));
  CHECK_THROWS_AS(models::unet({.num_classes = 2, .widths = {8}}), ValueError);
  CHECK_THROWS_AS(models::lenet({.num_classes = 2, .image_size = 30}), ValueError);
}

TEST_CASE("a U-Net refuses pictures that cannot be halved often enough", "[models]") {
  nn::Sequential net = models::unet({.num_classes = 2, .widths = {4, 8, 16}});
  const Tensor pictures = ones({1, 3, 10, 12});
  CHECK_THROWS_WITH(net(pictures),
                    "in 0 (Level): unet: pictures must be [N, 3, H, W] with H and W multiples of 4, got " +
                        pictures.describe() + "; pad or resize them");
  CHECK(net(ones({1, 3, 12, 20})).shape() == Shape{1, 2, 12, 20});
}

TEST_CASE("networks with only the options that they need take what their pages say", "[models]") {
  manual_seed(1);
  const auto gives = [](nn::Module& net, const Tensor& x, const Shape& shape) {
    CHECK(net(x).shape() == shape);
  };
  const auto classifies = [&](nn::Sequential net) { gives(net, randn({2, 3, 32, 32}), {2, 10}); };
  classifies(models::small_cnn({.num_classes = 10}));
  classifies(models::resnet20({.num_classes = 10}));
  classifies(models::resnet18({.num_classes = 10}));
  classifies(models::vgg11({.num_classes = 10}));
  classifies(models::mobilenet_v2({.num_classes = 10}));
  classifies(models::convnext_atto({.num_classes = 10}));
  nn::Sequential unet = models::unet({.num_classes = 4});
  gives(unet, randn({1, 3, 16, 24}), {1, 4, 16, 24});
  nn::Sequential voxels = models::voxel_net({.num_classes = 3});
  gives(voxels, randn({2, 1, 8, 8, 8}), {2, 3});
  nn::Sequential generator = models::dcgan_generator(), discriminator = models::dcgan_discriminator();
  gives(generator, randn({1, 100, 1, 1}), {1, 3, 64, 64});
  gives(discriminator, randn({1, 3, 64, 64}), {1, 1, 1, 1});
  models::CharTransformer text;
  gives(text, randint(0, 65, {1, 64}), {1, 64, 65});
}

TEST_CASE("the char transformer sees no later character", "[models]") {
  manual_seed(1);
  models::CharTransformer net({.characters = 5, .length = 8, .width = 16, .heads = 2, .layers = 2});
  const Tensor text = randint(0, 5, {1, 8}), changed = text.clone();
  select(changed, 1, 5) = remainder(select(text, 1, 5) + 1, 5);
  const Tensor a = net(text), b = net(changed);
  CHECK(array_equal(narrow(a, 1, 0, 5), narrow(b, 1, 0, 5)));
  CHECK_FALSE(array_equal(narrow(a, 1, 5, 3), narrow(b, 1, 5, 3)));
}

TEST_CASE("a small ConvNeXt learns", "[models]") {
  manual_seed(1);
  nn::Sequential net = models::convnext_atto({.num_classes = 2});
  optim::AdamW adam{net.parameters(), {.lr = 1e-3}};
  const Tensor targets = randint(0, 2, {8});
  const Tensor x = randn({8, 3, 16, 16}) + reshape(targets.to(float32), {8, 1, 1, 1});
  double first = 0, last = 0;
  for (int i = 0; i < 12; ++i) {
    const Tensor loss = cross_entropy(net(x), targets);
    adam.zero_grad();
    loss.backward();
    adam.step();
    (i == 0 ? first : last) = loss.item();
  }
  CHECK(last < 0.3 * first);
}

TEST_CASE("networks for ImageNet by their names", "[models]") {
  CHECK(models::imagenet::class_names().size() == 1000);
  CHECK(models::imagenet::class_names().front() == "tench");
  CHECK(models::imagenet::class_names().back() == "toilet tissue");
  CHECK(models::imagenet::channel_mean().size() == 3);
  CHECK(models::imagenet::channel_std().size() == 3);
  CHECK(models::imagenet::classifier_names().size() == 11);
  CHECK_THROWS_WITH(models::imagenet::make_classifier("resnet20"), Contains("there are resnet18, resnet34"));
  const auto parameters = [](const nn::AnyModule& net) { return net.get().num_parameters(); };
  CHECK(parameters(models::imagenet::make_classifier("resnet18")) == 11'689'512);
  CHECK(parameters(models::imagenet::resnet50()) == 25'557'032);
  CHECK(parameters(models::imagenet::mobilenet_v2()) == 3'504'872);
  CHECK(parameters(models::imagenet::mobilenet_v3_small()) == 2'542'856);
  CHECK(parameters(models::imagenet::efficientnet_b0()) == 5'288'548);
  CHECK(parameters(models::imagenet::densenet121()) == 7'978'856);
}

TEST_CASE("networks for ImageNet start as torchvision's do", "[models]") {
  manual_seed(1);
  nn::Sequential mobile = models::imagenet::mobilenet_v3_small({.num_classes = 7});
  const nn::StateDict state = mobile.state_dict();
  const auto deviation = [&](const char* name) { return stddev(state.at(name)).item(); };
  CHECK(deviation("features.11.block.0.0.weight") == Approx(std::sqrt(2.0 / 576)).epsilon(0.02));
  CHECK(deviation("features.11.block.1.0.weight") == Approx(std::sqrt(2.0 / (576 * 25))).epsilon(0.02));
  CHECK(deviation("classifier.0.weight") == Approx(0.01).epsilon(0.02));
  CHECK(array_equal(state.at("features.1.block.1.fc1.bias"), zeros({8})));
  const auto& stem = mobile.get<nn::Sequential>(0).get<nn::Sequential>(0).get<nn::BatchNorm2d>(1);
  CHECK(stem.options.eps == 0.001);
  CHECK(stem.options.momentum == 0.01);
  nn::Sequential efficient = models::imagenet::efficientnet_b0({.num_classes = 7});
  std::vector<double> shares;
  efficient.apply([&](nn::Module& module) {
    if (const auto* depth = dynamic_cast<nn::StochasticDepth*>(&module)) shares.push_back(depth->options.p);
  });
  REQUIRE(shares.size() == 9);  // of the blocks with something beside them
  CHECK(shares.front() == Approx(0.2 * 2 / 16));
  CHECK(shares.back() == Approx(0.2 * 14 / 16));
  // Blocks are left out in training only.
  manual_seed(2);
  const Tensor x = randn({4, 3, 32, 32});
  CHECK_FALSE(array_equal(efficient(x), efficient(x)));
  efficient.eval();
  CHECK(array_equal(efficient(x), efficient(x)));
}

TEST_CASE("a vision transformer refuses what it was not made for", "[models]") {
  models::VisionTransformer net({.num_classes = 3,
                                 .image_size = 8,
                                 .patch_size = 4,
                                 .layers = 1,
                                 .heads = 2,
                                 .width = 8,
                                 .feedforward = 8});
  CHECK(array_equal(net(randn({2, 3, 8, 8})), zeros({2, 3})));  // as its last layer starts
  CHECK_THROWS_WITH(net(randn({2, 3, 8, 12})), Contains("pictures must be [N, 3, 8, 8]"));
  CHECK_THROWS_WITH(models::VisionTransformer({.image_size = 20}),
                    Contains("patch_size = 16 must divide image_size = 20"));
  CHECK_THROWS_AS(models::VisionTransformer({.layers = 0}), ValueError);
  CHECK_THROWS_AS(models::VisionTransformer({.heads = 7}), ValueError);
  CHECK_THROWS_AS(models::VisionTransformer({.width = -1}), ValueError);
}
