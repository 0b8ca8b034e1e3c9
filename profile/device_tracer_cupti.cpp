// The tracer of GPUs by CUPTI's activity records. Each range is an external correlation, to which CUPTI links
// what the range launches.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/profile/device_tracer.h"
#include "pleat/profile/recorder.h"

namespace pleat::profile {
namespace {

/// libcupti, loaded when a profiler starts: a program can run without it.
struct Cupti {
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_timestamp_callback = nullptr;
  decltype(&cuptiActivityGetNextRecord) get_next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) get_num_dropped_records = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push_external_correlation_id = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_external_correlation_id = nullptr;
  decltype(&cuptiGetResultString) get_result_string = nullptr;
  std::string obstacle;  ///< empty when all of them are there

  Cupti() {
    void* library = nullptr;
    for (const std::string& file :
         {"libcupti.so." + std::to_string(CUDART_VERSION / 1000), std::string("libcupti.so")})
      if (library == nullptr) library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* reason = dlerror();
      obstacle = fmt::format("libcupti cannot be loaded: {}", reason != nullptr ? reason : "not found");
      return;
    }
    load(library, enable, "cuptiActivityEnable");
    load(library, disable, "cuptiActivityDisable");
    load(library, register_callbacks, "cuptiActivityRegisterCallbacks");
    load(library, register_timestamp_callback, "cuptiActivityRegisterTimestampCallback");
    load(library, get_next_record, "cuptiActivityGetNextRecord");
    load(library, get_num_dropped_records, "cuptiActivityGetNumDroppedRecords");
    load(library, flush_all, "cuptiActivityFlushAll");
    load(library, push_external_correlation_id, "cuptiActivityPushExternalCorrelationId");
    load(library, pop_external_correlation_id, "cuptiActivityPopExternalCorrelationId");
    load(library, get_result_string, "cuptiGetResultString");
  }

  template <class F>
  void load(void* library, F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr) obstacle = fmt::format("libcupti has no {}", name);
  }

  std::string text(CUptiResult result) const {
    const char* words = nullptr;
    get_result_string(result, &words);
    const char* const held = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                                 ? " (another tool, such as Nsight, holds CUPTI)"
                                 : "";
    return fmt::format("{}{}", words != nullptr ? words : "an unknown error", held);
  }

  static const Cupti& instance() {
    static const auto* cupti = new Cupti;
    return *cupti;
  }
};

/// The records from CUPTI's callbacks, which get no user pointer. Never destroyed: buffers may come
/// back late.
struct Received {
  std::mutex mutex;
  DeviceTrace trace;
  uint64_t dropped = 0;

  static Received& instance() {
    static auto* received = new Received;
    return *received;
  }
};

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr std::align_val_t buffer_alignment{8};

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(::operator new(buffer_bytes, buffer_alignment, std::nothrow));
  *size = *buffer != nullptr ? buffer_bytes : 0;
  *most_records = 0;  // as many as fit
}

std::string demangled(const char* name) {
  if (name == nullptr) return "kernel";
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

const char* memory_name(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return "pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return "pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
      return "device";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
      return "managed";
    default:
      return "other";
  }
}

/// What all kinds of records have. The records are packed: their fields must not be bound to references.
template <class Record>
DeviceActivity activity_of(const Record& record, DeviceActivity::Kind kind, std::string name) {
  DeviceActivity activity;
  activity.kind = kind;
  activity.name = std::move(name);
  activity.start = static_cast<int64_t>(record.start);
  activity.end = static_cast<int64_t>(record.end);
  activity.device = {DeviceType::cuda, static_cast<int>(record.deviceId)};
  activity.stream = record.streamId;
  activity.correlation = record.correlationId;
  return activity;
}

template <class Record>
DeviceActivity copy_of(const Record& record) {
  const uint8_t from = record.srcKind, to = record.dstKind;
  DeviceActivity activity = activity_of(record, DeviceActivity::Kind::memcpy,
                                        fmt::format("memcpy ({} -> {})", memory_name(from), memory_name(to)));
  activity.bytes = static_cast<int64_t>(record.bytes);
  return activity;
}

// The structures with a lower number are the beginning of those of newer versions of CUPTI, as far as it is
// read here.
void take(DeviceTrace& trace, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel9*>(record);
      DeviceActivity activity = activity_of(kernel, DeviceActivity::Kind::kernel, demangled(kernel.name));
      activity.grid = {kernel.gridX, kernel.gridY, kernel.gridZ};
      activity.block = {kernel.blockX, kernel.blockY, kernel.blockZ};
      activity.registers = kernel.registersPerThread;
      activity.shared_memory = int64_t{kernel.staticSharedMemory} + kernel.dynamicSharedMemory;
      trace.activities.push_back(std::move(activity));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      trace.activities.push_back(copy_of(*reinterpret_cast<const CUpti_ActivityMemcpy5*>(record)));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      trace.activities.push_back(copy_of(*reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record)));
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& memset = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      trace.activities.push_back(activity_of(memset, DeviceActivity::Kind::memset, "memset"));
      trace.activities.back().bytes = static_cast<int64_t>(memset.bytes);
      break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& link = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (link.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
        trace.links.push_back({link.correlationId, link.externalId});
      break;
    }
    default:
      break;  // calls of the runtime: asked for only because links come with them
  }
}

void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  const Cupti& cupti = Cupti::instance();
  Received& received = Received::instance();
  {
    const std::lock_guard lock(received.mutex);
    try {
      CUpti_Activity* record = nullptr;
      while (cupti.get_next_record(buffer, valid, &record) == CUPTI_SUCCESS) take(received.trace, record);
    } catch (const std::bad_alloc&) {
      ++received.dropped;
    }
    size_t dropped = 0;
    cupti.get_num_dropped_records(context, stream, &dropped);
    received.dropped += dropped;
  }
  ::operator delete(buffer, buffer_alignment);
}

uint64_t CUPTIAPI timestamp() { return static_cast<uint64_t>(steady_now()); }

constexpr CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};

class CuptiTracer final : public DeviceTracer {
 public:
  /// Throws Error with the reason when CUPTI refuses.
  CuptiTracer() {
    const Cupti& cupti = Cupti::instance();
    require("cuptiActivityRegisterTimestampCallback", cupti.register_timestamp_callback(timestamp));
    require("cuptiActivityRegisterCallbacks", cupti.register_callbacks(give_buffer, take_buffer));
    for (const CUpti_ActivityKind kind : kinds) {
      const CUptiResult result = cupti.enable(kind);
      if (result != CUPTI_SUCCESS) disable();
      require("cuptiActivityEnable", result);
    }
    forget();
  }
  ~CuptiTracer() override {
    if (!finished_) disable();
  }
  CuptiTracer(const CuptiTracer&) = delete;
  CuptiTracer& operator=(const CuptiTracer&) = delete;

  void enter(uint64_t range, const RangeStart& start) noexcept override {
    for (const Tensor* input : start.inputs)
      if (input->defined() && input->device().is_cuda() && input->device().index < 64)
        devices_.fetch_or(uint64_t{1} << input->device().index, std::memory_order_relaxed);
    Cupti::instance().push_external_correlation_id(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, range);
  }

  void leave(uint64_t) noexcept override {
    uint64_t last = 0;
    Cupti::instance().pop_external_correlation_id(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
  }

  void discard() override {
    wait_and_flush();
    forget();
  }

  DeviceTrace finish() override {
    wait_and_flush();
    disable();
    finished_ = true;
    Received& received = Received::instance();
    const std::lock_guard lock(received.mutex);
    DeviceTrace trace = std::exchange(received.trace, {});
    if (received.dropped > 0)
      trace.warnings.push_back(
          fmt::format("CUPTI dropped {} records; GPU times are missing", received.dropped));
    return trace;
  }

 private:
  static void require(const char* call, CUptiResult result) {
    check<Error>(result == CUPTI_SUCCESS, "{} says {}", call, Cupti::instance().text(result));
  }

  static void disable() noexcept {
    for (const CUpti_ActivityKind kind : kinds) Cupti::instance().disable(kind);
  }

  static void forget() {
    Received& received = Received::instance();
    const std::lock_guard lock(received.mutex);
    received.trace = {};
    received.dropped = 0;
  }

  /// Records are complete only once the work is.
  void wait_and_flush() {
    const uint64_t used = devices_.load();
    for (int i = 0; i < std::min(cuda::device_count(), 64); ++i)
      if ((used >> i & 1) != 0) cuda::synchronize({DeviceType::cuda, i});
    cuda::synchronize(cuda::current_device());
    Cupti::instance().flush_all(0);
  }

  std::atomic<uint64_t> devices_{0};  ///< a bit for each GPU that ranges had tensors on
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<DeviceTracer> make_cupti_tracer(std::string& obstacle) {
  obstacle = Cupti::instance().obstacle;
  if (!obstacle.empty()) return nullptr;
  try {
    return std::make_unique<CuptiTracer>();
  } catch (const Error& error) {
    obstacle = error.what();
    return nullptr;
  }
}

}  // namespace pleat::profile
