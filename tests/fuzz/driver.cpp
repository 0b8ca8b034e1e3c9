// Runs a target where there is no libFuzzer: TARGET [--seconds N] [--seed N] [--save DIR] CORPUS...
//
// CORPUS are folders of inputs, which are run as they are and then changed at random until the time is over,
// or files, which are run once each. The environment's PLEAT_FUZZ_SECONDS counts before --seconds (30).
// Changes depend on the seed (1) alone. An input that crashes, escapes with an error that is not Pleat's or
// takes longer than half a minute is saved, and the status is 1.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);
// Of the sanitizers, where one is linked.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;
using Input = std::vector<uint8_t>;

constexpr std::size_t longest = 1 << 16;
constexpr unsigned slowest = 30;  // seconds

// What a signal handler can reach.
const Input* running = nullptr;
std::array<char, 4096> saved_path{};

void save_running() {
  if (running == nullptr) return;
  const Input* input = running;
  running = nullptr;
  const int file = ::open(saved_path.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0 || ::write(file, input->data(), input->size()) < 0) return;
  ::close(file);
  const char* text = "fuzz: the input is saved in ";
  for (const char* part : {text, static_cast<const char*>(saved_path.data()), "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
}

void on_signal(int signal) {
  const char* text = signal == SIGALRM ? "fuzz: an input takes too long\n" : "fuzz: a signal\n";
  if (::write(STDERR_FILENO, text, std::strlen(text)) >= 0) save_running();
  ::_exit(1);
}

Input read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void run(const Input& input) {
  running = &input;
  ::alarm(slowest);
  // A copy of just this size, so that a sanitizer sees a read beyond its end.
  const Input exact(input);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  running = nullptr;
}

class Mutator {
 public:
  Mutator(uint64_t seed, const std::vector<Input>& corpus) : random_(seed), corpus_(corpus) {}

  Input next() {
    // Most inputs are few changes away from a good one; some wander further.
    if (wandering_.empty() || below(4) != 0) wandering_ = pick();
    for (std::size_t changes = std::size_t{1} << below(4); changes > 0; --changes) change(wandering_);
    if (wandering_.size() > longest) wandering_.resize(longest);
    return wandering_;
  }

 private:
  std::size_t below(std::size_t most) { return random_() % most; }
  const Input& pick() { return corpus_[below(corpus_.size())]; }
  uint8_t byte() {
    constexpr std::array<uint8_t, 16> special = {0,    1,   2,   0x7f, 0x80, 0xfe, 0xff, ' ',
                                                 '\n', '0', '9', '-',  ',',  '"',  '{',  '['};
    return below(2) == 0 ? special[below(special.size())] : static_cast<uint8_t>(below(256));
  }

  void change(Input& input) {
    const std::size_t at = input.empty() ? 0 : below(input.size());
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t left = input.size() - at;
    switch (input.empty() ? 3 : below(10)) {
      case 0:
        *place ^= static_cast<uint8_t>(1U << below(8));
        break;
      case 1:
        *place = byte();
        break;
      case 2:  // a number at an end of its range, of 1 to 8 bytes, in either order
        write_extreme(input, at);
        break;
      case 3: {
        const Input more(1 + below(8), byte());
        input.insert(place, more.begin(), more.end());
        break;
      }
      case 4:
        input.erase(place, place + static_cast<std::ptrdiff_t>(1 + below(std::min<std::size_t>(left, 16))));
        break;
      case 5: {  // a piece once more, somewhere else
        const Input piece(place,
                          place + static_cast<std::ptrdiff_t>(1 + below(std::min<std::size_t>(left, 64))));
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(below(input.size())), piece.begin(),
                     piece.end());
        break;
      }
      case 6: {  // this one's beginning, another one's end
        const Input& other = pick();
        input.erase(place, input.end());
        if (!other.empty())
          input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size())),
                       other.end());
        break;
      }
      case 7:
        if (below(4) == 0) input.erase(place, input.end());
        break;
      case 8:
        replace_digits(input, at);
        break;
      default: {  // a piece of another one over this one
        const Input& other = pick();
        if (other.empty()) break;
        const std::size_t from = below(other.size());
        const std::size_t count = std::min({left, other.size() - from, 1 + below(32)});
        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), count, place);
      }
    }
  }

  void write_extreme(Input& input, std::size_t at) {
    const std::size_t bytes = std::size_t{1} << below(4);
    constexpr std::array<uint64_t, 8> numbers = {
        0, 1, 0x7f, 0x7fff, 0x7fffffff, 0x7fffffffffffffff, ~uint64_t{0}, uint64_t{1} << 32};
    const uint64_t number = numbers[below(numbers.size())] + below(3) - 1;
    const bool swapped = below(2) == 0;
    for (std::size_t i = 0; i < bytes && at + i < input.size(); ++i)
      input[at + i] = static_cast<uint8_t>(number >> (8 * (swapped ? bytes - 1 - i : i)));
  }

  // A number in text, at or after a place.
  void replace_digits(Input& input, std::size_t at) {
    const auto is_digit = [](uint8_t c) { return c >= '0' && c <= '9'; };
    const auto begin = std::find_if(input.begin() + static_cast<std::ptrdiff_t>(at), input.end(), is_digit);
    const auto end = std::find_if_not(begin, input.end(), is_digit);
    constexpr std::array<const char*, 14> numbers = {"0",
                                                     "-1",
                                                     "1",
                                                     "2147483648",
                                                     "4294967296",
                                                     "9223372036854775807",
                                                     "-9223372036854775808",
                                                     "9223372036854775808",
                                                     "18446744073709551615",
                                                     "99999999999999999999999",
                                                     "1e999",
                                                     "-0",
                                                     "0.5",
                                                     "nan"};
    const std::string number = numbers[below(numbers.size())];
    const auto place = input.erase(begin, end);
    input.insert(place, number.begin(), number.end());
  }

  std::mt19937_64 random_;
  const std::vector<Input>& corpus_;
  Input wandering_;
};

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(stderr, "fuzz: %s\nusage: TARGET [--seconds N] [--seed N] [--save DIR] CORPUS...\n",
               problem.c_str());
  std::exit(2);
}

uint64_t number_of(const std::string& option, const char* text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || *text == '-') usage(option + " needs a whole number, got " + text);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seconds = 30, seed = 1;
  fs::path save = ".";
  std::vector<Input> corpus;
  bool files_only = true;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--", 0) == 0) {
      if (i + 1 == argc) usage(argument + " needs a value");
      const char* value = argv[++i];
      if (argument == "--seconds")
        seconds = number_of(argument, value);
      else if (argument == "--seed")
        seed = number_of(argument, value);
      else if (argument == "--save")
        save = value;
      else
        usage("there is no option " + argument);
    } else if (fs::is_directory(argument)) {
      files_only = false;
      std::vector<fs::path> paths;
      for (const auto& entry : fs::directory_iterator(argument)) paths.push_back(entry.path());
      std::sort(paths.begin(), paths.end());
      for (const fs::path& path : paths) corpus.push_back(read_file(path));
    } else if (fs::exists(argument)) {
      corpus.push_back(read_file(argument));
    } else {
      usage(argument + " does not exist");
    }
  }
  if (corpus.empty()) usage("name a folder of inputs");
  if (const char* given = std::getenv("PLEAT_FUZZ_SECONDS")) seconds = number_of("PLEAT_FUZZ_SECONDS", given);

  const fs::path target = fs::path(argv[0]).filename();
  std::snprintf(saved_path.data(), saved_path.size(), "%s/%s-crash-%d", save.c_str(), target.c_str(),
                ::getpid());
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_running);
  } else {
    // What takes more is out of proportion. Sanitizers reserve terabytes.
    const rlimit limit{rlim_t{2} << 30, rlim_t{2} << 30};
    ::setrlimit(RLIMIT_AS, &limit);
  }

  for (const Input& input : corpus) run(input);
  std::size_t runs = corpus.size();
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Mutator mutator(seed, corpus);
  while (!files_only && elapsed() < static_cast<double>(seconds)) {
    run(mutator.next());
    ++runs;
  }
  ::alarm(0);
  std::printf("%s: %zu runs in %.1f s, seed %llu, nothing found\n", target.c_str(), runs, elapsed(),
              static_cast<unsigned long long>(seed));
  return 0;
}
