// Private header: not installed.
#pragma once

#include <cstddef>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::dist {

/// Gradients that lie side by side in memory, so that one call reduces them.
struct Bucket {
  Tensor elements;                   ///< [n], of one type on one device
  std::vector<std::size_t> members;  ///< numbers of the parameters
};

/// The memory of all gradients.
struct Buckets {
  std::vector<Bucket> buckets;
  std::vector<Tensor> views;           ///< of each parameter: its part of a bucket, as the parameter lies
  std::vector<std::size_t> bucket_of;  ///< of each parameter
};

/// Puts the parameters into buckets in the order given, each of at most `bytes` (the first: `first_bytes`)
/// but for a parameter that is larger. Types and devices are kept apart.
Buckets make_buckets(const std::vector<Tensor>& params, const std::vector<std::size_t>& order,
                     int64_t first_bytes, int64_t bytes);

}  // namespace pleat::dist
