// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Blocks of host memory that nobody writes any more, such as packed weights, of which equal ones are one.
/// For threads at once.
class SharedBlocks {
 public:
  /// The block, or one with the same bytes that is in use already.
  std::shared_ptr<std::byte> of(const std::shared_ptr<std::byte>& block, int64_t bytes);
  /// The tensor, or one like it that has such a block. On a GPU the tensor.
  Tensor of(const Tensor& t);

 private:
  struct Known {
    std::weak_ptr<std::byte> block;
    int64_t bytes;
  };
  std::mutex mutex_;
  std::unordered_multimap<std::size_t, Known> known_;  ///< by the hash of the bytes
};

}  // namespace pleat
