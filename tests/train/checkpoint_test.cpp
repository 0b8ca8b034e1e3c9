#include "pleat/train/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/nn/optim/optimizer_cases.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;
namespace fs = std::filesystem;
using Catch::Matchers::Contains;

namespace {

/// Everything of a training that has a state: dropout, batch norm, augmentation by workers, a schedule
/// of rate and momentum, a scaler, an average.
class Training {
 public:
  using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

  Training(const fs::path& folder, const MakeOptimizer& make, int workers = 2)
      : loader(images(), {.batch_size = 8,
                          .shuffle = true,
                          .seed = 5,
                          .workers = workers,
                          .transforms = {data::random_crop({.padding = 2}), data::random_horizontal_flip(),
                                         data::to_float()},
                          .device = default_device()}),
        optimizer(make(net.parameters())),
        schedule(*optimizer,
                 optim::OneCycleLR{
                     .max_lr = 0.01, .total_steps = 30, .cycle_momentum = optimizer->momentum().has_value()}),
        checkpoints(folder, {.keep = 100, .maximize = false}) {
    checkpoints.add("model", net);
    checkpoints.add("optimizer", *optimizer);
    checkpoints.add("schedule", schedule);
    checkpoints.add("scaler", scaler);
    checkpoints.add("loader", loader);
  }

  /// The losses of so many steps, after `save_at` of which a checkpoint is saved.
  std::vector<double> run(int64_t steps, int64_t save_at = 0) {
    std::vector<double> losses;
    while (true)
      for (const data::Batch& batch : loader) {
        const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
        optimizer->zero_grad();
        scaler.scale(loss).backward();
        scaler.step(*optimizer);
        scaler.update();
        schedule.step();
        losses.push_back(loss.item());
        const auto done = static_cast<int64_t>(losses.size());
        if (done == save_at) checkpoints.save({.step = done});
        if (done == steps) {
          checkpoints.wait();
          return losses;
        }
      }
  }

  std::vector<std::vector<double>> weights() const {
    std::vector<std::vector<double>> all;
    for (const auto& [name, tensor] : net.state_dict()) all.push_back(tensor.to(float64).to_vector<double>());
    return all;
  }

  nn::Sequential net{nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = 3}},
                     nn::BatchNorm2d{{.num_features = 4}},
                     nn::ReLU{},
                     nn::Dropout{{.p = 0.3}},
                     nn::Flatten{},
                     nn::Linear{{.in_features = 4 * 36, .out_features = 3}}};
  data::DataLoader loader;
  std::unique_ptr<optim::Optimizer> optimizer;
  optim::Schedule schedule;
  optim::GradScaler scaler{{.init_scale = 8, .growth_interval = 4}};
  train::Checkpoints checkpoints;

 private:
  static data::TensorDataset images() {
    Generator generator(3);
    return data::TensorDataset(randint(0, 256, {56, 3, 8, 8}, Device{}, generator).to(uint8),
                               randint(0, 3, {56}, Device{}, generator));
  }
};

std::unique_ptr<optim::Optimizer> make_sgd(const std::vector<Tensor>& parameters) {
  return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
}

/// A part of one tensor.
struct Counter {
  int64_t value = 0;
  nn::StateDict state_dict() const { return {{"value", full({}, value, {.dtype = int64})}}; }
  void load_state_dict(const nn::StateDict& state) { value = state.at("value").item<int64_t>(); }
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(folder)) names.push_back(file.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void flip_bit(const fs::path& file, std::size_t at) {
  auto bytes = read_bytes(file);
  bytes[at] ^= 0x10;
  write_bytes(file, bytes);
}

}  // namespace

TEST_CASE("a run that goes on from a checkpoint has the bits of one that never stopped",
          "[train][checkpoint]") {
  for (const test::OptimizerCase& c : test::optimizer_cases()) {
    INFO(c.name);
    const auto make = [&](const std::vector<Tensor>& parameters) {
      std::vector<Tensor> trained;
      for (const Tensor& parameter : parameters)  // Muon takes no vectors
        if (parameter.rank() > 1) trained.push_back(parameter);
      return c.make(trained, {.lr = 0.01});
    };
    const TemporaryDirectory folder;
    manual_seed(1);
    Training first(folder.path(), make);
    std::vector<double> wanted = first.run(20, 10);  // 7 an epoch: the fourth of the second is next
    wanted.erase(wanted.begin(), wanted.begin() + 10);

    manual_seed(2);
    Training second(folder.path(), make, 1);
    const auto checkpoint = train::latest_checkpoint(folder.path());
    REQUIRE(checkpoint);
    CHECK(checkpoint->step == 10);
    second.checkpoints.load(*checkpoint);
    CHECK(second.run(10) == wanted);
    CHECK(second.weights() == first.weights());
  }
}

TEST_CASE("a checkpoint at any step of an epoch is followed by the next batch", "[train][checkpoint]") {
  for (const int64_t steps : {1, 6, 7, 8, 13, 14}) {
    INFO(steps);
    const TemporaryDirectory folder;
    manual_seed(1);
    Training first(folder.path(), make_sgd, 0);
    std::vector<double> wanted = first.run(steps + 9, steps);
    wanted.erase(wanted.begin(), wanted.begin() + steps);
    Training second(folder.path(), make_sgd);
    second.checkpoints.load(*train::latest_checkpoint(folder.path()));
    CHECK(second.run(9) == wanted);
  }
}

TEST_CASE("the newest checkpoints and the best are kept", "[train][checkpoint][cpu]") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> metrics = {0.5, 0.9, nan, 0.7, 0.2, 0.3};
  struct Case {
    int64_t keep;
    bool maximize;
    std::vector<double> metrics;
    std::vector<int> kept;
  };
  const TemporaryDirectory folder;
  Counter counter;
  const auto save = [&](int64_t keep, bool maximize, const std::vector<std::optional<double>>& all) {
    train::Checkpoints checkpoints(folder.path(), {.keep = keep, .maximize = maximize});
    checkpoints.add("counter", counter);
    for (const auto& metric : all) checkpoints.save({.step = ++counter.value, .metric = metric});
    checkpoints.wait();
  };
  const auto names_of = [](const std::vector<int>& numbers) {
    std::vector<std::string> names;
    for (const int number : numbers)
      names.push_back("checkpoint-00000" + std::to_string(number) + ".safetensors");
    return names;
  };
  const auto [keep, maximize, all, kept] = GENERATE_COPY(values<Case>({
      {2, true, metrics, {2, 5, 6}},
      {1, false, metrics, {5, 6}},
      {1, true, {0.1, 0.9, 0.3, nan}, {2, 4}},  // an accuracy which fell
      {1, true, {0.1, infinity, 0.3, 0.2}, {2, 4}},
      {1, false, {0.1, -infinity, 0.3, 0.2}, {2, 4}},
  }));
  save(keep, maximize, {all.begin(), all.end()});
  CHECK(names_in(folder.path()) == names_of(kept));
  if (std::isinf(all[1]))
    CHECK(train::read_checkpoint(folder / "checkpoint-000002.safetensors").metric == all[1]);
  if (keep == 1) return;
  // The greatest also of an earlier run.
  save(1, true, {std::nullopt});
  CHECK(names_in(folder.path()) == names_of({2, 7}));
}

TEST_CASE("a checkpoint holds the run's metadata", "[train][checkpoint][cpu]") {
  const TemporaryDirectory folder;
  Counter counter;
  train::Checkpoints checkpoints(
      folder.path(), {.maximize = false, .metadata = {{"model", "résnet\n\"20\""}, {"", "empty"}}});
  checkpoints.add("counter", counter);
  checkpoints.save({.step = 3, .metric = 0.25});
  checkpoints.wait();
  const auto file = train::read_checkpoint_metadata(folder / "checkpoint-000001.safetensors");
  CHECK(file.step == 3);
  CHECK(file.metric == 0.25);
  CHECK(file.metadata == std::map<std::string, std::string>{{"model", "résnet\n\"20\""}, {"", "empty"}});
  CHECK_FALSE(train::latest_checkpoint(folder / "none"));
}

TEST_CASE("damage of any bit is found, and the checkpoint before it is used", "[train][checkpoint][cpu]") {
  const TemporaryDirectory folder;
  Counter counter{.value = 1};
  train::Checkpoints checkpoints(folder.path(), {.maximize = false});
  checkpoints.add("counter", counter);
  checkpoints.save({.step = 1});
  counter.value = 2;
  checkpoints.save({.step = 2});
  checkpoints.wait();
  const fs::path newest = folder / "checkpoint-000002.safetensors";
  const auto whole = read_bytes(newest);
  int64_t found = 0;
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    flip_bit(newest, byte);
    const auto latest = train::latest_checkpoint(folder.path());
    REQUIRE(latest);
    found += latest->step == 1 ? 1 : 0;
    if (latest->step == 1) {
      REQUIRE(latest->damaged.size() == 1);
      CHECK_THAT(latest->damaged[0], Contains(newest.string()));
    } else {  // a field of the header that no reader looks at, or that says the same
      CHECK(latest->parts.at("counter").at("value").item<int64_t>() == 2);
    }
    write_bytes(newest, whole);
  }
  CHECK(found > static_cast<int64_t>(whole.size()) - 8);
  SECTION("cut off") {
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      write_bytes(newest, std::span(whole).first(size));
      CHECK(train::latest_checkpoint(folder.path())->step == 1);
    }
  }
  SECTION("all of them") {
    for (const int number : {1, 2})
      flip_bit(folder / ("checkpoint-00000" + std::to_string(number) + ".safetensors"), whole.size() - 1);
    CHECK_THROWS_WITH(train::latest_checkpoint(folder.path()),
                      Contains("no checkpoint in") &&
                          Contains("checkpoint-000001.safetensors': is damaged: the checksum of ") &&
                          Contains("checkpoint-000002.safetensors': is damaged: the checksum of "));
  }
}

TEST_CASE("a checkpoint that does not fit changes nothing", "[train][checkpoint][cpu]") {
  const TemporaryDirectory folder;
  nn::Linear net{{.in_features = 2, .out_features = 3}};
  Counter counter{.value = 5};
  {
    train::Checkpoints checkpoints(folder.path(), {.maximize = false});
    checkpoints.add("a counter", counter);
    checkpoints.add("model", net);
    checkpoints.save({.step = 1});
  }
  const train::Checkpoint saved = *train::latest_checkpoint(folder.path());

  nn::Linear larger{{.in_features = 4, .out_features = 3}};
  Counter other{.value = 6};
  train::Checkpoints checkpoints(folder.path(), {.maximize = false});
  checkpoints.add("a counter", other);
  checkpoints.add("model", larger);
  const uint64_t draws = default_generator().draws();
  CHECK_THROWS_WITH(checkpoints.load(saved), Contains("weight") && Contains("part \""));
  CHECK(other.value == 6);
  CHECK(default_generator().draws() == draws);

  train::Checkpoints more(folder.path(), {.maximize = false});
  more.add("model", net);
  more.add("optimizer", counter);
  CHECK_THROWS_WITH(more.load(saved), Contains("missing     optimizer") && Contains("unexpected  a counter"));
}

TEST_CASE("mistakes with checkpoints", "[train][checkpoint][cpu]") {
  const TemporaryDirectory folder;
  Counter counter;
  train::Checkpoints checkpoints(folder / "new", {.maximize = false});
  checkpoints.add("counter", counter);
  CHECK_THROWS_WITH(checkpoints.add("counter", counter), Contains("there is a part \"counter\" already"));
  CHECK_THROWS_WITH(checkpoints.add("a/b", counter), Contains("have no '/'"));
  CHECK_THROWS_WITH(checkpoints.add("", counter), Contains("must not be empty"));
  CHECK_THROWS_WITH(train::Checkpoints(folder.path(), {.keep = 0, .maximize = false}),
                    Contains("keep must be at least 1"));
  CHECK_THROWS_WITH(train::Checkpoints(folder.path(), {.maximize = false, .seconds = -1}),
                    Contains("seconds must not be negative"));

  write_bytes(folder / "file", std::string_view("text"));
  CHECK_THROWS_WITH(train::Checkpoints(folder / "file", {.maximize = false}), Contains("must be a folder"));
  io::write_safetensors(folder / "weights.safetensors", {{"w", zeros({2})}});
  CHECK_THROWS_WITH(train::read_checkpoint(folder / "weights.safetensors"),
                    Contains("is no checkpoint, but a safetensors file"));
  CHECK_THROWS_WITH(train::read_checkpoint(folder / "file"), Contains("file'"));

  checkpoints.save({.step = 1});
  checkpoints.wait();
  CHECK(train::latest_checkpoint(folder / "new")->step == 1);
  fs::remove_all(folder / "new");
  write_bytes(folder / "new", std::string_view("text"));
  CHECK_THROWS_WITH(checkpoints.save({.step = 3}), Contains("cannot make the folder"));
}
