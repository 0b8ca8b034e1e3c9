// Private header: not installed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "pleat/core/base/device.h"
#include "pleat/dist/communicator.h"
#include "pleat/dist/gpu_collectives.h"
#include "pleat/dist/init.h"
#include "pleat/dist/transport.h"

namespace pleat::dist {

/// The thread that makes a job's calls, one after the other in the order they were given, which is the same
/// on all ranks. Before each call the ranks compare what they are about to do (`agree`):
///
///   - equal calls go on;
///   - where one differs, all ranks learn of it in the same call, exchange what each was about to do, and
///     throw the same DistError. A rank that failed or left takes part with "failed" or "left" as its call;
///   - where a rank does not come in time, those that wait ask all others how far they are, and say so.
///
/// So no call moves data before all ranks have come to it with the same one.
class Engine {
 public:
  /// Connects. Throws what connect() does.
  explicit Engine(InitOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  const std::string& version() const { return version_; }
  /// The GPU of this rank, or the CPU.
  Device device() const { return device_; }
  /// Whether NCCL moves what is on the ranks' GPUs. Else it goes through the CPU.
  bool has_nccl() const { return has_nccl_; }

  /// A call of all ranks. `what` is compared between them; `move` is called in the engine's thread.
  using Move = std::function<void(Transport&)>;
  std::shared_future<void> submit(std::string what, Move move);
  /// For `move` of a tensor on the GPU: NCCL, which is connected at the first call. Only where `has_nccl`.
  GpuCollectives& gpus();
  /// A message to or from one rank, in which the others take no part. `begin` begins it.
  std::shared_future<void> submit_transfer(std::string what, Move begin);
  /// Waits for a call that was submitted. Throws DistError.
  void wait(const std::shared_future<void>& call) const;

  /// This rank cannot go on: tells the others why, and ends the job. Does not return.
  [[noreturn]] void end_job(const std::string& why) noexcept;
  /// The end of the program: returns when all ranks have come to theirs, else ends the job.
  void end_program() noexcept;

 private:
  enum class Kind { call, transfer, failure, end };
  struct Task {
    Kind kind;
    std::string what;
    Move move;
    std::promise<void> done;
  };

  std::shared_future<void> push(Kind kind, std::string what, Move move);
  void work(std::promise<void>& connected);
  void run(Task& task);
  void finish();
  /// Finds out whether the ranks have a GPU each, for NCCL.
  void find_gpus();
  /// Ends the job when what NCCL was given fails or does not end: the host may be waiting for the GPU, where
  /// no exception reaches it. Returns whether all is done.
  bool check_gpus();
  void agree(Kind kind, const std::string& what);
  /// Calls `is_done` until it is true. Throws DistError with what the other ranks do when that takes too
  /// long.
  template <class F>
  void poll(const F& is_done, const std::string& what);
  /// Answers questions; puts the answers to this rank's own into `answers`.
  void answer_messages(bool waiting, std::map<int, Transport::Message>* answers = nullptr);
  std::string state_of_other_ranks();
  std::string differing_calls(Kind kind, const std::string& what);

  const InitOptions options_;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  std::string version_;
  Device device_;
  bool has_nccl_ = false;

  // Of the thread.
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<GpuCollectives> gpus_;  ///< null before the first call on GPUs
  int64_t call_ = 0;                      ///< the number of the present or last call
  std::string broken_;                    ///< why the job cannot go on; empty while it can

  std::atomic<int64_t> moving_since_{0};    ///< steady time at which data began to move; 0: none do
  std::atomic<bool> abort_now_{false};      ///< asks the thread to end the job
  mutable std::atomic<bool> stuck_{false};  ///< the thread waits in the transport for ever

  std::mutex mutex_;
  std::condition_variable task_given_;
  std::deque<Task> tasks_;
  bool closed_ = false;  ///< the last task was given
  std::thread thread_;
};

/// The engine of a communicator; null for one process alone.
class EngineAccess {
 public:
  static Engine* of(const Communicator& world) { return world.engine_.get(); }
  static Communicator communicator(std::shared_ptr<Engine> engine) { return Communicator(std::move(engine)); }
};

}  // namespace pleat::dist
