#pragma once

#include <memory>
#include <string>

#include "pleat/core/base/device.h"
#include "pleat/core/base/error.h"

/// Several processes that train one network: the job. Its processes, the ranks, are numbered from 0.

namespace pleat::dist {

/// A job that cannot go on: ranks that call different functions, a rank that failed, has left the program or
/// did not come in time. The message says which. From then on every function of the job throws it: end the
/// process, and start the job again from its last checkpoint.
class DistError : public Error {
 public:
  using Error::Error;
};

/// How the elements of several ranks become one. `mean` is for floating types; bool has min (and) and max
/// (or).
enum class ReduceOp : unsigned char { sum, mean, min, max };

class Engine;

/// The processes of a job. A handle: copies are the same job. `dist::init()` gives it.
class Communicator {
 public:
  /// A job of this process alone.
  Communicator() = default;

  /// The number of this process, from 0.
  int rank() const;
  /// The number of processes.
  int size() const;
  /// The number of this process among those on its machine.
  int local_rank() const;
  int local_size() const;
  /// Whether this is rank 0, which writes the files and the log.
  bool is_main() const { return rank() == 0; }
  /// The GPU of this rank: number local_rank() of those that it sees, from the first again where there are
  /// fewer. The CPU where it sees none.
  Device device() const;
  /// What connects the processes: "Open MPI v4.1.4, NCCL 2.28.9", "nothing, one process alone".
  std::string transport() const;

 private:
  friend class EngineAccess;
  explicit Communicator(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  std::shared_ptr<Engine> engine_;  ///< null: one process
};

}  // namespace pleat::dist
