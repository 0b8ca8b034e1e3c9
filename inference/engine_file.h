// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/inference/program.h"
#include "pleat/ops/conv/frozen_conv.h"
#include "pleat/ops/quantized/quantized_conv.h"

/// Engines as files: programs that are folded, constants, and for the processor that saved them what plans
/// are made of.

namespace pleat::inference {

/// Of a program, for inputs of these shapes.
struct SavedPlan {
  std::size_t program = 0;
  std::vector<Shape> inputs = {};
  std::vector<ops::FrozenConv::Choice> choices = {};
  std::vector<SharedBlocks::Block> prepared = {};  ///< as SharedBlocks lists them
};

struct SavedEngine {
  bool measure = true;
  int64_t most_plans = 1;
  std::vector<Program> programs = {};
  std::vector<SavedPlan> plans = {};
  /// Of a program whose plans compute in int8: how values are held.
  std::optional<std::size_t> quantized = {};
  std::vector<std::optional<ops::Quantization>> quantizations = {};
  /// Whether it was saved for this processor and version; else choices and what is prepared are left out.
  bool is_prepared = true;
};

/// Throws FileError where the file cannot be written.
void write_engine(const std::filesystem::path& path, const SavedEngine& engine);

/// What is large stays in the file, which is mapped. Throws FileError, naming the file, for what is no engine.
/// Calls read what is there before them; their options and shapes are checked where plans are made, and in a
/// plan's first run.
SavedEngine read_engine(const std::filesystem::path& path);
/// "Inference::load: 'path'", which errors begin with.
std::string name_of_engine(const std::filesystem::path& path);

}  // namespace pleat::inference
