#include "pleat/core/parallel/parallel.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/parallel/spin.h"
#include "pleat/core/system/process.h"

/// The threads behind parallel_for: one pool, whose threads take pieces of one loop at a time beside its
/// caller. Threads without work spin for a while before they sleep.

namespace pleat {
namespace {

thread_local bool inside_parallel_region = false;

/// How a thread computes with floating numbers: whether it takes denormals for zeros, rounds up ... A call
/// gives the same whichever thread computes which part of it, so helpers compute as their caller does.
unsigned floating_point_mode() {
#if defined(__SSE2__)
  return _mm_getcsr() & ~0x3Fu;  // without the flags of what has happened
#else
  return 0;
#endif
}
void set_floating_point_mode([[maybe_unused]] unsigned mode) {
#if defined(__SSE2__)
  _mm_setcsr(mode);
#endif
}

/// One parallel_for. Each thread has a share of the pieces, which are neighbours and the same from one loop
/// over the same data to the next, so that it finds in its caches what it wrote before: on processors whose
/// cores share no cache, fetching it from another core takes as long as from memory. Who is done takes pieces
/// of the others' shares, so a slow core does not hold up the rest.
class Job {
 public:
  Job(int64_t begin, int64_t end, int64_t piece, detail::RangeFunction function, const void* context)
      : begin_(begin), end_(end), piece_(piece), function_(function), context_(context) {}

  int64_t pieces() const { return ceil_div(end_ - begin_, piece_); }

  void run_piece(int64_t index) {
    const int64_t first = begin_ + index * piece_;
    try {
      function_(context_, first, end_ - first > piece_ ? first + piece_ : end_);
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::move(error);
  }

  unsigned floating_point_mode_of_caller() const { return mode_; }

  /// The first exception of a piece, if any.
  std::exception_ptr error() const { return error_; }

 private:
  int64_t begin_, end_, piece_;
  detail::RangeFunction function_;
  const void* context_;
  unsigned mode_ = floating_point_mode();
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

/// A thread's share of a job: pieces from `next`, which all threads take, to `end`.
struct alignas(64) Share {  // a line of the cache for each
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

class Pool {
 public:
  explicit Pool(int helpers) : shares_(static_cast<std::size_t>(helpers) + 1) {
    spin_time();  // throws here rather than in a helper
    try {
      for (int i = 0; i < helpers; ++i) threads_.emplace_back([this, i] { serve(i + 1); });
    } catch (const std::system_error& error) {
      end();
      fail<Error>("parallel_for: the system gave {} of {} threads ({}); ask for fewer with set_num_threads",
                  threads_.size(), helpers, error.what());
    }
  }

  ~Pool() { end(); }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int helpers() const { return static_cast<int>(threads_.size()); }
  /// False in a child of fork(), which has no helpers.
  bool is_here() const { return process_.is_here(); }

  /// False when another thread's job is running: the caller then works alone.
  bool try_run(Job& job) {
    const std::unique_lock owner(owner_mutex_, std::try_to_lock);
    if (!owner) return false;
    bool has_sleepers = false;
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      const auto threads = static_cast<int64_t>(shares_.size());
      for (int64_t i = 0; i < threads; ++i) {
        Share& share = shares_[static_cast<std::size_t>(i)];
        share.next = i * job.pieces() / threads;
        share.end = (i + 1) * job.pieces() / threads;
      }
      caller_processor_ = system::current_processor();
      ++generation_;
      has_sleepers = asleep_ > 0;
    }
    if (has_sleepers) {
      wake_.notify_all();
      std::this_thread::yield();  // one that is woken on this processor runs, and leaves it
    }
    work(job, 0);
    if (!process_.is_here()) {
      // A piece has forked, and this is the child. What a helper had begun stays undone.
      if (active_ > 0)
        job.fail(std::make_exception_ptr(Error(
            "parallel_for: fork() was called in the loop, and this child lacks what other threads compute "
            "of it; fork outside of it, or leave the child by exec or _exit")));
      return true;
    }
    {
      // No piece is left to take: who has not come by now need not come.
      const std::lock_guard lock(mutex_);
      job_ = nullptr;
    }
    if (!spin_until([this] { return active_ == 0; })) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [this] { return active_ == 0; });
    }
    return true;
  }

 private:
  /// As thread number `thread`, of which the caller is 0: its share, then what is left of the others'.
  void work(Job& job, std::size_t thread) {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      Share& share = shares_[(thread + i) % shares_.size()];
      for (int64_t piece = share.next.fetch_add(1); piece < share.end; piece = share.next.fetch_add(1))
        job.run_piece(piece);
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void serve(int thread) {
    inside_parallel_region = true;
    uint64_t seen = 0;
    while (true) {
      if (!spin_until([&] { return generation_ != seen; })) {
        std::unique_lock lock(mutex_);
        ++asleep_;
        wake_.wait(lock, [&] { return stopped_ || generation_ != seen; });
        --asleep_;
        if (generation_ == seen) return;
      }
      Job* job = nullptr;
      int caller_processor = -1;
      {
        const std::lock_guard lock(mutex_);
        seen = generation_;
        job = job_;
        caller_processor = caller_processor_;
        if (job != nullptr) ++active_;
      }
      if (job == nullptr) continue;
      system::leave_processor(caller_processor);
      set_floating_point_mode(job->floating_point_mode_of_caller());
      work(*job, static_cast<std::size_t>(thread));
      if (!process_.is_here()) return;  // a child that this helper forked has no caller
      if (--active_ == 0) {
        const std::lock_guard lock(mutex_);  // the caller is either before its check or asleep
        done_.notify_one();
      }
    }
  }

  ProcessMark process_;
  std::mutex owner_mutex_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool stopped_ = false;
  Job* job_ = nullptr;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> active_{0};  ///< helpers at work on the job
  int asleep_ = 0;
  int caller_processor_ = -1;
  std::vector<Share> shares_;  ///< of the job
  std::vector<std::thread> threads_;
};

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

/// The whole number that an environment variable holds.
int from_environment(const char* name, int least, int most, int otherwise) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return otherwise;
  int number = 0;
  const char* const end = value + std::strlen(value);
  const auto [stop, error] = std::from_chars(value, end, number);
  check<ValueError>(error == std::errc() && stop == end && number >= least && number <= most,
                    "{}: must be a number from {} to {}, got \"{}\"", name, least, most, value);
  return number;
}

std::atomic<int> thread_count{0};  // 0: not known yet

/// The pool of the process.
class SharedPool {
 public:
  static SharedPool& instance() {
    static auto& only = *new SharedPool;
    // Helpers must not outlive the library, which can be a plugin; the static objects destroyed later work
    // alone.
    static const struct End {
      ~End() { only.end(); }
    } end;
    return only;
  }

  /// With helpers for so many threads; null when the process ends.
  std::shared_ptr<Pool> get(int threads) {
    const std::lock_guard lock(mutex_);
    if (ended_) return nullptr;
    const int helpers = threads - 1;
    if (!pool_ || pool_->helpers() != helpers || !pool_->is_here()) {
      let_go();
      pool_ = std::make_shared<Pool>(helpers);
    }
    return pool_;
  }

 private:
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    let_go();
  }
  void let_go() {
    if (pool_ && !pool_->is_here()) keep_for_ever(pool_);
    pool_ = nullptr;
  }

  ForkMutex<std::mutex> mutex_;
  std::shared_ptr<Pool> pool_;
  bool ended_ = false;
};

}  // namespace

int num_threads() {
  if (const int threads = thread_count; threads > 0) return threads;
  int unset = 0;
  thread_count.compare_exchange_strong(unset,
                                       from_environment("PLEAT_THREADS", 1, max_num_threads(), cores()));
  return thread_count;
}

std::chrono::microseconds spin_time() {
  static const std::chrono::microseconds time(from_environment("PLEAT_SPIN", 0, 1'000'000, 200));
  return time;
}

int max_num_threads() { return std::max(256, 4 * cores()); }

void set_num_threads(int64_t threads) {
  check<ValueError>(threads >= 1 && threads <= max_num_threads(),
                    "set_num_threads: must be from 1 to {} (4 for each core, at least 256), got {}",
                    max_num_threads(), threads);
  thread_count = static_cast<int>(threads);
}

SerialScope::SerialScope() : previous_(inside_parallel_region) { inside_parallel_region = true; }
SerialScope::~SerialScope() { inside_parallel_region = previous_; }

namespace detail {

void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFunction function, const void* context) {
  if (end <= begin) return;
  const int64_t length = checked_subtract(end, begin, "parallel_for");
  grain = std::max<int64_t>(grain, 1);
  const int threads = length <= grain || inside_parallel_region ? 1 : num_threads();
  if (threads == 1) return function(context, begin, end);
  // About four pieces a thread balance the load without much overhead.
  const int64_t piece = std::max(grain, ceil_div(length, 4 * threads));
  Job job(begin, end, piece, function, context);
  const auto pool = SharedPool::instance().get(threads);
  inside_parallel_region = true;
  const bool ran = pool && pool->try_run(job);
  if (!ran)
    for (int64_t i = 0; i < job.pieces(); ++i) job.run_piece(i);
  inside_parallel_region = false;
  if (job.error()) std::rethrow_exception(job.error());
}

}  // namespace detail
}  // namespace pleat
