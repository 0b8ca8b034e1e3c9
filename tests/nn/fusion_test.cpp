#include "pleat/nn/fusion.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/norm.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

nn::BatchNorm2d norm(int64_t channels = 3) { return nn::BatchNorm2d{{.num_features = channels}}; }

/// Names of functions and modules, in the order in which they began.
std::vector<std::string> ranges(nn::Module& module, const Tensor& x) {
  profile::Profiler profiler{{.activities = profile::Activities::cpu}};
  module(x);
  profiler.stop();
  std::vector<std::string> names;
  for (const profile::Event& event : profiler.profile().events)
    // Casts of parameters depend on the device.
    if ((event.kind == RangeKind::module || event.kind == RangeKind::op) && event.name != "cast")
      names.push_back(event.name);
  return names;
}

using Names = std::vector<std::string>;

struct Derived : nn::BatchNorm2d {
  Derived() : nn::BatchNorm2d({.num_features = 3}) {}
  Tensor forward(const Tensor& x) override { return nn::BatchNorm2d::forward(x) - 1; }
};

struct Log : nn::ForwardObserver {
  void enter(nn::Module&, const Tensor&) override {}
  void leave(nn::Module& module, const Tensor& input, const Tensor& output) override {
    types.push_back(module.type_name());
    if (module.type_name() == "ReLU") negative_input = min(input).item() < 0;
    if (module.type_name() == "BatchNorm2d") negative_norm = min(output).item() < 0;
  }
  Names types;
  bool negative_input = false, negative_norm = false;
};

/// Result, gradients, and running statistics after two steps.
std::vector<Tensor> trained(const Tensor& input, bool enabled,
                            const std::function<std::unique_ptr<nn::Module>()>& make) {
  manual_seed(5);
  const nn::FusionPolicy policy{{.enabled = enabled}};
  const auto net = make();
  const Tensor x = input.clone().detach().set_requires_grad();
  std::vector<Tensor> all;
  for (int step = 0; step < 2; ++step) {
    const Tensor y = (*net)(x);
    sum(y * y * y).backward();
    all.push_back(y.detach());
  }
  all.push_back(x.grad());
  for (const auto& [name, t] : net->named_parameters()) all.push_back(t.grad());
  for (const auto& [name, t] : net->named_buffers()) all.push_back(t);
  return all;
}

}  // namespace

TEST_CASE("fusion: a sequence computes a ReLU with the batch norm before it", "[nn]") {
  const Tensor x = randn({2, 3, 4, 4});
  nn::Sequential net{norm(), nn::ReLU{}, norm(), nn::Identity{}, nn::ReLU{}};
  CHECK(ranges(net, x) == Names{"Sequential", "BatchNorm2d", "batch_norm", "ReLU", "BatchNorm2d",
                                "batch_norm", "Identity", "ReLU", "relu"});
  const nn::FusionPolicy apart{{.enabled = false}};
  CHECK(ranges(net, x) == Names{"Sequential", "BatchNorm2d", "batch_norm", "ReLU", "relu", "BatchNorm2d",
                                "batch_norm", "Identity", "ReLU", "relu"});
}

TEST_CASE("fusion: a residual computes addition and ReLU with the last batch norm of its body", "[nn]") {
  const Tensor x = randn({2, 3, 4, 4});
  nn::Residual block{{.body = nn::Sequential{norm(), nn::ReLU{}, norm()},
                      .shortcut = nn::Sequential{norm()},
                      .activation = nn::ReLU{}}};
  CHECK(ranges(block, x) == Names{"Residual", "Sequential", "BatchNorm2d", "batch_norm", "Sequential",
                                  "BatchNorm2d", "batch_norm", "ReLU", "BatchNorm2d", "batch_norm", "ReLU"});
  nn::Residual other{{.body = norm(), .activation = nn::Sigmoid{}}};
  CHECK(ranges(other, x) == Names{"Residual", "BatchNorm2d", "batch_norm", "Sigmoid", "sigmoid"});
}

TEST_CASE("fusion: what may be another function is left alone", "[nn]") {
  const Tensor x = randn({2, 3, 4, 4});
  const auto has = [](const Names& names, const char* name) { return std::ranges::count(names, name) > 0; };
  nn::Sequential derived{Derived(), nn::ReLU{}};
  CHECK(has(ranges(derived, x), "relu"));
  nn::Residual closed{{.body = nn::BatchNorm2d{{.num_features = 3, .relu = true}}}};
  CHECK(has(ranges(closed, x), "add"));
  nn::Residual behind{{.body = nn::Sequential{norm(), nn::ReLU{}}, .activation = nn::ReLU{}}};
  CHECK(has(ranges(behind, x), "add"));
  CHECK(has(ranges(behind, x), "relu"));
  nn::Residual uneven{{.body = norm(), .shortcut = [](const Tensor& t) { return slice(t, 3, 0, 1); }}};
  CHECK_THROWS_WITH(uneven(x), Contains("Residual: body and shortcut must give one shape"));
  nn::Residual widened{{.body = norm(), .shortcut = [](const Tensor& t) { return t.to(float64); }}};
  CHECK(widened(x).dtype() == float64);
}

TEST_CASE("fusion: observers see every module with its own result", "[nn]") {
  nn::Sequential net{nn::Residual{{.body = nn::Sequential{norm()}, .activation = nn::ReLU{}}}};
  const Tensor x = randn({2, 3, 4, 4});
  Log log;
  net(x);
  CHECK(log.types == Names{"BatchNorm2d", "Sequential", "ReLU", "Residual", "Sequential"});
  CHECK(log.negative_input);
  CHECK(log.negative_norm);
}

TEST_CASE("fusion: results, gradients and statistics are those of single modules", "[nn]") {
  const auto sequence = [] {
    return std::make_unique<nn::Sequential>(norm(), nn::ReLU{}, norm(), nn::ReLU{}, norm());
  };
  const auto block = [] {
    return std::make_unique<nn::Sequential>(
        nn::Residual{{.body = nn::Sequential{norm(), nn::ReLU{}, norm()}, .activation = nn::ReLU{}}},
        nn::Residual{{.body = nn::Sequential{norm(), nn::ReLU{}, norm()},
                      .shortcut = norm(),
                      .activation = nn::ReLU{}}},
        nn::Residual{{.body = norm()}});
  };
  const Tensor x = randn({3, 3, 5, 4});
  for (const std::function<std::unique_ptr<nn::Module>()>& make :
       {std::function<std::unique_ptr<nn::Module>()>(sequence),
        std::function<std::unique_ptr<nn::Module>()>(block)}) {
    const auto fused = trained(x, true, make);
    const auto apart = trained(x, false, make);
    REQUIRE(fused.size() == apart.size());
    for (std::size_t i = 0; i < fused.size(); ++i) {
      CAPTURE(i);
      CHECK(test::relative_error(ops::cast(fused[i], float64), ops::cast(apart[i], float64)) < 1e-5);
    }
  }
}
