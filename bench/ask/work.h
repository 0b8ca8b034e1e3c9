#pragma once

#include <functional>
#include <string>

#include "pleat/bench/record.h"

/// Why one way takes longer than another, as far as counters tell.

namespace pleat::bench::ask {

/// What a computation does: one run of it, as the profiler records it.
struct Work {
  double calls = 0;  ///< of functions that compute, on a GPU kernels
  double flops = 0;  ///< of convolutions and products; a multiply-add is two
  double bytes = 0;  ///< of the operands of all calls, and of all memory that they take
};

Work work_of(const std::function<void()>& run);

/// Values of a record: "calls", "flops", "bytes".
void set_work(Record& record, const Work& work);
/// Adds the work of another record, where both have some.
void add_work(Record& sum, const Record& more);

/// "by hand makes 3 calls, 1.2 MFLOP of products, moves 92.1 MiB; direct ...: 7.7 times the memory traffic."
/// Empty where a record has no work, or where both take as long as each other.
std::string why(const Record& slow, const Record& fast);

}  // namespace pleat::bench::ask
