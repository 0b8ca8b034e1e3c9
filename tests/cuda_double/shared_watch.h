#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cuda_double {

/// What became of each piece of shared memory: finds what is read before it is written, and what two threads
/// use without a barrier between them, one of them writing.
class SharedWatch {
 public:
  enum class Use : uint8_t { read, write, atomic };

  /// A block begins; its memory has so many bytes, of which `grain` are watched as one.
  void begin_block(std::size_t bytes, std::size_t grain) {
    grain_ = grain;
    if (cells_.size() < (bytes + grain - 1) / grain) cells_.resize((bytes + grain - 1) / grain);
    block_ = ++now_;
  }
  /// All threads have met.
  void barrier() { ++now_; }

  /// Notes that a thread uses `bytes` from `offset` on; returns what is wrong with that, or nothing. Between
  /// threads of a warp `meetings`, which counts the times that they waited for each other, is as good as a
  /// barrier.
  const char* touch(std::size_t offset, std::size_t bytes, int thread, Use use, uint32_t meetings = 0) {
    for (std::size_t i = offset / grain_; i * grain_ < offset + bytes; ++i)
      if (const char* const what = touch(cells_[i], {thread, meetings}, use)) return what;
    return nullptr;
  }
  /// What touch() returned last, with the threads that it speaks of.
  std::string sentence(int thread, const char* what) const {
    const std::string other = other_ < 0 ? "" : " (thread " + std::to_string(other_) + ")";
    return "thread " + std::to_string(thread) + " " + what + other;
  }

 private:
  struct Visitor {
    int thread;
    uint32_t meetings;
  };
  struct Cell {
    uint64_t written_at = 0, read_at = 0;
    Visitor writer{}, reader{};
    bool atomic = false;
    bool several_lanes = false, several_warps = false;  // have read it
  };

  static constexpr int warp = 32;
  /// Whether what `before` did can come before, or after, what `now` does.
  static bool unordered(const Visitor& before, const Visitor& now) {
    if (before.thread == now.thread) return false;
    return before.thread / warp != now.thread / warp || before.meetings == now.meetings;
  }

  static bool read_by_others(const Cell& cell, const Visitor& visitor) {
    if (cell.several_warps || !cell.several_lanes)
      return cell.several_warps || unordered(cell.reader, visitor);
    return cell.reader.thread / warp != visitor.thread / warp || cell.reader.meetings == visitor.meetings;
  }

  const char* touch(Cell& cell, const Visitor& visitor, Use use) {
    other_ = -1;
    if (use != Use::write && cell.written_at < block_) return "reads shared memory that nobody has written";
    if (cell.written_at == now_ && !(cell.atomic && use == Use::atomic) && unordered(cell.writer, visitor)) {
      other_ = cell.writer.thread;
      return use == Use::read
                 ? "reads shared memory that another thread wrote, without a barrier between them"
                 : "writes shared memory that another thread wrote, without a barrier between them";
    }
    if (use != Use::read) {
      if (cell.read_at == now_ && read_by_others(cell, visitor)) {
        other_ = cell.reader.thread;
        return "writes shared memory that another thread read, without a barrier between them";
      }
      cell.written_at = now_;
      cell.writer = visitor;
      cell.atomic = use == Use::atomic;
    } else {
      const bool again = cell.read_at == now_;
      const bool same_warp = cell.reader.thread / warp == visitor.thread / warp;
      cell.several_warps = again && (cell.several_warps || !same_warp);
      cell.several_lanes = again && (cell.several_lanes || cell.reader.thread != visitor.thread);
      cell.read_at = now_;
      cell.reader = visitor;
    }
    return nullptr;
  }

  std::vector<Cell> cells_;
  std::size_t grain_ = 4;
  uint64_t now_ = 0, block_ = 0;
  int other_ = -1;
};

}  // namespace cuda_double
