#include "pleat/onnx/import/program.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/ops/conv/options.h"

namespace pleat::onnx::imported {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Operators whose result has no more elements than their first input.
bool keeps_size(const Node& node) {
  return is_one_of(node.op, {"Cast", "DequantizeLinear", "Flatten", "Identity", "QuantizeLinear", "Reshape",
                             "Slice", "Squeeze", "Transpose", "Unsqueeze"});
}

/// Operators whose result is what one input is, in another form.
bool passes_on(const Node& node) {
  return keeps_size(node) || is_one_of(node.op, {"Concat", "Expand", "Split", "CastLike"});
}

/// Whether an operator reads no more than shape and type of an input.
bool reads_form(const Node& node, std::size_t input) {
  return is_one_of(node.op, {"Shape", "Size"}) || (node.op == "CastLike" && input == 1);
}

/// Numbers made by an exporter, not of the author's: "onnx::Mul_123", "val_7", "/Constant_output_0".
bool is_generated(const std::string& name) {
  return name.find("::") != std::string::npos || name.starts_with("val_") || name.starts_with("_val_") ||
         name.starts_with('/') || name.find("Constant") != std::string::npos;
}

/// Text between quotes: "['', 'layer1', 'relu']" has three.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t from = 0; (from = text.find('\'', from)) != std::string::npos;) {
    const std::size_t to = text.find('\'', from + 1);
    if (to == std::string::npos) break;
    all.push_back(text.substr(from + 1, to - from - 1));
    from = to + 1;
  }
  return all;
}

/// "/layer1/layer1.0/conv1/Conv" and "layer1.0.conv1/Conv" are of layer1.0.conv1.
std::string path_of_name(const std::string& name) {
  std::string path, last;
  std::size_t from = name.starts_with('/') ? 1 : 0;
  for (std::size_t to; (to = name.find('/', from)) != std::string::npos; from = to + 1) {
    const std::string part = name.substr(from, to - from);
    // A list's element begins with the name of the list.
    if (!last.empty() && part.starts_with(last + "."))
      path.resize(path.size() - last.size());
    else if (!path.empty())
      path += '.';
    path += part;
    last = part;
  }
  return path;
}

std::string path_of(const Node& node) {
  const auto scopes = node.notes.find("pkg.torch.onnx.name_scopes");
  if (scopes != node.notes.end()) {
    const std::vector<std::string> names = quoted(scopes->second);
    if (names.size() >= 2 && !names[names.size() - 2].starts_with('_')) return names[names.size() - 2];
  }
  return path_of_name(node.name);
}

/// A name of a parameter, as modules take them.
std::string as_member(std::string name) {
  const bool is_path =
      !name.empty() && name.front() != '.' && name.back() != '.' && name.find("..") == std::string::npos;
  if (!is_path) std::replace(name.begin(), name.end(), '.', '_');
  return name.empty() ? "unnamed" : name;
}

/// The same in memory of its own: a view would be one that those who watch have not seen being made.
Tensor without_view(const Tensor& x) {
  if (x.impl().alias == Alias::none) return x;
  const Tensor own = empty(Sizes(x.shape()), {.dtype = x.dtype(), .device = x.device()});
  ops::copy_into(own, x);
  return own;
}

/// Functions of a file in place: their nodes with the names and attributes of the caller.
class Inliner {
 public:
  explicit Inliner(const std::vector<FileFunction>& functions) {
    for (const FileFunction& f : functions) functions_.emplace(std::pair(f.domain, f.name), &f);
  }

  void expand(FileGraph& graph, int depth = 0) {
    if (functions_.empty()) return;
    check<ValueError>(depth <= 64, "functions call each other more than 64 deep");
    std::vector<Node> nodes;
    for (Node& node : graph.nodes) {
      for (NodeAttribute& attribute : node.attributes)
        if (auto* inner = std::get_if<std::shared_ptr<FileGraph>>(&attribute.value))
          expand(**inner, depth + 1);
      const auto function = functions_.find({node.domain, node.op});
      if (function == functions_.end()) {
        nodes.push_back(std::move(node));
        continue;
      }
      FileGraph body = body_of(*function->second, node);
      expand(body, depth + 1);
      nodes.insert(nodes.end(), std::make_move_iterator(body.nodes.begin()),
                   std::make_move_iterator(body.nodes.end()));
      check<ValueError>(nodes.size() < 10'000'000, "functions become more than ten million nodes");
    }
    graph.nodes = std::move(nodes);
  }

 private:
  FileGraph body_of(const FileFunction& function, const Node& caller) {
    const std::string prefix = fmt::format("{}#{}/", function.name, ++count_);
    std::map<std::string, std::string> names{{"", ""}};
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
      names[function.inputs[i]] = i < caller.inputs.size() ? caller.inputs[i] : "";
    for (std::size_t i = 0; i < function.outputs.size(); ++i) {
      const bool wanted = i < caller.outputs.size() && !caller.outputs[i].empty();
      names[function.outputs[i]] = wanted ? caller.outputs[i] : prefix + function.outputs[i];
    }
    FileGraph body;
    body.nodes = function.nodes;
    // An output that is an input, or given twice, keeps the input's name.
    rename(body, names, prefix);
    for (Node& node : body.nodes) {
      set_attributes(node, function, caller);
      node.name = caller.name + "/" + node.name;
      if (node.notes.empty()) node.notes = caller.notes;
    }
    return body;
  }

  void rename(FileGraph& graph, std::map<std::string, std::string> names, const std::string& prefix) {
    const auto renamed = [&](const std::string& name) {
      return names.try_emplace(name, prefix + name).first->second;
    };
    for (Node& node : graph.nodes) {
      for (std::string& input : node.inputs) input = renamed(input);
      for (NodeAttribute& attribute : node.attributes)
        if (auto* inner = std::get_if<std::shared_ptr<FileGraph>>(&attribute.value)) {
          *inner = std::make_shared<FileGraph>(**inner);
          for (auto* ports : {&(*inner)->inputs, &(*inner)->outputs})
            for (FilePort& port : *ports) port.name = renamed(port.name);
          for (auto& [name, tensor] : (*inner)->initializers) name = renamed(name);
          rename(**inner, names, prefix);
        }
      for (std::string& output : node.outputs) output = renamed(output);
    }
  }

  static void set_attributes(Node& node, const FileFunction& function, const Node& caller) {
    NodeAttributes kept;
    for (NodeAttribute attribute : node.attributes) {
      if (auto* inner = std::get_if<std::shared_ptr<FileGraph>>(&attribute.value))
        for (Node& each : (*inner)->nodes) set_attributes(each, function, caller);
      const auto* text = std::get_if<std::string>(&attribute.value);
      if (text == nullptr || text->empty() || text->front() != attribute_reference) {
        kept.push_back(std::move(attribute));
        continue;
      }
      const std::string wanted = text->substr(1);
      for (const NodeAttributes* list : {&caller.attributes, &function.defaults}) {
        const auto given =
            std::find_if(list->begin(), list->end(), [&](const auto& a) { return a.name == wanted; });
        const auto* none = given == list->end() ? nullptr : std::get_if<std::string>(&given->value);
        if (given == list->end() ||
            (none != nullptr && !none->empty() && none->front() == attribute_reference))
          continue;
        attribute.value = given->value;
        kept.push_back(attribute);
        break;
      }
    }
    node.attributes = std::move(kept);
  }

  std::map<std::pair<std::string, std::string>, const FileFunction*> functions_;
  int count_ = 0;
};

class Builder {
 public:
  Builder(ModelFile file, std::string name, int64_t memory_limit)
      : file_(std::move(file)), name_(std::move(name)), memory_limit_(memory_limit) {}

  Program build() {
    // What functions import beside the file; of one domain the file's version holds.
    for (FileFunction& function : file_.functions) file_.opsets.merge(function.opsets);
    Inliner(file_.functions).expand(file_.graph);
    check_known();
    find_consumers(file_.graph);
    Scope scope{nullptr, {}};
    program_.main = block_of(file_.graph, scope, true);
    for (const FilePort& output : file_.graph.outputs) program_.outputs.push_back(output);
    finish_state();
    find_fillers(program_.main, {});
    join_steps(program_);
    find_last_uses(program_.main);
    return std::move(program_);
  }

 private:
  /// Names of a graph, and of those around it.
  struct Scope {
    const Scope* outer;
    std::unordered_map<std::string, int> names;

    int find(const std::string& name) const {
      for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
        if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
      return -1;
    }
  };

  static std::string full_name(const Node& node) {
    return node.domain.empty() || node.domain == "ai.onnx.ml" ? node.op : node.domain + "." + node.op;
  }

  int64_t opset_of(const Node& node) const {
    const auto found = file_.opsets.find(node.domain);
    return found == file_.opsets.end() ? 1 : found->second;
  }

  // --- What is not known
  /// Throws one error for all operators, attributes and inputs that are not known.
  void check_known() {
    std::map<std::string, std::vector<std::string>> missing;
    find_missing(file_.graph, missing);
    if (missing.empty()) return;
    std::string text = fmt::format("{}: has what Pleat does not compute:", name_);
    for (const auto& [what, nodes] : missing) {
      text += fmt::format("\n  {}: {}", what, nodes[0]);
      for (std::size_t i = 1; i < nodes.size() && i < 3; ++i) text += ", " + nodes[i];
      if (nodes.size() > 3) text += fmt::format(" and {} more", nodes.size() - 3);
    }
    const auto opset = file_.opsets.find("");
    throw ValueError(
        text + fmt::format("\n(opset {}, written by {}). Export the part of the network before it, or with "
                           "an exporter that writes ONNX's standard operators; docs/onnx.md lists them",
                           opset == file_.opsets.end() ? 0 : opset->second,
                           file_.producer.empty() ? "an unknown program" : file_.producer));
  }

  void find_missing(const FileGraph& graph, std::map<std::string, std::vector<std::string>>& missing) const {
    for (const Node& node : graph.nodes) {
      const std::string label = node.name.empty() && !node.outputs.empty()
                                    ? "that of '" + node.outputs[0] + "'"
                                    : "'" + node.name + "'";
      const auto op = operators().find(full_name(node));
      if (op == operators().end()) missing["operator " + full_name(node)].push_back(label);
      if (op != operators().end())
        for (std::size_t i = op->second.most_inputs; i < node.inputs.size(); ++i)
          if (!node.inputs[i].empty()) missing[fmt::format("input {} of {}", i, node.op)].push_back(label);
      for (const NodeAttribute& attribute : node.attributes) {
        if (op != operators().end() && !op->second.attributes.contains(attribute.name))
          missing[fmt::format("attribute '{}' of {}", attribute.name, node.op)].push_back(label);
        if (const auto* inner = std::get_if<std::shared_ptr<FileGraph>>(&attribute.value))
          find_missing(**inner, missing);
      }
    }
  }

  // --- What tensors of the file are for
  struct Consumer {
    const Node* node;
    std::size_t input;
  };

  void find_consumers(const FileGraph& graph) {
    for (const Node& node : graph.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (!node.inputs[i].empty()) consumers_[node.inputs[i]].push_back({&node, i});
      for (const NodeAttribute& attribute : node.attributes)
        if (const auto* inner = std::get_if<std::shared_ptr<FileGraph>>(&attribute.value))
          find_consumers(**inner);
    }
  }

  static Slot slot_of(const Operator& op, std::size_t input) {
    if (op.slots.empty()) return Slot::operand;
    return op.slots[std::min(input, op.slots.size() - 1)];
  }

  /// What a value is for: the strongest of its uses, through what only passes it on.
  Slot use_of(const std::string& name, int depth = 0) const {
    Slot use = Slot::option;
    const auto found = consumers_.find(name);
    if (found == consumers_.end()) return use;
    const auto better = [&](Slot other) {
      const auto strength = [](Slot s) {
        return s == Slot::parameter ? 3 : s == Slot::buffer ? 2 : s == Slot::operand ? 1 : 0;
      };
      if (strength(other) > strength(use)) use = other;
    };
    for (const Consumer& consumer : found->second) {
      const Slot slot = slot_of(operators().find(full_name(*consumer.node))->second, consumer.input);
      if (slot == Slot::operand && depth < 16 && passes_on(*consumer.node) && !consumer.node->outputs.empty())
        better(use_of(consumer.node->outputs[0], depth + 1));
      if (slot != Slot::operand || !passes_on(*consumer.node)) better(slot);
    }
    return use;
  }

  /// Makes a tensor of the file a parameter, a buffer or a constant.
  void add_tensor(int value, const std::string& name, FileTensor tensor, bool is_initializer) {
    const Slot use = is_floating(tensor.tensor.dtype()) ? use_of(name) : Slot::option;
    const bool is_number = tensor.tensor.numel() == 1 && is_generated(name);
    const bool is_parameter =
        (use == Slot::parameter && !is_number) ||
        (use == Slot::operand && is_initializer && tensor.tensor.numel() > 1 && !is_generated(name));
    if (is_parameter || use == Slot::buffer)
      program_.state.push_back({name, value, !is_parameter, tensor.tensor});
    else
      add_constant(value, std::move(tensor.tensor), tensor.type);
  }

  void add_constant(int value, Tensor tensor, int64_t type) {
    GraphValue constant(std::move(tensor));
    constant.type = type;
    know(value, std::move(constant));
  }
  void know(int value, GraphValue constant) {
    if (constant.tensor.defined()) constant.tensor = without_view(constant.tensor);
    constant.on_host = true;
    constant.is_constant = true;
    known_.emplace(value, constant);
    program_.constants.emplace_back(value, std::move(constant));
  }

  // --- Blocks
  int define(Scope& scope, const std::string& name, const std::string& by) {
    check<ValueError>(scope.names.emplace(name, program_.values).second,
                      "{}: two of its nodes, inputs or tensors are '{}', the second is {}", name_, name, by);
    return program_.values++;
  }

  Block block_of(FileGraph& graph, Scope& scope, bool is_main) {
    Block block;
    types_.merge(graph.types);
    for (const FilePort& input : graph.inputs) types_.emplace(input.name, input.type);
    for (auto& [name, tensor] : graph.initializers) {
      if (name.empty()) fail<ValueError>("{}: a tensor has no name", name_);
      add_tensor(define(scope, name, "a tensor"), name, std::move(tensor), true);
    }
    for (const FilePort& input : graph.inputs) {
      // Before version 4 of the format all tensors are inputs too.
      if (is_main && scope.names.contains(input.name)) continue;
      block.inputs.push_back(define(scope, input.name, "an input"));
      if (is_main) program_.inputs.push_back(input);
    }
    for (Node& node : graph.nodes) {
      Step step = step_of(node, scope);
      for (const std::string& output : node.outputs)
        step.outputs.push_back(output.empty() ? -1 : define(scope, output, where(node)));
      if (node.op == "Constant" && node.domain.empty() && step.outputs.size() == 1) {
        Interpreter interpreter(options(), 0);
        GraphValue value = interpreter.compute(step, {}).at(0);
        add_tensor(step.outputs[0], node.outputs[0], {value.tensor, value.type}, false);
      } else if (!fold(step)) {
        block.steps.push_back(std::move(step));
      }
    }
    for (const FilePort& output : graph.outputs) {
      block.outputs.push_back(scope.find(output.name));
      check<ValueError>(block.outputs.back() >= 0, "{}: nothing gives its output '{}'", name_, output.name);
    }
    return block;
  }

  Step step_of(const Node& node, Scope& scope) {
    Step step;
    step.op = &operators().find(full_name(node))->second;
    step.opset = opset_of(node);
    step.path = path_of(node);
    for (const std::string& input : node.inputs) {
      step.inputs.push_back(input.empty() ? -1 : scope.find(input));
      check<ValueError>(
          input.empty() || step.inputs.back() >= 0,
          "{}: {} reads '{}', which nothing before it gives: the graph is not in order, has a cycle, or "
          "lacks a node",
          name_, [&] { return where(node); }, input);
    }
    while (!step.inputs.empty() && step.inputs.back() < 0) step.inputs.pop_back();
    Node kept = node;
    for (NodeAttribute& attribute : kept.attributes)
      if (auto* inner = std::get_if<std::shared_ptr<FileGraph>>(&attribute.value)) {
        Scope inside{&scope, {}};
        step.blocks.emplace(attribute.name, std::make_shared<const Block>(block_of(**inner, inside, false)));
        attribute.value = int64_t{0};
      }
    step.node = std::make_shared<const Node>(std::move(kept));
    return step;
  }

  Interpreter::Options options() const {
    return {.training = false, .in_file = float32, .now = float32, .device = Device(), .operands = nullptr};
  }

  const GraphValue* known_value(int value) const {
    const auto found = known_.find(value);
    return found == known_.end() ? nullptr : &found->second;
  }
  /// A tensor that the network keeps, of which the node reads shape or type, or one of a type that is known.
  const GraphValue* form_of(int value, const Node& node, std::size_t input) {
    if (!reads_form(node, input)) return nullptr;
    for (const State& state : program_.state)
      if (state.value == value) return &(forms_[value] = GraphValue(state.tensor));
    const auto type = types_.find(node.inputs[input]);
    if (node.op != "CastLike" || type == types_.end() || !dtype_of(type->second)) return nullptr;
    GraphValue form(empty({0}, {.dtype = *dtype_of(type->second), .device = Device()}));
    form.type = type->second;
    return &(forms_[value] = form);
  }

  /// Computes a node of constants at once, unless that may take much memory.
  bool fold(const Step& step) {
    if (step.op->depends_on_mode || step.inputs.empty() || !step.blocks.empty()) return false;
    std::vector<const GraphValue*> inputs;
    static const auto& none = *new GraphValue;
    double most = 1;
    for (const int value : step.inputs) {
      if (value < 0) {
        inputs.push_back(&none);
        continue;
      }
      const GraphValue* found = known_value(value);
      if (found == nullptr) found = form_of(value, *step.node, inputs.size());
      if (found == nullptr) return false;
      inputs.push_back(found);
      const Tensor& tensor = found->tensor;
      if (!tensor.defined()) continue;
      if (reads_form(*step.node, inputs.size() - 1)) continue;
      most *= static_cast<double>(std::max<int64_t>(tensor.numel(), 1));
      // A list of sizes, repeats or pads.
      if (!is_floating(tensor.dtype()) && tensor.numel() <= 64)
        for (const int64_t size : tensor.to_vector<int64_t>())
          most *= static_cast<double>(std::max<int64_t>(size, 1));
    }
    constexpr double few = 1 << 22;
    if (keeps_size(*step.node))
      most = static_cast<double>(inputs[0]->tensor.defined() ? inputs[0]->tensor.numel() : 0);
    else if (most > few)
      return false;
    folded_bytes_ += static_cast<int64_t>(8 * most);
    check<ValueError>(folded_bytes_ <= memory_limit_ || most < few,
                      "{}: what its constants become takes more memory than it may", name_);
    if (folded_bytes_ > memory_limit_) return false;
    GraphValues results;
    try {
      Interpreter interpreter(options(), 0);
      results = interpreter.compute(step, inputs);
    } catch (const Error& error) {
      throw ValueError(fmt::format("{}: {}", name_, error.what()));
    }
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      check<ValueError>(
          i < results.size() && results[i].defined(), "{}: {} has no output {}", name_,
          [&] { return where(*step.node); }, i);
      const std::string& name = step.node->outputs[i];
      // A weight that was quantised is a parameter of floating numbers.
      if (step.node->op == "DequantizeLinear" && use_of(name) == Slot::parameter &&
          !step.node->inputs.empty())
        program_.state.push_back({step.node->inputs[0], step.outputs[i], false, results[i].tensor});
      else
        know(step.outputs[i], std::move(results[i]));
    }
    return true;
  }

  /// Finds the steps that make an operand of a size, so that it would be another constant for each batch. A
  /// value that only sizes are computed of is none. Returns the values of outer blocks that are operands.
  std::set<int> find_fillers(Block& block, std::set<int> operands) const {
    operands.insert(block.outputs.begin(), block.outputs.end());
    for (auto step = block.steps.rbegin(); step != block.steps.rend(); ++step) {
      const bool is_operand = std::any_of(step->outputs.begin(), step->outputs.end(),
                                          [&](int value) { return operands.contains(value); });
      for (auto& [name, inner] : step->blocks) {
        Block changed = *inner;
        operands = find_fillers(changed, std::move(operands));
        inner = std::make_shared<const Block>(std::move(changed));
      }
      if (!is_operand && step->blocks.empty()) continue;
      for (std::size_t i = 0; i < step->inputs.size(); ++i)
        if (slot_of(*step->op, i) != Slot::option && !reads_form(*step->node, i))
          operands.insert(step->inputs[i]);
      const std::size_t size = step->node->op == "ConstantOfShape" ? 0 : 1;
      step->fills = is_one_of(step->node->op, {"ConstantOfShape", "Expand", "Tile"}) &&
                    step->inputs.size() > size && !known_.contains(step->inputs[size]);
    }
    return operands;
  }

  /// Names as modules take them, and the type.
  void finish_state() {
    std::set<std::string> taken;
    for (State& state : program_.state) {
      // As convolutions read weights, so that no call has to lay them out anew.
      if (state.tensor.rank() >= 3 && state.tensor.rank() <= 5)
        state.tensor = ops::to_format(
            state.tensor, conv_format(Device(), state.tensor.dtype(), conv_precision(std::nullopt)));
      const std::string stem = as_member(state.name);
      state.name = stem;
      for (int i = 1; !taken.insert(state.name).second; ++i) state.name = fmt::format("{}_{}", stem, i);
    }
    // That of most numbers.
    std::map<DType, int64_t> numbers;
    for (const State& state : program_.state) numbers[state.in_file] += state.tensor.numel();
    for (const auto& [dtype, count] : numbers)
      if (count >= numbers[program_.floating]) program_.floating = dtype;
  }

  ModelFile file_;
  std::string name_;
  int64_t memory_limit_;
  Program program_;
  std::unordered_map<std::string, std::vector<Consumer>> consumers_;
  std::unordered_map<int, GraphValue> known_;
  std::unordered_map<int, GraphValue> forms_;  ///< what form_of has given
  std::map<std::string, int64_t> types_;       ///< of values, by name
  int64_t folded_bytes_ = 0;
};

/// What is computed of sizes and constants is on the host, not recorded and not watched.
class Unseen {
 public:
  Unseen() : observer_(std::exchange(detail::call_observer, nullptr)) {}
  ~Unseen() { detail::call_observer = observer_; }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

 private:
  CallObserver* observer_;
  NoGrad off_;
  DefaultDevice on_host_{Device()};
};

template <class F>
auto naming(const Step& step, const F& f) {
  try {
    return f();
  } catch (Error& error) {
    std::runtime_error& base = error;
    const std::string text = base.std::runtime_error::what();
    if (!text.starts_with("node '") && !text.starts_with("the node of '") && !text.starts_with("in "))
      base = std::runtime_error(where(*step.node) + ": " + text);
    throw;
  } catch (const std::logic_error& error) {
    // A list that is shorter or longer than the operator takes.
    throw ValueError(where(*step.node) + ": its lists do not fit (" + error.what() + ")");
  }
}

}  // namespace

Program make_program(ModelFile file, const std::string& name, int64_t memory_limit) {
  return Builder(std::move(file), name, memory_limit).build();
}

void find_last_uses(Block& block) {
  std::set<int> seen(block.outputs.begin(), block.outputs.end());
  for (auto step = block.steps.rbegin(); step != block.steps.rend(); ++step) {
    std::vector<int> reads = step->inputs;
    for (const auto& [name, inner] : step->blocks)
      for_reads(*inner, [&](int value, bool) { reads.push_back(value); });
    // A result that nobody reads goes at once.
    reads.insert(reads.end(), step->outputs.begin(), step->outputs.end());
    step->last_uses.clear();
    for (const int value : reads)
      if (value >= 0 && seen.insert(value).second) step->last_uses.push_back(value);
  }
}

Tensor Operands::get(const GraphValue& constant, DType dtype, Device device) {
  const Tensor& given = constant.tensor;
  if (given.dtype() == dtype && given.device() == device)
    return constant.is_constant ? given : without_view(given);
  const auto convert = [&] { return ops::to_device(ops::cast(given, dtype), device); };
  if (!constant.is_constant) return convert();
  const std::lock_guard lock(mutex_);
  const auto key = std::tuple(given.impl().id, dtype, pleat::name(device));
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second.second;
  return known_.emplace(key, std::pair(given, convert())).first->second.second;
}

Tensor Interpreter::as_operand(const GraphValue& constant) {
  const Unseen unseen;
  return options_.operands == nullptr
             ? constant.tensor
             : options_.operands->get(constant, dtype_now(constant.tensor.dtype()), options_.device);
}

GraphValues Interpreter::compute(const Step& step, std::span<const GraphValue* const> inputs) {
  bool on_host = !step.op->depends_on_mode && !step.fills;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    on_host = on_host && (inputs[i]->on_host || !inputs[i]->defined() || reads_form(*step.node, i));
  std::optional<Unseen> unseen;
  if (on_host) unseen.emplace();
  NodeCall call(*step.node, step.opset, inputs, step.blocks, *this, on_host);
  GraphValues results = naming(step, [&] { return GraphValues(step.op->compute(call)); });
  for (GraphValue& result : results) {
    result.on_host = result.on_host || on_host;
    result.is_constant = false;
  }
  return results;
}

void Interpreter::run_step(const Step& step) {
  static const auto& none = *new GraphValue;
  std::vector<const GraphValue*> inputs;
  for (const int value : step.inputs) inputs.push_back(value < 0 ? &none : &values_[at(value)]);
  GraphValues results;
  if (step.layer >= 0) {
    for (const GraphValue* input : inputs)
      if (input->defined())
        results = {options_.layer(step, input->on_host ? as_operand(*input) : input->tensor)};
  } else {
    const RecordFunction range(step.node->name.empty() ? step.node->op : step.node->name);
    results = compute(step, inputs);
  }
  for (std::size_t i = 0; i < step.outputs.size(); ++i)
    if (step.outputs[i] >= 0)
      values_[at(step.outputs[i])] = i < results.size() ? std::move(results[i]) : GraphValue();
  for (const int value : step.last_uses) values_[at(value)] = {};
}

GraphValues Interpreter::run(const Block& block, GraphValues inputs) {
  for (std::size_t i = 0; i < block.inputs.size() && i < inputs.size(); ++i)
    set(block.inputs[i], std::move(inputs[i]));
  for (const Step& step : block.steps) run_step(step);
  GraphValues outputs;
  for (const int value : block.outputs) outputs.push_back(values_[at(value)]);
  return outputs;
}

}  // namespace pleat::onnx::imported
