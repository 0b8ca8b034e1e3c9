#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/core/random/random.h"
#include "pleat/nn/state_dict.h"

/// Checkpoints: files from which a training run goes on with the same bits.
///
///   train::Checkpoints checkpoints{"runs/mine/checkpoints", {.maximize = true}};  // of the accuracy
///   checkpoints.add("model", net);
///   checkpoints.add("optimizer", adam);
///   checkpoints.add("schedule", schedule);
///   checkpoints.add("loader", loader);
///   if (const auto latest = train::latest_checkpoint("runs/mine/checkpoints")) checkpoints.load(*latest);
///   ... checkpoints.save({.step = step, .metric = accuracy});

namespace pleat::train {

/// What a file holds. It is a safetensors file (io/safetensors.h) with tensors "model/conv.weight",
/// "optimizer/param.0.step" ... Its metadata entry "pleat.checkpoint" is JSON with all else and a
/// CRC-32 of each tensor, the entry "pleat.checkpoint.crc32" the CRC-32 of that text.
struct Checkpoint {
  std::filesystem::path file;
  int64_t step = 0;
  std::optional<double> metric;
  std::map<std::string, std::string> metadata;  ///< of the run: options, versions ...
  std::map<std::string, nn::StateDict> parts;   ///< on the CPU
  /// Why newer files were passed over: they are damaged. For the user to see.
  std::vector<std::string> damaged = {};
};

/// All that a file holds. Throws FileError when it cannot be read, when it is no checkpoint, or when
/// it is damaged: a tensor's checksum or that of the metadata differs.
Checkpoint read_checkpoint(const std::filesystem::path& file);
/// The same without the tensors, which are not checked either: the parts are empty.
Checkpoint read_checkpoint_metadata(const std::filesystem::path& file);
/// Written beside, flushed to disk and renamed, as every file of Pleat. Throws FileError; ValueError
/// when names or metadata are not UTF-8.
void write_checkpoint(const Checkpoint& checkpoint);

/// The newest checkpoint in a folder that is not damaged; none where the folder has none or does not
/// exist. Throws FileError when all are damaged, with what was found in each.
std::optional<Checkpoint> latest_checkpoint(const std::filesystem::path& folder);

/// What has a state: modules, optimisers, schedules, scalers, loaders, averages of weights, scores.
template <class T>
concept Stateful = requires(T& part, const T& same, const nn::StateDict& state) {
  { same.state_dict() } -> std::convertible_to<nn::StateDict>;
  part.load_state_dict(state);
};

struct CheckpointsOptions {
  int64_t keep = 3;  ///< so many of the newest are kept ...
  /// ... and that with the greatest metric, as an accuracy, or (false) with the least, as a loss. Any where
  /// save() is given none.
  Required<bool> maximize;
  double seconds = 600;  ///< between two, where is_due() decides
  /// false: save() asks the parts for their state and writes nothing. For the processes of a job that only
  /// have a share of the state (dist::ShardedOptimizer): all of them save and load, and one writes. They must
  /// do it after the same step, of which is_due() by the clock of each knows nothing: ask one of them.
  bool writes = true;
  /// Stored in each file.
  std::map<std::string, std::string> metadata = {};
};

struct SaveOptions {
  int64_t step = 0;                   ///< of the whole run
  std::optional<double> metric = {};  ///< by which the best is chosen; NaN is never the best
};

/// Saves the parts of a run into the files checkpoint-000001.safetensors, checkpoint-000002... of a
/// folder, and loads them.
class Checkpoints {
 public:
  /// The default generator of this thread is the part "random". The folder is
  /// made by the first save. Throws ValueError when `keep` is below 1 or `seconds` negative; FileError
  /// when there is a file of the folder's name.
  Checkpoints(std::filesystem::path folder, CheckpointsOptions options);
  /// Waits for the file that is being written. An error of writing is lost here: wait() throws it.
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// Refers to the part, which must stay where it is. Throws ValueError when the name is empty, has a
  /// '/' or is taken.
  template <Stateful T>
  void add(const std::string& name, T& part) {
    add_part(name, {.state = [&part] { return nn::StateDict(part.state_dict()); },
                    .load = [&part](const nn::StateDict& state) { part.load_state_dict(state); }});
  }
  void add(const std::string& name, Generator& generator);

  /// Asks all parts for their state, waits until the file before this one is on disk, and returns while a
  /// thread writes a copy and removes the files that are not kept. Throws FileError when the file before it
  /// could not be written, or the folder cannot be made.
  void save(SaveOptions options);
  /// Waits until the last checkpoint is on disk. Throws FileError when it could not be written.
  void wait();
  /// Whether `seconds` have passed since the last save or, before the first, the construction.
  bool is_due() const;

  /// Gives each part its state. Throws ValueError, naming them, when the checkpoint has other parts
  /// than were added, and what a part's load_state_dict throws; all parts are then as before.
  void load(const Checkpoint& checkpoint);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  /// How a part is asked for its state, and given one.
  struct Access {
    std::function<nn::StateDict()> state;
    std::function<void(const nn::StateDict&)> load;
  };
  void add_part(const std::string& name, Access part);
  /// Removes what is not kept.
  void remove_old() const;

  std::filesystem::path folder_;
  CheckpointsOptions options_;
  std::map<std::string, Access> parts_;
  double saved_;  ///< when, in seconds
  struct Writing;
  std::shared_ptr<Writing> writing_;  ///< null: nothing is being written
};

}  // namespace pleat::train
