#include "pleat/tests/cuda_double/ptx/slots.h"

#include <algorithm>
#include <map>

#include "pleat/tests/cuda_double/ptx/opcode.h"

namespace cuda_double::ptx {
namespace {

/// A bit for each register.
class Set {
 public:
  explicit Set(std::size_t registers) : words_((registers + 63) / 64) {}
  bool has(std::size_t r) const { return (words_[r / 64] >> (r % 64) & 1u) != 0; }
  void add(std::size_t r) { words_[r / 64] |= uint64_t{1} << (r % 64); }
  /// Adds those of `others` that are not in `without`; whether any was new.
  bool add(const Set& others, const Set* without) {
    uint64_t added = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const uint64_t more = others.words_[i] & ~words_[i] & ~(without != nullptr ? without->words_[i] : 0);
      words_[i] |= more;
      added |= more;
    }
    return added != 0;
  }

 private:
  std::vector<uint64_t> words_;
};

/// Instructions of which all run when the first does, but for those that are guarded.
struct Piece {
  uint32_t begin = 0, end = 0;
  std::vector<uint32_t> next;
  Set live_before, live_after, written;
};

bool ends_piece(const Instruction& in) { return in.kind == Kind::control; }

std::vector<uint32_t> targets_of(const Program& program, const Instruction& in, BranchKind kind) {
  if (kind == BranchKind::table) return program.tables[in.target];
  if (kind == BranchKind::branch) return {in.target};
  return {};
}

std::vector<Piece> pieces_of(const Program& program, std::size_t registers) {
  const auto n = static_cast<uint32_t>(program.code.size());
  std::vector<bool> begins(n + 1);
  begins[0] = true;
  for (uint32_t i = 0; i < n; ++i) {
    const Instruction& in = program.code[i];
    if (!ends_piece(in)) continue;
    begins[i + 1] = true;
    for (const uint32_t target : targets_of(program, in, branch_kind(in))) begins[target] = true;
  }
  std::vector<Piece> pieces;
  std::vector<uint32_t> piece_at(n + 1);
  for (uint32_t i = 0; i < n; ++i) {
    if (begins[i]) pieces.push_back({i, i, {}, Set(registers), Set(registers), Set(registers)});
    pieces.back().end = i + 1;
    piece_at[i] = static_cast<uint32_t>(pieces.size() - 1);
  }
  for (uint32_t p = 0; p < pieces.size(); ++p) {
    const Instruction& last = program.code[pieces[p].end - 1];
    const BranchKind kind = branch_kind(last);
    for (const uint32_t target : targets_of(program, last, kind)) pieces[p].next.push_back(piece_at[target]);
    const bool goes_on = kind == BranchKind::none || last.guard != 0;
    if (goes_on && p + 1 < pieces.size()) pieces[p].next.push_back(p + 1);
  }
  return pieces;
}

template <class Function>
void for_read(const Instruction& in, const Function& function) {
  function(in.guard);
  // What a guard keeps from being written stays needed.
  for (unsigned k = in.guard != 0 ? 0 : in.written; k < in.used; ++k) function(in.slot[k]);
}
template <class Function>
void for_written(const Instruction& in, const Function& function) {
  for (unsigned k = 0; k < in.written; ++k) function(in.slot[k]);
}

/// Finds which registers are needed before and after each piece.
void find_live(const Program& program, std::vector<Piece>& pieces) {
  for (Piece& piece : pieces) {
    for (uint32_t i = piece.begin; i < piece.end; ++i) {
      const Instruction& in = program.code[i];
      for_read(in, [&](uint32_t r) {
        if (!piece.written.has(r)) piece.live_before.add(r);
      });
      if (in.guard == 0) for_written(in, [&](uint32_t r) { piece.written.add(r); });
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
      for (const uint32_t next : piece->next)
        if (piece->live_after.add(pieces[next].live_before, nullptr)) {
          piece->live_before.add(piece->live_after, &piece->written);
          changed = true;
        }
  }
}

/// From the first place where a register is needed to the last, as places follow in the program.
struct Span {
  uint32_t number, first = ~0u, last = 0;
};

std::vector<Span> spans_of(const Program& program, const std::vector<Register>& registers) {
  std::vector<Piece> pieces = pieces_of(program, registers.size());
  find_live(program, pieces);
  std::vector<Span> spans(registers.size());
  const auto extend = [&](uint32_t r, uint32_t place) {
    spans[r].first = std::min(spans[r].first, place);
    spans[r].last = std::max(spans[r].last, place);
  };
  for (uint32_t r = 0; r < registers.size(); ++r) spans[r].number = r;
  for (const Piece& piece : pieces) {
    for (uint32_t r = 0; r < registers.size(); ++r) {
      if (piece.live_before.has(r)) extend(r, piece.begin);
      if (piece.live_after.has(r)) extend(r, piece.end);
    }
    for (uint32_t i = piece.begin; i < piece.end; ++i) {
      for_read(program.code[i], [&](uint32_t r) { extend(r, i); });
      for_written(program.code[i], [&](uint32_t r) { extend(r, i); });
    }
  }
  return spans;
}

constexpr std::size_t line = 64;
std::size_t slot_bytes(const Register& one) {
  return one.bytes == 0 ? 4 : std::max<std::size_t>(line, one.bytes * warp_size);
}

/// Places in the file, of which those that are free again are used first.
class File {
 public:
  uint32_t take(std::size_t bytes) {
    std::vector<uint32_t>& idle = idle_[bytes];
    if (!idle.empty()) {
      const uint32_t slot = idle.back();
      idle.pop_back();
      return slot;
    }
    if (bytes < line) return small(bytes);
    const std::size_t begin = end_;
    end_ += bytes;
    return static_cast<uint32_t>(begin);
  }
  void give_back(uint32_t slot, std::size_t bytes) { idle_[bytes].push_back(slot); }
  std::size_t bytes() const { return end_; }

 private:
  uint32_t small(std::size_t bytes) {
    for (std::size_t k = line / bytes - 1; k > 0; --k)
      idle_[bytes].push_back(static_cast<uint32_t>(end_ + k * bytes));
    end_ += line;
    return static_cast<uint32_t>(end_ - line);
  }

  std::map<std::size_t, std::vector<uint32_t>> idle_;
  std::size_t end_ = 0;
};

}  // namespace

void assign_slots(Program& program, const std::vector<Register>& registers) {
  File file;
  std::vector<uint32_t> slots(registers.size());
  for (std::size_t r = 0; r < registers.size(); ++r)
    if (registers[r].fixed) slots[r] = file.take(slot_bytes(registers[r]));
  std::vector<Span> spans = spans_of(program, registers);
  std::erase_if(spans, [&](const Span& span) { return registers[span.number].fixed || span.first == ~0u; });
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  std::multimap<uint32_t, uint32_t> in_use;  // by the end of the span
  for (const Span& span : spans) {
    while (!in_use.empty() && in_use.begin()->first < span.first) {
      const uint32_t r = in_use.begin()->second;
      file.give_back(slots[r], slot_bytes(registers[r]));
      in_use.erase(in_use.begin());
    }
    slots[span.number] = file.take(slot_bytes(registers[span.number]));
    in_use.emplace(span.last, span.number);
  }
  program.file_bytes = file.bytes();
  for (Instruction& in : program.code) {
    in.guard = slots[in.guard];
    for (unsigned k = 0; k < in.used; ++k) in.slot[k] = slots[in.slot[k]];
  }
  for (Fixed& fixed : program.fixed) fixed.slot = slots[fixed.slot];
}

}  // namespace cuda_double::ptx
