#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/dist/init.h"

namespace pleat::test {

/// The job that the tests run in: 1, 2, 3 or 4 processes (tests/dist/CMakeLists.txt).
const dist::Communicator& world();

/// This rank's part of a batch, whose samples are along `dim`: as even as can be.
Tensor part_of(const Tensor& batch, int64_t dim = 0);

}  // namespace pleat::test
