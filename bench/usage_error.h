#pragma once

#include "pleat/core/error.h"

namespace pleat::bench {

/// What the user asked for makes no sense: the program says so and exits with status 2.
class UsageError : public ValueError {
 public:
  using ValueError::ValueError;
};

}  // namespace pleat::bench
