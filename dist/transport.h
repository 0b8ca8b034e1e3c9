// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "pleat/core/tensor/dtype.h"
#include "pleat/dist/communicator.h"

namespace pleat::dist {

/// What all ranks call together, with the same sizes. Types are those of `check_reducible`. Throws DistError
/// with the words of the library.
class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual void all_reduce(std::byte* data, int64_t count, DType dtype, ReduceOp op) = 0;
  /// `in`: the parts of all ranks, `count` elements each; `out`: the reduced part of this rank.
  virtual void reduce_scatter(const std::byte* in, std::byte* out, int64_t count, DType dtype,
                              ReduceOp op) = 0;
  /// `out`: what all ranks gave, `bytes` each, in the order of ranks.
  virtual void all_gather(const std::byte* in, std::byte* out, int64_t bytes) = 0;
  virtual void broadcast(std::byte* data, int64_t bytes, int root) = 0;
};

/// What connects the processes, and moves bytes in the CPU's memory: MPI. Its collectives wait for the other
/// ranks. All functions are called from the thread that made it.
class Transport : public Collectives {
 public:
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Among the processes of this machine.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  /// "Open MPI v4.1.4".
  virtual std::string version() const = 0;

  /// Begins to replace each value by the smallest of all ranks', and asks whether that is done. Does not
  /// wait.
  virtual void begin_min(std::span<uint64_t> values) = 0;
  virtual bool min_is_done() = 0;

  /// Sends to a rank without waiting; `owner` keeps the bytes until they have arrived. Messages between two
  /// ranks arrive in the order they were sent in.
  virtual void send(const std::byte* data, int64_t bytes, int to, std::shared_ptr<void> owner) = 0;
  /// Whether all that was sent has arrived.
  virtual bool sends_are_done() = 0;
  /// Begins to receive from a rank, and asks whether that is done.
  virtual void begin_receive(std::byte* data, int64_t bytes, int from) = 0;
  virtual bool receive_is_done() = 0;

  /// A question of one engine to another, or its answer.
  struct Message {
    int32_t is_answer = 0;
    int32_t is_waiting = 0;  ///< for the other ranks, in its call
    int64_t call = 0;        ///< the last that the rank has made
  };
  /// Sends a message without waiting; takes one that has arrived, and says from whom.
  virtual void send_message(int to, const Message& message) = 0;
  virtual std::optional<std::pair<int, Message>> receive_message() = 0;

  /// The end of the job: all ranks must call it.
  virtual void finish() = 0;
  /// Ends all processes of the job.
  virtual void abort(int exit_code) = 0;
};

/// Connects this process with those it was started with. Throws DistError, with the remedy.
std::unique_ptr<Transport> connect();

}  // namespace pleat::dist
