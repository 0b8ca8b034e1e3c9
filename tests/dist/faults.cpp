// A training of several processes in which one goes wrong: faults FAULT SECONDS
// After so many seconds the last rank does what FAULT says: a signal comes at that moment, whatever the rank
// does, all else before its next step. tests/dist/faults.py knows what has to come of it. With
// PLEAT_TEST_DEVICE=cuda each rank computes on its GPU.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include <unistd.h>

#include "pleat/autograd/backward.h"
#include "pleat/core/base/device.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/dist/collectives.h"
#include "pleat/dist/data_parallel.h"
#include "pleat/dist/init.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"

using namespace pleat;

namespace {

constexpr double timeout = 3;

/// Does it, now. Returns where the fault is in the calls that come after.
void go_wrong(const std::string& fault) {
  if (fault == "throw") throw ValueError("the data are gone");
  if (fault == "exit") std::exit(0);
  if (fault == "hang") std::this_thread::sleep_for(std::chrono::seconds(1000));
}

/// Has the process get the signal of the fault, if it is one, after so many seconds.
void send_signal(const std::string& fault, double seconds) {
  const int signal = fault == "kill" ? SIGKILL : fault == "abort" ? SIGABRT : fault == "stop" ? SIGSTOP : 0;
  if (signal == 0) return;
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    kill(getpid(), signal);
  }).detach();
}

int run(const std::string& fault, double seconds) {
  const dist::Communicator world = dist::init({.timeout_seconds = timeout});
  std::optional<DefaultDevice> device;
  if (std::getenv("PLEAT_TEST_DEVICE") != nullptr) device.emplace(world.device());
  std::printf("rank %d has begun\n", world.rank());
  std::fflush(stdout);
  const bool faulty = world.rank() == world.size() - 1;
  const int64_t width = fault == "model" && faulty ? 33 : 32;
  nn::Sequential net(nn::Linear{{.in_features = 16, .out_features = width}}, nn::ReLU{},
                     nn::Linear{{.in_features = width, .out_features = 4}});
  dist::DataParallel ddp{net, world, {.bucket_megabytes = 0.001, .first_bucket_megabytes = 0.0005}};
  optim::SGD sgd{net.parameters(), {.lr = 0.01}};
  if (faulty) send_signal(fault, seconds);
  const auto start = std::chrono::steady_clock::now();
  const auto is_time = [&] {
    return faulty && std::chrono::steady_clock::now() - start > std::chrono::duration<double>(seconds);
  };
  int64_t steps = 0;
  // All ranks must agree on the end, as they do in a training by the number of steps.
  for (bool go_on = true; go_on; ++steps) {
    if (is_time()) go_wrong(fault);
    if (is_time() && fault == "batches") break;
    mean(square(ddp(randn({8, 16})))).backward();
    if (is_time() && fault == "shape") dist::all_reduce(ones({5}), world);
    if (is_time() && fault == "order") dist::barrier(world);
    sgd.step();
    sgd.zero_grad();
    const double over = fault == "none" && is_time() ? 1 : 0;
    go_on = dist::all_reduce(scalar(over), world, dist::ReduceOp::max).item() == 0;
  }
  std::printf("rank %d: %lld steps\n", world.rank(), static_cast<long long>(steps));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string fault = argv[1];
  if (fault != "catch") return run(fault, std::atof(argv[2]));
  // A program that reports its errors itself.
  try {
    return run("throw", std::atof(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
