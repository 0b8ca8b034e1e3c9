#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat_test::TemporaryDirectory;

TEST_CASE("a classifier of an ONNX file has a head of its own, and is read again", "[train][onnx]") {
  manual_seed(1);
  const TemporaryDirectory folder;
  nn::Sequential net = models::small_cnn({.num_classes = 10});
  const std::string file = (folder / "net.onnx").string();
  onnx::export_onnx(file, net, randn({1, 3, 32, 32}));
  const auto make = [&](int64_t classes, int64_t size) {
    std::vector<std::string> names;
    for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
    return train::make_classifier(file, {.num_classes = classes, .image_size = size}, names, {0.5, 0.5, 0.5},
                                  {0.2, 0.2, 0.2});
  };
  const Tensor x = randn({2, 3, 32, 32});
  net.eval();
  train::Classifier same = make(10, 32);
  same.net.eval();
  CHECK(allclose(same.net(x), net(x), {.rtol = 1e-4, .atol = 1e-5}));
  train::Classifier other = make(3, 32);
  other.net.eval();
  const Tensor y = other.net(x);
  CHECK(y.shape() == Shape{2, 3});
  train::write_classifier(folder / "weights.safetensors", other);
  train::Classifier again = train::read_classifier(folder / "weights.safetensors");
  again.net.eval();
  CHECK(array_equal(again.net(x), y));
  CHECK_THROWS_WITH(make(3, 64), Contains("takes pictures of 32 pixels a side, not 64"));
  nn::Sequential no_classifier = models::unet({.num_classes = 4, .in_channels = 3, .widths = {8, 16}});
  onnx::export_onnx(file, no_classifier, randn({1, 3, 32, 32}));
  CHECK_THROWS_WITH(make(3, 32), Contains("is no classifier that ends in a linear layer"));
}
