// The double of CUDA itself: what it computes, and that it notices what is wrong. Wrong use ends a process,
// so each such case runs in one of its own.
#define PLEAT_CUDA_DOUBLE 1

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/double.h"
#include "pleat/tests/cuda_double/memory.h"
#include "pleat/tests/cuda_double/said_by.h"

using Catch::Matchers::Contains;
using cuda_double::said_by;

namespace {

float* on_device(int64_t n) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, static_cast<std::size_t>(n) * sizeof(float)) == cudaSuccess);
  return static_cast<float*>(memory);
}

cudaLaunchConfig_t config(unsigned blocks, unsigned threads, cudaStream_t stream = nullptr) {
  cudaLaunchConfig_t result{};
  result.gridDim = dim3(blocks);
  result.blockDim = dim3(threads);
  result.stream = stream;
  return result;
}

template <class... Parameters, class... Given>
cudaError_t launch(const cudaLaunchConfig_t& how, void (*kernel)(Parameters...), Given... given) {
  return cudaLaunchKernelEx(&how, kernel, given...);
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0) == cudaSuccess);
  return stream;
}

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  return event;
}

std::vector<float> read(const float* memory, std::size_t n) {
  std::vector<float> result(n);
  REQUIRE(cudaMemcpyAsync(result.data(), memory, n * sizeof(float), cudaMemcpyDefault, nullptr) ==
          cudaSuccess);
  return result;
}

__global__ void set_to(float* y, int n, float value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = value;
}

__global__ void copy_to(float* y, const float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i];
}

float* shared() {
  alignas(16) __shared__ float values[64];
  return values;
}
void put(unsigned i, float value) {
  cuda_double::watch_shared(shared(), i, sizeof(float), 64 * sizeof(float), true);
  shared()[i] = value;
}
float get(unsigned i) {
  cuda_double::watch_shared(shared(), i, sizeof(float), 64 * sizeof(float), false);
  return shared()[i];
}

/// y[i] = x[63 - i], through shared memory; `barrier` leaves out what makes it right.
__global__ void reverse(float* y, const float* x, bool barrier) {
  put(threadIdx.x, x[threadIdx.x]);
  if (barrier) __syncthreads();
  y[threadIdx.x] = get(63 - threadIdx.x);
}

__global__ void read_unwritten(float* y) { y[threadIdx.x] = get(threadIdx.x); }

__global__ void divergent(float* y, bool ends) {
  if (threadIdx.x < 7) {
    if (ends) return;
    __syncthreads();
  } else {
    __syncthreads();
  }
  y[threadIdx.x] = 1;
}

__global__ void add_up_warp(float* y) {
  unsigned sum = threadIdx.x;
  for (unsigned apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
  y[threadIdx.x] = static_cast<float>(__shfl_sync(0xffffffffu, sum, 0));
}

__global__ void two_before(float* y) {
  y[threadIdx.x] = static_cast<float>(__shfl_up_sync(0xffffffffu, threadIdx.x, 2));
}

}  // namespace

TEST_CASE("kernels run in their grids, late, and in the order of their stream") {
  float* const x = on_device(1000);
  CHECK(launch(config(4, 256), set_to, x, 1000, 1.0f) == cudaSuccess);
  CHECK(launch(config(4, 256), set_to, x, 500, 2.0f) == cudaSuccess);
  std::vector<float> expected(1000, 1);
  std::fill_n(expected.begin(), 500, 2.0f);
  CHECK(read(x, 1000) == expected);
  CHECK(cudaFree(x) == cudaSuccess);
}

TEST_CASE("threads of a block meet at barriers and in warps") {
  float* const x = on_device(64);
  float* const y = on_device(64);
  std::vector<float> values(64);
  for (std::size_t i = 0; i < 64; ++i) values[i] = static_cast<float>(i);
  cudaMemcpyAsync(x, values.data(), 256, cudaMemcpyDefault, nullptr);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    cuda_double::set_seed(seed);
    launch(config(3, 64), reverse, y, static_cast<const float*>(x), true);
    CHECK(read(y, 64) == std::vector<float>(values.rbegin(), values.rend()));
    launch(config(1, 64), add_up_warp, y);
    std::vector<float> sums(64, 31 * 16);
    std::fill_n(sums.begin() + 32, 32, static_cast<float>(31 * 16 + 32 * 32));
    CHECK(read(y, 64) == sums);
    launch(config(1, 64), two_before, y);
    const std::vector<float> before = read(y, 64);
    CHECK((before[1] == 1 && before[2] == 0 && before[31] == 29 && before[33] == 33 && before[34] == 32));
  }
  cudaFree(x);
  cudaFree(y);
}

TEST_CASE("work of a stream that nobody waits for is late") {
  cuda_double::set_seed(1);
  const cudaStream_t a = new_stream(), b = new_stream();
  float* const x = on_device(8);
  float* const y = on_device(8);
  launch(config(1, 32, a), set_to, x, 8, 3.0f);
  launch(config(1, 32, b), copy_to, y, static_cast<const float*>(x), 8);
  cudaStreamSynchronize(b);
  CHECK(read(y, 1)[0] != 3.0f);
  const cudaEvent_t event = new_event();
  cudaEventRecord(event, a);
  cudaStreamWaitEvent(b, event, 0);
  launch(config(1, 32, b), copy_to, y, static_cast<const float*>(x), 8);
  cudaStreamSynchronize(b);
  CHECK(read(y, 8) == std::vector<float>(8, 3.0f));
}

TEST_CASE("with an even seed some work runs at once") {
  float* const x = on_device(1);
  void* pinned = nullptr;
  cudaHostAlloc(&pinned, 4, cudaHostAllocPortable);
  auto* const value = static_cast<float*>(pinned);
  const auto copied = [&](uint64_t seed) {
    cuda_double::set_seed(seed);
    *value = 1;
    cudaMemcpyAsync(x, value, 4, cudaMemcpyDefault, nullptr);
    *value = 2;
    return read(x, 1)[0];
  };
  int early = 0;
  for (uint64_t seed = 0; seed < 40; seed += 2) {
    early += copied(seed) == 1 ? 1 : 0;
    CHECK(copied(seed + 1) == 2);
  }
  CHECK(early > 0);
  CHECK(early < 20);
}

TEST_CASE("there is no time between events of two devices") {
  std::array<cudaEvent_t, 2> events{};
  for (int device = 0; device < 2; ++device) {
    cudaSetDevice(device);
    REQUIRE(cudaEventCreateWithFlags(&events[static_cast<std::size_t>(device)], cudaEventDefault) ==
            cudaSuccess);
    cudaEventRecord(events[static_cast<std::size_t>(device)], nullptr);
    cudaDeviceSynchronize();
  }
  cudaSetDevice(0);
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, events[0], events[1]) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(&ms, events[0], events[0]) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("copies of pinned memory read it late, of other memory at once") {
  cuda_double::set_seed(1);
  float* const x = on_device(4);
  void* pinned = nullptr;
  cudaHostAlloc(&pinned, 16, cudaHostAllocPortable);
  auto* const values = static_cast<float*>(pinned);
  std::vector<float> pageable(4, 1.0f);
  std::fill_n(values, 4, 1.0f);
  cuda_double::reset_counts();
  cudaMemcpyAsync(x, pageable.data(), 16, cudaMemcpyDefault, nullptr);
  pageable[0] = 2;
  CHECK(read(x, 4) == std::vector<float>(4, 1.0f));
  CHECK(cuda_double::counts().blocking_copies == 2);
  cudaMemcpyAsync(x, values, 16, cudaMemcpyDefault, nullptr);
  values[0] = 2;
  CHECK(read(x, 4)[0] == 2.0f);
  CHECK(cuda_double::counts().blocking_copies == 3);
  CHECK(cuda_double::counts().bytes_copied == 64);
}

TEST_CASE("what is wrong on a GPU ends the process, and says what it was") {
  float* const x = on_device(64);
  float* const y = on_device(64);
  auto* const host = static_cast<float*>(std::aligned_alloc(64, 256));
  const auto run = [] { cudaDeviceSynchronize(); };
  CHECK_THAT(said_by([&] { x[3] = 1; }), Contains("the host touched memory of a device"));
  CHECK_THAT(said_by([&] {
               launch(config(1, 64), copy_to, y, static_cast<const float*>(host), 64);
               run();
             }),
             Contains("touched memory of the host"));
  CHECK_THAT(said_by([&] {
               launch(config(8, 256), set_to, x, 2000, 1.0f);
               run();
             }),
             Contains("belongs to no block") && Contains("kernel (float*, int, float)"));
  CHECK_THAT(said_by([&] {
               launch(config(1, 64), reverse, y, static_cast<const float*>(x), false);
               run();
             }),
             Contains("without a barrier between them") || Contains("that nobody has written"));
  CHECK_THAT(said_by([&] {
               launch(config(1, 64), read_unwritten, y);
               run();
             }),
             Contains("reads shared memory that nobody has written"));
  CHECK_THAT(said_by([&] {
               launch(config(1, 64), divergent, y, true);
               run();
             }),
             Contains("7 threads of a block ended while 57 wait at __syncthreads"));
  CHECK_THAT(said_by([&] {
               launch(config(1, 64), divergent, y, false);
               run();
             }),
             Contains("wait at different __syncthreads"));
  CHECK_THAT(said_by([&] {
               cudaFree(y);
               launch(config(1, 64), set_to, y, 64, 1.0f);
               run();
             }),
             Contains("belongs to no block"));
  CHECK_THAT(said_by([&] {
               float* const z = on_device(60);
               launch(config(1, 64), set_to, z, 61, 1.0f);
               run();
             }),
             Contains("wrote past the end of a block of 240 bytes"));
  CHECK_THAT(said_by([&] { cudaFree(y + 1); }), Contains("cudaFree: the address is not that of a block"));
  CHECK_THAT(said_by([&] { cudaMemsetAsync(x, 0, 257, nullptr); }),
             Contains("reaches past the end of a block of 256"));
  CHECK_THAT(said_by([&] {
               cudaSetDevice(1);
               launch(config(1, 64), set_to, x, 64, 1.0f);
               run();
             }),
             Contains("touched memory of a device, which only that device"));
  CHECK_THAT(said_by([&] {
               const cudaStream_t stream = new_stream();
               cudaSetDevice(1);
               launch(config(1, 64, stream), set_to, static_cast<float*>(nullptr), 0, 1.0f);
             }),
             Contains("is launched on device 1 into a stream of device 0"));
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const float one = 1;
  CHECK_THAT(said_by([&] { cublasSaxpy(handle, 65, &one, x, 1, y, 1); }),
             Contains("cublasSaxpy, x: reaches past the end"));
  CHECK_THAT(said_by([&] { cublasSaxpy(handle, 64, &one, host, 1, y, 1); }),
             Contains("is given memory of the host"));
  CHECK_THAT(said_by([&] {
               cudaSetDevice(1);
               cublasSaxpy(handle, 64, &one, x, 1, y, 1);
             }),
             Contains("a handle of device 0 is used while device 1 is the current one"));
  CHECK_THAT(said_by([&] {
               cublasSetStream(handle, nullptr);
               std::thread([&] { cublasSaxpy(handle, 64, &one, x, 1, y, 1); }).join();
             }),
             Contains("a handle that another thread uses"));
}

TEST_CASE("launches that no GPU takes are refused") {
  float* const x = on_device(8);
  for (const auto& [blocks, threads] :
       {std::pair<unsigned, unsigned>{0, 32}, {1, 0}, {1, 1025}, {0x80000000u, 1}})
    CHECK(launch(config(blocks, threads), set_to, x, 8, 1.0f) == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, cuda_double::device_memory + 1) == cudaErrorMemoryAllocation);
}

TEST_CASE("faults come when they are ordered, once") {
  float* const x = on_device(8);
  void* memory = nullptr;
  cuda_double::set_faults({.allocation = 2, .launch = 1});
  CHECK(cudaMalloc(&memory, 8) == cudaSuccess);
  CHECK(cudaMalloc(&memory, 8) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&memory, 8) == cudaSuccess);
  CHECK(launch(config(1, 32), set_to, x, 8, 1.0f) == cudaErrorLaunchOutOfResources);
  CHECK(launch(config(1, 32), set_to, x, 8, 1.0f) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  cuda_double::set_faults({.kernel = 2});
  CHECK(launch(config(1, 32), set_to, x, 8, 1.0f) == cudaSuccess);
  CHECK(launch(config(1, 32), set_to, x, 8, 1.0f) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaMalloc(&memory, 8) == cudaErrorIllegalAddress);
  cuda_double::repair();
  CHECK(cudaMalloc(&memory, 8) == cudaSuccess);
}

#ifdef CUDA_DOUBLE_CUDNN
TEST_CASE("what NVIDIA's cuDNN refuses without a GPU is refused") {
  cudnnBackendDescriptor_t tensor = nullptr;
  REQUIRE(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor) == CUDNN_STATUS_SUCCESS);
  const std::array<int64_t, 4> sizes = {2, 3, 4, 5};
  CHECK(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes.data()) ==
        CUDNN_STATUS_SUCCESS);
  // The double by itself keeps what it is told, and asks for less when the descriptor is complete.
  const std::array<double, 4> strides = {60, 20, 5, 1};
  CHECK(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_DOUBLE, 4, strides.data()) !=
        CUDNN_STATUS_SUCCESS);
  CHECK(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 4,
                                 sizes.data()) != CUDNN_STATUS_SUCCESS);
  CHECK(cudnnBackendDestroyDescriptor(tensor) == CUDNN_STATUS_SUCCESS);
}
#endif
