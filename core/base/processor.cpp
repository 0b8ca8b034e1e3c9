#include "pleat/core/base/processor.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace pleat {

bool processor_has(Instructions instructions) {
  using enum Instructions;
#if defined(__x86_64__)
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl");
  if (instructions == avx512_bf16) return has_avx512 && __builtin_cpu_supports("avx512bf16");
  if (instructions == avx512_vnni) return has_avx512 && __builtin_cpu_supports("avx512vnni");
#elif defined(__aarch64__) && defined(__linux__)
  if (instructions == arm_dotprod) return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  if (instructions == arm_i8mm) return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  if (instructions == arm_bf16) return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#endif
  static_cast<void>(instructions);
  return false;
}

}  // namespace pleat
