// What the library can do, done before main begins and after it has ended: in constructors and destructors of
// static objects, of variables of threads, in functions of atexit. Exit status 0: all of it was right; a line
// on standard error says what was not.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <pleat/pleat.h>

#include "pleat/tests/system.h"

using namespace pleat;

namespace {

void expect(bool right, const char* where, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "late: %s: %s is wrong\n", where, what.c_str());
  pleat_test::leave(1);
}

bool main_ended = false;

bool alike(const Tensor& a, const Tensor& b) {
  return max(abs(a - b)).item<float>() <= 1e-4f * max(abs(b)).item<float>();
}

void convolve(const char* where) {
  const Tensor x = randn({2, 16, 12, 12}), w = randn({16, 16, 3, 3}), dy = randn({2, 16, 12, 12});
  const auto passes = [&](const std::string& implementation) {
    const ConvOptions options{.padding = 1, .implementation = implementation};
    return std::vector<Tensor>{ops::conv_forward(x, w, {}, options),
                               ops::conv_backward_input(dy, w, x.shape(), options),
                               ops::conv_backward_weight(dy, x, w.shape(), options)};
  };
  const std::vector<Tensor> right = passes("reference");
  std::vector<std::string> names = ops::conv_implementations();
  names.emplace_back();  // the default
  for (const std::string& name : names) try {
      const std::vector<Tensor> got = passes(name);
      for (std::size_t i = 0; i < got.size(); ++i)
        expect(alike(got[i], right[i]), where, "convolution " + name);
    } catch (const DeviceError& error) {  // another library's objects may be gone
      expect(main_ended && name == "onednn", where, error.what());
    }
  // Few channels, groups, stride, other ranks: other kernels.
  for (const int64_t channels : {1, 3, 8}) {
    const Tensor few = randn({1, channels, 9, 9}), kernel = randn({channels, 1, 3, 3});
    const ConvOptions depthwise{.stride = 2, .padding = 1, .groups = channels};
    ConvOptions reference = depthwise;
    reference.implementation = "reference";
    expect(alike(conv2d(few, kernel, {}, depthwise), conv2d(few, kernel, {}, reference)), where, "groups");
  }
  expect(conv3d(randn({1, 2, 4, 4, 4}), randn({2, 2, 3, 3, 3})).numel() == 16, where, "conv3d");
}

void train(const char* where) {
  nn::Sequential net{nn::Conv2d({.in_channels = 3, .out_channels = 8, .kernel_size = 3}),
                     nn::BatchNorm2d({.num_features = 8}),
                     nn::ReLU(),
                     nn::AdaptiveAvgPool2d({.output_size = 1}),
                     nn::Flatten(),
                     nn::Linear({.in_features = 8, .out_features = 2})};
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  const ConvPolicy policy{{.implementation = "direct"}};
  profile::Profiler profiler;
  data::DataLoader loader(data::TensorDataset(randn({8, 3, 8, 8}), randint(0, 2, {8})),
                          {.batch_size = 4, .shuffle = true, .workers = 2});
  int batches = 0;
  for (const data::Batch& batch : loader) {
    Tensor loss;
    {
      const Autocast half{bfloat16};
      loss = cross_entropy(net(batch.inputs), batch.targets);
    }
    net.zero_grad();
    loss.backward();
    sgd.step();
    expect(std::isfinite(loss.item<float>()), where, "loss");
    ++batches;
  }
  expect(batches == 2, where, "loader");
  profiler.stop();
  expect(profiler.profile().key_averages().table().find("conv2d") != std::string::npos, where, "profile");
  for (const char* name : {"native", "reference"})
    expect(batch_norm(randn({4, 2, 3, 3}), {}, {}, ones({2}), zeros({2}),
                      {.training = true, .implementation = name})
                   .numel() == 72,
           where, "batch norm");
}

void write(const char* where) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("pleat_late_" + std::to_string(std::random_device()()));
  std::filesystem::create_directory(folder);
  const Tensor x = rand({5, 5});
  io::write_safetensors(folder / "x.safetensors", {{"x", x}});
  expect(alike(io::read_safetensors(folder / "x.safetensors").tensors.at("x"), x), where, "safetensors");
  std::filesystem::remove_all(folder);
}

std::mutex one_at_a_time;  // there is one profiler

void do_all(const char* where) {
  const std::lock_guard lock(one_at_a_time);
  try {
    manual_seed(1);
    const Tensor a = randn({64, 64});
    expect(alike(matmul(matmul(a, a), a), matmul(a, matmul(a, a))), where, "matmul");
    expect(interpolate(reshape(a[0], {1, 1, 64}), {.size = 7, .mode = Interpolation::linear}).numel() == 7,
           where, "interpolate");
    convolve(where);
    train(where);
    write(where);
  } catch (const std::exception& error) {
    expect(false, where, error.what());
  }
}

struct Everything {
  explicit Everything(const char* n) : name(n) { do_all(name); }
  ~Everything() { do_all(name); }
  Everything(const Everything&) = delete;
  Everything& operator=(const Everything&) = delete;
  const char* name;
};

/// Made before the library was used, and destroyed last.
struct Earliest {
  Earliest() {
    std::atexit([] { do_all("the last function of atexit"); });
  }
  ~Earliest() { do_all("the earliest object"); }
} earliest;

std::optional<ConvPolicy> policy{std::in_place, ConvPolicyOptions{.implementation = "unfold"}};
const Everything object("an object before main");
thread_local Everything of_thread("a variable of a thread");

/// Its thread ends after main, and its variables after the thread's function.
std::jthread thread([](const std::stop_token& stop) {
  expect(of_thread.name != nullptr, "a thread", "its variable");
  while (!stop.stop_requested()) std::this_thread::yield();
  do_all("a thread after main");
});

}  // namespace

int main() {
  expect(of_thread.name != nullptr, "main", "its variable");
  static const Everything late("a static object of main");
  std::atexit([] { do_all("a function of atexit"); });
  main_ended = true;
}
