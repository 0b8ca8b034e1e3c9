// Private header: not installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace pleat {

/// Large blocks of host memory, cut from one range of addresses so that neighbours that were given back serve
/// larger requests together: a network's layers ask for other sizes backward than forward, and a cache by
/// size would keep memory for all of them. A request takes the lowest place where it fits, so that the range
/// grows little beyond what is in use at a time. On Linux and Windows; elsewhere there is no room. Not for
/// several threads at a time, but for `owns` and `discard`.
class HostArena {
 public:
  /// For `capacity` bytes; takes neither memory nor addresses before they are wanted.
  explicit HostArena(int64_t capacity);
  ~HostArena();
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  /// Whether a block is of the addresses that the arena has taken. Those it may yet take can be others': a
  /// process that uses many addresses, such as one with a GPU, gets further ones from there.
  bool owns(const std::byte* block) const { return block >= begin_ && block < begin_ + usable_; }

  struct Taken {
    std::byte* block;  ///< null: there is no room, or not so much memory
    int64_t cached;    ///< bytes of it that had memory already
  };
  /// A block of `bytes`, a multiple of `granule`, of which at most `most_new` have no memory yet.
  Taken take(int64_t bytes, int64_t most_new = std::numeric_limits<int64_t>::max());
  static constexpr int64_t granule = 4096;

  /// A part that is not in use.
  struct Free {
    int64_t size;
    int64_t cached;     ///< about so many bytes of it have memory
    uint64_t returned;  ///< when the last of it was given back
  };
  /// Makes a block, or a part that was discarded, free again.
  void give_back(std::byte* block, const Free& part);

  /// The part with memory that was given back longest ago: when, and the maximum where there is none.
  uint64_t oldest() const;
  /// Takes that part out until it is given back, or of a larger one about as much as is wanted.
  std::pair<std::byte*, Free> take_oldest(int64_t wanted);
  /// Gives the memory of a part that was taken out back to the system, but not the addresses.
  static void discard(std::byte* block, const Free& part);

 private:
  std::byte* begin_ = nullptr;
  int64_t capacity_ = 0;
  std::atomic<int64_t> usable_{0};  ///< bytes from the beginning that the system has given
  int64_t end_ = 0;                 ///< of what was ever handed out
  std::map<int64_t, Free> free_;    ///< by place, none beside another
};

}  // namespace pleat
