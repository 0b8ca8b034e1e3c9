#include "pleat/core/device/cuda.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/graph/cuda_graph.h"
#include "pleat/core/graph/host_tables.h"
#include "pleat/core/kernels/block_counters.h"
#include "pleat/core/kernels/cuda_handles.h"
#include "pleat/core/memory/block_cache.h"
#include "pleat/core/memory/device_allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/journal.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/core/tensor/transfer.h"

namespace pleat {
namespace {

cudaStream_t native(const cuda::Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

/// Knows in which function of pleat::ops the capturing thread is.
class OpNames final : public RangeObserver {
 public:
  static OpNames& instance() {
    static auto* names = new OpNames;
    return *names;
  }

  uint64_t begin(const RangeStart& start) noexcept override {
    if (Capture::current() == nullptr || start.kind != RangeKind::op) return 0;
    try {
      names().emplace_back(start.name);
    } catch (...) {
      return 0;
    }
    return 1;
  }
  void end(uint64_t) noexcept override { names().pop_back(); }
  void add(uint64_t, const RangeDetails&) noexcept override {}
  void recorded(std::string_view, uint64_t) noexcept override {}
  void memory(const void*, int64_t, Device) noexcept override {}

  /// The outermost one, which the user called.
  static std::string current() { return names().empty() ? std::string() : names().front(); }

 private:
  static std::vector<std::string>& names() {
    thread_local ThreadObject<std::vector<std::string>> all;
    return *all;
  }
};

/// While one exists, functions record their names, unless a profiler does.
class NamesScope {
 public:
  NamesScope() : listens_(!is_recording()) {
    if (listens_) set_range_observer(&OpNames::instance());
  }
  ~NamesScope() {
    if (listens_) set_range_observer(nullptr);
  }
  NamesScope(const NamesScope&) = delete;
  NamesScope& operator=(const NamesScope&) = delete;

 private:
  bool listens_;
};

}  // namespace

class CudaGraph::Impl final : public Capture {
 public:
  explicit Impl(Device device) : device_(device), stream_({.device = device}), done_({.device = device}) {
    cuda_allocator(device_).hold(stream_.native());
  }

  void make(const std::function<void()>& step, int64_t warmup) {
    const cuda::Stream outside = cuda::current_stream(device_);
    outside_ = outside.native();
    {
      const cuda::StreamGuard guard(stream_);
      wait(stream_, outside);
      // Each stream has handles and counters of its own, and making them is no part of a graph.
      block_counters(device_);
      cuda::blas_handle(device_);
      if (cuda::cudnn_version() != 0) cuda::dnn_handle(device_);
      for (int64_t i = 0; i < warmup; ++i) step();
      capture(step);
      cuda_allocator(device_).trim();
    }
    done_.record(stream_);
    outside.wait(done_);
  }

  ~Impl() {
    stream_.wait(done_);
    for (const std::shared_ptr<std::byte>& memory : kept_)
      if (last_) record_stream(memory, {device_.index, last_->native()});
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    cuda_allocator(device_).let_go(stream_.native());
  }

  void replay() {
    const cuda::Stream stream = cuda::current_stream(device_);
    const cuda::DeviceGuard guard(device_);
    stream.wait(done_);
    for (auto& [generator, draws] : draws_) send(*generator, draws);
    for (Part& part : parts_) part.tables.run(part.run, true);
    cuda::check_cuda(cudaGraphLaunch(executable_, native(stream)), "CudaGraph.replay");
    done_.record(stream);
    last_ = stream;
  }

  Device device() const override { return device_; }
  void refuse(const char* op, const char* reason) const override {
    const std::string name = OpNames::current();
    fail<Error>("CudaGraph: {} cannot be captured: {}", name.empty() ? op : name, reason);
  }
  void keep(std::shared_ptr<std::byte> memory) override { kept_.push_back(std::move(memory)); }

  Tensor own_memory(const Shape& shape, DType dtype) override {
    memory_stream_ = outside_;
    const Tensor memory = empty(shape, {.dtype = dtype, .device = device_});
    memory_stream_ = stream_.native();
    keep(memory.impl().storage->bytes);
    return memory;
  }
  void* memory_stream() const override { return memory_stream_; }

  Draw next_draw(Generator& generator) override {
    Draws& draws = draws_[&generator];
    if (!draws.state.defined()) draws.state = own_memory({2}, int64);
    Journal::note(std::span(&draws.count, 1));
    return {reinterpret_cast<const uint64_t*>(draws.state.raw()), draws.count++};
  }

  void run_host_part(std::function<void()> part) override {
    Part& added = parts_.emplace_back(Part{std::move(part), {}});
    added.tables.run(added.run, false);
  }

 private:
  /// Of a generator.
  struct Draws {
    Tensor state;        ///< seed and draws, on the device
    uint64_t count = 0;  ///< in the graph
  };
  struct Part {
    std::function<void()> run;
    HostTables tables;
  };

  static void wait(const cuda::Stream& later, const cuda::Stream& earlier) {
    const cuda::Event event({.device = earlier.device()});
    event.record(earlier);
    later.wait(event);
  }

  void capture(const std::function<void()>& step) {
    const NamesScope names;
    cuda::check_cuda(cudaStreamBeginCapture(native(stream_), cudaStreamCaptureModeThreadLocal), "CudaGraph");
    cudaGraph_t graph = nullptr;
    detail::set_capture(this);
    try {
      step();
      detail::set_capture(nullptr);
    } catch (...) {
      detail::set_capture(nullptr);
      cudaStreamEndCapture(native(stream_), &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    cuda::check_cuda(cudaStreamEndCapture(native(stream_), &graph), "CudaGraph");
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    cuda::check_cuda(status, "CudaGraph");
  }

  void send(Generator& generator, const Draws& draws) {
    const Tensor state = cuda::empty_pinned({2}, int64);
    auto* const words = reinterpret_cast<uint64_t*>(state.raw());
    words[0] = detail::effective_seed(generator);
    words[1] = generator.draws();
    generator.set_draws(generator.draws() + draws.count);
    cuda::transfer(draws.state, state, true);
  }

  Device device_;
  cuda::Stream stream_;      ///< in which it is captured; the memory it uses is that of this stream
  cuda::Event done_;         ///< behind the last run
  void* outside_ = nullptr;  ///< the stream of the thread that makes the graph
  void* memory_stream_ = stream_.native();
  std::optional<cuda::Stream> last_;
  cudaGraphExec_t executable_ = nullptr;
  std::vector<std::shared_ptr<std::byte>> kept_;
  std::map<Generator*, Draws> draws_;
  std::vector<Part> parts_;
};

CudaGraph::CudaGraph(std::function<void()> step, CudaGraphOptions options) {
  cuda::check_device("CudaGraph", options.device);
  check<ValueError>(bool(step), "CudaGraph: there is no function to capture");
  check<ValueError>(options.warmup >= 0, "CudaGraph: warmup must be at least 0, got {}", options.warmup);
  if (Capture* outer = Capture::current())
    outer->refuse("CudaGraph", "a graph cannot be captured within another");
  auto impl = std::make_shared<Impl>(options.device);
  impl->make(step, options.warmup);
  impl_ = std::move(impl);
}

void CudaGraph::replay() {
  check<Error>(impl_ != nullptr, "CudaGraph: this graph was moved from; use the one that it was moved to");
  if (Capture* outer = Capture::current()) outer->refuse("CudaGraph.replay", "a graph cannot be in another");
  impl_->replay();
}

}  // namespace pleat
