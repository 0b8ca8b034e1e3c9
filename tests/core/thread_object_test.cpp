#include "pleat/core/base/thread_object.h"

#include <atomic>
#include <thread>
#include <vector>

#include "pleat/tests/catch.h"

using pleat::ThreadObject;

namespace {

std::atomic<int> made = 0, alive = 0, wrong = 0;

struct Counted {
  Counted() {
    ++made;
    ++alive;
  }
  ~Counted() {
    for (const int value : values)
      if (value != 7) ++wrong;
    --alive;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  std::vector<int> values = std::vector<int>(1000, 7);
};

constinit thread_local ThreadObject<Counted> first, second;

/// Asks for the objects in a destructor at the end of the thread.
struct Late {
  Late() = default;
  ~Late() {
    if (first->values.at(999) != 7 || second->values.at(0) != 7) ++wrong;
  }
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;

  void touch() {}
};
thread_local Late late;

}  // namespace

TEST_CASE("objects of a thread end with it, and serve its destructors until then", "[core][cpu]") {
  for (const bool late_first : {true, false}) {
    made = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([late_first] {
        if (late_first) late.touch();
        for (int turn = 0; turn < 100; ++turn) {
          if (first->values.size() != 1000 || second->values.size() != 1000) ++wrong;
          std::vector<int> others(1000, turn);  // takes memory that was given back too early
        }
        if (!late_first) late.touch();
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(made >= 16);
    CHECK(alive == 0);
    CHECK(wrong == 0);
  }
}
