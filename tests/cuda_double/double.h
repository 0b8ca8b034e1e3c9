#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// What a test can ask of the double, and tell it. The double stands in for the CUDA runtime, cuBLAS and
/// cuDNN on a machine without a GPU: see docs/cuda.md. Wrong use that a GPU would answer with a wrong result,
/// now and then, ends the process here with a line "cuda double: ...".

namespace cuda_double {

/// What was asked of the device since the process began, or since reset_counts().
struct Counts {
  int64_t launches = 0;          ///< of kernels
  int64_t library_calls = 0;     ///< of cuBLAS, cuDNN and CUB that compute
  int64_t synchronisations = 0;  ///< in which the host waited, blocking copies among them
  int64_t blocking_copies = 0;  ///< between host and device, which wait: not asked for as asynchronous, or of
                                ///< memory that is not pinned
  int64_t copies = 0;           ///< all of them
  int64_t bytes_copied = 0;
  int64_t fills = 0;        ///< cudaMemsetAsync
  int64_t allocations = 0;  ///< of device memory
  int64_t frees = 0;
  int64_t graph_launches = 0;  ///< what runs in them is counted when it is captured
};
Counts counts();
void reset_counts();

/// Faults, each once: the n-th call from now on fails (1: the next); 0 takes the order back.
struct Faults {
  int64_t allocation = 0;       ///< cudaMalloc: cudaErrorMemoryAllocation
  int64_t host_allocation = 0;  ///< cudaHostAlloc: the same
  int64_t launch = 0;           ///< a launch is refused: cudaErrorLaunchOutOfResources
  int64_t kernel = 0;           ///< a kernel goes wrong when it runs: cudaErrorIllegalAddress from then on
  int64_t blas = 0;             ///< a call of cuBLAS: CUBLAS_STATUS_EXECUTION_FAILED
  int64_t dnn = 0;              ///< a call of cuDNN: CUDNN_STATUS_EXECUTION_FAILED
};
void set_faults(const Faults& faults);
/// Makes the devices as they were, after a fault that loses them; memory and streams stay.
void repair();

/// The order of threads, blocks and streams follows from it; at the start PLEAT_DOUBLE_SEED, or 1.
void set_seed(uint64_t seed);

/// Bytes that a device has.
inline constexpr std::size_t device_memory = std::size_t{8} << 30;
inline constexpr int devices = 2;

}  // namespace cuda_double
