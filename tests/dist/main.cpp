#include <cstdio>
#include <cstdlib>
#include <optional>

#include "pleat/core/base/device.h"
#include "pleat/tests/dist/world.h"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

const pleat::dist::Communicator& pleat::test::world() {
  static const dist::Communicator only = dist::init({.timeout_seconds = 30});
  return only;
}

// All ranks run the same tests in the same order. A check that fails on one of them fails the job. With
// PLEAT_TEST_DEVICE=cuda, tensors are on the rank's GPU unless a test names another device.
int main(int argc, char** argv) {
  const pleat::dist::Communicator& world = pleat::test::world();
  if (world.is_main()) std::printf("connected by %s\n", world.transport().c_str());
  std::optional<pleat::DefaultDevice> device;
  if (std::getenv("PLEAT_TEST_DEVICE") != nullptr) device.emplace(world.device());
  return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
