// Kernels that nvcc compiled: what its host code calls at the start of a program, and to launch one.
#include "pleat/tests/cuda_double/ptx/launch.h"

#include <cstring>
#include <unordered_map>

#include "pleat/tests/cuda_double/finding.h"
#include "pleat/tests/cuda_double/launch.h"
#include "pleat/tests/cuda_double/ptx/machine.h"
#include "pleat/tests/cuda_double/queue.h"

namespace cuda_double::ptx {

cudaError_t launch(Module& module, const std::string& symbol, const cudaLaunchConfig_t& config,
                   void** arguments) {
  const std::lock_guard guard(lock());
  auto how = std::make_shared<Launch>();
  how->program = module.program(symbol);
  const Program& program = *how->program;
  how->blocks = config.gridDim;
  how->threads = config.blockDim;
  how->dynamic_shared = config.dynamicSmemBytes;
  if (uint64_t{how->threads.x} * how->threads.y * how->threads.z > program.most_threads)
    return answer(cudaErrorLaunchOutOfResources);
  if (program.static_shared + how->dynamic_shared > (48u << 10)) return answer(cudaErrorInvalidValue);
  how->parameters.resize(program.parameter_bytes);
  for (std::size_t i = 0; i < program.parameters.size(); ++i)
    std::memcpy(how->parameters.data() + program.parameters[i].offset, arguments[i],
                program.parameters[i].bytes);
  return cuda_double::launch(config, program.name, program.parameter_bytes, [how] { run_grid(*how); });
}

namespace {

/// A kernel of the host is known by the address of the function that nvcc makes for it.
struct Registered {
  Module* module;
  std::string symbol;
};
std::unordered_map<const void*, Registered>& kernels() {
  static auto* result = new std::unordered_map<const void*, Registered>;
  return *result;
}

cudaError_t launch_host(const void* function, const cudaLaunchConfig_t& config, void** arguments) {
  const auto found = kernels().find(function);
  if (found == kernels().end()) finding("a kernel is launched that nvcc did not register");
  return launch(*found->second.module, found->second.symbol, config, arguments);
}

cudaLaunchConfig_t config_of(dim3 blocks, dim3 threads, std::size_t shared, cudaStream_t stream) {
  cudaLaunchConfig_t result{};
  result.gridDim = blocks;
  result.blockDim = threads;
  result.dynamicSmemBytes = shared;
  result.stream = stream;
  return result;
}

/// Of a launch that is written <<<...>>>.
thread_local cudaLaunchConfig_t pushed{};

}  // namespace
}  // namespace cuda_double::ptx

using cuda_double::ptx::Module;

extern "C" {

void** __cudaRegisterFatBinary(void* fat_binary) {
  return reinterpret_cast<void**>(new Module(Module::text_of(fat_binary)));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** module, const char* host, char*, const char* symbol, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  cuda_double::ptx::kernels()[host] = {reinterpret_cast<Module*>(module), symbol};
}
// Pleat's host code does not ask for addresses of the device's variables.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, std::size_t shared, cudaStream_t stream) {
  cuda_double::ptx::pushed = cuda_double::ptx::config_of(blocks, threads, shared, stream);
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* blocks, dim3* threads, std::size_t* shared, void* stream) {
  const cudaLaunchConfig_t& from = cuda_double::ptx::pushed;
  *blocks = from.gridDim;
  *threads = from.blockDim;
  *shared = from.dynamicSmemBytes;
  *static_cast<cudaStream_t*>(stream) = from.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(void* kernel, dim3 blocks, dim3 threads, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
  return cuda_double::ptx::launch_host(kernel, cuda_double::ptx::config_of(blocks, threads, shared, stream),
                                       arguments);
}
cudaError_t cudaLaunchKernel(const void* function, dim3 blocks, dim3 threads, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  return cuda_double::ptx::launch_host(function, cuda_double::ptx::config_of(blocks, threads, shared, stream),
                                       arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return cuda_double::ptx::launch_host(function, *config, arguments);
}

}  // extern "C"
