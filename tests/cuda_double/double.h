#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

/// What a test can ask of the double, and tell it. The double stands in for the CUDA runtime, cuBLAS,
/// cuDNN and NCCL on a machine without a GPU: see docs/cuda.md. Wrong use that a GPU would answer with a
/// wrong result, now and then, ends the process here with a line "cuda double: ...".

namespace cuda_double {

/// What was asked of the device since the process began, or since reset_counts().
struct Counts {
  int64_t launches = 0;            ///< of kernels
  int64_t calls_of_libraries = 0;  ///< of cuBLAS, cuDNN and CUB that compute
  int64_t synchronisations = 0;    ///< in which the host waited, blocking copies among them
  int64_t blocking_copies = 0;  ///< between host and device, which wait: not asked for as asynchronous, or of
                                ///< memory that is not pinned
  int64_t copies = 0;           ///< all of them
  int64_t bytes_copied = 0;
  int64_t fills = 0;        ///< cudaMemsetAsync
  int64_t allocations = 0;  ///< of device memory
  int64_t frees = 0;
  int64_t graph_launches = 0;  ///< what runs in them is counted when it is captured
  int64_t collectives = 0;     ///< of NCCL
};
Counts counts();
void reset_counts();

/// Faults: the n-th call from now on fails (1: the next); 0 takes the order back.
struct Faults {
  int64_t allocation = 0;       ///< cudaMalloc: cudaErrorMemoryAllocation
  int64_t host_allocation = 0;  ///< cudaHostAlloc: the same
  int64_t launch = 0;           ///< a launch is refused: cudaErrorLaunchOutOfResources
  int64_t kernel = 0;           ///< a kernel goes wrong when it runs: cudaErrorIllegalAddress from then on
  int64_t copy = 0;             ///< a copy is refused: cudaErrorInvalidValue
  int64_t fill = 0;             ///< cudaMemsetAsync: the same
  int64_t stream = 0;           ///< a stream cannot be made: cudaErrorMemoryAllocation
  int64_t event = 0;            ///< an event cannot be made: the same
  int64_t record = 0;           ///< an event cannot be recorded: cudaErrorLaunchOutOfResources
  int64_t cub = 0;              ///< a call of CUB that computes: cudaErrorLaunchOutOfResources
  int64_t blas = 0;             ///< a call of cuBLAS that computes: CUBLAS_STATUS_EXECUTION_FAILED
  int64_t dnn = 0;              ///< a call of cuDNN that computes: CUDNN_STATUS_EXECUTION_FAILED
  int64_t blas_handle = 0;      ///< cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED
  int64_t blas_set = 0;         ///< what is said to a handle of cuBLAS: CUBLAS_STATUS_NOT_INITIALIZED
  int64_t dnn_handle = 0;       ///< cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED
  int64_t dnn_set = 0;          ///< what is said to a handle of cuDNN: CUDNN_STATUS_NOT_INITIALIZED
  int64_t nccl = 0;             ///< a collective of NCCL is refused: ncclUnhandledCudaError
  int64_t nccl_handle = 0;      ///< ncclCommInitRank, before it meets others: ncclSystemError
  bool lasting = false;         ///< all later calls of the kind fail, too; else it is the n-th alone
};
void set_faults(const Faults& faults);
/// Whether a call of the kind is still to fail.
bool is_due(int64_t Faults::*kind);
/// What is there of each kind, to see that nothing is lost.
struct Things {
  int64_t events = 0, streams = 0, blas_handles = 0, dnn_handles = 0, dnn_descriptors = 0;
  int64_t nccl_communicators = 0;
  bool operator==(const Things&) const = default;
};
Things things();
/// Calls `what` before the n-th launch from now on (1: the next), in the thread that launches.
void before_launch(int64_t n, std::function<void()> what);
/// Makes the devices as they were, after a fault that loses them; memory and streams stay.
void repair();

/// The order of threads, blocks and streams follows from it; at the start PLEAT_DOUBLE_SEED, or 1. With an
/// odd seed a stream's work runs when somebody waits for it; with an even one every other task runs at once,
/// with what its stream had before.
void set_seed(uint64_t seed);

/// Bytes that a device has.
inline constexpr std::size_t device_memory = std::size_t{1} << 30;
inline constexpr int devices = 2;

}  // namespace cuda_double
