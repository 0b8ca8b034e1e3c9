#include <fstream>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/ops/conv/tune/time_candidates.h"

namespace pleat::ops {
namespace {

/// "AMD EPYC 9654 96-Core Processor", where the system tells.
std::string read_cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown CPU";
}

std::string machine_text(Device device) {
  if (device.is_cuda()) {
    const cuda::DeviceProperties& gpu = cuda::properties(device);
    return fmt::format("{} sm_{}{}", gpu.name, gpu.major, gpu.minor);
  }
  static const std::string model = read_cpu_model();
  return fmt::format("{}, {} threads", model, num_threads());
}

std::string versions_text(Device device) {
  constexpr const char* pleat = "pleat " PLEAT_VERSION;
  if (device.is_cpu()) return pleat;
  static const cuda::Versions versions = cuda::versions();
  return fmt::format("{}, CUDA {}, driver {}, cuBLAS {}, cuDNN {}", pleat, versions.runtime, versions.driver,
                     versions.cublas, versions.cudnn);
}

std::string_view text(Precision precision) {
  return precision == Precision::highest ? "highest" : precision == Precision::high ? "high" : "medium";
}
std::string_view text(MemoryFormat format) {
  return format == MemoryFormat::channels_last ? "channels_last" : "contiguous";
}
std::string text(const Spatial& sizes) { return fmt::format("{}", fmt::join(sizes, "x")); }

std::string layout_text(const char* role, const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const MemoryFormat format = tensor.memory_format();
  if (tensor.is_contiguous(format)) return fmt::format(" {} {}", role, text(format));
  return fmt::format(" {} strides {}", role, fmt::join(tensor.strides(), ","));
}

std::string problem_text(const ConvCall& call, const std::string& wanted) {
  // A binding for each member: a new one does not compile until it has a place in the key.
  const auto& [dims, batch, in_channels, out_channels, groups, input, kernel, output, stride, low, high,
               dilation, dtype, device, format, result_format, precision, bias] = call.problem;
  std::string key = fmt::format(
      "conv{}d {} n{} c{} k{} g{} in {} kernel {} out {} stride {} padding {}-{} dilation {} {} on {} {}{} "
      "{} "
      "precision {}",
      dims, name(call.pass), batch, in_channels, out_channels, groups, text(input), text(kernel),
      text(output), text(stride), text(low), text(high), text(dilation), dtype,
      device.is_cuda() ? "cuda" : "cpu", text(format),
      result_format.has_value() ? fmt::format(" to {}", text(*result_format)) : std::string(),
      bias ? "with bias" : "without bias", text(precision));
  key += layout_text("x", call.x) + layout_text("w", call.w) + layout_text("dy", call.dy);
  const ConvPolicyOptions& policy = ConvPolicy::current();
  key += fmt::format(" workspace {}", policy.workspace_limit);
  if (policy.deterministic) key += " deterministic";
  if (!wanted.empty()) key += fmt::format(" by {}", wanted);
  return key;
}

}  // namespace

TuneKey tune_key(const ConvCall& call, const std::string& wanted) {
  const Device device = call.problem.device;
  return {machine_text(device), versions_text(device), problem_text(call, wanted)};
}

}  // namespace pleat::ops
