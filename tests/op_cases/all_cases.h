#pragma once

#include "pleat/op_cases/op_case.h"
#include "pleat/tests/catch.h"

/// Tests over all rows of the table.

namespace pleat::test {

/// Runs `check` for each row in a section of its own, which `pleat_tests TEST -c TITLE` chooses.
inline void check_all(const std::vector<OpCase>& cases, void (*check)(const OpCase&)) {
  for (const OpCase& c : cases) DYNAMIC_SECTION(c.title()) {
      check(c);
    }
}

/// A test case for each family: `check` of each row.
#define PLEAT_TEST_FAMILY(family, what, tags, check) \
  TEST_CASE(what ": " #family, tags) { pleat::test::check_all(pleat::test::family##_ops(), check); }
#define PLEAT_TEST_FAMILIES(what, tags, check) PLEAT_OP_FAMILIES(PLEAT_TEST_FAMILY, what, tags, check)

}  // namespace pleat::test
