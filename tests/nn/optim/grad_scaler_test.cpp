#include "pleat/nn/optim/grad_scaler.h"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/multi_optimizer.h"
#include "pleat/nn/optim/muon.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/nn/optim/optimizer_cases.h"

using namespace pleat;
using optim::GradScaler;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor param(const Shape& shape = {3}, DType dtype = float32) {
  return ones(shape, {.dtype = dtype}).set_requires_grad();
}

/// One iteration whose gradient is `gradient` everywhere, when unscaled. Returns whether the step was made.
bool iterate(GradScaler& scaler, optim::Optimizer& optimizer, const Tensor& p, double gradient) {
  optimizer.zero_grad();
  scaler.scale(sum(p * gradient)).backward();
  const bool made = scaler.step(optimizer);
  scaler.update();
  return made;
}

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

/// Every optimiser, and some made of parts.
std::map<std::string, MakeOptimizer> makers() {
  using namespace optim;
  std::map<std::string, MakeOptimizer> all = {
      {"AdamW, two groups",
       [](const std::vector<Tensor>& params) {
         return std::make_unique<AdamW>(std::vector<AdamW::Group>{
             {{params[0]}, {.lr = 0.1, .weight_decay = 0.1}}, {{params[1]}, {.lr = 0.01, .amsgrad = true}}});
       }},
      {"several",
       [](const std::vector<Tensor>& params) {
         return std::make_unique<MultiOptimizer>(Muon{{params[0]}, {.lr = 0.1}},
                                                 Adam{{params[1]}, {.lr = 0.1}});
       }},
  };
  for (const test::OptimizerCase& c : test::optimizer_cases())
    all[c.name] = [&c](const std::vector<Tensor>& params) { return c.make(params, {.lr = 0.1}); };
  return all;
}

std::map<std::string, std::vector<double>> values_of(const nn::StateDict& state) {
  std::map<std::string, std::vector<double>> values;
  for (const auto& [name, tensor] : state) values[name] = tensor.to_vector<double>();
  return values;
}

/// Parameters and optimiser behind these gradients, of which `scaler`, if there is one, leaves out those that
/// are not finite; without one they are not tried.
std::map<std::string, std::vector<double>> trained(const MakeOptimizer& make, Device device,
                                                   const std::vector<double>& gradients, GradScaler* scaler) {
  const std::vector<Tensor> params = {ones({4, 6}, {.device = device}).set_requires_grad(),
                                      ones({3, 5}, {.device = device}).set_requires_grad()};
  const auto optimizer = make(params);
  for (const double gradient : gradients) {
    const bool finite = gradient - gradient == 0;
    if (scaler == nullptr && !finite) continue;
    optimizer->zero_grad();
    // What is not finite is in one gradient alone.
    const Tensor loss = sum(params[0] * params[0]) * 0.25 + sum(params[1] * params[1] * params[1]) * gradient;
    if (scaler == nullptr) {
      loss.backward();
      optim::clip_grad_norm_(params, {.max_norm = 2});
      optimizer->step();
      continue;
    }
    scaler->scale(loss).backward();
    scaler->unscale_(*optimizer);
    optim::clip_grad_norm_(params, {.max_norm = 2});
    const bool made = scaler->step(*optimizer);
    scaler->update();
    CHECK(made == finite);
  }
  std::map<std::string, std::vector<double>> all = values_of(optimizer->state_dict());
  all["first"] = params[0].to_vector<double>();
  all["second"] = params[1].to_vector<double>();
  return all;
}

void check_leaves_no_trace(Device device) {
  for (const auto& [name, make] : makers()) {
    CAPTURE(name);
    for (const std::vector<double>& gradients : {std::vector<double>{infinity},
                                                 {infinity, not_a_number, 1, 0.5},
                                                 {1, -0.5, infinity, 2, not_a_number, 1}}) {
      CAPTURE(gradients);
      GradScaler scaler{{.init_scale = 1024}};
      CHECK(trained(make, device, gradients, &scaler) == trained(make, device, gradients, nullptr));
    }
  }
}

}  // namespace

TEST_CASE("a loss is scaled, its gradients are unscaled", "[optim][amp]") {
  const Tensor p = param();
  optim::SGD sgd{{p}, {.lr = 0.5}};
  GradScaler scaler{{.init_scale = 1024}};
  CHECK(scaler.scale(scalar(2.0)).item() == 2048);
  // In a half type the product would be infinite.
  CHECK(scaler.scale(scalar(1000.0, float16)).item() == 1024000);
  CHECK(scaler.scale(scalar(1000.0, float16)).dtype() == float32);

  scaler.scale(sum(p * 3)).backward();
  CHECK(p.grad().to_vector()[0] == 3 * 1024);
  scaler.unscale_(sgd);
  CHECK((p.grad().to_vector() == std::vector<float>{3, 3, 3}));
  CHECK(scaler.step(sgd));
  CHECK((p.grad().to_vector() == std::vector<float>{3, 3, 3}));
  CHECK(p.to_vector()[0] == -0.5F);
  scaler.update();

  // Without unscale_ the step does it.
  CHECK(iterate(scaler, sgd, p, 2));
  CHECK(p.to_vector()[0] == -1.5F);
  CHECK_THROWS_AS(scaler.scale(tensor({1, 2})), DTypeError);
}

TEST_CASE("the scale follows the gradients, and steps that are not finite are left out", "[optim][amp]") {
  struct Row {
    double gradient;
    bool made;
    double scale;  ///< after the update
  };
  struct Table {
    optim::GradScalerOptions options;
    std::vector<Row> rows;
  };
  const std::vector<Table> tables = {
      // Growth after each second finite step; an infinity starts the count again.
      {{.init_scale = 8, .growth_interval = 2},
       {{1, true, 8},
        {1, true, 16},
        {1, true, 16},
        {infinity, false, 8},
        {1, true, 8},
        {not_a_number, false, 4},
        {-infinity, false, 2},
        {1, true, 2},
        {1, true, 4},
        {1, true, 4},
        {1, true, 8}}},
      {{.init_scale = 100, .growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 1},
       {{1, true, 300}, {not_a_number, false, 75}, {1, true, 225}}},
      // No growth to where 1 / scale loses bits in float32.
      {{.init_scale = 0x1p125, .growth_interval = 1}, {{1, true, 0x1p126}, {1, true, 0x1p126}}},
  };
  for (const Table& table : tables) {
    const Tensor p = param();
    optim::SGD sgd{{p}, {.lr = 1}};
    GradScaler scaler{table.options};
    double wanted = 1;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const Row& row = table.rows[i];
      CAPTURE(i);
      CHECK(iterate(scaler, sgd, p, row.gradient) == row.made);
      CHECK(scaler.scale() == row.scale);
      if (row.made) wanted -= row.gradient;
      CHECK(p.to_vector()[2] == static_cast<float>(wanted));
    }
  }
}

TEST_CASE("a step that is left out leaves no trace in any optimiser", "[optim][amp]") {
  check_leaves_no_trace(Device());
}

TEST_CASE("steps with and without a scaler are counted together", "[optim][amp]") {
  for (const auto& named : makers()) {
    const auto& name = named.first;
    const auto& make = named.second;
    CAPTURE(name);
    const auto run = [&](bool scaled) {
      const std::vector<Tensor> params = {param({4, 6}), param({3, 5})};
      const auto optimizer = make(params);
      GradScaler scaler{{.init_scale = 4}};
      for (int i = 0; i < 7; ++i) {
        for (const Tensor& p : params) p.set_grad(full(p.shape(), 0.5 + 0.25 * i));
        if (!scaled || i % 3 == 2) {
          optimizer->step();
          continue;
        }
        for (const Tensor& p : params) p.set_grad(p.grad() * 4);
        scaler.step(*optimizer);
        scaler.update();
        if (i != 4) continue;
        // As a checkpoint does.
        optimizer->load_state_dict(optimizer->state_dict());
      }
      auto all = values_of(optimizer->state_dict());
      for (const Tensor& p : params) all[p.shape()[0] == 4 ? "first" : "second"] = p.to_vector<double>();
      return all;
    };
    CHECK(run(true) == run(false));
  }
}

TEST_CASE("a momentum that is switched on later begins with the first step that is made", "[optim][amp]") {
  const auto run = [](bool scaled) {
    const Tensor p = param();
    optim::SGD sgd{{p}, {.lr = 0.5, .dampening = 0.5}};
    GradScaler scaler{{.init_scale = 1, .growth_interval = 100}};
    for (const double gradient : {1.0, infinity, 2.0, infinity, 3.0, 4.0}) {
      if (gradient == 2) sgd.options().momentum = 0.5;
      p.set_grad(full({3}, gradient));
      if (scaled) {
        scaler.step(sgd);
        scaler.update(1);
      } else if (gradient != infinity) {
        sgd.step();
      }
      if (gradient == 1) sgd.options().momentum = 0;
    }
    return p.to_vector();
  };
  CHECK(run(true) == run(false));
  // The momentum's first step is left out.
  const Tensor p = param();
  optim::SGD sgd{{p}, {.lr = 0.5, .dampening = 0.5}};
  GradScaler scaler{{.init_scale = 1}};
  const auto step = [&](double gradient) {
    p.set_grad(full({3}, gradient));
    scaler.step(sgd);
    scaler.update(1);
  };
  step(1);
  sgd.options().momentum = 0.5;
  step(infinity);
  CHECK_FALSE(sgd.state_dict().contains("param.0.momentum_buffer"));
  step(2);
  CHECK(sgd.state_dict().at("param.0.momentum_buffer").to_vector()[0] == 2);
  step(4);
  CHECK(sgd.state_dict().at("param.0.momentum_buffer").to_vector()[0] == 3);
}

TEST_CASE("a parameter without elements counts its steps", "[optim][amp]") {
  for (const bool with_muon : {false, true}) {
    const Tensor none = param({0, 3});
    const Tensor p = param({2, 3});
    std::unique_ptr<optim::Optimizer> optimizer;
    if (with_muon)
      optimizer = std::make_unique<optim::Muon>(std::vector{none, p}, optim::MuonOptions{.lr = 0.1});
    else
      optimizer = std::make_unique<optim::Adam>(std::vector{none, p}, optim::AdamOptions{.lr = 0.1});
    GradScaler scaler;
    for (int i = 0; i < 2; ++i) {
      none.set_grad(ones({0, 3}));
      p.set_grad(ones({2, 3}));
      scaler.step(*optimizer);
      scaler.update();
    }
    CHECK(optimizer->state_dict().at("param.0.step").item<int64_t>() == 2);
    CHECK(optimizer->state_dict().at("param.1.step").item<int64_t>() == 2);
  }
}

TEST_CASE("a loss keeps the factor that it was multiplied by", "[optim][amp]") {
  const Tensor p = param();
  optim::SGD sgd{{p}, {.lr = 1}};
  GradScaler scaler{{.init_scale = 8, .growth_interval = 1}};
  const Tensor early = scaler.scale(sum(p));
  CHECK(iterate(scaler, sgd, p, 0.5));
  CHECK(scaler.scale() == 16);
  sgd.zero_grad();
  early.backward();
  CHECK(p.grad().to_vector()[0] == 8);
}

TEST_CASE("an infinity or NaN anywhere in any gradient is found", "[optim][amp]") {
  for (const double bad : {infinity, -infinity, not_a_number})
    for (const DType dtype : {float32, float64, bfloat16})
      for (const int64_t place : {0, 5, 1023, 4098}) {
        CAPTURE(bad, name(dtype), place);
        const Tensor a = param({7, 3}, dtype);
        const Tensor b = param({4099}, dtype);
        const Tensor unused = param();
        optim::Adam adam{{a, unused, b}, {.lr = 1}};
        GradScaler scaler{{.init_scale = 4}};
        a.set_grad(ones({7, 3}, {.dtype = dtype}));
        std::vector<double> values(4099, 1.0);
        values[static_cast<std::size_t>(place)] = bad;
        b.set_grad(from_vector(values).to(dtype));
        CHECK_FALSE(scaler.step(adam));
        CHECK(a.to_vector()[0] == 1);
        CHECK(adam.state_dict().at("param.0.step").item() == 0);
        scaler.update();
        CHECK(scaler.scale() == 2);
        b.set_grad(ones({4099}, {.dtype = dtype}));
        CHECK(scaler.step(adam));
        CHECK(a.to_vector()[0] != 1);
      }
}

TEST_CASE(
    "a gradient too large to be unscaled stays finite, one that several parameters share is unscaled once",
    "[optim][amp]") {
  const Tensor a = param();
  const Tensor b = param();
  const Tensor shared = full({3}, 2e38);
  a.set_grad(shared);
  b.set_grad(shared);
  optim::SGD sgd{{a, b}, {.lr = 1}};
  GradScaler scaler{{.init_scale = 2}};
  scaler.unscale_(sgd);
  CHECK(a.grad().to_vector()[0] == 1e38F);
  CHECK(b.grad().to_vector()[2] == 1e38F);
}

TEST_CASE("two optimisers share a scale, and each leaves out its own steps", "[optim][amp]") {
  const Tensor a = param();
  const Tensor b = param();
  optim::SGD one{{a}, {.lr = 1}};
  optim::SGD other{{b}, {.lr = 1}};
  GradScaler scaler{{.init_scale = 16}};
  a.set_grad(full({3}, 16.0));
  b.set_grad(full({3}, not_a_number));
  scaler.unscale_(other);
  CHECK(scaler.step(one));
  CHECK_FALSE(scaler.step(other));
  scaler.update();
  CHECK(a.to_vector()[0] == 0);
  CHECK(b.to_vector()[0] == 1);
  CHECK(scaler.scale() == 8);
}

TEST_CASE("a scaler says what was called in the wrong order", "[optim][amp]") {
  const Tensor p = param();
  optim::SGD sgd{{p}, {.lr = 1}};
  GradScaler scaler;
  CHECK_THROWS_WITH(scaler.update(), "GradScaler: update() needs a step or unscale_ since the last one");
  CHECK_THROWS_WITH(scaler.step(sgd),
                    Catch::Matchers::Contains("GradScaler: no parameter (of 1) has a gradient"));
  p.set_grad(ones({3}));
  scaler.unscale_(sgd);
  CHECK_THROWS_WITH(scaler.unscale_(sgd),
                    Catch::Matchers::Contains("unscale_ was called for this optimiser since"));
  CHECK(scaler.step(sgd));
  CHECK_THROWS_WITH(scaler.step(sgd),
                    Catch::Matchers::Contains("step was called for this optimiser since the last update()"));
  CHECK_THROWS_AS(scaler.unscale_(sgd), ValueError);
  scaler.update();
  CHECK_NOTHROW(scaler.step(sgd));

  // unscale_ alone is enough for an update.
  scaler.update(32);
  CHECK(scaler.scale() == 32);
  p.set_grad(full({3}, not_a_number));
  scaler.unscale_(sgd);
  scaler.update();
  CHECK(scaler.scale() == 16);
  CHECK_THROWS_AS(scaler.update(0), ValueError);
  CHECK_THROWS_AS(scaler.update(infinity), ValueError);

  const Tensor half = param({3}, float16);
  half.set_grad(ones({3}, {.dtype = float16}));
  optim::SGD of_half{{half}, {.lr = 1}};
  CHECK_THROWS_WITH(scaler.step(of_half), Catch::Matchers::Contains("keep parameters in float32"));
  CHECK(half.grad().to_vector()[0] == 1);

  for (const optim::GradScalerOptions& options : {optim::GradScalerOptions{.init_scale = 0},
                                                  {.growth_factor = 1},
                                                  {.backoff_factor = 1},
                                                  {.growth_interval = 0}})
    CHECK_THROWS_AS(GradScaler{options}, ValueError);
}

TEST_CASE("a scaler that never makes a step says so in the end", "[optim][amp]") {
  const Tensor p = param();
  optim::SGD sgd{{p}, {.lr = 1}};
  GradScaler scaler;
  const auto train = [&] {
    for (int i = 0; i < 1000; ++i) iterate(scaler, sgd, p, not_a_number);
  };
  CHECK_THROWS_AS(train(), NumericError);
  CHECK(scaler.scale() > 0);
}

TEST_CASE("a scaler that is not enabled is as if it were not there", "[optim][amp]") {
  const Tensor p = param();
  optim::SGD sgd{{p}, {.lr = 1}};
  GradScaler scaler{{.enabled = false}};
  const Tensor loss = sum(p);
  CHECK(scaler.scale(loss).impl().id == loss.impl().id);
  CHECK(scaler.scale() == 1);
  loss.backward();
  scaler.unscale_(sgd);
  scaler.unscale_(sgd);
  CHECK(scaler.step(sgd));
  scaler.update();
  CHECK(p.to_vector()[0] == 0);
  CHECK(scaler.state_dict().empty());
  scaler.load_state_dict({});
}

TEST_CASE("a scaler goes on from its state", "[optim][amp]") {
  const Tensor p = param();
  optim::SGD sgd{{p}, {.lr = 0}};
  GradScaler scaler{{.init_scale = 8, .growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 3}};
  iterate(scaler, sgd, p, not_a_number);
  iterate(scaler, sgd, p, 1);
  iterate(scaler, sgd, p, 1);
  const nn::StateDict state = scaler.state_dict();

  GradScaler other;
  other.load_state_dict(state);
  CHECK(other.scale() == 2);
  iterate(other, sgd, p, 1);
  CHECK(other.scale() == 8);
  iterate(scaler, sgd, p, 1);
  CHECK(scaler.scale() == 8);

  nn::StateDict wrong = state;
  wrong.erase("scale");
  wrong["extra"] = scalar(1);
  CHECK_THROWS_AS(other.load_state_dict(wrong), ValueError);
  const auto refused = [&](const std::string& name, const Tensor& value) {
    INFO(name << " = " << value);
    nn::StateDict changed = state;
    changed[name] = value;
    CHECK_THROWS_AS(other.load_state_dict(changed), ValueError);
    CHECK(other.scale() == 8);
  };
  for (const double scale : {-1.0, 0.0, infinity, not_a_number}) refused("scale", scalar(scale, float64));
  refused("scale", scalar(2, int64));
  for (const double factor : {1.0, -2.0, infinity, not_a_number})
    refused("growth_factor", scalar(factor, float64));
  for (const double factor : {0.0, 1.0, -0.5, not_a_number})
    refused("backoff_factor", scalar(factor, float64));
  refused("growth_interval", scalar(0, int64));
  refused("growth_interval", scalar(2.5, float64));
  for (const int64_t tracker : {-1, 3}) refused("growth_tracker", scalar(tracker, int64));
  refused("growth_tracker", scalar(true));
}

TEST_CASE("cuda: a step that is left out leaves no trace in any optimiser", "[optim][amp][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  check_leaves_no_trace(DeviceType::cuda);
}

TEST_CASE("cuda: a scaler goes with the losses from device to device", "[optim][amp][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  GradScaler scaler{{.init_scale = 8, .growth_interval = 2}};
  for (const Device device : {Device(), Device(DeviceType::cuda), Device()}) {
    const Tensor p = ones({3}, {.device = device}).set_requires_grad();
    optim::Adam adam{{p}, {.lr = 1}};
    const double before = scaler.scale();
    CHECK(iterate(scaler, adam, p, 1));
    CHECK(iterate(scaler, adam, p, 1));
    CHECK(scaler.scale() == before * 2);
    CHECK_FALSE(iterate(scaler, adam, p, infinity));
    CHECK(scaler.scale() == before);
    CHECK(scaler.state_dict().at("growth_tracker").item() == 0);
  }
}

TEST_CASE("cuda: a scaler that never makes a step on a GPU says so soon", "[optim][amp][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Tensor p = ones({3}, {.device = DeviceType::cuda}).set_requires_grad();
  optim::SGD sgd{{p}, {.lr = 1}};
  GradScaler scaler;
  const auto train = [&] {
    for (int i = 0; i < 1000; ++i) {
      iterate(scaler, sgd, p, not_a_number);
      CHECK(scaler.scale() > 0);
    }
  };
  CHECK_THROWS_AS(train(), NumericError);
  // A factor of one's own is a new beginning.
  scaler.update(4);
  CHECK(iterate(scaler, sgd, p, 1));
}

TEST_CASE("cuda: a scaler does on a GPU what it does on the CPU", "[optim][amp][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Tensor p = param({1000}).detach().to("cuda").set_requires_grad();
  optim::SGD sgd{{p}, {.lr = 0.5}};
  GradScaler scaler{{.init_scale = 8}};
  CHECK(iterate(scaler, sgd, p, 1));
  CHECK_FALSE(iterate(scaler, sgd, p, infinity));
  CHECK(scaler.scale() == 4);
  CHECK(p.to_vector()[999] == 0.5F);
}
