#include "pleat/autograd/grad_mode.h"

namespace pleat {

namespace detail {
Recording& recording() {
  thread_local Recording mode = Recording::on;
  return mode;
}
}  // namespace detail

bool grad_enabled() { return detail::recording() == detail::Recording::on; }

GradMode::GradMode(detail::Recording mode) : previous_(detail::recording()) { detail::recording() = mode; }
GradMode::~GradMode() { detail::recording() = previous_; }

}  // namespace pleat
