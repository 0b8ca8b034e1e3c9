#include "pleat/tests/cuda_double/ptx/counts.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>

namespace cuda_double::ptx {
namespace {

struct Books {
  std::mutex mutex;
  bool open = false;
  struct Page {
    Counter counter;
    std::shared_ptr<const Program> program;
  };
  std::map<std::string, Page> pages;  // by the kernel's symbol

  Books();
};
Books& books() {
  static auto* result = new Books;
  return *result;
}

void write_table() { std::ofstream(std::getenv("PLEAT_PTX_COUNTS")) << table_of(kernel_counts()); }
Books::Books() {
  const char* const file = std::getenv("PLEAT_PTX_COUNTS");
  if (file == nullptr || *file == '\0') return;
  open = true;
  std::atexit(write_table);
}

/// Whether it is "mov.b32 %f1, %r2" or its like: only PTX has registers of types.
bool is_renaming(std::string_view line) {
  const std::size_t to = line.find('%'), from = line.find('%', to + 1);
  if (!line.starts_with("mov.b") || from == line.npos || line.find('{') != line.npos) return false;
  const auto type = [&](std::size_t at) {
    return line.substr(at, line.find_first_of("0123456789", at) - at);
  };
  return type(to) != type(from);
}

KernelCount summed(const Counter& counter, const Program& program) {
  KernelCount result;
  result.name = program.name;
  result.symbol = program.symbol;
  result.launches = counter.launches;
  result.threads = counter.threads;
  result.blocks = counter.blocks;
  result.shared_bytes = counter.shared_bytes;
  result.local_bytes = program.frame_bytes;
  for (std::size_t i = 0; i < counter.of.size(); ++i) {
    const InstructionCount& each = counter.of[i];
    if (is_renaming(program.lines[program.code[i].line])) continue;
    const auto kind = static_cast<std::size_t>(program.code[i].kind);
    result.thread_instructions[kind] += each.threads;
    result.warp_instructions[kind] += each.warps;
    result.sectors += each.sectors;
    result.fewest_sectors += each.fewest;
    result.shared_accesses += each.accesses;
    result.conflicts += each.passes;
    result.divergences += each.divergences;
  }
  return result;
}

double ratio(uint64_t a, uint64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }

/// Without what all names have, and without parameters.
std::string short_name(std::string name) {
  for (const char* const part : {"void ", "pleat::", "(anonymous namespace)::", "ops::"})
    for (std::size_t at = 0; (at = name.find(part)) != std::string::npos;)
      name.erase(at, std::string(part).size());
  if (const std::size_t parameters = name.rfind(">("); parameters != std::string::npos)
    name.erase(parameters + 1);
  return name;
}

/// How many warps of the kernel a multiprocessor of compute capability 9.0 runs at once: of 64 warps, 32
/// blocks, 227 kB of shared memory of which each block takes 1 besides, and 65,536 registers, which a warp
/// takes by 256 (CUDA C++ Programming Guide, "Compute Capabilities").
uint64_t resident_warps(const KernelCount& kernel, uint64_t registers) {
  const uint64_t warps = (kernel.threads / kernel.blocks + warp_size - 1) / warp_size;
  uint64_t blocks = std::min<uint64_t>({32, 64 / warps, 233'472 / (kernel.shared_bytes + 1024)});
  if (registers > 0) blocks = std::min(blocks, 65'536 / ((registers * warp_size + 255) / 256 * 256) / warps);
  return blocks * warps;
}

/// How many accesses to global memory each of so many warps must have under way so that memory is never idle:
/// an access takes about 480 cycles (arXiv 2402.13499, table IV), in which a multiprocessor's part of 3.35
/// TB/s at 1.755 GHz is 6,940 bytes.
double accesses_under_way(const KernelCount& kernel, uint64_t warps) {
  const double bytes =
      32 * ratio(kernel.sectors, kernel.warp_instructions[static_cast<std::size_t>(Kind::global)]);
  return bytes == 0 || warps == 0 ? 0 : 6'940 / (bytes * static_cast<double>(warps));
}

}  // namespace

uint64_t KernelCount::all_thread_instructions() const {
  return std::accumulate(thread_instructions.begin(), thread_instructions.end(), uint64_t{0});
}

void start_counting() {
  const std::lock_guard guard(books().mutex);
  books().open = true;
}
void reset_kernel_counts() {
  const std::lock_guard guard(books().mutex);
  books().pages.clear();
}

Counter* counter_of(const std::shared_ptr<const Program>& program) {
  const std::lock_guard guard(books().mutex);
  if (!books().open) return nullptr;
  Books::Page& page = books().pages[program->symbol];
  page.program = program;
  page.counter.of.resize(program->code.size());
  return &page.counter;
}

std::vector<KernelCount> kernel_counts() {
  const std::lock_guard guard(books().mutex);
  std::vector<KernelCount> result;
  for (const auto& [symbol, page] : books().pages) result.push_back(summed(page.counter, *page.program));
  std::sort(result.begin(), result.end(),
            [](const KernelCount& a, const KernelCount& b) { return a.name < b.name; });
  return result;
}

std::string table_of(const std::vector<KernelCount>& counts,
                     const std::map<std::string, uint64_t>& registers) {
  std::string result =
      "launches    threads  instructions per thread: all, integer, real, conversion, move, memory, control"
      "   sectors/fewest  conflicts/access  divergences/warp  shared  local  registers"
      "  warps  accesses under way  kernel\n";
  for (const KernelCount& each : counts) {
    const auto per_thread = [&](std::initializer_list<Kind> some) {
      uint64_t all = 0;
      for (const Kind kind : some) all += each.thread_instructions[static_cast<std::size_t>(kind)];
      return ratio(all, each.threads);
    };
    const auto known = registers.find(each.name);
    const uint64_t its_registers = known == registers.end() ? 0 : known->second;
    const uint64_t warps = resident_warps(each, its_registers);
    std::array<char, 256> line{};
    std::snprintf(
        line.data(), line.size(),
        "%8llu %10llu %9.1f %8.1f %7.1f %7.1f %7.1f %7.1f %7.1f %8.3f %8.3f %8.2f %6zu %6zu %10llu %6llu "
        "%19.2f  ",
        static_cast<unsigned long long>(each.launches), static_cast<unsigned long long>(each.threads),
        ratio(each.all_thread_instructions(), each.threads), per_thread({Kind::integer}),
        per_thread({Kind::real}), per_thread({Kind::conversion}), per_thread({Kind::move}),
        per_thread({Kind::global, Kind::shared, Kind::local, Kind::parameter}),
        per_thread({Kind::control, Kind::meeting}), ratio(each.sectors, each.fewest_sectors),
        ratio(each.conflicts, each.shared_accesses), ratio(each.divergences * warp_size, each.threads),
        each.shared_bytes, each.local_bytes, static_cast<unsigned long long>(its_registers),
        static_cast<unsigned long long>(warps), accesses_under_way(each, warps));
    result += line.data() + short_name(each.name) + "\n";
  }
  return result;
}

}  // namespace cuda_double::ptx
