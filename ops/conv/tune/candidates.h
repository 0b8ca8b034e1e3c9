// Private header: not installed.
#pragma once

#include <string>
#include <vector>

#include "pleat/ops/conv/call.h"
#include "pleat/ops/tune/candidates.h"

namespace pleat::ops {

/// All implementations and plans that support the call; those of one implementation when `requested` names
/// it. The reference is among them only where it is requested or alone.
std::vector<Candidate> conv_candidates(const ConvCall& call, const std::string& requested);

/// Times candidates for a call (`time_candidates`).
std::vector<Timing> time_conv(const ConvCall& call, const std::vector<Candidate>& candidates,
                              Stopwatch& stopwatch, const TuneOptions& how);

}  // namespace pleat::ops
