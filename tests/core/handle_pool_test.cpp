#include "pleat/core/kernels/handle_pool.h"

#include <thread>

#include "pleat/tests/catch.h"

using namespace pleat;

namespace {
struct Handle {
  StreamId stream;
};
}  // namespace

TEST_CASE("a thread has a handle for each stream, and leaves them to the next thread", "[core]") {
  int made = 0;
  const auto make = [&](StreamId stream) {
    ++made;
    return std::make_unique<Handle>(Handle{stream});
  };
  const StreamId one{0, nullptr};
  const StreamId two{1, nullptr};
  Handle& own = thread_handle<Handle>(one, make);
  CHECK(&thread_handle<Handle>(one, make) == &own);
  CHECK(made == 1);
  CHECK(thread_handle<Handle>(two, make).stream == two);
  CHECK(made == 2);

  const Handle* of_thread = nullptr;
  std::thread([&] { of_thread = &thread_handle<Handle>(one, make); }).join();
  CHECK(of_thread != &own);
  CHECK(made == 3);
  std::thread([&] {
    CHECK(&thread_handle<Handle>(one, make) == of_thread);
    thread_handle<Handle>(two, make);
  }).join();
  CHECK(made == 4);
}
