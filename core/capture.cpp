#include "pleat/core/capture.h"

#include <utility>

#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/transfer.h"

namespace pleat {
namespace {

thread_local Capture* this_capture = nullptr;
thread_local HostTables* these_tables = nullptr;

}  // namespace

Capture* Capture::current() noexcept { return this_capture; }
void Capture::refuse_to_wait(const char* op) {
  if (this_capture != nullptr)
    this_capture->refuse(op, "it makes the host wait for the GPU; do that after replay()");
}
void detail::set_capture(Capture* capture) noexcept { this_capture = capture; }

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
