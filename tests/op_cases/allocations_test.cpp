#include <cstdlib>
#include <new>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/tests/op_cases/all_cases.h"

// What calls take of the heap: a function whose messages are made although nothing is wrong, or which copies
// shapes about, takes much.

namespace {
thread_local int64_t allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pleat::test {
namespace {

template <class F>
int64_t allocations_of(const F& call) {
  call();  // which may keep something for the next
  const int64_t before = allocations;
  call();
  return allocations - before;
}

}  // namespace

TEST_CASE("functions take little of the heap beside their results", "[op_cases][cpu]") {
  constexpr int64_t most = 60;
  const NoGrad guard;
  const SerialScope serial;
  std::string more;
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      const Tensors x = typed(c.inputs, c.types.floating ? float32 : int64);
      const int64_t count = allocations_of([&] { c.run(x); });
      if (count > most) more += std::to_string(count) + " allocations: " + c.title() + '\n';
    }
  CHECK(more == "");
}

}  // namespace pleat::test
