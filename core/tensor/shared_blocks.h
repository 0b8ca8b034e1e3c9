// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// How what is `prepared` lies: to be raised where it changes, since files of engines have such blocks.
inline constexpr int prepared_layout = 4;

/// Blocks of host memory that nobody writes any more, such as packed weights, of which equal ones are one.
/// For threads at once.
class SharedBlocks {
 public:
  struct Block {
    std::shared_ptr<std::byte> bytes;
    int64_t size;
  };

  /// The block, or one with the same bytes that is in use already.
  std::shared_ptr<std::byte> of(const std::shared_ptr<std::byte>& block, int64_t bytes);
  /// The tensor, or one like it that has such a block. On a GPU the tensor.
  Tensor of(const Tensor& t);

  /// What is made of weights in advance, of so many bytes.
  std::shared_ptr<std::byte> prepared(int64_t bytes, const std::function<std::shared_ptr<std::byte>()>& make);
  /// From here on to `end`, in one thread, what `prepared` gives is listed. Unless `given` is empty, it is
  /// what an earlier list has in that place, and nothing is made.
  void begin(std::vector<Block> given);
  /// That list. Throws ValueError unless all that was given was asked for.
  std::vector<Block> end();

 private:
  struct Known {
    std::weak_ptr<std::byte> block;
    int64_t bytes;
  };
  std::mutex mutex_;
  std::unordered_multimap<std::size_t, Known> known_;  ///< by the hash of the bytes
  bool lists_ = false;
  std::vector<Block> given_, listed_;
};

}  // namespace pleat
