#pragma once

#include <filesystem>
#include <iosfwd>

#include "pleat/profile/profile.h"

namespace pleat::profile {

/// The trace as JSON in Chrome's "trace event" format, which chrome://tracing and https://ui.perfetto.dev
/// open.
///
/// Slices ("X"): a row for each thread, with steps, modules, ops and nodes of the tape nested; a
/// row for each stream of a GPU, and further rows where activities of a stream overlap, since
/// slices of a row must nest. Flows: "ac2g" from a range to what it launched, "fwdbwd" from an op
/// to the node that is its backward. Counters: memory. `ts` and `dur` are microseconds from the
/// profile's start. The result is valid JSON in UTF-8 for any names: bytes that are not UTF-8
/// become U+FFFD.
void write_chrome_trace(std::ostream& out, const Profile& profile);

/// The same into a file, as AtomicFile writes it: as a whole or not at all. Throws FileError.
void write_chrome_trace(const std::filesystem::path& file, const Profile& profile);

}  // namespace pleat::profile
