#include "pleat/core/base/format.h"
#include "pleat/dist/init.h"
#include "pleat/dist/transport.h"

namespace pleat::dist {

bool is_mpi_built() { return false; }

std::unique_ptr<Transport> connect() {
  fail<DistError>(
      "dist::init: this program was started by a launcher of MPI, but this Pleat was built without MPI; "
      "install it (Debian: libopenmpi-dev) and build Pleat again");
}

}  // namespace pleat::dist
