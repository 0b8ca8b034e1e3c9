// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "pleat/data/dataset.h"

namespace pleat::data {

/// The class of each sample. Throws ShapeError and DTypeError, which begin with `op`, unless targets are
/// int64 [N].
std::vector<int64_t> labels_of(const char* op, const Dataset& dataset);

}  // namespace pleat::data
