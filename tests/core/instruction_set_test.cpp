#include "pleat/core/base/instruction_set.h"

#include <algorithm>
#include <string>
#include <vector>

#include "pleat/tests/catch.h"

namespace pleat {

TEST_CASE("instruction_set: the library needs no more than the processor has", "[core]") {
  const std::vector<std::string_view> levels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  const auto is = std::find(levels.begin(), levels.end(), instruction_set());
  const auto could_be = std::find(levels.begin(), levels.end(), cpu_instruction_set());
  CAPTURE(std::string(instruction_set()), std::string(cpu_instruction_set()));
  if (is == levels.end())
    CHECK(instruction_set() == cpu_instruction_set());
  else
    CHECK(could_be >= is);
}

}  // namespace pleat
