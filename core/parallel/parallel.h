#pragma once

#include <cstdint>
#include <type_traits>

namespace pleat {

/// How many threads `parallel_for` uses, the caller included. Starts as the number of cores
/// (or the environment variable PLEAT_THREADS; ValueError where that is no number in the range). A thread that
/// waits for the next loop, or for the end of one, spins for 200 µs (or PLEAT_SPIN, microseconds) and then sleeps.
int num_threads();
/// Throws ValueError unless 1 <= `threads` <= max_num_threads(). Threads start with the next parallel_for,
/// which throws Error when the system does not give so many.
void set_num_threads(int64_t threads);
/// The most that can be set: 4 for each core, at least 256.
int max_num_threads();

/// While it exists, every parallel_for of this thread runs in this thread alone: for threads of one's own
/// that work beside the pool.
class SerialScope {
 public:
  SerialScope();
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool previous_;
};

namespace detail {
using RangeFunction = void (*)(const void* context, int64_t begin, int64_t end);
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFunction function, const void* context);
}  // namespace detail

/// Calls `body(first, last)` on pieces that together cover [begin, end), at least `grain` long except the
/// last, on the pool's threads and the caller. Runs in the caller alone when the range is short, when one
/// thread is set, or inside another parallel_for. The first exception of a piece is thrown to the caller
/// after all have ended. All threads compute in the caller's floating-point mode. How the range is cut
/// depends on the number of threads: a result that must not, takes `parallel_chunks`.
template <class Body>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
  detail::parallel_for(
      begin, end, grain,
      [](const void* context, int64_t first, int64_t last) {
        (*static_cast<const Body*>(context))(first, last);
      },
      &body);
}

/// Calls `body(chunk)` for chunk = 0 ... chunks-1, each by one thread, in no certain order. What a chunk is
/// must not depend on the number of threads: then neither does the result.
template <class Body>
void parallel_chunks(int64_t chunks, const Body& body) {
  parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) body(chunk);
  });
}

}  // namespace pleat
