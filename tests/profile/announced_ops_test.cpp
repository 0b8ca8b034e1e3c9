#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using namespace pleat::profile;

namespace {

Profile profile_of(const std::function<void()>& work, ProfilerOptions options = {}) {
  options.activities = Activities::cpu;
  Profiler profiler(options);
  work();
  profiler.stop();
  return profiler.profile();
}

std::vector<const Event*> all_of(const Profile& profile, const std::string& name) {
  std::vector<const Event*> found;
  for (const Event& event : profile.events)
    if (event.name == name) found.push_back(&event);
  return found;
}

const Event& the_only(const Profile& profile, const std::string& name) {
  const auto found = all_of(profile, name);
  CAPTURE(name);
  REQUIRE(found.size() == 1);
  return *found[0];
}

struct Case {
  const char* name;
  std::function<Tensor(const Tensor& x)> function;
};

/// Functions of x [4, 3, 6, 5] by the names that their ops have, at least one of each way in which functions
/// announce themselves.
std::vector<Case> cases() {
  const Tensor weight = randn({2, 3, 3, 3});
  const Tensor classes = randint(0, 3, {4, 6, 5});
  const Tensor index = randint(0, 3, {4, 3, 6, 5});
  return {
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"tanh", [](const Tensor& x) { return tanh(x); }},
      {"abs", [](const Tensor& x) { return abs(x); }},
      {"floor", [](const Tensor& x) { return floor(x); }},
      {"pow", [](const Tensor& x) { return pow(x, 3); }},
      {"clamp", [](const Tensor& x) { return clamp(x, {.min = -1, .max = 1}); }},
      {"add", [](const Tensor& x) { return x + 1; }},
      {"multiply", [](const Tensor& x) { return x * x; }},
      {"divide", [](const Tensor& x) { return x / 2; }},
      {"maximum", [](const Tensor& x) { return maximum(x, zeros_like(x)); }},
      {"lerp", [](const Tensor& x) { return lerp(x, zeros_like(x), ones_like(x)); }},
      {"where", [](const Tensor& x) { return where(x > 0, x, 0); }},
      {"masked_fill", [](const Tensor& x) { return masked_fill(x, x > 0, 0); }},
      {"dropout", [](const Tensor& x) { return dropout(x, 0.5); }},
      {"sum", [](const Tensor& x) { return sum(x, 1); }},
      {"mean", [](const Tensor& x) { return mean(x); }},
      {"prod", [](const Tensor& x) { return prod(x, 1); }},
      {"var", [](const Tensor& x) { return var(x, 1); }},
      {"stddev", [](const Tensor& x) { return stddev(x, 1); }},
      {"norm", [](const Tensor& x) { return norm(x, 1); }},
      {"max", [](const Tensor& x) { return max(x, 1); }},
      {"max_with_indices", [](const Tensor& x) { return max_with_indices(x, 1).values; }},
      {"logsumexp", [](const Tensor& x) { return logsumexp(x, 1); }},
      {"softmax", [](const Tensor& x) { return softmax(x, 1); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x, 1); }},
      {"cumsum", [](const Tensor& x) { return cumsum(x, 1); }},
      {"cumprod", [](const Tensor& x) { return cumprod(x, 1); }},
      {"reshape",
       [](const Tensor& x) {
         return reshape(x, {12, 30});
       }},
      {"permute",
       [](const Tensor& x) {
         return permute(x, {3, 2, 1, 0});
       }},
      {"transpose", [](const Tensor& x) { return transpose(x, 0, 1); }},
      {"expand",
       [](const Tensor& x) {
         return expand(x, {2, 4, 3, 6, 5});
       }},
      {"slice", [](const Tensor& x) { return slice(x, 0, 1, 3); }},
      {"select", [](const Tensor& x) { return select(x, 0, 1); }},
      {"flatten", [](const Tensor& x) { return flatten(x); }},
      {"unsqueeze", [](const Tensor& x) { return unsqueeze(x, 0); }},
      {"cat",
       [](const Tensor& x) {
         return cat({x, x}, 0);
       }},
      {"stack",
       [](const Tensor& x) {
         return stack({x, x}, 0);
       }},
      {"flip", [](const Tensor& x) { return flip(x, 0); }},
      {"roll", [](const Tensor& x) { return roll(x, 1, 0); }},
      {"repeat",
       [](const Tensor& x) {
         return repeat(x, {1, 1, 1, 2});
       }},
      {"pad",
       [](const Tensor& x) {
         return pad(x, {1, 1});
       }},
      {"gather", [index](const Tensor& x) { return gather(x, 1, index); }},
      {"scatter_add", [index](const Tensor& x) { return scatter_add(x, 1, index, x); }},
      {"index_select",
       [](const Tensor& x) {
         return index_select(x, 0, from_vector<int64_t>({0, 2}));
       }},
      {"sort", [](const Tensor& x) { return sort(x).values; }},
      {"unfold", [](const Tensor& x) { return unfold(x, {.kernel_size = 3}); }},
      {"max_pool2d", [](const Tensor& x) { return max_pool2d(x, {.kernel_size = 2}); }},
      {"avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, {.kernel_size = 2}); }},
      {"interpolate",
       [](const Tensor& x) {
         return interpolate(x, {.size = PerDim{8, 8}});
       }},
      {"matmul", [](const Tensor& x) { return matmul(x, transpose(x.detach(), 2, 3)); }},
      {"linear",
       [](const Tensor& x) {
         return linear(x, ones({2, 5}));
       }},
      {"conv2d", [weight](const Tensor& x) { return conv2d(x, weight, {}, {.padding = 1}); }},
      {"batch_norm", [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}, {.training = true}); }},
      {"group_norm", [](const Tensor& x) { return group_norm(x, {}, {}, {.num_groups = 3}); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {}, {}, {.normalized_shape = Shape{5}}); }},
      {"cross_entropy", [classes](const Tensor& x) { return cross_entropy(x, classes); }},
      {"mse_loss", [](const Tensor& x) { return mse_loss(x, zeros_like(x)); }},
      {"cast", [](const Tensor& x) { return x.to(float64); }},
      {"to_format",
       [](const Tensor& x) {
         return x.to(x.is_contiguous() ? MemoryFormat::channels_last : MemoryFormat::contiguous);
       }},
      {"clone", [](const Tensor& x) { return x.clone(); }}};
}

}  // namespace

TEST_CASE("ops announce themselves once, and their nodes know them", "[profile][cpu]") {
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last})
    for (const Case& c : cases()) {
      CAPTURE(c.name);
      const Tensor x = randn({4, 3, 6, 5}).to(format).set_requires_grad();
      const Profile profile = profile_of([&] {
        const Tensor y = c.function(x);
        y.backward(ones_like(y));
      });
      REQUIRE(x.grad().defined());
      const auto op = std::find_if(profile.events.begin(), profile.events.end(), [&](const Event& event) {
        return event.kind == RangeKind::op && event.name == c.name && event.sequence != 0;
      });
      CHECK(op != profile.events.end());
      if (op == profile.events.end()) continue;
      CHECK(op->parent == none);  // none of the raw function around it
      bool of_x = false;
      for (const TensorInfo& input : op->inputs)
        of_x = of_x || (input.defined && input.shape.size() >= 3 && input.format == format);
      if (op->inputs.size() > 0 && op->inputs[0].shape == x.shape()) CHECK(of_x);

      std::size_t nodes = 0;
      for (const Event& event : profile.events) {
        if (event.kind == RangeKind::backward) {
          CAPTURE(event.name);
          ++nodes;
          CHECK(event.forward != none);
          if (event.forward == none) continue;
          CHECK(event.name == profile.events[event.forward].name + "_backward");
        }
        // No layer repeats what the one around it has said.
        if (event.kind == RangeKind::op && event.parent != none)
          CHECK(profile.events[event.parent].name != event.name);
      }
      CHECK(nodes >= 1);
    }
}

TEST_CASE("cuda: a copy between devices, a cast and a change of format have three names", "[profile][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Tensor x = randn({4, 3, 6, 5});
  const Profile profile =
      profile_of([&] { x.to(Device(DeviceType::cuda)).to(float64).to(MemoryFormat::channels_last); });
  for (const char* name : {"to_device", "cast", "to_format"}) CHECK(the_only(profile, name).parent == none);
}

TEST_CASE("convolutions and products say what ran, and how much there was to do", "[profile][cpu]") {
  const Tensor x = randn({4, 6, 8, 8}).to(MemoryFormat::channels_last).set_requires_grad();
  const Tensor w = randn({10, 3, 3, 3}).set_requires_grad();
  const Tensor m = randn({5, 8, 8}).set_requires_grad();
  for (const char* implementation : {"unfold", "reference"}) {
    const Profile profile = profile_of([&] {
      const Tensor y = conv2d(x, w, {}, {.padding = 1, .groups = 2, .implementation = implementation});
      y.backward(ones_like(y));
    });
    for (const char* pass : {"", "_backward_input", "_backward_weight"}) {
      const Event& event = the_only(profile, std::string("conv2d") + pass);
      CHECK(event.implementation == implementation);
      CHECK(event.flops == 2.0 * 4 * 10 * 8 * 8 * 3 * 3 * 3);
    }
    CHECK(the_only(profile, "conv2d").inputs[0].format == MemoryFormat::channels_last);
    CHECK(the_only(profile, "conv2d_backward").flops == 0);
  }

  const Profile products = profile_of([&] {
    matmul(m, m);
    linear(m, ones({3, 8}), ones({3}));
    addmm(ones({2, 4}), ones({2, 3}), ones({3, 4}));
  });
  CHECK(the_only(products, "matmul").flops == 2.0 * 5 * 8 * 8 * 8);
  CHECK(the_only(products, "linear").flops == 2.0 * 5 * 8 * 3 * 8);
  CHECK(the_only(products, "addmm").flops == 2.0 * 2 * 4 * 3);
  CHECK(the_only(products, "linear").implementation == "eigen");

  const Profile norms = profile_of([&] {
    const Tensor y = batch_norm(x, {}, {}, {}, {}, {.training = true, .implementation = "reference"});
    y.backward(ones_like(y));
  });
  CHECK(the_only(norms, "batch_norm").implementation == "reference");
  CHECK(the_only(norms, "batch_norm_backward").implementation == "reference");
}

TEST_CASE("the memory of a result is its op's", "[profile][cpu]") {
  const Tensor x = zeros({1 << 18});
  Tensor y;
  const Profile profile = profile_of([&] { y = relu(x); }, {.with_memory = true});
  CHECK(the_only(profile, "relu").self_cpu_memory >= 1 << 20);
}

TEST_CASE("a training step is made of steps, modules, ops, nodes and the optimiser", "[profile][cpu]") {
  struct Images : data::Dataset {
    int64_t size() const override { return 8; }
    data::Batch get(std::span<const int64_t> indices) const override {
      const auto n = static_cast<int64_t>(indices.size());
      return {randn({n, 3, 8, 8}), randint(0, 4, {n})};
    }
  };
  const Images images;
  data::DataLoader loader(images, {.batch_size = 2, .workers = 0});
  nn::Sequential net{nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = 3}},
                     nn::BatchNorm2d{{.num_features = 4}}, nn::ReLU{}, nn::Flatten{},
                     nn::Linear{{.in_features = 144, .out_features = 4}}};
  optim::SGD sgd{net.parameters(), {.lr = 0.1, .momentum = 0.9}};
  int profiles = 0;
  Profiler profiler{{.activities = Activities::cpu,
                     .schedule = Schedule{.wait = 1, .warmup = 1, .active = 2},
                     .on_trace_ready = [&](const Profile& profile) {
                       ++profiles;
                       for (const Event& event : profile.events) {
                         if (event.parent == none) CHECK(event.kind == RangeKind::step);
                         if (event.kind == RangeKind::backward) CHECK(event.forward != none);
                       }
                       const KeyAverages averages = profile.key_averages();
                       for (const char* name : {"Sequential", "Conv2d", "conv2d", "conv2d_backward",
                                                "batch_norm", "batch_norm_backward", "ReLU", "cross_entropy",
                                                "SGD.step", "SGD.zero_grad", "DataLoader.next"})
                         CHECK(averages.at(name).calls == 2);
                       CHECK(averages.at("ProfilerStep*").cpu == averages.cpu);
                       for (const Event* event : all_of(profile, "conv2d_backward_weight"))
                         CHECK(event->module == "0 (Conv2d)");
                     }}};
  for (const data::Batch& batch : loader) {
    const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    profiler.step();
  }
  CHECK(profiles == 1);
}
