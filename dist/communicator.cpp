#include "pleat/dist/communicator.h"

#include "pleat/core/device/cuda.h"
#include "pleat/dist/engine.h"

namespace pleat::dist {

int Communicator::rank() const { return engine_ ? engine_->rank() : 0; }
int Communicator::size() const { return engine_ ? engine_->size() : 1; }
int Communicator::local_rank() const { return engine_ ? engine_->local_rank() : 0; }
int Communicator::local_size() const { return engine_ ? engine_->local_size() : 1; }
Device Communicator::device() const {
  if (engine_) return engine_->device();
  return cuda::is_available() ? Device{DeviceType::cuda} : Device{};
}
std::string Communicator::transport() const {
  return engine_ ? engine_->version() : "nothing, one process alone";
}

}  // namespace pleat::dist
