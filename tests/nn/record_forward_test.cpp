#include "pleat/nn/record_forward.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/containers.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

/// Of two tensors.
struct Scale : nn::Module {
  using Module::forward;
  Tensor forward(const Tensor& x, const Tensor& factor) const {
    const nn::RecordForward range(*this, x, factor);
    return x * factor;
  }
  std::string type_name() const override { return "Scale"; }
};

/// Of no tensor.
struct Ramp : nn::Module {
  using Module::forward;
  Tensor forward(int64_t n) const {
    const nn::RecordForward range(*this);
    if (n < 0) throw std::runtime_error("no ramp falls");
    return arange(n);
  }
  std::string type_name() const override { return "Ramp"; }
};

struct Net : nn::Module {
  Scale scale;
  std::vector<Ramp> ramps{2};
  nn::Sequential tail{nn::Identity{}};

  using Module::forward;
  Tensor forward(const Tensor& x, int64_t n) {
    const nn::RecordForward range(*this, x);
    return tail(scale.forward(x, ramps[1].forward(n)));
  }
  void members(nn::Members& m) override {
    m("scale", scale);
    m("ramps", ramps);
    m("tail", tail);
  }
  std::string type_name() const override { return "Net"; }
};

std::vector<std::string> modules(const profile::Profile& profile) {
  std::vector<std::string> modules;
  for (const profile::Event& event : profile.events)
    if (event.kind == RangeKind::module) modules.push_back(event.module);
  return modules;
}

}  // namespace

TEST_CASE("a forward of several inputs is a range with its path and its tensors", "[profile]") {
  Net net;
  profile::Profiler profiler{{.activities = profile::Activities::cpu}};
  net.forward(ones({2, 3}), 3);
  profiler.stop();
  CHECK(modules(profiler.profile()) == std::vector<std::string>{"Net", "ramps.1 (Ramp)", "scale (Scale)",
                                                                "tail (Sequential)", "tail.0 (Identity)"});
  for (const profile::Event& event : profiler.profile().events) {
    if (event.module == "ramps.1 (Ramp)" && event.kind == RangeKind::module) CHECK(event.inputs.empty());
    if (event.name == "mul") CHECK(event.module == "scale (Scale)");
    if (event.name != "Scale") continue;
    REQUIRE(event.inputs.size() == 2);
    CHECK(event.inputs[0].shape == Shape{2, 3});
    CHECK(event.inputs[1].shape == Shape{3});
  }
}

TEST_CASE("a forward that throws leaves no path behind", "[profile]") {
  Net net;
  profile::Profiler profiler{{.activities = profile::Activities::cpu}};
  CHECK_THROWS_AS(net.forward(ones({2, 3}), -1), std::runtime_error);
  net.ramps[1].forward(3);
  profiler.stop();
  CHECK(modules(profiler.profile()) == std::vector<std::string>{"Net", "ramps.1 (Ramp)", "Ramp"});
}

TEST_CASE("a forward of several inputs computes the same when nobody listens") {
  Net net;
  const Tensor y = net.forward(ones({2, 3}), 3);
  CHECK(y.shape() == Shape{2, 3});
  CHECK(max(y).item<double>() == 2);
}
