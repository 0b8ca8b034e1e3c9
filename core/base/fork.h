// Private header: not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

/// What lets a child of fork() compute and end. It has the thread that forked and none of the others,
/// whatever those were doing. So
/// - what several threads change stands under a `ForkMutex`, which fork() waits for;
/// - what owns threads has a `ProcessMark`, and a child leaves it to `keep_for_ever`: a destructor would wait
///   for threads that are not there.

namespace pleat {
namespace detail {

/// A mutex that fork() takes.
class TakenAtFork {
 public:
  TakenAtFork(const TakenAtFork&) = delete;
  TakenAtFork& operator=(const TakenAtFork&) = delete;

  virtual bool take() = 0;
  virtual void give_back() = 0;
  /// In the child, which lacks the thread that may have had it.
  virtual void renew() = 0;

 protected:
  TakenAtFork();
  ~TakenAtFork();
};

/// How many forks lie between this process and the one that began to use the library.
uint64_t forks();

}  // namespace detail

enum class AtFork : unsigned char {
  wait,   ///< fork() waits until no thread has the mutex: the child finds whole what it guards
  renew,  ///< the child has a new one: the mutex only keeps threads apart, and may be held for long
};

/// A mutex that is free in a child of fork(). A static one is made at its first use and never destroyed.
template <class Mutex>
class ForkMutex final : public Mutex, private detail::TakenAtFork {
 public:
  explicit ForkMutex(AtFork what = AtFork::wait) : what_(what) {}

 private:
  bool take() override { return what_ == AtFork::renew || Mutex::try_lock(); }
  void give_back() override {
    if (what_ == AtFork::wait) Mutex::unlock();
  }
  void renew() override { new (static_cast<Mutex*>(this)) Mutex; }

  AtFork what_;
};

/// Remembers the process in which it was made.
class ProcessMark {
 public:
  /// False in a child that was forked since.
  bool is_here() const { return forks_ == detail::forks(); }

 private:
  uint64_t forks_ = detail::forks();
};

/// Keeps what another process is to destroy; tools that look for leaks find it.
void keep_for_ever(std::shared_ptr<void> object);

}  // namespace pleat
