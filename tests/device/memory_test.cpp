// Training goes on with a smaller batch after an OutOfMemoryError.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/address_sanitizer.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/pool.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/system.h"

using namespace pleat;

namespace {

constexpr int64_t mebi = 1 << 20;

/// A network and its optimiser on a device: the same bits each time. There is no batch norm in it, whose
/// running statistics would have changed when a later layer ran out of memory.
class Training {
 public:
  explicit Training(Device device) : device_(device) {
    manual_seed(1);
    net_ = nn::Sequential{nn::Conv2d{{.in_channels = 3,
                                      .out_channels = 16,
                                      .kernel_size = 3,
                                      .padding = 1,
                                      .implementation = "unfold"}},
                          nn::ReLU{},
                          nn::Conv2d{{.in_channels = 16,
                                      .out_channels = 16,
                                      .kernel_size = 3,
                                      .padding = 1,
                                      .implementation = "unfold"}},
                          nn::ReLU{},
                          nn::AdaptiveAvgPool2d{{.output_size = 1}},
                          nn::Flatten{}};
    net_.to(device);
    sgd_ = std::make_unique<optim::SGD>(net_.parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  }

  void step(int64_t batch) {
    Generator generator(7);
    const Tensor images = randn({batch, 3, 32, 32}, {.device = device_}, generator);
    const Tensor labels = randint(0, 16, {batch}, device_, generator);
    const Tensor loss = cross_entropy(net_(images), labels);
    sgd_->zero_grad();
    loss.backward();
    sgd_->step();
  }

  std::vector<std::vector<double>> parameters() const {
    std::vector<std::vector<double>> all;
    for (const Tensor& parameter : net_.parameters()) all.push_back(parameter.to_vector<double>());
    return all;
  }

 private:
  Device device_;
  nn::Sequential net_;
  std::unique_ptr<optim::SGD> sgd_;
};

/// What the result of a convolution takes for one image.
constexpr int64_t bytes_an_image = 16 * 32 * 32 * 4;

/// Steps of 64 images work and one of `too_many` does not; those after the error must be the steps of a
/// training that met none.
void check_training_goes_on(Device device, int64_t too_many,
                            const std::function<void()>& leave_little_memory) {
  Training undisturbed(device);
  for (int i = 0; i < 3; ++i) undisturbed.step(64);

  Training training(device);
  training.step(64);
  leave_little_memory();
  const auto before = training.parameters();
  CHECK_THROWS_AS(training.step(too_many), OutOfMemoryError);
  CHECK(training.parameters() == before);
  training.step(64);
  CHECK_THROWS_AS(training.step(too_many), OutOfMemoryError);
  training.step(64);
  CHECK(training.parameters() == undisturbed.parameters());
}

}  // namespace

TEST_CASE("cuda: training goes on with a smaller batch after an out-of-memory error", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  // More than the GPU has, rather than what others leave: tests run side by side.
  const int64_t too_many = cuda::memory_info().total / bytes_an_image + 1;
  check_training_goes_on(Device(DeviceType::cuda), too_many, [] {});
}

TEST_CASE("training goes on with a smaller batch after an out-of-memory error", "[core]") {
#if PLEAT_ADDRESS_SANITIZER
  pleat_test::skip("AddressSanitizer needs address space without bounds");
#else
  if (!pleat_test::AddressSpaceLimit(1024 * mebi).holds())
    return pleat_test::skip("the system limits no process's addresses");
  std::optional<pleat_test::AddressSpaceLimit> limit;
  check_training_goes_on(Device(), 1024 * mebi / bytes_an_image, [&] {
    empty_cache();
    limit.emplace(256 * mebi);
  });
#endif
}
