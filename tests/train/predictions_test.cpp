#include "pleat/train/predictions.h"

#include <cmath>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/onnx/onnx_file.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;
using Catch::Matchers::Contains;

namespace {
struct Identity : nn::Module {
  Tensor forward(const Tensor& x) override { return x; }
};
}  // namespace

TEST_CASE("a classifier is tested sample by sample", "[train]") {
  const Tensor logits =
      tensor({{2.0F, 0.0F, 0.0F}, {0.0F, 3.0F, 0.0F}, {0.0F, 1.0F, 0.0F}, {5.0F, 0.0F, 0.0F}});
  data::DataLoader loader(
      data::TensorDataset(logits, tensor({int64_t{0}, int64_t{1}, int64_t{0}, int64_t{1}})),
      {.batch_size = 3, .device = default_device()});
  Identity net;
  const train::Predictions test = train::predict_classes(net, loader);
  CHECK(test.accuracy() == 0.5);
  CHECK(test.loss() ==
        Approx(cross_entropy(logits, tensor({int64_t{0}, int64_t{1}, int64_t{0}, int64_t{1}})).item()));
  CHECK(test.confusion().counts() == std::vector<std::vector<int64_t>>{{1, 1, 0}, {1, 1, 0}, {0, 0, 0}});
  CHECK(test.class_accuracy()[0] == 0.5);
  CHECK(std::isnan(test.class_accuracy()[2]));
  REQUIRE(test.worst(10).size() == 2);
  CHECK(test.worst(10)[0].sample == 3);
  CHECK(test.worst(1).size() == 1);
  CHECK(test.worst(10)[0].probability == Approx(std::exp(5) / (std::exp(5) + 2)));
  CHECK(net.training());
}

TEST_CASE("predictions name the samples of any loader", "[train]") {
  // Sample i has the class i % 5, and is taken for a wrong one where i is a multiple of 7.
  constexpr int64_t samples = 200;
  std::vector<int64_t> classes;
  std::vector<float> numbers(samples * 5);
  for (int64_t i = 0; i < samples; ++i) {
    classes.push_back(i % 5);
    const int64_t predicted = i % 7 == 0 ? (i + 1) % 5 : i % 5;
    numbers[static_cast<std::size_t>(5 * i + predicted)] = 1 + 0.01F * static_cast<float>(i);
  }
  const Tensor targets = from_vector(classes), logits = from_vector(numbers, {samples, 5});
  const data::TensorDataset set(logits, targets);
  Identity net;
  train::TestTimeAugmentation augmented{Identity{}, {}};
  data::DataLoader plain(set, {.batch_size = 16, .device = default_device()});
  const train::Predictions wanted = train::predict_classes(net, plain);
  const auto check_same = [](const std::vector<train::Prediction>& a,
                             const std::vector<train::Prediction>& b) {
    REQUIRE(a.size() == b.size());
    int64_t different = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      different +=
          a[i].sample != b[i].sample || a[i].target != b[i].target || a[i].predicted != b[i].predicted;
    CHECK(different == 0);
  };
  std::vector<train::Prediction> of_ranks;
  for (const int64_t ranks : {1, 3})
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (const uint64_t seed : {0, 1}) {
        CAPTURE(ranks, rank, seed);
        data::DataLoader shuffled(set, {.batch_size = 16,
                                        .shuffle = true,
                                        .seed = seed,
                                        .workers = 2,
                                        .rank = rank,
                                        .world_size = ranks,
                                        .device = default_device()});
        const train::Predictions found = train::predict_classes(net, shuffled);
        for (const train::Prediction& p : found.samples) {
          CHECK(p.target == p.sample % 5);
          CHECK((p.predicted == p.target) == (p.sample % 7 != 0));
        }
        if (ranks > 1) {
          if (seed == 0) of_ranks.insert(of_ranks.end(), found.samples.begin(), found.samples.end());
          continue;
        }
        check_same(found.samples, wanted.samples);
        check_same(found.worst(10), wanted.worst(10));
        CHECK(found.confusion().counts() == wanted.confusion().counts());
        check_same(train::predict_classes(augmented, shuffled).samples, wanted.samples);
      }
  std::ranges::sort(of_ranks, {}, &train::Prediction::sample);
  check_same(of_ranks, wanted.samples);
}

TEST_CASE("a test of less than all samples, or without classes, is refused", "[train]") {
  Identity net;
  const data::TensorDataset set(zeros({10, 3}), zeros({10}, int64));
  const auto loader = [&](const data::TensorDataset& of, data::LoaderOptions options) {
    options.device = default_device();
    return data::DataLoader(of, options);
  };
  data::DataLoader dropping = loader(set, {.batch_size = 4, .drop_last = true});
  CHECK_THROWS_WITH(
      train::predict_classes(net, dropping),
      Contains("predict_classes: the loader leaves out 2 samples") && Contains("drop_last = false"));
  CHECK_THROWS_WITH(train::evaluate(net, dropping), Contains("evaluate: the loader leaves out 2 samples"));
  data::DataLoader whole = loader(set, {.batch_size = 5, .drop_last = true});
  CHECK(train::evaluate(net, whole).samples() == 10);
  for (const auto& batch : whole) {
    data::DataLoader resumed = loader(set, {.batch_size = 5, .drop_last = true});
    resumed.load_state_dict(whole.state_dict());
    if (batch.indices[0] == 0)
      CHECK_THROWS_WITH(train::evaluate(net, resumed),
                        Contains("evaluate: the loader goes on behind batch 1"));
  }
  const data::Transform twice = [](data::Batch& batch, const data::SampleRandom&) {
    batch.inputs = cat({batch.inputs, batch.inputs});
    batch.targets = cat({batch.targets, batch.targets});
  };
  data::DataLoader doubled = loader(set, {.batch_size = 5, .transforms = {twice}});
  CHECK_THROWS_WITH(train::predict_classes(net, doubled),
                    Contains("must keep the 5 samples of a batch, and made 10"));
  CHECK_THROWS_WITH(train::evaluate(net, doubled),
                    Contains("must keep the 5 samples of a batch, and made 10"));
  data::DataLoader none = loader(data::TensorDataset(zeros({10, 3})), {});
  CHECK_THROWS_WITH(train::predict_classes(net, none),
                    Contains("the loader must give targets [1] int64, got"));
  CHECK_THROWS_AS(train::evaluate(net, none), Error);
  data::DataLoader mixed = loader(set, {.batch_size = 5, .transforms = {data::mixup(0.2, 3)}});
  CHECK_THROWS_WITH(train::predict_classes(net, mixed), Contains("mixup and cutmix belong to the training"));
  for (const int64_t wrong : {-100, -1, 3}) {
    data::DataLoader outside = loader(data::TensorDataset(zeros({2, 3}), full({2}, wrong, int64)), {});
    CHECK_THROWS_WITH(train::predict_classes(net, outside),
                      Contains("predict_classes: sample 0 has the target"));
  }
}

TEST_CASE("test-time augmentation means the probabilities of versions", "[train]") {
  const Tensor x = tensor({{2.0F, 0.0F, 1.0F}, {0.0F, 3.0F, -1.0F}});
  train::TestTimeAugmentation net{Identity{}};
  const Tensor mean = (softmax(x, 1) + softmax(flip(x, {1}), 1)) / 2;
  CHECK(allclose(exp(net(x)), mean));
  CHECK(allclose(softmax(net(x), 1), mean));
  const auto zero = [](const Tensor& batch) { return zeros_like(batch); };
  train::TestTimeAugmentation three{Identity{}, {train::mirrored, zero}};
  CHECK(allclose(exp(three(x)), (softmax(x, 1) + softmax(flip(x, {1}), 1) + 1.0 / 3) / 3));
  train::TestTimeAugmentation alone{Identity{}, {}};
  CHECK(allclose(alone(x), log_softmax(x, 1)));

  // It takes a network's place: it owns it, with its modes, weights and gradients.
  manual_seed(2);
  train::TestTimeAugmentation small{models::small_cnn({.num_classes = 3, .image_size = 16})};
  small.eval();
  const Tensor pictures = randn({2, 3, 16, 16});
  CHECK(allclose(small(pictures), small(train::mirrored(pictures)), {.rtol = 1e-4, .atol = 1e-5}));
  CHECK(small.state_dict().begin()->first.starts_with("net."));
  sum(small(pictures)).backward();
  for (const Tensor& parameter : small.parameters()) CHECK(parameter.grad().defined());

  CHECK_THROWS_WITH((train::TestTimeAugmentation{Identity{}, {train::mirrored, {}}}),
                    Contains("version 1 is an empty function"));
  CHECK_THROWS_WITH(alone(ones({2})), Contains("the network must give [2, classes], got"));
}

TEST_CASE("a saved classifier has all that a picture needs", "[train]") {
  const TemporaryDirectory folder;
  manual_seed(1);
  train::Classifier made =
      train::make_classifier("small", {.num_classes = 2, .in_channels = 1, .image_size = 16},
                             {"cat \"a\"", "dog\xFF"}, {0.25}, {0.5});
  train::write_classifier(folder / "net.safetensors", made, {{"epoch", "3"}});
  train::export_classifier(folder / "net.onnx", made);
  const OnnxFile exported = read_onnx(folder / "net.onnx");
  CHECK(exported.inputs == std::vector<OnnxPort>{{"image", 2, {"batch", "1", "16", "16"}}});
  CHECK(exported.outputs == std::vector<OnnxPort>{{"logits", 1, {"batch", "2"}}});
  CHECK(exported.metadata.at("model") == "small");
  CHECK(exported.metadata.contains("class_names"));
  train::Classifier read = train::read_classifier(folder / "net.safetensors");
  CHECK(read.model == "small");
  CHECK(read.class_names == std::vector<std::string>{"cat \"a\"", "dog\xEF\xBF\xBD"});
  CHECK(read.mean == std::vector<double>{0.25});
  CHECK(read.std == std::vector<double>{0.5});
  CHECK(read.options.image_size == 16);
  CHECK(io::read_safetensors(folder / "net.safetensors").metadata.at("epoch") == "3");

  // A coloured picture of another size, as the network would see it.
  data::write_png(folder / "picture.png", randint(0, 256, {3, 20, 32}).to(uint8));
  const auto classes = train::classify(read, folder / "picture.png");
  const Tensor pixels = data::read_picture(folder / "picture.png", {.channels = 1, .resize = 16, .crop = 16});
  made.net.eval();
  const Tensor x = (unsqueeze(pixels, 0).to(float32) / 255 - 0.25) / 0.5;
  const std::vector<float> wanted = softmax(made.net(x.to(default_device())), 1).to_vector<float>();
  REQUIRE(classes.size() == 2);
  CHECK(classes[0].probability >= classes[1].probability);
  const bool cat = wanted[0] > wanted[1];
  CHECK(classes[0].name == (cat ? made.class_names[0] : read.class_names[1]));
  CHECK(classes[0].probability == Approx(wanted[cat ? 0 : 1]));
  CHECK(read.net.training());

  CHECK_THROWS_WITH(train::make_classifier("big", {.num_classes = 1}, {"a"}, {0, 0, 0}, {1, 1, 1}),
                    Contains("there is no network \"big\"; there are small, resnet20"));
  CHECK_THROWS_WITH(train::make_classifier("small", {.num_classes = 2}, {"a"}, {0, 0, 0}, {1, 1, 1}),
                    Contains("2 classes need as many names, got 1"));
  CHECK_THROWS_WITH(train::make_classifier("small", {.num_classes = 1}, {"a"}, {0}, {1}),
                    Contains("3 channels need"));
}
