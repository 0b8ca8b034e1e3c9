#pragma once

#include <cstdint>

namespace pleat {

/// What every reader of files takes.
struct ReadOptions {
  /// The most bytes of memory that what is read from one file may take. A file whose header claims more is
  /// refused before memory is taken for it. 0: 256 MiB, or a hundred times the size of the file where that is
  /// more, which only what is compressed can exceed.
  int64_t memory_limit = 0;
};

}  // namespace pleat
