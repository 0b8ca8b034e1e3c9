// Private header: not installed.
#pragma once

#include "pleat/profile/profile.h"
#include "pleat/profile/recorder.h"

namespace pleat::profile {

/// Makes a profile of what was recorded: one list of events with their children, links from nodes of the tape
/// to the ops that recorded them, from ranges to what they launched on GPUs, from ops to modules.
Profile assemble(Recording recording);

}  // namespace pleat::profile
