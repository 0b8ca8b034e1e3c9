#pragma once

#include "pleat/examples/common/program.h"

namespace pleat::bench {

/// What the user asked for makes no sense: the program says so and exits with status 2.
using ::UsageError;

}  // namespace pleat::bench
