#include "pleat/core/graph/host_tables.h"

#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/tensor/transfer.h"

namespace pleat {
namespace {

thread_local HostTables* these_tables = nullptr;

}  // namespace

HostTables* HostTables::current() noexcept { return these_tables; }

void HostTables::run(const std::function<void()>& part, bool replays) {
  struct Scope {
    HostTables* previous;
    ~Scope() { these_tables = previous; }
  } const scope{std::exchange(these_tables, this)};
  next_ = 0;
  replays_ = replays;
  part();
}

Tensor HostTables::send(const char* op, const Tensor& table) {
  if (!replays_) {
    tables_.push_back(Capture::current()->own_memory(table.shape(), table.dtype()));
    return tables_.back();
  }
  check<Error>(next_ < tables_.size() && tables_[next_].shape() == table.shape(),
               "{}: its tensors are not those that it had when the CUDA graph was captured; capture it again",
               op);
  const Tensor& place = tables_[next_++];
  cuda::transfer(place, table, true);
  return place;
}

}  // namespace pleat
