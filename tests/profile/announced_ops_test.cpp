#include <string>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/profile/profiles.h"

using namespace pleat;
using namespace pleat::profile;
using pleat_test::all_of, pleat_test::profile_of, pleat_test::the_only;

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
  CHECK(the_only(products, "linear").implementation == "native");

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
