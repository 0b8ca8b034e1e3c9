// What happens when CUDA fails: the exception that core/base/error.h promises, no memory and no handle lost,
// and the same bits afterwards. Only the double of CUDA fails when it is told to.

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "pleat/autograd/copy.h"
#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/data/dataset.h"
#include "pleat/data/loader.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/double.h"

using namespace pleat;
using Catch::Matchers::Contains;
using cuda_double::Faults;

namespace {

const Device gpu(DeviceType::cuda), other_gpu(DeviceType::cuda, 1);
using Bits = std::vector<std::vector<double>>;

/// While one exists, calls fail as it says.
class Failing {
 public:
  explicit Failing(const Faults& faults) { cuda_double::set_faults(faults); }
  ~Failing() { cuda_double::set_faults({}); }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
};

Faults nth(int64_t Faults::*kind, int64_t n, bool lasting = false) {
  Faults faults;
  faults.*kind = n;
  faults.lasting = lasting;
  return faults;
}

/// A step of a small network, which is made for it, and what else a program does on a GPU.
Bits training_step() {
  manual_seed(1);
  Bits bits;
  nn::Sequential net{
      nn::Conv2d{{.in_channels = 2, .out_channels = 3, .kernel_size = 3, .padding = 1, .bias = false}},
      nn::BatchNorm2d{{.num_features = 3}},
      nn::ReLU{},
      nn::MaxPool2d{{.kernel_size = 2}},
      nn::Flatten{},
      nn::Dropout{{.p = 0.25}},
      nn::Linear{{.in_features = 12, .out_features = 4}}};
  net.to(gpu);
  optim::SGD sgd{net.parameters(), {.lr = 0.1, .momentum = 0.9}};
  const Tensor images = randn({3, 2, 4, 4}, {.device = gpu});
  const Tensor labels = tensor({1, 0, 3}).to(gpu);
  const Tensor loss = cross_entropy(net(images), labels);
  loss.backward();
  sgd.step();
  optim::Adam adam{net.parameters(), {.lr = 0.1}};
  optim::GradScaler scaler{{.init_scale = 2}};
  scaler.step(adam);
  scaler.update();
  for (const Tensor& parameter : net.parameters()) bits.push_back(parameter.to_vector<double>());
  for (const auto& [name, buffer] : net.named_buffers()) bits.push_back(buffer.to_vector<double>());
  bits.push_back({loss.item()});
  return bits;
}

/// Indices, sorting, products, random numbers and copies, with gradients.
Bits other_work() {
  manual_seed(2);
  Bits bits;
  const Tensor x = randn({5, 6}, {.device = gpu}).set_requires_grad();
  const Tensor chosen = index_select(x, 0, tensor({4, 0, 0}).to(gpu));
  const ValuesIndices sorted = sort(matmul(chosen, transpose(x, 0, 1)), {.dim = 1});
  const Tensor y = sum(sorted.values * rand({3, 5}, {.device = gpu}));
  y.backward();
  bits.push_back(x.grad().to_vector<double>());
  bits.push_back(masked_select(x.detach(), x.detach() > 0).to_vector<double>());
  bits.push_back(cuda::pin_memory(ones({3})).to(gpu).to_vector<double>());
  bits.push_back(sorted.indices.to(other_gpu).to(gpu).to_vector<double>());
  return bits;
}

/// What is there, once caches are empty, of memory (of both devices and pinned) and of CUDA's things: events,
/// streams, handles of cuBLAS and of cuDNN, descriptors of cuDNN.
std::vector<int64_t> held() {
  cuda::empty_pinned_memory_cache();
  for (const Device device : {gpu, other_gpu}) empty_cache(device);
  const cuda_double::Things things = cuda_double::things();
  return {allocator_statistics(gpu).allocated,
          allocator_statistics(gpu).reserved,
          allocator_statistics(other_gpu).reserved,
          cuda::pinned_memory_statistics().reserved,
          things.events,
          things.streams,
          things.blas_handles,
          things.dnn_handles,
          things.dnn_descriptors};
}

enum class Outcome { done, out_of_memory, device_error, lost };

struct Tried {
  Outcome outcome = Outcome::done;
  std::string words;
  Bits bits;
};

Tried tried(const std::function<Bits()>& f) {
  try {
    return {Outcome::done, "", f()};
  } catch (const DeviceLostError& error) {
    return {Outcome::lost, error.what(), {}};
  } catch (const DeviceError& error) {
    return {Outcome::device_error, error.what(), {}};
  } catch (const OutOfMemoryError& error) {
    return {Outcome::out_of_memory, error.what(), {}};
  }
}

struct Expected {
  Outcome outcome;
  std::string reason;  ///< what the message says of the cause
  /// Whether a call that fails may be one that the work can do without.
  bool may_succeed = false;
};

/// Lets the k-th call of a kind fail, for every k that the work has: each gives the error that is expected,
/// nothing is lost, and the work gives what it gave before. Returns how often it failed.
int64_t sweep(const std::function<Bits()>& work, int64_t Faults::*kind, const Expected& expected) {
  const Bits undisturbed = work();
  const std::vector<int64_t> before = held();
  int64_t failures = 0;
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    Tried got;
    bool happened = false;
    {
      const Failing failing(nth(kind, k));
      got = tried(work);
      happened = !cuda_double::is_due(kind);
    }
    CHECK(held() == before);
    if (!happened) {
      CHECK(got.bits == undisturbed);
      return failures;
    }
    ++failures;
    CAPTURE(got.words);
    if (got.outcome == Outcome::done) {
      CHECK(expected.may_succeed);
      CHECK(got.bits == undisturbed);
    } else {
      CHECK(got.outcome == expected.outcome);
      CHECK_THAT(got.words, Contains(expected.reason));
      CHECK(got.words.find(": ") < 40);  // the op's name
    }
    if (k % 8 == 1) CHECK(work() == undisturbed);
    REQUIRE(k < 2000);
  }
}

const Expected refused{Outcome::device_error, "too many resources requested for launch"};
const Expected invalid{Outcome::device_error, "invalid argument"};

}  // namespace

TEST_CASE("double: every launch of a step can be refused", "[core][cuda]") {
  CHECK(sweep(training_step, &Faults::launch, refused) > 15);
  CHECK(sweep(other_work, &Faults::launch, refused) > 15);
}

TEST_CASE("double: every copy and fill of a step can be refused", "[core][cuda]") {
  CHECK(sweep(training_step, &Faults::copy, invalid) > 10);
  CHECK(sweep(other_work, &Faults::copy, invalid) > 5);
  sweep(training_step, &Faults::fill, invalid);
  sweep(other_work, &Faults::fill, invalid);
}

TEST_CASE("double: every call of a library in a step can fail", "[core][cuda]") {
  CHECK(sweep(training_step, &Faults::blas, {Outcome::device_error, "cuBLAS"}) > 1);
  CHECK(sweep(training_step, &Faults::dnn, {Outcome::device_error, "cuDNN"}) > 1);
  CHECK(sweep(other_work, &Faults::blas, {Outcome::device_error, "cuBLAS"}) > 1);
  CHECK(sweep(other_work, &Faults::cub, refused) > 1);
}

TEST_CASE("double: memory that runs out once is taken from the cache", "[core][cuda]") {
  for (const auto work : {training_step, other_work}) {
    const Bits undisturbed = work();
    const std::vector<int64_t> before = held();
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      const Failing failing(nth(&Faults::allocation, k));
      CHECK(work() == undisturbed);
      if (cuda_double::is_due(&Faults::allocation)) break;
      CHECK(held() == before);
    }
  }
}

TEST_CASE("double: memory that runs out for good is an OutOfMemoryError", "[core][cuda]") {
  // A stream that nobody else has had: what others left cached is not for it.
  const cuda::StreamGuard own(cuda::Stream({.device = gpu, .priority = -4}));
  // The others may fit into what a stream keeps for itself.
  const auto large_work = []() -> Bits {
    return {{sum(full({int64_t{1} << 24}, 0.5, {.device = gpu})).item<double>()}};
  };
  int64_t failures = 0;
  for (const std::function<Bits()>& work :
       {std::function(training_step), std::function(other_work), std::function<Bits()>(large_work)}) {
    const Bits undisturbed = work();
    const std::vector<int64_t> before = held();
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      Tried got;
      {
        const Failing failing(nth(&Faults::allocation, k, true));
        got = tried(work);
      }
      CHECK(held() == before);
      if (got.outcome == Outcome::done) break;
      ++failures;
      CHECK(got.outcome == Outcome::out_of_memory);
      CHECK_THAT(got.words, Contains("allocate: ") && Contains("cannot be had on cuda:") &&
                                Contains("tensors use") && Contains("the device has 1.0 GiB"));
      CHECK(work() == undisturbed);
    }
  }
  CHECK(failures >= 1);
}

namespace {

/// All the memory that the device and its cache still have.
class RestOfMemory {
 public:
  RestOfMemory() {
    cuda_double::set_faults(nth(&Faults::allocation, 1, true));
    for (int64_t bytes = int64_t{1} << 33; bytes >= 512;) try {
        taken_.push_back(allocate(bytes, gpu));
      } catch (const OutOfMemoryError&) {
        bytes /= 2;
      }
  }
  ~RestOfMemory() { cuda_double::set_faults({}); }
  RestOfMemory(const RestOfMemory&) = delete;
  RestOfMemory& operator=(const RestOfMemory&) = delete;

 private:
  std::vector<std::shared_ptr<std::byte>> taken_;
};

}  // namespace

TEST_CASE("double: memory can run out before any launch of a step", "[core][cuda]") {
  for (const auto work : {training_step, other_work}) {
    const Bits undisturbed = work();
    const std::vector<int64_t> before = held();
    int64_t failures = 0;
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      std::optional<RestOfMemory> rest;
      cuda_double::before_launch(k, [&] { rest.emplace(); });
      const Tried got = tried(work);
      const bool happened = rest.has_value();
      rest.reset();
      cuda_double::before_launch(0, {});
      CHECK(held() == before);
      if (!happened) {
        CHECK(got.bits == undisturbed);
        break;
      }
      if (got.outcome != Outcome::done) {
        ++failures;
        CHECK(got.outcome == Outcome::out_of_memory);
      }
      if (k % 8 == 1) CHECK(work() == undisturbed);
    }
    CHECK(failures > 15);
  }
}

TEST_CASE("double: streams and events that cannot be made or recorded", "[core][cuda]") {
  std::vector<cuda::Stream> streams;
  const auto work = [&]() -> Bits {
    // Another stream reads what is given back before it has.
    const cuda::Stream side({.device = gpu});
    const cuda::Event ready({.device = gpu});
    Tensor x = randn({100}, {.device = gpu}, *std::make_unique<Generator>(3));
    ready.record();
    side.wait(ready);
    Tensor y;
    {
      const cuda::StreamGuard guard(side);
      y = x * 2;
      cuda::record_stream(x, side);
      x = {};
    }
    const cuda::Event done({.device = gpu});
    done.record(side);
    cuda::current_stream(gpu).wait(done);
    cuda::record_stream(y, cuda::current_stream(gpu));
    // Were its memory in use again, this would be seen in y.
    for (int i = 0; i < 3; ++i) zeros({100}, {.device = gpu});
    const Tensor there = y.to(other_gpu) + 1;
    return {y.to_vector<double>(), there.to_vector<double>(), there.to(gpu).to_vector<double>()};
  };
  CHECK(sweep(work, &Faults::event, {Outcome::out_of_memory, "out of memory", true}) > 3);
  CHECK(sweep(work, &Faults::record, {Outcome::device_error, "too many resources", true}) > 3);
  CHECK(sweep(work, &Faults::copy, invalid) > 3);
  const Failing failing(nth(&Faults::stream, 1));
  const auto new_stream = [&] { streams.emplace_back(cuda::StreamOptions{.device = gpu, .priority = -3}); };
  CHECK_THROWS_WITH(new_stream(), "stream: out of memory (cudaErrorMemoryAllocation)");
  new_stream();
}

TEST_CASE("double: handles of cuBLAS and cuDNN that cannot be made", "[core][cuda]") {
  const Tensor a = ones({2, 2}, {.device = gpu});
  const Tensor image = ones({1, 1, 3, 3}, {.device = gpu});
  // Each handle is made for a stream that has none yet.
  std::vector<cuda::Stream> streams;
  const auto in_new_stream = [&](const std::function<Tensor()>& f) {
    streams.emplace_back(cuda::StreamOptions{.device = gpu, .priority = -2});
    cuda::synchronize();
    const cuda::StreamGuard guard(streams.back());
    return [=] {
      const cuda::StreamGuard again(cuda::current_stream(gpu));
      return f();
    }();
  };
  const auto product = [&] { return ops::to_device(matmul(a, a), Device()); };
  const auto convolution = [&] {
    return ops::to_device(conv2d(image, image, {}, {.implementation = "cudnn"}), Device());
  };
  for (const auto& [kind, last, f, reason] :
       {std::tuple<int64_t Faults::*, int64_t, std::function<Tensor()>, std::string>{
            &Faults::blas_handle, 1, product, "cublasCreate: cuBLAS: "},
        {&Faults::blas_set, 3, product, "cublasSet"},
        {&Faults::dnn_handle, 1, convolution, "cudnnCreate: cuDNN"},
        {&Faults::dnn_set, 1, convolution, "cudnnSetStream: cuDNN"}}) {
    for (int64_t k = 1; k <= last; ++k) {
      CAPTURE(reason, k);
      const std::vector<int64_t> before = held();
      const std::size_t stream = streams.size();
      {
        const Failing failing(nth(kind, k, true));
        CHECK_THROWS_AS(in_new_stream(f), DeviceError);
      }
      {
        const Failing failing(nth(kind, k, true));
        CHECK_THROWS_WITH(in_new_stream(f), Contains(reason));
      }
      std::vector<int64_t> after = held();
      after[4] = before[4];  // events
      after[5] = before[5];  // streams
      CHECK(after == before);
      const cuda::StreamGuard guard(streams[stream]);
      CHECK(f().to_vector<double>()[0] > 0);
    }
  }
  // A failure that is over when the cache is empty goes unnoticed.
  const Failing failing({.blas_handle = 1, .dnn_handle = 1});
  CHECK(in_new_stream(product).to_vector<double>()[0] == 2);
  CHECK(in_new_stream(convolution).to_vector<double>()[0] == 9);
}

TEST_CASE("double: an optimiser's step that fails is none", "[nn][cuda]") {
  const auto trained = [](const auto& make, const std::optional<Faults>& faults) {
    const Tensor w = tensor({1.0, -2.0, 3.0}).to(gpu).set_requires_grad();
    auto optimizer = make(w);
    for (int i = 0; i < 3; ++i) {
      w.set_grad({});
      sum(w * w * static_cast<double>(i + 1)).backward();
      if (faults && i < 2) {
        const Failing failing(*faults);
        CHECK_THROWS_AS(optimizer.step(), DeviceError);
      }
      optimizer.step();
    }
    return w.to_vector<double>();
  };
  const auto adam = [](const Tensor& w) { return optim::Adam({w}, {.lr = 0.1}); };
  const auto sgd = [](const Tensor& w) {
    return optim::SGD({w}, {.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  };
  for (const auto kind : {&Faults::launch, &Faults::copy}) {
    const Faults faults = nth(kind, 1, true);
    CHECK(trained(adam, faults) == trained(adam, {}));
    CHECK(trained(sgd, faults) == trained(sgd, {}));
  }
}

namespace {

/// What the device answers once it is lost: always the same.
void check_is_lost(const Tensor& before) {
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(cuda::synchronize(), DeviceLostError);
    CHECK_THROWS_AS(before.to_vector(), DeviceLostError);
    CHECK_THROWS_AS(before + 1, DeviceLostError);
    CHECK_THROWS_AS(matmul(before, before), DeviceLostError);
    CHECK_THROWS_AS(sort(before), DeviceLostError);
    CHECK_THROWS_AS(randn({3}, {.device = gpu}), DeviceLostError);
    CHECK_THROWS_AS(zeros({int64_t{3} << 20}, {.device = gpu}), DeviceLostError);
    CHECK_THROWS_AS(ones({2}).to(gpu), DeviceLostError);
    CHECK_THROWS_AS(cuda::Event({.device = gpu}), DeviceLostError);
    CHECK_THROWS_AS(cuda::Stream({.device = gpu, .priority = -5}), DeviceLostError);
    CHECK_THROWS_AS(cuda::current_stream(gpu).synchronize(), DeviceLostError);
    CHECK_THROWS_AS(cuda::current_stream(gpu).is_done(), DeviceLostError);
    CHECK_THROWS_AS(cuda::memory_info(), DeviceLostError);
    CHECK_THROWS_AS(conv2d(ones({1, 1, 3, 3}), ones({1, 1, 3, 3}).to(gpu)), Error);
    // What is on the host stays: a checkpoint can be written.
    CHECK((ones({2}) + 1).to_vector() == std::vector<float>{2, 2});
  }
}

}  // namespace

TEST_CASE("double: a kernel that goes wrong loses the device", "[core][cuda]") {
  for (const auto work : {training_step, other_work}) {
    const Bits undisturbed = work();
    const std::vector<int64_t> held_before = held();
    const Tensor before = ones({2, 2}, {.device = gpu});
    CHECK(before.to_vector().size() == 4);
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      Tried got;
      bool happened = false;
      {
        const Failing failing(nth(&Faults::kernel, k));
        got = tried(work);
        happened = !cuda_double::is_due(&Faults::kernel);
      }
      if (!happened) break;
      CAPTURE(got.words);
      CHECK(got.outcome == Outcome::lost);
      CHECK_THAT(got.words, Contains("an illegal memory access was encountered (cudaErrorIllegalAddress)") &&
                                Contains("CUDA_LAUNCH_BLOCKING=1") && Contains("start it anew"));
      CHECK(got.words.find(": ") < 40);
      if (k % 16 == 1) check_is_lost(before);
      cuda_double::repair();
      if (k % 16 == 1) CHECK(work() == undisturbed);
      REQUIRE(k < 2000);
    }
    CHECK(work() == undisturbed);
  }
  cuda_double::repair();
}

TEST_CASE("double: handles cannot be made on a lost device", "[core][cuda]") {
  const Tensor x = ones({2, 2}, {.device = gpu});
  {
    const Failing failing(nth(&Faults::kernel, 1));
    CHECK_THROWS_AS((x + 1).to_vector(), DeviceLostError);
  }
  // A thread has none yet.
  std::thread([&] {
    CHECK_THROWS_AS(matmul(x, x), DeviceLostError);
    const Tensor image = x.as_strided({1, 1, 2, 2}, {4, 4, 2, 1}, 0);
    CHECK_THROWS_AS(conv2d(image, image, {}, {.implementation = "cudnn"}), DeviceLostError);
  }).join();
  cuda_double::repair();
}

// The next test runs this in a process of its own.
TEST_CASE("lost device: the end of a process", "[.ends]") {
  static std::vector<Tensor> kept;
  static std::vector<cuda::Event> events;
  static nn::Linear layer{{.in_features = 2, .out_features = 2}};
  layer.to(gpu);
  kept = {ones({3}, {.device = gpu}), cuda::pin_memory(ones({3}))};
  events.emplace_back(cuda::EventOptions{.device = gpu});
  events.back().record();
  const cuda::Stream side({.device = gpu});
  cuda::record_stream(kept[0], side);
  cuda::record_stream(kept[1], side);
  matmul(ones({2, 2}, {.device = gpu}), layer.weight);
  const Failing failing(nth(&Faults::kernel, 1));
  CHECK_THROWS_AS((kept[0] + 1).to_vector(), DeviceLostError);
}

TEST_CASE("double: a program ends well after it lost its device", "[core][cuda]") {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  CHECK(std::system(("'" + program + "' '[.ends]' >/dev/null 2>&1").c_str()) == 0);
}

TEST_CASE("double: faults reach the loop of a data loader", "[data][cuda]") {
  const data::TensorDataset set(arange(0, 12, 1, {.dtype = float32}), arange(0, 12));
  for (const int workers : {0, 1, 2}) {
    CAPTURE(workers);
    const auto epoch = [&]() -> Bits {
      data::DataLoader loader(set, {.batch_size = 5, .workers = workers, .device = gpu});
      Bits bits;
      for (const data::Batch& batch : loader) {
        bits.push_back(batch.inputs.to_vector<double>());
        bits.push_back(batch.targets.to_vector<double>());
      }
      return bits;
    };
    const Bits undisturbed = epoch();
    CHECK(sweep(epoch, &Faults::copy, invalid) >= 6);
    CHECK(sweep(epoch, &Faults::event, {Outcome::out_of_memory, "out of memory", true}) >= 0);
    const std::vector<int64_t> before = held();
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      const Failing failing(nth(&Faults::host_allocation, k, true));
      const Tried got = tried(epoch);
      if (got.outcome == Outcome::done) break;
      CHECK(got.outcome == Outcome::out_of_memory);
      CHECK_THAT(got.words, Contains("cannot be had on the cpu as pinned memory") &&
                                Contains("the system gives no more"));
      cuda_double::set_faults({});
      CHECK(held() == before);
      CHECK(epoch() == undisturbed);
    }
    // After an error the loop can go on where it was.
    data::DataLoader loader(set, {.batch_size = 5, .workers = workers, .device = gpu});
    auto batch = loader.begin();
    {
      const Failing failing(nth(&Faults::copy, 2));
      CHECK_THROWS_AS(++batch, DeviceError);
    }
    ++batch;
    CHECK(batch->inputs.to_vector() == std::vector<float>{5, 6, 7, 8, 9});
    CHECK(batch->targets.to_vector<int64_t>() == std::vector<int64_t>{5, 6, 7, 8, 9});
  }
}

TEST_CASE("double: faults of a profiler's events are warnings, and leave the work alone", "[profile][cuda]") {
  const Bits undisturbed = training_step();
  const auto profiled = [&](const Faults& faults) {
    profile::Profiler profiler;
    Bits bits;
    {
      const Failing failing(faults);
      bits = training_step();
    }
    CHECK(bits == undisturbed);
    profiler.stop();
    return profiler.profile().warnings;
  };
  const auto lost = Contains("events could not be recorded; GPU times are missing");
  for (const int64_t k : {1, 2, 3, 7, 20}) {
    CAPTURE(k);
    CHECK_THAT(profiled(nth(&Faults::event, k)).back(), lost);
    CHECK_THAT(profiled(nth(&Faults::record, k)).back(), lost);
  }
  // A device that is lost meanwhile: the profile has what the host saw.
  for (const int64_t k : {5, 15}) {
    CAPTURE(k);
    profile::Profiler profiler;
    {
      const Failing failing(nth(&Faults::kernel, k));
      CHECK(tried(training_step).outcome == Outcome::lost);
    }
    CHECK_NOTHROW(profiler.stop());
    CHECK(profiler.profile().key_averages().rows.size() > 3);
    CHECK_THAT(profiler.profile().warnings.back(), Contains("illegal memory access"));
    cuda_double::repair();
  }
  CHECK(training_step() == undisturbed);
  { const profile::Profiler next; }
}
