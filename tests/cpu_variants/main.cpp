#include <cstdio>

#include "pleat/core/base/instruction_set.h"

/// Prints the level that the loaded library was compiled for, and the processor's.
int main() {
  const std::string_view is = pleat::instruction_set(), could_be = pleat::cpu_instruction_set();
  std::printf("%.*s %.*s", static_cast<int>(is.size()), is.data(), static_cast<int>(could_be.size()),
              could_be.data());
}
