#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

/// "conv2d reference" for each op that chose an implementation while `work` ran, in order.
std::vector<std::string> chosen(const std::function<void()>& work) {
  profile::ProfilerOptions options;
  options.activities = profile::Activities::cpu;
  profile::Profiler profiler(options);
  work();
  profiler.stop();
  const profile::Profile profile = profiler.profile();
  std::vector<std::string> found;
  for (const profile::Event& event : profile.events)
    if (event.name.starts_with("conv") || event.name.starts_with("batch_norm"))
      if (!event.implementation.empty()) found.push_back(event.name + " " + event.implementation);
  return found;
}

/// Whether each of at least `least` names ends in this implementation.
bool all_by(const std::vector<std::string>& names, const std::string& implementation, std::size_t least) {
  for (const std::string& name : names) {
    UNSCOPED_INFO(name);
    if (name.substr(name.rfind(' ') + 1) != implementation) return false;
  }
  return names.size() >= least;
}

struct Net {
  Tensor x = randn({2, 3, 6, 6}).set_requires_grad();
  Tensor w = randn({4, 3, 3, 3}).set_requires_grad();
  Tensor conv(const ConvOptions& options = {}) const { return conv2d(x, w, options); }
  Tensor norm(const BatchNormOptions& options = {.training = true}) const {
    return batch_norm(x, {}, {}, {}, {}, options);
  }
};

/// What scopes say here.
struct Seen {
  std::string conv, batch_norm;
  bool deterministic, benchmark;
  int64_t workspace;
  std::optional<MemoryFormat> format;
  Precision precision;
  std::optional<DType> half;
  bool operator==(const Seen&) const = default;
};
Seen seen() {
  const ConvPolicyOptions& conv = ConvPolicy::current();
  return {conv.implementation,  BatchNormPolicy::current().implementation,
          conv.deterministic,   conv.benchmark,
          conv.workspace_limit, conv.format,
          conv_precision({}),   autocast_dtype()};
}

/// A function of a user's, whose backward notes what scopes say, to any order.
Tensor noting(const Tensor& x, std::vector<Seen>& notes) {
  return record("noting", no_grad([&] { return x * x; }), {x},
                [x = saved(x), &notes](const Tensor& dy) -> Grads {
                  notes.push_back(seen());
                  return {noting(*x, notes) * dy};
                });
}

struct ProcessPrecision {
  explicit ProcessPrecision(Precision precision) { set_float32_precision(precision); }
  ~ProcessPrecision() { set_float32_precision(Precision::highest); }
};

}  // namespace

TEST_CASE("a convolution keeps its policy for its backward passes", "[scopes][conv]") {
  const Net net;
  for (const std::string name : {"reference", "unfold"}) {
    CAPTURE(name);
    Tensor y;
    const auto forward = chosen([&] {
      const ConvPolicy policy{{.implementation = name}};
      y = net.conv();
    });
    CHECK(all_by(forward, name, 1));
    CHECK(all_by(chosen([&] { sum(y * y).backward(); }), name, 2));
  }
}

TEST_CASE("a convolution keeps its policy for gradients of gradients", "[scopes][conv]") {
  const Net net;
  Tensor y;
  {
    const ConvPolicy policy{{.implementation = "reference"}};
    y = net.conv();
  }
  Grads first;
  CHECK(all_by(chosen([&] {
                 first = grad({sum(y * y)}, {net.x, net.w}, {}, {.create_graph = true});
               }),
               "reference", 2));
  const auto second = chosen([&] { sum(first[0] * first[0] + sum(first[1] * first[1])).backward(); });
  CHECK(all_by(second, "reference", 4));
}

TEST_CASE("a policy around backward alone says nothing to calls from outside", "[scopes][conv]") {
  const Net net;
  const auto usual = chosen([&] { sum(net.conv()).backward(); });
  REQUIRE_FALSE(all_by(usual, "reference", 0));
  CHECK(chosen([&] {
          const Tensor y = sum(net.conv());
          const ConvPolicy policy{{.implementation = "reference"}};
          y.backward();
        }) == usual);
}

TEST_CASE("a backward pass can be asked for apart, by the call and by the policy", "[scopes][conv][cpu]") {
  const Net net;
  Tensor y;
  {
    const ConvPolicy policy{{.implementation = "reference", .backward_input_implementation = "direct"}};
    y = net.conv({.backward_weight_implementation = "unfold"});
  }
  const auto backward = chosen([&] { sum(y).backward(); });
  CHECK(std::count(backward.begin(), backward.end(), "conv2d_backward_input direct") == 1);
  CHECK(std::count(backward.begin(), backward.end(), "conv2d_backward_weight unfold") == 1);
}

TEST_CASE("a policy's format holds for gradients", "[scopes][conv]") {
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
    const Net net;
    Tensor y;
    {
      const ConvPolicy policy{{.format = format}};
      y = net.conv();
    }
    y.backward(ops::to_format(ones(y.shape()), MemoryFormat::contiguous));
    CHECK(net.x.grad().memory_format() == format);
  }
}

TEST_CASE("a batch norm keeps its policy for its backward pass", "[scopes][batch_norm]") {
  const Net net;
  Tensor y;
  {
    const BatchNormPolicy policy{{.implementation = "reference"}};
    y = net.norm();
  }
  CHECK(all_by(chosen([&] { sum(y * y).backward(); }), "reference", 1));
  CHECK(all_by(chosen([&] {
                 const Tensor z = net.norm();
                 const BatchNormPolicy policy{{.implementation = "reference"}};
                 sum(z * z).backward();
               }),
               "native", 2));
  {
    const BatchNormPolicy policy{{.backward_implementation = "reference"}};
    y = net.norm();
  }
  CHECK(all_by(chosen([&] { sum(y * y).backward(); }), "reference", 1));
}

TEST_CASE("a checkpointed function runs again in the scopes of its first run", "[scopes][autograd]") {
  const Net net;
  const auto block = [&](const Tensor& t) { return sum(conv2d(t, net.w)) + sum(net.norm()); };
  Tensor y;
  {
    const ConvPolicy policy{{.implementation = "reference"}};
    const BatchNormPolicy norms{{.implementation = "reference"}};
    y = checkpoint(block, net.x);
  }
  // The two of forward again, and three backward passes.
  CHECK(all_by(chosen([&] { y.backward(); }), "reference", 5));
}

TEST_CASE("a checkpoint under autocast runs again under it, its backward outside", "[scopes][autograd]") {
  const Tensor w = randn({4, 3}).set_requires_grad();
  std::vector<Seen> forward, backward;
  const auto block = [&](const Tensor& t) {
    forward.push_back(seen());
    const Tensor y = linear(t, w);
    CHECK(y.dtype() == (forward.back().half ? *forward.back().half : float32));
    return noting(y, backward);
  };
  Tensor y;
  {
    const Autocast guard{bfloat16};
    y = checkpoint(block, randn({2, 3}).set_requires_grad());
  }
  sum(y).backward();
  REQUIRE(forward.size() == 2);
  CHECK(forward[0].half == bfloat16);
  CHECK(forward[1] == forward[0]);
  REQUIRE(backward.size() == 1);
  CHECK_FALSE(backward[0].half);
  CHECK(w.grad().dtype() == float32);
}

TEST_CASE("scopes hold for the backward of any recorded function, to any order, in any thread",
          "[scopes][autograd]") {
  std::vector<Seen> notes;
  const Tensor x = ones({3}).set_requires_grad();
  Seen then, outside = seen();
  Tensor y;
  {
    const ProcessPrecision process(Precision::medium);
    const BatchNormPolicy norms{{.implementation = "native"}};
    const ConvPolicy policy{{.implementation = "unfold",
                             .format = MemoryFormat::contiguous,
                             .deterministic = true,
                             .benchmark = true,
                             .workspace_limit = 12345}};
    then = seen();
    REQUIRE(then.precision == Precision::medium);
    y = noting(x, notes);
  }
  REQUIRE(seen() == outside);
  SECTION("afterwards") {
    const Grads first = grad({sum(y)}, {x}, {}, {.create_graph = true});
    sum(first[0]).backward();
    CHECK(notes.size() >= 2);
  }
  SECTION("in another thread") {
    Seen after;
    std::thread([&] {
      sum(y).backward();
      after = seen();
    }).join();
    CHECK(after == outside);
  }
  SECTION("inside of other scopes") {
    const ConvPolicy policy{{.implementation = "reference", .precision = Precision::high}};
    const PrecisionScope precision(Precision::high);
    const Autocast types{float16};
    const Seen around = seen();
    sum(y).backward();
    CHECK(seen() == around);
  }
  SECTION("inside of another backward") {
    const Tensor z = record("outer", ops::copy(x), {x}, [&](const Tensor& dy) -> Grads {
      CHECK(seen() == outside);
      y.backward(dy);
      CHECK(seen() == outside);
      return {dy};
    });
    sum(z).backward();
  }
  REQUIRE_FALSE(notes.empty());
  for (const Seen& note : notes) CHECK(note == then);
}

TEST_CASE("the process's precision at the forward call holds in backward", "[scopes][autograd]") {
  std::vector<Seen> notes;
  const Tensor x = ones({3}).set_requires_grad();
  const Tensor y = noting(x, notes);
  const ProcessPrecision process(Precision::high);
  const Tensor z = noting(x, notes);
  sum(y).backward();
  sum(z).backward();
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].precision == Precision::highest);
  CHECK(notes[1].precision == Precision::high);
  CHECK(float32_precision() == Precision::high);
}

TEST_CASE("an exception in backward leaves the thread's scopes as they were", "[scopes][autograd]") {
  const Tensor x = ones({3}).set_requires_grad();
  Tensor y;
  {
    const ConvPolicy policy{{.implementation = "unfold"}};
    y = record("failing", ops::copy(x), {x},
               [](const Tensor&) -> Grads { throw ValueError("it cannot be done"); });
  }
  const Seen before = seen();
  CHECK_THROWS_AS(sum(y).backward(), ValueError);
  CHECK(seen() == before);
}

TEST_CASE("scopes may end in another order than they began in", "[scopes]") {
  std::optional<ConvPolicy> conv;
  std::optional<PrecisionScope> precision;
  std::optional<ConvPolicy> inner;
  conv.emplace(ConvPolicyOptions{.implementation = "unfold"});
  precision.emplace(Precision::high);
  inner.emplace(ConvPolicyOptions{.implementation = "reference"});
  conv.reset();
  CHECK(float32_precision() == Precision::high);
  CHECK(ConvPolicy::current().implementation == "reference");
  inner.reset();
  CHECK(ConvPolicy::current().implementation.empty());
  CHECK(float32_precision() == Precision::high);
  precision.reset();
  CHECK(float32_precision() == Precision::highest);
}

TEST_CASE("scopes can be handed to another thread", "[scopes]") {
  const ConvPolicy policy{{.implementation = "unfold"}};
  std::string with, without;
  std::thread([&, scopes = Scopes::current()] {
    {
      const UseScopes as_outside(scopes);
      with = ConvPolicy::current().implementation;
    }
    without = ConvPolicy::current().implementation;
  }).join();
  CHECK(with == "unfold");
  CHECK(without.empty());
}
