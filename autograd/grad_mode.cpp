#include "pleat/autograd/grad_mode.h"

namespace pleat {
namespace {
thread_local bool enabled = true;
}

bool grad_enabled() { return enabled; }

GradMode::GradMode(bool enabled_now) : previous_(enabled) { enabled = enabled_now; }
GradMode::~GradMode() { enabled = previous_; }

}  // namespace pleat
