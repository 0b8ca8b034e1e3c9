// Private header: not installed.
#pragma once

namespace pleat::dist {

/// How many processes the launcher (mpirun, mpiexec, srun) has started, this one among them; 0 where no
/// launcher did. From the variables that Open MPI, MPICH and Slurm set.
int launched_processes();

/// Throws DistError when MPI knows of another number of processes than the launcher has started: it is the
/// launcher of another MPI.
void check_launcher(int size);

}  // namespace pleat::dist
