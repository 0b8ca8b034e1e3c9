#include <algorithm>
#include <filesystem>
#include <functional>

#include "pleat/inference/inference.h"
#include "pleat/models/char_transformer.h"
#include "pleat/models/dcgan.h"
#include "pleat/models/make_classifier.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/unet.h"
#include "pleat/models/voxel_net.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/damage.h"
#include "pleat/tests/inference/trained.h"
#include "pleat/tests/system.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using Catch::Contains;
using pleat_test::replaces_mapped_files;
using pleat_test::TemporaryDirectory;
using test::trained;

namespace {

using Tensors = std::vector<Tensor>;

bool same_bits(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    return x.shape() == y.shape() && x.dtype() == y.dtype() &&
           std::equal(x.raw(), x.raw() + x.numel() * size_of(x.dtype()),
                      ops::to_format(y, x.memory_format()).raw());
  });
}

/// What is saved gives the same bits, for batches that were met before and for others. `input(batch)`.
void check_saved(const Inference& engine, const std::function<Tensors(int64_t)>& input) {
  const TemporaryDirectory folder;
  (void)engine(input(3));
  engine.save(folder / "x.engine");
  const Inference loaded = Inference::load(folder / "x.engine");
  CHECK(loaded.summary() == engine.summary());
  for (const int64_t batch : {3, 1, 5}) {
    CAPTURE(batch);
    const Tensors x = input(batch);
    CHECK(same_bits(loaded(x), engine(x)));
  }
  CHECK(loaded.summary() == engine.summary());
}
template <class Net>
void check_saved(Net net, Shape sample) {
  sample.insert(sample.begin(), 1);
  net.eval();
  check_saved(Inference(net, randn(sample), {.measure = false}), [&](int64_t batch) {
    sample[0] = batch;
    return Tensors{randn(sample)};
  });
}

/// The file with parts of its metadata replaced.
void edit(const std::filesystem::path& path, const std::string& entry, const std::string& from,
          const std::string& to) {
  io::SafetensorsContent content = io::read_safetensors(path);
  std::string& text = content.metadata.at(entry);
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  text.replace(place, from.size(), to);
  io::write_safetensors(path, content.tensors, content.metadata);
}

nn::Sequential small_net() {
  return trained(
      nn::Sequential{nn::Conv2d{{.in_channels = 3, .out_channels = 16, .kernel_size = 3, .padding = 1}},
                     nn::BatchNorm2d{{.num_features = 16}}, nn::ReLU{}, nn::Flatten{},
                     nn::Linear{{.in_features = 16 * 16, .out_features = 5}}});
}

}  // namespace

TEST_CASE("saved engines give the bits of those that were saved", "[inference][saved][cpu]") {
  for (const DType dtype : {bfloat16, float16}) {
    nn::Sequential net = small_net();
    net.to(dtype);
    check_saved(Inference(net, randn({1, 3, 4, 4}).to(dtype)), [&](int64_t batch) {
      return Tensors{randn({batch, 3, 4, 4}).to(dtype)};
    });
  }
  for (const std::string& name : models::classifier_names()) {
    CAPTURE(name);
    check_saved(trained(models::make_classifier(name, {.num_classes = 10})), {3, 32, 32});
  }
  check_saved(trained(models::unet({.num_classes = 2})), {3, 32, 32});
  check_saved(trained(models::voxel_net({.num_classes = 2})), {1, 16, 16, 16});
  check_saved(trained(models::dcgan_generator(16)), {100, 1, 1});
  models::CharTransformer text;
  check_saved(Inference(text, randint(0, 65, {1, 64})), [](int64_t batch) {
    return Tensors{randint(0, 65, {batch, 64})};
  });
}

TEST_CASE("saved engines: several inputs and outputs, float64, and a batch that is not free",
          "[inference][saved][cpu]") {
  nn::LSTM lstm{{.input_size = 5, .hidden_size = 8, .num_layers = 2, .bidirectional = true}};
  const auto forward = [&](const Tensors& in) {
    const RecurrentResult y = lstm.forward(in[0], {.h = in[1], .c = in[2]});
    return Tensors{y.output, y.h, y.c};
  };
  const auto inputs = [](int64_t batch) {
    return Tensors{randn({6, batch, 5}), randn({4, batch, 8}), randn({4, batch, 8})};
  };
  check_saved(Inference(lstm, inputs(1), forward, {.batch_dims = 1}), inputs);
  // Without states: zeros of the batch.
  check_saved(Inference(lstm, {randn({6, 1, 5})}, [&](const Tensors& in) { return Tensors{lstm(in[0])}; },
                        {.batch_dims = 1}),
              [](int64_t batch) {
                return Tensors{randn({6, batch, 5})};
              });
  auto wide = small_net();
  wide.to(float64);
  const Inference unmeasured(wide, randn({1, 3, 4, 4}, {.dtype = float64}), {.measure = false});
  check_saved(unmeasured, [](int64_t batch) { return Tensors{randn({batch, 3, 4, 4}, {.dtype = float64})}; });

  struct ByBatch : nn::Module {
    nn::Linear linear{{.in_features = 3, .out_features = 3}};
    void members(nn::Members& m) override { m("linear", linear); }
    Tensor forward(const Tensor& x) override { return x.size(0) > 2 ? linear(x * 2) : linear(x) + 1; }
  };
  ByBatch by_batch;
  const Inference engine(by_batch, randn({2, 3}));
  (void)engine(randn({3, 3}));
  const TemporaryDirectory folder;
  engine.save(folder / "x.engine");
  const Inference loaded = Inference::load(folder / "x.engine");
  for (const int64_t batch : {2, 3}) {
    const Tensors x{randn({batch, 3})};
    CHECK(same_bits(loaded(x), engine(x)));
  }
  CHECK_THROWS_WITH(loaded(randn({4, 3})),
                    Contains("was saved for inputs like [2, 3], got") && Contains("[4, 3]"));
}

TEST_CASE("saved engines in int8", "[inference][saved][int8][cpu]") {
  for (const char* name : {"resnet20", "vgg11"}) {
    auto net = trained(models::make_classifier(name, {.num_classes = 10}));
    const Inference engine(net, randn({1, 3, 32, 32}), {.calibration = {{randn({4, 3, 32, 32})}}});
    REQUIRE_THAT(engine.summary(), Contains(": int8"));
    check_saved(engine, [](int64_t batch) { return Tensors{randn({batch, 3, 32, 32})}; });
  }
  auto mobile = trained(models::mobilenet_v2({.num_classes = 10}));
  check_saved(Inference(mobile, randn({1, 3, 32, 32}), {.calibration = {{randn({4, 3, 32, 32})}}}),
              [](int64_t batch) {
                return Tensors{randn({batch, 3, 32, 32})};
              });
}

TEST_CASE("a saved engine is mapped: nothing is measured, and nothing large allocated",
          "[inference][saved][cpu]") {
  auto net = trained(models::make_classifier("vgg11", {.num_classes = 10}));
  const Tensor x = randn({1, 3, 32, 32});
  const Inference engine(net, x);  // measured
  const TemporaryDirectory folder;
  auto path = folder / "x.engine";
  engine.save(path);
  reset_peak_statistics();
  const int64_t before = allocator_statistics().allocated;
  Inference loaded = Inference::load(path);
  CHECK(allocator_statistics().peak - before <
        100'000);  // the weights have 36 MB, the first one's noise 12 kB
  CHECK(same_bits({loaded(x)}, {engine(x)}));
  CHECK(loaded.summary() == engine.summary());
  // The engine stays what it is when the file is replaced, and moves.
  if (!replaces_mapped_files()) path = folder / "y.engine";
  auto other = small_net();
  Inference(other, randn({1, 3, 4, 4}), {.measure = false}).save(path);
  const Inference moved = std::move(loaded);
  CHECK(same_bits({moved(x)}, {engine(x)}));
  // A choice of the file is taken, though measuring would not give it.
  edit(path, "engine", R"("choices":[["direct")", R"("choices":[["reference")");
  edit(path, "engine", R"("prepared":["prepared)", R"("prepared":[],"unread":["prepared)");
  CHECK_THAT(Inference::load(path).summary(), Contains("relu in 0: reference"));
}

TEST_CASE("an engine saved on another processor prepares weights anew", "[inference][saved][cpu]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.engine";
  auto net = trained(models::make_classifier("resnet20", {.num_classes = 10}));
  const Tensor x = randn({2, 3, 32, 32});
  const Inference engine(net, x);
  engine.save(path);
  edit(path, "prepared_for", "vectors of ", "vectors of 9");
  const Inference loaded = Inference::load(path);
  CHECK_THAT(loaded.summary(), Contains("weights prepared anew") && Contains("x.engine"));
  const Tensor y = engine(x);
  CHECK(max(abs(loaded(x) - y)).item<float>() < 2e-5F * max(abs(y)).item<float>());
  // In int8 the bits are the same everywhere.
  const Inference small(net, x, {.calibration = {{x}}});
  small.save(folder / "y.engine");
  edit(folder / "y.engine", "prepared_for", "vectors of ", "vectors of 9");
  CHECK(same_bits({Inference::load(folder / "y.engine")(x)}, {small(x)}));
}

TEST_CASE("other programs read a saved engine's weights", "[inference][saved][cpu]") {
  const TemporaryDirectory folder;
  auto net = small_net();
  const Inference engine(net, randn({1, 3, 4, 4}));
  engine.save(folder / "x.engine");
  const auto content = io::read_safetensors(folder / "x.engine");
  CHECK(content.tensors.at("0.weight").shape() == Shape{16, 3, 3, 3});
  CHECK(content.tensors.at("4.weight").shape() == Shape{5, 256});
  // Folded.
  const Tensor x = randn({2, 3, 4, 4});
  const Tensor y = linear(
      flatten(relu(conv2d(x, content.tensors.at("0.weight"), content.tensors.at("0.bias"), {.padding = 1})),
              1),
      content.tensors.at("4.weight"), content.tensors.at("4.bias"));
  CHECK(allclose(y, engine(x), {.rtol = 1e-4, .atol = 1e-5}));
}

TEST_CASE("what cannot be saved, or loaded engines cannot do, says why", "[inference][saved][cpu]") {
  const TemporaryDirectory folder;
  struct Decides : nn::Module {
    nn::Linear linear{{.in_features = 4, .out_features = 4}};
    void members(nn::Members& m) override { m("linear", linear); }
    Tensor forward(const Tensor& x) override { return sum(x).item<double>() > 0 ? linear(x) : -linear(x); }
  };
  Decides decides;
  CHECK_THROWS_WITH(Inference(decides, ones({2, 4})).save(folder / "x"),
                    Contains("Inference::save: a plan cannot follow") && Contains("item()"));
  CHECK(std::filesystem::is_empty(folder.path()));
  auto net = small_net();
  const Inference engine(net, randn({1, 3, 4, 4}));
  CHECK_THROWS_AS(engine.save(folder / "none" / "x"), FileError);
  engine.save(folder / "x");
  const Inference loaded = Inference::load(folder / "x");
  CHECK_THROWS_WITH(loaded.difference({randn({1, 3, 4, 4})}), Contains("no network to compare with"));
  CHECK_THROWS_WITH(loaded(randn({1, 3, 5, 5})), Contains("was saved for inputs like [1, 3, 4, 4]"));
  CHECK_THROWS_WITH(loaded({randn({1, 3, 4, 4}), ones({1})}), Contains("needs 1 inputs"));
  // And once more.
  loaded.save(folder / "y");
  const Tensors x{randn({2, 3, 4, 4})};
  CHECK(same_bits(Inference::load(folder / "y")(x), engine(x)));
  for (const Tensor& parameter : net.parameters()) copy_(parameter.detach(), parameter.detach() * 2);
  CHECK_THROWS_WITH(engine.save(folder / "x"), Contains("have changed since"));
}

TEST_CASE("files that are no engines are refused with their names", "[inference][saved][cpu]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.engine";
  auto net = small_net();
  const Inference engine(net, randn({1, 3, 4, 4}), {.measure = false});
  const auto refused = [&](const std::string& entry, const std::string& from, const std::string& to,
                           const std::string& cause) {
    engine.save(path);
    edit(path, entry, from, to);
    CAPTURE(from, to);
    CHECK_THROWS_AS(Inference::load(path), FileError);
    CHECK_THROWS_WITH(Inference::load(path), Contains("x.engine") && Contains(cause));
  };
  CHECK_THROWS_WITH(Inference::load(path), Contains("cannot open"));
  io::write_safetensors(path, {{"w", ones({2})}});
  CHECK_THROWS_WITH(Inference::load(path), Contains("has no entry 'format'"));
  refused("format", "engine 1", "engine 2", "has the format 'pleat engine 2', but this version reads");
  refused("engine", "{", "", "is not JSON");
  refused("engine", "\"programs\"", "\"programmes\"", "programs");
  refused("engine", "\"0.weight\"", "\"0.height\"", "the tensor '0.height' is missing");
  refused("engine", "\"conv\"", "\"convolve\"", "convolve in 0 cannot be called again");
  refused("engine", "\"stride\"", "\"strides\"", "stride");
  refused("engine", "[16,3,3,3]", "[16,3,9,1]", "has the shape [16, 3, 3, 3], but needs [16, 3, 9, 1]");
  refused("engine", "\"dtype\":\"float32\"", "\"dtype\":\"float33\"", "no such type");
  refused("engine", "\"prepared\":[\"", "\"prepared\":[\"4.bias\",\"", "prepared weights");
  refused("engine", "[\"direct\"", "[\"indirect\"", "indirect");
  refused("engine", "\"program\":0", "\"program\":1", "no program");
  refused("engine", "\"program\":0", "\"program\":-1", "no program");
  refused("engine", "\"inputs\":[0]", "\"inputs\":[99]", "");
  refused("engine", "\"batch_dims\":[0]", "\"batch_dims\":[4]", "none of its dimensions");
  // What only a call finds.
  engine.save(path);
  edit(path, "engine", R"({"offset":0,"scale":1},256)", R"({"offset":0,"scale":1},255)");
  CHECK_THROWS_AS(Inference::load(path)(randn({1, 3, 4, 4})), Error);
}

TEST_CASE("damaged engines are refused, or give numbers", "[inference][saved][cpu]") {
  const TemporaryDirectory folder;
  nn::Sequential net{nn::Conv2d{{.in_channels = 1, .out_channels = 2, .kernel_size = 2}},
                     nn::ReLU{},
                     nn::MaxPool2d{{.kernel_size = 2}},
                     nn::Flatten{},
                     nn::Linear{{.in_features = 2, .out_features = 3}},
                     nn::Softmax{}};
  const Tensor x = randn({1, 1, 3, 3});
  Inference(net, x).save(folder / "valid.engine");
  const auto valid = pleat_test::read_bytes(folder / "valid.engine");
  const auto report =
      test::damage(valid, folder / "damaged.engine", 4000, [&](const std::filesystem::path& path) {
        const Inference loaded = Inference::load(path);
        (void)loaded.summary();
        try {
          (void)loaded(x);
        } catch (const Error&) {
        }
      });
  CHECK(report.loaded > 100);
  CHECK(report.refused > 1000);
}
