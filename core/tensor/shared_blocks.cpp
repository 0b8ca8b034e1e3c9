#include "pleat/core/tensor/shared_blocks.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/storage.h"

namespace pleat {

std::shared_ptr<std::byte> SharedBlocks::of(const std::shared_ptr<std::byte>& block, int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  const std::size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(block.get()), size});
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.block.expired(); });
  const auto [first, last] = known_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry)
    if (const std::shared_ptr<std::byte> other = entry->second.block.lock();
        other != nullptr && entry->second.bytes == bytes && std::memcmp(other.get(), block.get(), size) == 0)
      return other;
  known_.emplace(hash, Known{block, bytes});
  return block;
}

Tensor SharedBlocks::of(const Tensor& t) {
  if (!t.defined() || !t.device().is_cpu()) return t;
  const Storage& storage = *t.impl().storage;
  std::shared_ptr<std::byte> bytes = of(storage.bytes, storage.size);
  if (bytes == storage.bytes) return t;
  return make_tensor(std::make_shared<Storage>(std::move(bytes), storage.size, storage.device), t.shape(),
                     t.strides(), t.offset(), t.dtype());
}

std::shared_ptr<std::byte> SharedBlocks::prepared(int64_t bytes,
                                                  const std::function<std::shared_ptr<std::byte>()>& make) {
  if (!given_.empty()) {
    const std::size_t next = listed_.size();
    check<ValueError>(next < given_.size() && given_[next].size == bytes,
                      "prepared weights: {} bytes are needed in place {}, but there are {}", bytes, next,
                      next < given_.size() ? given_[next].size : 0);
    listed_.push_back(given_[next]);
    return given_[next].bytes;
  }
  const std::shared_ptr<std::byte> block = of(make(), bytes);
  if (lists_) listed_.push_back({block, bytes});
  return block;
}

void SharedBlocks::begin(std::vector<Block> given) {
  lists_ = true;
  given_ = std::move(given);
  listed_.clear();
}

std::vector<SharedBlocks::Block> SharedBlocks::end() {
  lists_ = false;
  const std::size_t given = std::exchange(given_, {}).size();
  std::vector<Block> listed = std::exchange(listed_, {});
  check<ValueError>(given == 0 || given == listed.size(),
                    "prepared weights: there are {}, of which {} are needed", given, listed.size());
  return listed;
}

}  // namespace pleat
