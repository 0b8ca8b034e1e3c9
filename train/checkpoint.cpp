// The run around checkpoint files: what is saved when, which files stay, and what a run goes on from. Files
// are written by a thread of their own, one at a time.
#include "pleat/train/checkpoint.h"

#include <algorithm>
#include <bit>
#include <future>
#include <set>
#include <utility>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/make_folder.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/train/clock.h"

namespace pleat::train {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view prefix = "checkpoint-", suffix = ".safetensors";

/// The number in a checkpoint's name; none for other files.
std::optional<int64_t> number_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix))
    return {};
  const std::string digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  if (digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos) return {};
  return std::stoll(digits);
}

/// The checkpoints in a folder by number.
std::map<int64_t, fs::path> files_in(const fs::path& folder) {
  std::map<int64_t, fs::path> files;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    if (const auto number = number_of(file->path())) files.emplace(*number, file->path());
  return files;
}

/// Copies on the CPU, which training does not change.
nn::StateDict copied(const nn::StateDict& state) {
  const NoGrad off_the_tape;
  nn::StateDict copies;
  for (const auto& [name, tensor] : state)
    copies.emplace(name, tensor.device().is_cpu() ? tensor.clone() : ops::to_device(tensor, Device{}));
  return copies;
}

/// The state of a generator.
nn::StateDict state_of(const Generator& generator) {
  const std::vector<int64_t> numbers = {std::bit_cast<int64_t>(generator.seed()),
                                        std::bit_cast<int64_t>(generator.draws())};
  return {{"seed_and_draws", from_vector(numbers, {2}, Device{})}};
}

void load_generator(Generator& generator, const nn::StateDict& state) {
  const auto found = state.find("seed_and_draws");
  check<ValueError>(state.size() == 1 && found != state.end() && found->second.shape() == Shape{2} &&
                        found->second.dtype() == int64,
                    "Generator: the state must be \"seed_and_draws\", two of int64");
  const auto numbers = found->second.to_vector<int64_t>();
  generator.set_seed(std::bit_cast<uint64_t>(numbers[0]));
  generator.set_draws(std::bit_cast<uint64_t>(numbers[1]));
}

}  // namespace

std::optional<Checkpoint> latest_checkpoint(const fs::path& folder) {
  const std::map<int64_t, fs::path> files = files_in(folder);
  std::vector<std::string> damaged;
  for (auto file = files.rbegin(); file != files.rend(); ++file) try {
      Checkpoint checkpoint = read_checkpoint(file->second);
      checkpoint.damaged = std::move(damaged);
      return checkpoint;
    } catch (const FileError& error) {
      damaged.push_back(error.what());
    }
  std::string all;
  for (const std::string& problem : damaged) all += "\n  " + problem;
  check<FileError>(damaged.empty(), "latest_checkpoint: no checkpoint in '{}' can be read:{}",
                   folder.string(), all);
  return {};
}

Checkpoints::Checkpoints(fs::path folder, CheckpointsOptions options)
    : folder_(std::move(folder)), options_(std::move(options)), saved_(now()) {
  check<ValueError>(options_.keep >= 1, "Checkpoints: keep must be at least 1, got {}", options_.keep);
  check<ValueError>(options_.seconds >= 0, "Checkpoints: seconds must not be negative, got {}",
                    options_.seconds);
  std::error_code error;
  check<FileError>(!fs::exists(folder_, error) || fs::is_directory(folder_, error),
                   "Checkpoints: '{}' must be a folder", folder_.string());
  add("random", default_generator());
}

struct Checkpoints::Writing {
  ProcessMark process;
  std::future<void> done;
};

Checkpoints::~Checkpoints() {
  if (writing_ && !writing_->process.is_here()) keep_for_ever(std::move(writing_));
}

void Checkpoints::add_part(const std::string& name, Access part) {
  check<ValueError>(!name.empty() && name.find('/') == std::string::npos,
                    "Checkpoints: the name of a part must not be empty and have no '/', got \"{}\"", name);
  check<ValueError>(parts_.emplace(name, std::move(part)).second,
                    "Checkpoints: there is a part \"{}\" already", name);
}

void Checkpoints::add(const std::string& name, Generator& generator) {
  add_part(name, {.state = [&generator] { return state_of(generator); },
                  .load = [&generator](const nn::StateDict& state) { load_generator(generator, state); }});
}

void Checkpoints::save(SaveOptions options) {
  // Before anything that may fail in one process alone: a part may ask other processes for its state.
  std::map<std::string, nn::StateDict> states;
  for (const auto& [name, part] : parts_) states.emplace(name, part.state());
  saved_ = now();
  if (!options_.writes) return;
  wait();
  for (auto& [name, state] : states) state = copied(state);
  make_folder("Checkpoints", folder_);
  const std::map<int64_t, fs::path> before = files_in(folder_);
  const int64_t number = before.empty() ? 1 : before.rbegin()->first + 1;
  Checkpoint checkpoint{.file = folder_ / fmt::format("{}{:06}{}", prefix, number, suffix),
                        .step = options.step,
                        .metric = options.metric,
                        .metadata = options_.metadata,
                        .parts = std::move(states)};
  auto writing = std::make_shared<Writing>();
  writing->done = std::async(std::launch::async, [this, checkpoint = std::move(checkpoint)] {
    const SerialScope serial;  // the other cores belong to the network
    write_checkpoint(checkpoint);
    remove_old();
  });
  writing_ = std::move(writing);
}

void Checkpoints::remove_old() const {
  const std::map<int64_t, fs::path> files = files_in(folder_);
  fs::path best;
  std::optional<double> best_metric;
  for (const auto& [number, file] : files) try {
      const std::optional<double> metric = read_checkpoint_metadata(file).metric;
      if (!metric) continue;
      if (best_metric && (options_.maximize.get() ? *metric <= *best_metric : *metric >= *best_metric))
        continue;
      best_metric = metric;
      best = file;
    } catch (const FileError&) {  // damaged: not the best
    }
  auto newest = files.rbegin();
  for (int64_t kept = 0; newest != files.rend(); ++newest, ++kept) {
    std::error_code ignored;  // what cannot be removed is tried again the next time
    if (kept >= options_.keep && newest->second != best) fs::remove(newest->second, ignored);
  }
}

void Checkpoints::wait() {
  const std::shared_ptr<Writing> writing = std::exchange(writing_, nullptr);
  if (!writing) return;
  if (writing->process.is_here())
    writing->done.get();
  else
    keep_for_ever(writing);  // the parent waits for its file
}

bool Checkpoints::is_due() const { return now() - saved_ >= options_.seconds; }

void Checkpoints::load(const Checkpoint& checkpoint) {
  std::string problems;
  for (const auto& [name, part] : parts_)
    if (!checkpoint.parts.contains(name)) problems += "\n  missing     " + name;
  for (const auto& [name, state] : checkpoint.parts)
    if (!parts_.contains(name)) problems += "\n  unexpected  " + name;
  check<ValueError>(problems.empty(), "Checkpoints: '{}' does not have the parts that were added:{}",
                    checkpoint.file.string(), problems);
  // The names of the parts that were loaded, with their states before.
  std::vector<std::pair<std::string, nn::StateDict>> loaded;
  try {
    for (const auto& [name, part] : parts_) {
      loaded.emplace_back(name, copied(part.state()));
      part.load(checkpoint.parts.at(name));
    }
  } catch (...) {
    for (const auto& [name, state] : loaded) parts_.at(name).load(state);
    try {
      throw;
    } catch (const ValueError& error) {
      fail<ValueError>("Checkpoints: '{}', part \"{}\": {}", checkpoint.file.string(), loaded.back().first,
                       error.what());
    }
  }
  saved_ = now();
}

}  // namespace pleat::train
