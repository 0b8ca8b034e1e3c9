// Private header: not installed.
#pragma once

#include <chrono>
#include <thread>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace pleat {

/// For how long a thread waits for others before it sleeps: the environment variable PLEAT_SPIN, see
/// `num_threads`.
std::chrono::microseconds spin_time();

/// Waits for `done()` without falling asleep, for longer than lies between most parallel loops of a step: a
/// thread that sleeps is woken late, and often on a processor where another one works. Every some
/// microseconds the processor is offered to other threads. False: it was not done in `spin_time()`.
template <class Done>
bool spin_until(const Done& done) {
  constexpr int rounds = 200;
  const auto end = std::chrono::steady_clock::now() + spin_time();
  do {
    for (int i = 0; i < rounds; ++i) {
      if (done()) return true;
#if defined(__SSE2__)
      _mm_pause();
#endif
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace pleat
