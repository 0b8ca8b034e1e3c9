#include "pleat/core/device/capture.h"

namespace pleat {
namespace {

thread_local Capture* this_capture = nullptr;

}  // namespace

Capture* Capture::current() noexcept { return this_capture; }
void Capture::refuse_to_wait(const char* op) {
  if (this_capture != nullptr)
    this_capture->refuse(op, "it makes the host wait for the GPU; do that after replay()");
}
void detail::set_capture(Capture* capture) noexcept { this_capture = capture; }

}  // namespace pleat
