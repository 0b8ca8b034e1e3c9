#include "block.h"

#include <algorithm>
#include <csetjmp>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "finding.h"
#include "queue.h"
#include "shared_watch.h"
#include <sys/mman.h>
#include <ucontext.h>

namespace cuda_double {
namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;
constexpr std::size_t shared_bytes_most = 48 << 10;
constexpr int warp = 32;

enum class State { ready, at_barrier, in_exchange, idle };

/// A stack on which threads of blocks run, one after the other.
struct Fiber {
  sigjmp_buf here;
  void* stack = nullptr;
  State state = State::idle;
  int thread = 0;
  const void* site = nullptr;
  unsigned mask = 0, word = 0;
  int lane = 0;
  ThreadPlace place;
};

struct SharedArray {
  std::size_t bytes = 0;
  SharedWatch watch;
};

struct Running {
  const std::string* what = nullptr;
  const std::function<void()>* kernel = nullptr;
  dim3 blocks, threads;
  uint3 block{};
  std::vector<int> unstarted;
  int finished = 0;
  std::map<const void*, SharedArray> shared;
};

sigjmp_buf scheduler;
std::deque<Fiber> fibers;  // deque: they stay where they are
Fiber* current = nullptr;
// Those in these states that do not run: a choice among hundreds, made at every access, must not look at all.
std::vector<Fiber*> ready, idle;
Running run;
ThreadPlace outside;

[[noreturn]] void kernel_finding(const std::string& text) { finding(*run.what + ": " + text); }

/// Back to the scheduler, until it comes here again.
void leave() {
  Fiber* const self = current;
  if (sigsetjmp(self->here, 0) == 0) siglongjmp(scheduler, 1);
}

uint3 thread_of(int number, const dim3& threads) {
  const auto n = static_cast<unsigned>(number);
  return {n % threads.x, n / threads.x % threads.y, n / threads.x / threads.y};
}

/// The body of a fiber: takes threads that have not begun, while there are any.
void live() {
  for (;;) {
    while (!run.unstarted.empty()) {
      current->thread = run.unstarted.back();
      run.unstarted.pop_back();
      current->place = {thread_of(current->thread, run.threads), run.block, run.threads, run.blocks};
      current->state = State::ready;
      (*run.kernel)();
      ++run.finished;
    }
    current->state = State::idle;
    leave();
  }
}

void start_fiber(Fiber& fiber) {
  fiber.stack =
      mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (fiber.stack == MAP_FAILED) finding("no memory is left for the stacks of threads");
  mprotect(fiber.stack, 4096, PROT_NONE);
  // The context gives a place to jump from; after that all jumps are without calls of the system.
  ucontext_t begin, back;
  getcontext(&begin);
  begin.uc_stack.ss_sp = fiber.stack;
  begin.uc_stack.ss_size = stack_bytes;
  begin.uc_link = nullptr;
  makecontext(&begin, live, 0);
  current = &fiber;
  if (sigsetjmp(scheduler, 0) == 0) swapcontext(&back, &begin);
}

void resume(Fiber& fiber) {
  current = &fiber;
  if (sigsetjmp(scheduler, 0) == 0) siglongjmp(fiber.here, 1);
}

void make_ready(Fiber& fiber) {
  fiber.state = State::ready;
  ready.push_back(&fiber);
}

/// Lets a fiber take up threads that nobody has begun with.
void start_threads() {
  if (idle.empty()) {
    fibers.emplace_back();
    return start_fiber(fibers.back());
  }
  Fiber& fiber = *idle.back();
  idle.pop_back();
  resume(fiber);
}

/// Lets a thread go on, or one more begin, until it leaves.
void run_one(std::size_t choice) {
  if (choice < ready.size()) {
    std::swap(ready[choice], ready.back());
    Fiber& fiber = *ready.back();
    ready.pop_back();
    resume(fiber);
  } else {
    start_threads();
  }
  if (current->state == State::ready) ready.push_back(current);
  if (current->state == State::idle) idle.push_back(current);
}

/// Opens the barrier if all threads are at it; ends the process when they cannot meet.
bool open_barrier() {
  int waiting = 0;
  const void* site = nullptr;
  for (const Fiber& fiber : fibers) {
    if (fiber.state == State::idle) continue;
    if (fiber.state != State::at_barrier) return false;
    if (waiting++ > 0 && fiber.site != site)
      kernel_finding("threads of a block wait at different __syncthreads");
    site = fiber.site;
  }
  if (waiting == 0) return false;
  if (run.finished > 0)
    kernel_finding(std::to_string(run.finished) + " threads of a block ended while " +
                   std::to_string(waiting) + " wait at __syncthreads");
  for (Fiber& fiber : fibers)
    if (fiber.state == State::at_barrier) make_ready(fiber);
  for (auto& [first, array] : run.shared) array.watch.barrier();
  return true;
}

/// Exchanges the words of a warp whose threads have all come.
bool exchange() {
  bool any = false;
  std::map<int, std::vector<Fiber*>> warps;
  for (Fiber& fiber : fibers)
    if (fiber.state == State::in_exchange) warps[fiber.thread / warp].push_back(&fiber);
  for (auto& [number, members] : warps) {
    const unsigned mask = members.front()->mask;
    unsigned present = 0;
    for (const Fiber* member : members) present |= 1u << (member->thread % warp);
    if (present != mask) continue;
    std::vector<unsigned> words(warp);
    for (const Fiber* member : members) {
      if (member->mask != mask || member->site != members.front()->site)
        kernel_finding("threads of a warp meet at different shuffles");
      words[static_cast<std::size_t>(member->thread % warp)] = member->word;
    }
    for (Fiber* member : members) {
      if ((mask >> member->lane & 1u) == 0)
        kernel_finding("a shuffle reads from a thread that takes no part in it");
      member->word = words[static_cast<std::size_t>(member->lane)];
      make_ready(*member);
    }
    any = true;
  }
  return any;
}

void run_block(uint3 block) {
  run.block = block;
  run.finished = 0;
  const int threads = static_cast<int>(run.threads.x * run.threads.y * run.threads.z);
  run.unstarted.resize(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) run.unstarted[static_cast<std::size_t>(i)] = i;
  std::shuffle(run.unstarted.begin(), run.unstarted.end(), draw());
  run.shared.clear();
  while (run.finished < threads) {
    // One more choice stands for a thread that has not begun.
    const std::size_t choices = ready.size() + (run.unstarted.empty() ? 0 : 1);
    if (choices > 0) {
      run_one(draw()() % choices);
    } else if (!exchange() && !open_barrier()) {
      kernel_finding(
          "threads of a block wait for each other for ever: some at __syncthreads, others at a shuffle");
    }
  }
}

}  // namespace

ThreadPlace& place() { return current != nullptr ? current->place : outside; }

void run_grid(const std::string& what, dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
  run.what = &what;
  run.kernel = &kernel;
  run.blocks = blocks;
  run.threads = threads;
  std::vector<uint64_t> numbers(uint64_t{blocks.x} * blocks.y * blocks.z);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  std::shuffle(numbers.begin(), numbers.end(), draw());
  for (const uint64_t b : numbers)
    run_block({static_cast<unsigned>(b % blocks.x), static_cast<unsigned>(b / blocks.x % blocks.y),
               static_cast<unsigned>(b / blocks.x / blocks.y)});
  current = nullptr;
}

void meet_block(const void* site) {
  current->site = site;
  current->state = State::at_barrier;
  leave();
}

unsigned exchange_in_warp(unsigned mask, unsigned word, int lane, const void* site) {
  if ((mask >> (current->thread % warp) & 1u) == 0)
    kernel_finding("a thread calls a shuffle whose mask lacks it");
  current->mask = mask;
  current->word = word;
  current->lane = lane;
  current->site = site;
  current->state = State::in_exchange;
  leave();
  return current->word;
}

void watch_shared(const void* first, std::size_t index, std::size_t size, std::size_t array_bytes,
                  bool writes) {
  if (draw()() % 8 == 0) leave();
  SharedArray& array = run.shared[first];
  if (array.bytes == 0) {
    array.bytes = array_bytes;
    array.watch.begin_block(array_bytes, size);
    std::size_t all = 0;
    for (const auto& [begin, each] : run.shared) all += each.bytes;
    if (all > shared_bytes_most)
      kernel_finding(std::to_string(all) + " bytes of shared memory; a block has 48 KB");
  }
  if ((index + 1) * size > array_bytes) kernel_finding("reaches past the end of shared memory");
  const auto use = writes ? SharedWatch::Use::write : SharedWatch::Use::read;
  if (const char* const what = array.watch.touch(index * size, size, current->thread, use))
    kernel_finding(array.watch.sentence(current->thread, what));
}

}  // namespace cuda_double
