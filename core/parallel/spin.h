// Private header: not installed.
#pragma once

#include <chrono>
#include <thread>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace pleat {

/// Waits for `done()` without falling asleep, for longer than lies between two parallel loops of a step: a
/// thread that sleeps is woken late, and often on a processor where another one works. Every some
/// microseconds the processor is offered to other threads. False: it was not done in that time.
template <class Done>
bool spin_until(const Done& done) {
  constexpr auto spin_time = std::chrono::milliseconds(5);
  constexpr int rounds = 1000;
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < rounds; ++i) {
      if (done()) return true;
#if defined(__SSE2__)
      _mm_pause();
#endif
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < begin + spin_time);
  return done();
}

}  // namespace pleat
