// How long a program takes from its start to its first answer: with an engine from a file
// (docs/inference.md), or made of a network and its weights.
//
//   first_answer save FILE NETWORK     writes FILE, an engine, and FILE.weights
//   first_answer load FILE SINCE       SINCE: nanoseconds, as `date +%s%N` gives them before the start
//   first_answer build FILE NETWORK SINCE
//
// Milliseconds since SINCE when main began, the engine was there, and the first and second answer; then the
// most memory that the process had.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <pleat/pleat.h>
#include <sys/resource.h>

#include "pleat/bench/inference_networks.h"
#include "pleat/examples/common/program.h"

using namespace pleat;

namespace {

double milliseconds_since(const char* start) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return 1e-6 * static_cast<double>(now.count() - std::atoll(start));
}

void answer(const std::string& how, const std::string& file, const char* network, const char* since) {
  const double begin = milliseconds_since(since);
  std::optional<bench::InferenceNetwork> made;
  std::optional<Inference> engine;
  if (how == "build") {
    made = bench::make_inference_network(network, 1);
    made->net->load_state_dict(io::read_safetensors(file + ".weights").tensors);
    engine.emplace(*made->net, made->input);
  } else {
    engine.emplace(Inference::load(file));
  }
  const double there = milliseconds_since(since);
  const Tensor image = made ? made->input : ones({1, 3, 64, 64});
  (void)(*engine)(image);
  const double first = milliseconds_since(since);
  (void)(*engine)(image);
  const double second = milliseconds_since(since);
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%.1f %.1f %.1f %.1f %ld MiB\n", begin, there, first, second, usage.ru_maxrss >> 10);
}

void run(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "load" && argc == 4) return answer(how, argv[2], nullptr, argv[3]);
  if (how == "build" && argc == 5) return answer(how, argv[2], argv[3], argv[4]);
  if (how != "save" || argc != 4) throw UsageError("first_answer: see the head of bench/first_answer.cpp");
  const bench::InferenceNetwork made = bench::make_inference_network(argv[3], 1);
  io::write_safetensors(std::string(argv[2]) + ".weights", made.net->state_dict());
  Inference(*made.net, made.input).save(argv[2]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
