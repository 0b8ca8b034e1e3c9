#include <array>
#include <mutex>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"

namespace pleat::cuda {
namespace {

struct Found {
  int count = 0;
  std::string reason;
};

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// The runtime's own words for an old driver are also those for none at all.
std::string reason_of(cudaError_t status) {
  int driver = 0;
  int runtime = 0;
  if (status != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess ||
      cudaRuntimeGetVersion(&runtime) != cudaSuccess)
    return cudaGetErrorString(status);
  if (driver == 0) return "this machine has no NVIDIA driver";
  return fmt::format("the NVIDIA driver knows CUDA {}, this Pleat was built with {}", version_text(driver),
                     version_text(runtime));
}

/// Asked once: the driver does not learn of new devices while a process runs.
const Found& found() {
  static const auto& result = *[] {
    auto* devices = new Found;
    const cudaError_t status = cudaGetDeviceCount(&devices->count);
    if (status != cudaSuccess) {
      *devices = {0, reason_of(status)};
      cudaGetLastError();  // having no device is a result, not an error that a later call should report
    } else if (devices->count == 0) {
      devices->reason = "no CUDA-capable device is visible";
    }
    return devices;
  }();
  return result;
}

/// 16 bytes in groups, in hexadecimal digits.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i)
    text += fmt::format("{}{:02x}", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(uuid.bytes[i]));
  return text;
}

DeviceProperties read_properties(int index) {
  cudaDeviceProp read{};
  check_cuda(cudaGetDeviceProperties(&read, index), "properties");
  return {.name = read.name,
          .uuid = uuid_text(read.uuid),
          .major = read.major,
          .minor = read.minor,
          .total_memory = static_cast<int64_t>(read.totalGlobalMem),
          .multiprocessors = read.multiProcessorCount,
          .l2_cache = read.l2CacheSize,
          .max_threads_per_multiprocessor = read.maxThreadsPerMultiProcessor,
          .shared_memory_per_block = static_cast<int64_t>(read.sharedMemPerBlock),
          .shared_memory_per_block_optin = static_cast<int64_t>(read.sharedMemPerBlockOptin)};
}

}  // namespace

bool is_built() { return true; }
int device_count() { return found().count; }
std::string unavailable_reason() { return found().reason; }

void check_device(const char* op, Device device) {
  check<DeviceError>(device.is_cuda(), "{}: needs a CUDA device, got {}", op, device);
  check<DeviceError>(device_count() > 0, "{}: there is no {}: {}", op, device, unavailable_reason());
  check<DeviceError>(device.index >= 0 && device.index < device_count(),
                     "{}: there is no {}; the number of CUDA devices here is {}", op, device, device_count());
}

const DeviceProperties& properties(Device device) {
  check_device("properties", device);
  static auto& all = *new std::vector<DeviceProperties>(static_cast<std::size_t>(device_count()));
  static auto& once = *new std::vector<std::once_flag>(all.size());
  const auto i = static_cast<std::size_t>(device.index);
  std::call_once(once[i], [&] { all[i] = read_properties(device.index); });
  return all[i];
}

MemoryInfo memory_info(Device device) {
  check_device("memory_info", device);
  const DeviceGuard guard(device);
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "memory_info");
  return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

Device current_device() {
  check_device("current_device", DeviceType::cuda);
  int index = 0;
  check_cuda(cudaGetDevice(&index), "current_device");
  return {DeviceType::cuda, index};
}

DeviceGuard::DeviceGuard(Device device) {
  if (device.is_cpu()) return;
  check_device("device guard", device);
  int current = 0;
  check_cuda(cudaGetDevice(&current), "device guard");
  if (current == device.index) return;
  check_cuda(cudaSetDevice(device.index), "device guard");
  previous_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (previous_ >= 0) cudaSetDevice(previous_);
}

void synchronize(Device device) {
  check_device("synchronize", device);
  Capture::refuse_to_wait("synchronize");
  const DeviceGuard guard(device);
  check_cuda(cudaDeviceSynchronize(), "synchronize");
}

}  // namespace pleat::cuda
