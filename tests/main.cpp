#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "pleat/core/base/device.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/system.h"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/interfaces/catch_interfaces_capture.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

namespace {
bool skipped = false;
}

void pleat_test::skip(const std::string& reason) {
  static std::string last;
  const std::string name = Catch::getResultCapture().getCurrentTestName();
  // The form that scripts/common.sh looks for, once also where a case has several sections.
  if (name != last) std::printf("skipped: %s\n", reason.c_str());
  skipped = true;
  last = name;
}

// CTest runs each test case in a process of its own and takes 77 for "skipped". Catch's exit code is a number
// of failures, which could be 77 too.
int main(int argc, char** argv) {
  pleat_test::set_variable("COLUMNS", "200");  // tables have all columns, whatever terminal runs the tests
  // The same tests again with tensors on another device, unless they name one.
  std::optional<pleat::DefaultDevice> device;
  if (const char* const name = std::getenv("PLEAT_TEST_DEVICE")) device.emplace(name);
  if (Catch::Session().run(argc, argv) != 0) return 1;
  return skipped ? 77 : 0;
}
