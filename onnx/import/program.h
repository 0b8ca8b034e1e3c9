// Private header: not installed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "pleat/onnx/import/node_call.h"
#include "pleat/onnx/import/operators.h"
#include "pleat/onnx/model_file.h"

/// A graph as it is run: its values have numbers, and each node what computes it.

namespace pleat::onnx::imported {

/// One node, or a module in its place.
struct Step {
  std::shared_ptr<const Node> node;
  const Operator* op = nullptr;  ///< none: a module computes it
  int64_t opset = 0;
  std::vector<int> inputs, outputs;  ///< numbers of values; -1: none
  std::map<std::string, std::shared_ptr<const Block>, std::less<>> blocks = {};
  std::vector<int> last_uses = {};  ///< values that no later step reads
  std::string path = {};            ///< of the module that it belongs to, as far as the file says
  bool fills = false;  ///< makes an operand of a size, as Expand does: run where it is seen, not on the host
  int layer = -1;      ///< the module of the network that computes it
};

struct Block {
  std::vector<Step> steps;
  std::vector<int> inputs, outputs;
};

/// A tensor that the network keeps.
struct State {
  std::string name;
  int value;
  bool is_buffer;
  Tensor tensor;
  DType in_file = tensor.dtype();
};

struct Program {
  Block main;
  int values = 0;
  std::vector<std::pair<int, GraphValue>> constants;
  std::vector<State> state;
  std::vector<FilePort> inputs, outputs;
  DType floating = float32;  ///< the type of the file's parameters
};

/// Throws ValueError for a graph that is none (a value that nothing gives, or two nodes), and one that lists
/// all operators that are not known, with their nodes.
Program make_program(ModelFile file, const std::string& name, int64_t memory_limit);

/// Calls f(value, inside) for what steps read and the block gives; `inside` for the latter, and in blocks of
/// its steps.
template <class F>
void for_reads(const Block& block, const F& f, bool inside = false) {
  for (const Step& step : block.steps) {
    for (const int value : step.inputs) f(value, inside);
    for (const auto& [name, inner] : step.blocks) for_reads(*inner, f, true);
  }
  for (const int value : block.outputs) f(value, true);
}

/// Makes one step of several nodes that are one function of Pleat.
void join_steps(Program& program);

/// Sets the values that no later step reads, after steps were taken out.
void find_last_uses(Block& block);

/// Constants as operands beside tensors of another type or device; for threads that run a network at once.
class Operands {
 public:
  Tensor get(const GraphValue& constant, DType dtype, Device device);

 private:
  std::mutex mutex_;
  std::map<std::tuple<uint64_t, DType, std::string>, std::pair<Tensor, Tensor>> known_;
};

/// One run of a program, or of a step of it.
class Interpreter final : public Runtime {
 public:
  struct Options {
    bool training;
    DType in_file, now;  ///< the type of the parameters in the file, and as it is
    Device device;
    std::shared_ptr<Operands> operands;
    /// What runs a step that is a module.
    std::function<Tensor(const Step&, const Tensor&)> layer = {};
  };
  Interpreter(Options options, int values)
      : options_(std::move(options)), values_(static_cast<std::size_t>(values)) {}

  void set(int value, GraphValue to) { values_[static_cast<std::size_t>(value)] = std::move(to); }
  GraphValues run(const Block& block, GraphValues inputs) override;
  GraphValues compute(const Step& step, std::span<const GraphValue* const> inputs);

  bool training() const override { return options_.training; }
  DType dtype_now(DType in_file) const override {
    return in_file == options_.in_file ? options_.now : in_file;
  }
  Tensor as_operand(const GraphValue& constant) override;

 private:
  void run_step(const Step& step);

  Options options_;
  std::vector<GraphValue> values_;
};

}  // namespace pleat::onnx::imported
