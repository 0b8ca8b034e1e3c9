#pragma once

#include <string>

namespace pleat_test {

/// Marks the running test case as skipped, for example because there is no GPU; the case then returns.
/// A failed check before or after it still counts as a failure.
void skip(const std::string& reason);

}  // namespace pleat_test
