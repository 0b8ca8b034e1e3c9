#pragma once

#include <cstdint>

namespace pleat::bench {

/// Vector multiply-adds in registers, as many as there are at once.
struct MultiplyAdds {
  const char* instructions;       ///< "AVX-512", "AVX2", "baseline": those of the build
  double (*run)(int64_t rounds);  ///< returns how many floating-point operations they were
};

/// In the widest instructions that the CPU has. `T` is float or double.
template <class T>
MultiplyAdds multiply_adds();

}  // namespace pleat::bench
