#include <chrono>
#include <deque>
#include <utility>

#include <nccl.h>

#include "pleat/core/base/format.h"
#include "pleat/dist/gpu_collectives.h"

namespace pleat::dist {
namespace {

using Clock = std::chrono::steady_clock;

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case boolean:
    case uint8:
      return ncclUint8;
    case int32:
      return ncclInt32;
    case int64:
      return ncclInt64;
    case float32:
      return ncclFloat32;
    case float64:
      return ncclFloat64;
    case bfloat16:
      return ncclBfloat16;
    case float16:
      break;
  }
  return ncclFloat16;
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::mean:
      return ncclAvg;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::sum:
      break;
  }
  return ncclSum;
}

class NcclCollectives : public GpuCollectives {
 public:
  NcclCollectives(Transport& transport, Device device) : device_(device), stream_({.device = device}) {
    ncclUniqueId id{};
    if (transport.rank() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    transport.broadcast(reinterpret_cast<std::byte*>(&id), sizeof id, 0);
    const cuda::DeviceGuard guard(device_);
    check_nccl(ncclCommInitRank(&comm_, transport.size(), id, transport.rank()), "ncclCommInitRank");
  }

  void all_reduce(std::byte* data, int64_t count, DType dtype, ReduceOp op) override {
    check_nccl(ncclAllReduce(data, data, static_cast<std::size_t>(count), type_of(dtype), op_of(op), comm_,
                             stream()),
               "ncclAllReduce");
  }
  void reduce_scatter(const std::byte* in, std::byte* out, int64_t count, DType dtype, ReduceOp op) override {
    check_nccl(ncclReduceScatter(in, out, static_cast<std::size_t>(count), type_of(dtype), op_of(op), comm_,
                                 stream()),
               "ncclReduceScatter");
  }
  void all_gather(const std::byte* in, std::byte* out, int64_t bytes) override {
    check_nccl(ncclAllGather(in, out, static_cast<std::size_t>(bytes), ncclUint8, comm_, stream()),
               "ncclAllGather");
  }
  void broadcast(std::byte* data, int64_t bytes, int root) override {
    check_nccl(ncclBroadcast(data, data, static_cast<std::size_t>(bytes), ncclUint8, root, comm_, stream()),
               "ncclBroadcast");
  }

  void run(const cuda::Event& ready, const cuda::Event& done, std::vector<Tensor> tensors,
           const std::function<void(Collectives&)>& call) override {
    const cuda::DeviceGuard guard(device_);
    remove_done();
    stream_.wait(ready);
    call(*this);
    done.record(stream_);
    pending_.push_back({done, std::move(tensors), Clock::now()});
  }

  bool is_done(double timeout_seconds) override {
    remove_done();
    ncclResult_t error = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(comm_, &error), "ncclCommGetAsyncError");
    check_nccl(error, "a collective");
    check<DistError>(pending_.empty() || Clock::now() - pending_.front().since <
                                             std::chrono::duration<double>(timeout_seconds),
                     "dist: all ranks have given a call to NCCL, and it is not done after {} seconds: a "
                     "process was stopped, the network is down, or what a GPU computes before the call does "
                     "not end",
                     timeout_seconds);
    return pending_.empty();
  }

  void finish() override {
    const cuda::DeviceGuard guard(device_);
    check_nccl(ncclCommDestroy(std::exchange(comm_, nullptr)), "ncclCommDestroy");
  }

 private:
  void remove_done() {
    while (!pending_.empty() && pending_.front().done.is_done()) pending_.pop_front();
  }

  struct Pending {
    cuda::Event done;
    std::vector<Tensor> tensors;
    Clock::time_point since;
  };

  void check_nccl(ncclResult_t code, const char* function) const {
    if (code == ncclSuccess || code == ncclInProgress) return;
    const char* const why = ncclGetLastError(comm_);
    fail<DistError>("dist: {} failed: {}{}{}; NCCL_DEBUG=INFO lets NCCL say more", function,
                    ncclGetErrorString(code), why != nullptr && *why != 0 ? ": " : "",
                    why != nullptr ? why : "");
  }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(stream_.native()); }

  Device device_;
  cuda::Stream stream_;
  ncclComm_t comm_ = nullptr;
  std::deque<Pending> pending_;
};

}  // namespace

std::string nccl_version() {
  int version = 0;
  ncclGetVersion(&version);
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<GpuCollectives> connect_gpus(Transport& transport, Device device) {
  return std::make_unique<NcclCollectives>(transport, device);
}

}  // namespace pleat::dist
