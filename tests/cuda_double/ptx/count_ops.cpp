// What functions ask of a GPU, counted in nvcc's PTX: instructions and bytes an element, against the least.
//   cuda_ptx_count [--match REGEX] [--kernels] [--registers FILE] [--expected FILE] [--write FILE]
// --kernels: what each kernel executed, under each row; with --registers also how many of its warps a
// multiprocessor has room for (FILE: what `tests/local_memory.py LIBRARY --registers` prints).
// --expected: fails where a row asks for more than FILE has. --write: writes such a file.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "pleat/pleat.h"
#include "pleat/tests/cuda_double/ptx/count_rows.h"
#include "pleat/tests/cuda_double/ptx/counts.h"

using namespace pleat;
using namespace pleat::test;
namespace ptx = cuda_double::ptx;

namespace {

// Of an H100 SXM (data sheet): 132 multiprocessors of 4 schedulers at 1.755 GHz, and 3.35 TB/s of memory.
constexpr double warp_instructions_per_second = 132 * 4 * 1.755e9, bytes_per_second = 3.35e12;

double bytes_of(const Tensors& all) {
  double bytes = 0;
  for (const Tensor& x : all)
    if (x.defined()) bytes += static_cast<double>(x.numel() * size_of(x.dtype()));
  return bytes;
}
double most_elements(const Tensors& all) {
  int64_t most = 1;
  for (const Tensor& x : all) most = std::max(most, x.defined() ? x.numel() : 0);
  return static_cast<double>(most);
}

/// What a row comes to.
struct Figures {
  double launches = 0, instructions = 0, sectors = 0, accesses = 0, conflicts = 0;
  double elements = 0, least_bytes = 0;

  /// The longest of what each kernel takes for its instructions and for its bytes, on an idle H100 whose
  /// memory is kept busy; a launch is free.
  double microseconds = 0;

  double allocated = 0;  ///< bytes asked of the GPU's memory at most at once, results among them

  double per_element() const { return instructions / elements; }
  double bytes_per_element() const { return 32 * sectors / elements; }
  double of_least() const { return 32 * sectors / least_bytes; }
  /// How many times as long the instructions take as the least bytes.
  double of_memory_bound() const {
    return (instructions / 32 / warp_instructions_per_second) / (least_bytes / bytes_per_second);
  }
};

Figures figures_of(const Tensors& read, const Tensors& written, double elements, double least_bytes) {
  Figures f;
  for (const ptx::KernelCount& each : ptx::kernel_counts()) {
    f.launches += static_cast<double>(each.launches);
    double warps = 0;
    for (const uint64_t some : each.warp_instructions) warps += static_cast<double>(some);
    f.instructions += 32 * warps;
    f.microseconds += 1e6 * std::max(warps / warp_instructions_per_second,
                                     32 * static_cast<double>(each.sectors) / bytes_per_second);
    f.sectors += static_cast<double>(each.sectors);
    f.accesses += static_cast<double>(each.shared_accesses);
    f.conflicts += static_cast<double>(each.conflicts);
  }
  Tensors all = read;
  all.insert(all.end(), written.begin(), written.end());
  f.least_bytes = least_bytes > 0 ? least_bytes : bytes_of(all);
  f.elements = elements > 0 ? elements : most_elements(all);
  return f;
}

std::string header() {
  return "instructions  of memory's       bytes  of the            conflicts  microseconds    allocated\n"
         "  an element         time  an element   least  launches  an access      at least   an element  "
         "row\n";
}
std::string line_of(const std::string& title, const Figures& f) {
  char text[200];
  std::snprintf(text, sizeof text, "%12.1f %12.2f %11.1f %7.2f %9.0f %10.3f %13.3f %12.1f  ", f.per_element(),
                f.of_memory_bound(), f.bytes_per_element(), f.of_least(), f.launches,
                f.accesses == 0 ? 0 : f.conflicts / f.accesses, f.microseconds, f.allocated / f.elements);
  return text + title + '\n';
}

/// Of a file of lines "instructions bytes launches title".
std::map<std::string, std::array<double, 3>> read_expected(const std::string& file) {
  std::map<std::string, std::array<double, 3>> expected;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::array<double, 3> numbers{};
    std::string title;
    if (line.starts_with('#') || !(words >> numbers[0] >> numbers[1] >> numbers[2])) continue;
    std::getline(words >> std::ws, title);
    expected[title] = numbers;
  }
  return expected;
}

/// Of a file of lines "registers blocks frame kernel".
std::map<std::string, uint64_t> read_registers(const std::string& file) {
  std::map<std::string, uint64_t> registers;
  std::ifstream in(file);
  if (!file.empty() && !in) std::cerr << "cannot read " << file << '\n', std::exit(2);
  uint64_t count = 0, blocks = 0, frame = 0;
  for (std::string name; in >> count >> blocks >> frame && std::getline(in >> std::ws, name);)
    registers[name] = count;
  return registers;
}

class Table {
 public:
  Table(const std::string& match, bool kernels, const std::string& registers)
      : match_(match), kernels_(kernels), registers_(read_registers(registers)) {}

  void add(const Row& row, const Setting& s) {
    const std::string setting =
        std::string(name(s.dtype)) + (!row.of_images                         ? ""
                                      : s.format == MemoryFormat::contiguous ? ", NCHW"
                                                                             : ", NHWC");
    const std::string forward = row.name + ", " + setting, backward = row.name + ", backward, " + setting;
    const bool wants_forward = std::regex_search(forward, match_),
               wants_backward = std::regex_search(backward, match_);
    if (!wants_forward && !wants_backward) return;
    manual_seed(1);
    CountedCall call = row.make(s);
    Tensors leaves(call.inputs.begin(), call.inputs.begin() + call.differentiated);
    for (Tensor& x : leaves) x = x.detach();
    for (std::size_t i = 0; i < leaves.size(); ++i) call.inputs[i] = leaves[i];
    for (const Tensor& x : leaves) x.set_requires_grad(true);
    count([&] { return call.function(call.inputs); }, call.inputs, wants_forward ? forward : "", call, 0);
    if (leaves.empty() || !wants_backward) return;
    const Tensors y = call.function(call.inputs);
    Tensors dy;
    for (const Tensor& each : y)
      dy.push_back(randn(each.shape(), {.dtype = each.dtype(), .device = "cuda"}).to(each.memory_format()));
    Tensors read = call.inputs;
    read.insert(read.end(), dy.begin(), dy.end());
    count(
        [&] {
          const Grads all = grad(y, leaves, Grads(dy.begin(), dy.end()));
          return Tensors(all.begin(), all.end());
        },
        read, backward, call, 1);
  }

  const std::map<std::string, Figures>& figures() const { return figures_; }

 private:
  template <class F>
  void count(const F& run, const Tensors& read, const std::string& title, const CountedCall& call,
             std::size_t pass) {
    const Device gpu = "cuda";
    cuda::synchronize();
    ptx::reset_kernel_counts();
    reset_peak_statistics(gpu);
    const int64_t before = allocator_statistics(gpu).allocated;
    const Tensors written = run();
    cuda::synchronize();
    if (title.empty()) return;
    Figures f = figures_of(read, written, call.elements[pass], call.least_bytes[pass]);
    f.allocated = static_cast<double>(allocator_statistics(gpu).peak - before);
    figures_[title] = f;
    std::cout << line_of(title, f) << std::flush;
    if (kernels_) std::cout << ptx::table_of(ptx::kernel_counts(), registers_) << '\n';
  }

  std::regex match_;
  bool kernels_;
  std::map<std::string, uint64_t> registers_;
  std::map<std::string, Figures> figures_;
};

/// `all`: no row was left out, so that the file must not have others.
int compare(const std::map<std::string, Figures>& figures, const std::string& file, bool all) {
  const auto expected = read_expected(file);
  int wrong = 0;
  for (const auto& [title, numbers] : expected)
    if (all && figures.count(title) == 0) {
      std::cout << "not counted any more: " << title << '\n';
      ++wrong;
    }
  for (const auto& [title, f] : figures) {
    const auto at = expected.find(title);
    if (at == expected.end()) {
      std::cout << "no figures of: " << title << '\n';
      ++wrong;
      continue;
    }
    const std::array<double, 3> now = {f.per_element(), f.bytes_per_element(), f.launches};
    for (std::size_t i = 0; i < now.size(); ++i)
      if (now[i] > at->second[i] * 1.01 + 0.06) {
        const char* const what[] = {"instructions an element", "bytes an element", "launches"};
        std::cout << title << ": " << now[i] << ' ' << what[i] << ", " << at->second[i] << " are expected\n";
        ++wrong;
      }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  bool kernels = false;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--kernels")
      kernels = true;
    else if ((name == "--match" || name == "--registers" || name == "--expected" || name == "--write") &&
             i + 1 < argc)
      options[name] = argv[++i];
    else
      return std::cerr
                 << "usage: " << argv[0]
                 << " [--match REGEX] [--kernels] [--registers FILE] [--expected FILE] [--write FILE]\n",
             2;
  }
  ptx::start_counting();
  std::cout << header();
  Table table(options["--match"], kernels, options["--registers"]);
  for (const Row& row : rows_to_count())
    for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last})
      for (const DType dtype : {float32, float16, bfloat16})
        if (format == MemoryFormat::contiguous || row.of_images) table.add(row, {dtype, format});
  if (const std::string file = options["--write"]; !file.empty()) {
    std::ofstream out(file);
    out << "# " NVCC
           ": instructions an element, bytes an element and launches of each row, by cuda_ptx_count "
           "--write.\n";
    for (const auto& [title, f] : table.figures()) {
      char text[64];
      std::snprintf(text, sizeof text, "%.1f %.1f %.0f ", f.per_element(), f.bytes_per_element(), f.launches);
      out << text << title << '\n';
    }
  }
  const std::string expected = options["--expected"];
  return expected.empty() ? 0 : compare(table.figures(), expected, options["--match"].empty());
}
