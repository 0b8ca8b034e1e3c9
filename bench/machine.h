#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <time.h>

#include "pleat/core/base/device.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/dtype.h"

namespace pleat::bench {

/// What a time depends on beside the problem: "cpu: AMD EPYC ..., x86-64-v4, 2 threads" with the
/// instructions that the library was compiled for, "cuda:0: NVIDIA H200, CUDA 13000, driver ..., cuBLAS ...,
/// cuDNN ...". `threads` as measured with; 0: as set.
std::string describe_machine(Device device, int threads);

/// What the machine does at best, measured: what times are held against.
struct Ceiling {
  std::string name;  ///< "FMA float32", "copy"
  double value = 0;  ///< GFLOP/s or GB/s
};

struct Ceilings {
  Device device = {};
  int threads = 1;  ///< of the CPU, that took part
  /// Floating-point operations per second [GFLOP/s]; a multiply-add is two. On the CPU independent vector
  /// multiply-adds in registers, on all threads; on CUDA products of large matrices by cuBLAS.
  std::vector<Ceiling> peaks = {};
  /// Bytes read plus bytes written per second [GB/s] by copies: of the main (or device) memory, and of the
  /// CPU's last-level cache where the system tells its size.
  std::vector<Ceiling> bandwidths = {};

  /// What products of this type can reach [GFLOP/s]: half types are computed in float32 on the CPU, on CUDA
  /// by tensor cores; `precision` counts for float32 on CUDA. None for integers.
  std::optional<double> peak(DType dtype, Precision precision = Precision::highest) const;
  /// Of copies in memory [GB/s].
  double copy_bandwidth() const { return bandwidths.front().value; }
};

/// Measures at the first call (about a second) and remembers, for each device and number of threads
/// (num_threads()), until the process ends. Copies and products are the best of several short runs: whatever
/// else the machine does only lowers one. Throws DeviceError when there is no such device.
const Ceilings& ceilings(Device device);

/// "measured ceilings: FMA float32 92.1 GFLOP/s, copy 11.3 GB/s".
std::string ceilings_text(const Ceilings& ceilings);

/// What a clock of the system shows (clock_gettime) [s].
double seconds_of(clockid_t clock);

}  // namespace pleat::bench
