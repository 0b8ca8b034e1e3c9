// Private header: not installed.
#pragma once

#include <string>
#include <vector>

#include "pleat/core/files/read_options.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/tune/tune.h"
#include "pleat/ops/tune/cache.h"

namespace pleat::ops {

using ConvTuneEntry = TuneEntry<ConvTiming>;

/// All implementations and plans that support the call; those of one implementation when `requested` names
/// it. The reference is among them only where it is requested or alone.
std::vector<Candidate> conv_candidates(const ConvCall& call, const std::string& requested);

/// Times candidates for a call (`time_candidates`).
std::vector<ConvTiming> time_conv(const ConvCall& call, const std::vector<Candidate>& candidates,
                                  Stopwatch& stopwatch, const TuneOptions& how);

/// The JSON text of entries.
std::string tuning_text(const std::vector<ConvTuneEntry>& entries);
/// The entries of a file. Throws FileError naming it.
std::vector<ConvTuneEntry> read_tuning(const std::string& path, ReadOptions options = {});

}  // namespace pleat::ops
