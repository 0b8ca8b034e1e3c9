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

// All ranks run the same tests in the same order. A check that fails on one of them fails the job.
int main(int argc, char** argv) {
  pleat::test::world();
  return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
