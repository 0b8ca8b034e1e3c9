#include "pleat/dist/communicator.h"

#include "pleat/dist/engine.h"

namespace pleat::dist {

int Communicator::rank() const { return engine_ ? engine_->rank() : 0; }
int Communicator::size() const { return engine_ ? engine_->size() : 1; }
int Communicator::local_rank() const { return engine_ ? engine_->local_rank() : 0; }
int Communicator::local_size() const { return engine_ ? engine_->local_size() : 1; }
std::string Communicator::transport() const {
  return engine_ ? engine_->version() : "nothing, one process alone";
}

}  // namespace pleat::dist
