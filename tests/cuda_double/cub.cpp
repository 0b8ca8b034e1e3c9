#include "cub.h"

#include "graph.h"
#include "memory.h"
#include "queue.h"

namespace cuda_double {

cudaError_t cub_call(const char* what, void* memory, std::size_t& bytes, std::size_t needed,
                     cudaStream_t handle, std::initializer_list<std::pair<const void*, std::size_t>> operands,
                     std::function<void()> run, bool waits) {
  const std::lock_guard guard(lock());
  if (memory == nullptr) {
    bytes = needed;
    return cudaSuccess;
  }
  if (device_error(current_device()) != cudaSuccess) return answer(device_error(current_device()));
  if (waits)
    if (const cudaError_t status = forbidden_while_capturing(); status != cudaSuccess) return status;
  if (fault(&Faults::cub)) return answer(cudaErrorLaunchOutOfResources);
  StreamState& stream = stream_of(handle);
  if (const cudaError_t status = may_enqueue(stream); status != cudaSuccess) return status;
  if (bytes < needed) return answer(cudaErrorInvalidValue);
  require_on_device(what, memory, needed, stream.device);
  for (const auto& [operand, size] : operands) require_on_device(what, operand, size, stream.device);
  ++counted().calls_of_libraries;
  enqueue(stream, {.what = what, .run = std::move(run)});
  if (waits) {
    ++counted().synchronisations;
    finish(stream);
  }
  return cudaSuccess;
}

}  // namespace cuda_double
