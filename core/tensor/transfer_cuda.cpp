#include <mutex>
#include <set>
#include <utility>

#include "pleat/core/base/fork.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/block_cache.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/core/tensor/transfer.h"

namespace pleat::cuda {
namespace {

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

std::size_t byte_count(const Tensor& t) { return static_cast<std::size_t>(t.numel() * size_of(t.dtype())); }

/// Lets the two devices copy without the detour over the host, where they can.
void allow_peer_access(int device, int peer) {
  static auto& mutex = *new ForkMutex<std::mutex>;
  static auto& asked = *new std::set<std::pair<int, int>>;
  const std::lock_guard lock(mutex);
  if (!asked.emplace(device, peer).second) return;
  int can = 0;
  check_cuda(cudaDeviceCanAccessPeer(&can, device, peer), "to");
  if (can == 0) return;
  const DeviceGuard guard({DeviceType::cuda, device});
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    check_cuda(status, "to");
}

/// In the sender's stream, once the receiver's stream has done with the memory; the receiver's goes on after
/// it.
void between_gpus(const Tensor& to, const Tensor& from) {
  const Device sender = from.device();
  const Device receiver = to.device();
  allow_peer_access(receiver.index, sender.index);
  const Stream sends = current_stream(sender);
  const Stream receives = current_stream(receiver);
  // Both are made before anything is queued: without the second, the receiver would not wait for the copy.
  const Event ready({.device = receiver});
  const Event sent({.device = sender});
  ready.record(receives);
  sends.wait(ready);
  {
    const DeviceGuard guard(sender);
    check_cuda(cudaMemcpyPeerAsync(to.raw(), receiver.index, from.raw(), sender.index, byte_count(to),
                                   native(sends)),
               "to");
  }
  try {
    sent.record(sends);
    receives.wait(sent);
  } catch (...) {
    sends.synchronize();  // else the memory might go to others before it is written
    throw;
  }
}

void check_capturable(const Capture& capture, const Tensor& to, const Tensor& from, bool non_blocking) {
  if (!non_blocking)
    capture.refuse("to", "it makes the host wait for a copy from or to the GPU; do that after replay()");
  if (!is_pinned(to.device().is_cpu() ? to : from))
    capture.refuse("to", "it copies memory of the host that is not pinned (cuda::pin_memory)");
}

}  // namespace

void transfer(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (to.numel() == 0) return;
  to.begin_write();
  const bool host = to.device().is_cpu() || from.device().is_cpu();
  if (!host && to.device() != from.device()) {
    between_gpus(to, from);
  } else {
    if (const Capture* capture = Capture::current(); capture != nullptr && host)
      check_capturable(*capture, to, from, non_blocking);
    const Device gpu = to.device().is_cuda() ? to.device() : from.device();
    const Stream stream = current_stream(gpu);
    const DeviceGuard guard(gpu);
    check_cuda(cudaMemcpyAsync(to.raw(), from.raw(), byte_count(to), cudaMemcpyDefault, native(stream)),
               "to");
    if (host && non_blocking)
      record_stream(to.device().is_cpu() ? to : from, stream);
    else if (host)
      stream.synchronize();
  }
}

void set_bytes(const Tensor& to, unsigned char value) {
  if (to.numel() == 0) return;
  to.begin_write();
  const DeviceGuard guard(to.device());
  check_cuda(cudaMemsetAsync(to.raw(), value, byte_count(to), native(current_stream(to.device()))), "fill");
}

void record_stream(const Tensor& tensor, const Stream& stream) {
  if (Capture* capture = Capture::current()) return capture->keep(tensor.impl().storage->bytes);
  pleat::record_stream(tensor.impl().storage->bytes, StreamId{stream.device().index, stream.native()});
}

}  // namespace pleat::cuda
