#pragma once

#include <string>
#include <vector>

#include "pleat/bench/record.h"

namespace pleat::bench {

/// What became of a time since an earlier run.
enum class Change : unsigned char {
  same,  ///< within the noise
  faster,
  slower,
  fresh,  ///< there was none before
  gone,   ///< there is none any more: it failed, or was not measured
};

/// A time has changed when it is beyond the noise of both runs: the ranges between the quartiles do not meet,
/// and the medians are more than 2 % apart, since two runs of one program differ by that much where each by
/// itself is steady.
Change compare(const Time& before, const Time& now);

struct ComparedRecord {
  Change change = Change::same;
  const Record* before = nullptr;  ///< null: not there
  const Record* now = nullptr;
};

/// Every record of `now` beside the one of the same subcommand and labels, then what only `before` has (of
/// subcommands that ran now).
std::vector<ComparedRecord> compare(const std::vector<Record>& before, const std::vector<Record>& now);

/// The changes as a table and a line that counts them, with warnings when most times changed alike and when
/// the machines differ.
std::string comparison(const Results& before, const Results& now, const std::string& name, bool color);

}  // namespace pleat::bench
