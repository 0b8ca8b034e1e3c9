#include "pleat/tests/skip.h"

#include "pleat/tests/catch.h"

// Hidden: skip_selftest.cmake runs them by name and checks the exit codes.
TEST_CASE("skip_selftest skipped", "[.skip]") { pleat_test::skip("to show how"); }

TEST_CASE("skip_selftest failed", "[.skip]") {
  pleat_test::skip("to show that a failure counts more");
  CHECK(false);
}
