#include "pleat/dist/launcher.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "pleat/core/base/format.h"
#include "pleat/dist/communicator.h"

namespace pleat::dist {
namespace {

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  int number = 0;
  if (text != nullptr) std::from_chars(text, text + std::string_view(text).size(), number);
  return number;
}

}  // namespace

int launched_processes() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const int processes = number_in(variable); processes > 0) return processes;
  return std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr ? 1 : 0;
}

void check_launcher(int size) {
  const int launched = launched_processes();
  check<DistError>(
      launched <= 1 || launched == size,
      "dist::init: the launcher has started {} processes, and MPI knows of {}: it is the launcher of another "
      "MPI than the one that this Pleat was built with. Take that one's mpirun; under Slurm, srun --mpi=pmix "
      "(or pmi2; `srun --mpi=list` says which there are)",
      launched, size);
}

}  // namespace pleat::dist
