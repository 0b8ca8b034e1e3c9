#pragma once

#include "pleat/tests/cuda_double/cub.h"

namespace cub {

struct DeviceSelect {
  template <class Input, class Flag, class Output, class Number>
  static cudaError_t Flagged(void* memory, std::size_t& bytes, Input input, const Flag* flags, Output* output,
                             Number* selected, int64_t n, cudaStream_t stream) {
    const auto count = static_cast<std::size_t>(n);
    return cuda_double::cub_call(
        "cub::DeviceSelect::Flagged", memory, bytes, count, stream,
        {{flags, count * sizeof(Flag)}, {output, count * sizeof(Output)}, {selected, sizeof(Number)}}, [=] {
          int64_t found = 0;
          for (int64_t i = 0; i < n; ++i)
            if (flags[i]) output[found++] = input[i];
          *selected = static_cast<Number>(found);
        });
  }
};

}  // namespace cub
