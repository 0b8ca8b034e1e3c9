#pragma once

#include "pleat/dist/communicator.h"

namespace pleat::dist {

struct InitOptions {
  /// How long a rank waits for the others in a call before it gives up with DistError. It must be longer than
  /// anything that one rank does while the others wait (evaluation, writing a checkpoint).
  double timeout_seconds = 600;
};

/// Whether this Pleat was built with MPI.
bool is_mpi_built();

/// The job that this process belongs to. Under `mpirun`, `mpiexec` or `srun` it connects the processes by
/// MPI; a process that was started alone is a job of one, for which nothing of MPI is called. A second call
/// gives the same job.
///
/// Each rank gets a random stream of its own (core/random/random.h): the same seed gives other numbers on
/// each rank, and those of one process on rank 0.
///
/// Where the threads of a machine's processes would be more than its cores, each takes its share of them
/// (set_num_threads), unless PLEAT_THREADS is set.
///
/// A thread of its own makes all calls of MPI, so the program needs no thread level of it, and may not call
/// MPI itself. The job ends when the programs of all ranks do. A rank that ends by an uncaught exception, or
/// while others wait for it, ends the job: the others get DistError with its message, and after 5 seconds the
/// launcher stops those that are left.
///
/// Throws DistError when the launcher and this Pleat do not fit: built without MPI, another MPI than the
/// launcher's. Throws ValueError unless timeout_seconds > 0, and in a second call with other options.
Communicator init(InitOptions options = {});

}  // namespace pleat::dist
