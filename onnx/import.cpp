#include "pleat/onnx/import.h"

#include <algorithm>
#include <optional>
#include <set>

#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/nn/record_forward.h"
#include "pleat/onnx/import/program.h"

namespace pleat::onnx {

using imported::Block;
using imported::for_reads;
using imported::GraphValue;
using imported::GraphValues;
using imported::Interpreter;
using imported::Program;
using imported::Step;

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// "conv1" of "conv1.weight".
std::string stem_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

bool is_in(const std::string& path, const std::string& part) {
  return path == part || (path.starts_with(part) && path.size() > part.size() && path[part.size()] == '.');
}

/// A node with weights of its own and one input, as a module: it shows in summaries and profiles.
class Layer final : public nn::Module {
 public:
  struct Weight {
    std::size_t input;
    std::string name;
    Tensor tensor;
    bool is_buffer;
    DType in_file = tensor.dtype();
  };
  Layer(Step step, std::size_t input, std::vector<Weight> weights,
        std::vector<std::pair<std::size_t, GraphValue>> constants, DType in_file,
        std::shared_ptr<imported::Operands> operands)
      : step_(std::make_shared<const Step>(std::move(step))),
        input_(input),
        weights_(std::move(weights)),
        constants_(std::move(constants)),
        in_file_(in_file),
        operands_(std::move(operands)) {}

  using Module::forward;
  Tensor forward(const Tensor& x) override {
    static const auto& none = *new GraphValue;
    DType now = in_file_;
    Device device = x.device();
    std::vector<GraphValue> given;
    given.reserve(weights_.size() + 1);
    std::vector<const GraphValue*> inputs(step_->inputs.size(), &none);
    const auto put = [&](std::size_t input, const Tensor& tensor) {
      given.emplace_back(tensor);
      inputs[input] = &given.back();
    };
    put(input_, x);
    for (const Weight& weight : weights_) put(weight.input, weight.tensor);
    if (const Tensor* weight = of_type(in_file_)) now = weight->dtype(), device = weight->device();
    for (const auto& [input, constant] : constants_) inputs[input] = &constant;
    Interpreter interpreter(
        {.training = training(), .in_file = in_file_, .now = now, .device = device, .operands = operands_},
        0);
    return interpreter.compute(*step_, inputs).at(0).tensor;
  }
  void members(nn::Members& m) override {
    for (Weight& weight : weights_)
      if (weight.is_buffer)
        m.buffer(weight.name, weight.tensor);
      else
        m(weight.name, weight.tensor);
  }
  std::string type_name() const override { return step_->node->op; }
  /// A weight that has this type in the file, and perhaps another now.
  const Tensor* of_type(DType in_file) const {
    for (const Weight& weight : weights_)
      if (weight.in_file == in_file) return &weight.tensor;
    return nullptr;
  }

 private:
  std::shared_ptr<const Step> step_;
  std::size_t input_;
  std::vector<Weight> weights_;
  std::vector<std::pair<std::size_t, GraphValue>> constants_;
  DType in_file_;
  std::shared_ptr<imported::Operands> operands_;
};

TensorInfo info_of(const FilePort& port) {
  TensorInfo info{.name = port.name, .dtype = dtype_of(port.type).value_or(float32), .shape = port.shape};
  for (std::string& size : info.shape)
    if (size.empty()) size = "?";
  return info;
}

}  // namespace

struct ImportedNetwork::State {
  struct Named {
    std::string name;
    nn::AnyModule module;
  };

  std::shared_ptr<const Program> program;
  std::vector<imported::State> tensors;  ///< that no layer has
  std::vector<Named> modules;            ///< layers, and what was put in the place of parts
  std::map<std::string, std::string> metadata;
  std::vector<TensorInfo> input_infos, output_infos;
  std::shared_ptr<imported::Operands> operands = std::make_shared<imported::Operands>();

  /// Nodes whose weights have names of their own become layers.
  void make_layers();
  std::vector<std::size_t> steps_of(const std::string& part) const;
  int single_output(const std::vector<std::size_t>& steps, const std::string& part) const;
  [[noreturn]] void fail_part(const std::string& part) const;
  /// Takes out steps that no output needs, and their tensors and modules.
  void set_main(Program changed, Block main);
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, bool training);
  void set_program(Program next);
  void check_inputs(const std::vector<Tensor>& given) const;
  /// A tensor of the file's type, as it is now; none where there is none.
  const Tensor* weight_of_type() const;
};

void ImportedNetwork::State::make_layers() {
  Program changed = *program;
  std::map<int, const imported::State*> weights;
  std::map<int, const GraphValue*> constants;
  std::map<int, int> readers;
  for (const imported::State& state : changed.state) weights.emplace(state.value, &state);
  for (const auto& [value, constant] : changed.constants) constants.emplace(value, &constant);
  // Inside of a branch or loop tensors stay the network's.
  for_reads(changed.main, [&](int value, bool inside) { readers[value] += inside ? 2 : 1; });
  std::set<std::string> taken;
  for (const imported::State& state : changed.state) taken.insert(state.name);
  std::set<int> in_layers;
  for (Step& step : changed.main.steps) {
    std::vector<Layer::Weight> own;
    std::vector<std::pair<std::size_t, GraphValue>> known;
    std::optional<std::size_t> operand;
    std::string stem;
    bool fits = step.blocks.empty() && step.outputs.size() >= 1;
    for (std::size_t i = 1; i < step.outputs.size(); ++i)
      fits = fits && (step.outputs[i] < 0 || readers[step.outputs[i]] == 0);
    for (std::size_t i = 0; i < step.inputs.size() && fits; ++i) {
      if (step.inputs[i] < 0) continue;
      const auto weight = weights.find(step.inputs[i]);
      const auto constant = constants.find(step.inputs[i]);
      if (weight != weights.end()) {
        const std::string& name = weight->second->name;
        fits =
            readers[step.inputs[i]] == 1 && !stem_of(name).empty() && (own.empty() || stem_of(name) == stem);
        stem = stem_of(name);
        if (fits)
          own.push_back({i, name.substr(stem.size() + 1), weight->second->tensor, weight->second->is_buffer});
      } else if (constant != constants.end()) {
        known.emplace_back(i, *constant->second);
      } else {
        fits = !operand;
        operand = i;
      }
    }
    if (!own.empty() && !stem.empty()) step.path = stem;
    if (!fits || own.empty() || !operand || !taken.insert(stem).second) continue;
    for (const Layer::Weight& weight : own) in_layers.insert(step.inputs[weight.input]);
    Step alone = step;
    modules.push_back({stem, Layer(std::move(alone), *operand, std::move(own), std::move(known),
                                   changed.floating, operands)});
    step.inputs = {step.inputs[*operand]};
    step.layer = static_cast<int>(modules.size()) - 1;
  }
  for (imported::State& state : changed.state) {
    if (in_layers.contains(state.value)) continue;
    if (!state.is_buffer) state.tensor = nn::parameter(state.tensor);
    tensors.push_back(state);
  }
  for (const Named& named : modules)
    for (const auto& [name, tensor] : named.module.get().named_parameters()) tensor.set_requires_grad();
  changed.state.clear();
  find_last_uses(changed.main);
  set_program(std::move(changed));
}

std::vector<std::size_t> ImportedNetwork::State::steps_of(const std::string& part) const {
  std::vector<std::size_t> found;
  const std::vector<Step>& steps = program->main.steps;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (is_in(steps[i].path, part) || steps[i].node->name == part ||
        (steps[i].layer >= 0 && is_in(modules[at(steps[i].layer)].name, part)))
      found.push_back(i);
  if (found.empty() || part.empty()) fail_part(part);
  return found;
}

void ImportedNetwork::State::fail_part(const std::string& part) const {
  std::set<std::string> names, nodes;
  for (const Step& step : program->main.steps) {
    if (!step.path.empty()) names.insert(step.path.substr(0, step.path.find('.')));
    if (!step.node->name.empty()) nodes.insert(step.node->name);
  }
  if (names.empty()) names = std::move(nodes);
  std::string text;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (++count > 12) break;
    text += (text.empty() ? "" : ", ") + name;
  }
  fail<ValueError>("ImportedNetwork: has no part '{}'; outermost are {}{}; parts() lists all", part, text,
                   count > 12 ? " ..." : "");
}

int ImportedNetwork::State::single_output(const std::vector<std::size_t>& group,
                                          const std::string& part) const {
  const std::vector<Step>& steps = program->main.steps;
  std::set<int> made, used(program->main.outputs.begin(), program->main.outputs.end());
  for (const std::size_t i : group) made.insert(steps[i].outputs.begin(), steps[i].outputs.end());
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!std::binary_search(group.begin(), group.end(), i))
      for_reads(Block{{steps[i]}, {}, {}}, [&](int value, bool) { used.insert(value); });
  std::vector<int> outputs;
  for (const int value : made)
    if (value >= 0 && used.contains(value)) outputs.push_back(value);
  check<ValueError>(outputs.size() == 1,
                    "ImportedNetwork: part '{}' has {} outputs that are used, and should have one", part,
                    outputs.size());
  return outputs[0];
}

void ImportedNetwork::State::set_main(Program changed, Block main) {
  // From the outputs back.
  std::set<int> needed(main.outputs.begin(), main.outputs.end());
  std::vector<Step> kept;
  for (auto step = main.steps.rbegin(); step != main.steps.rend(); ++step) {
    if (std::none_of(step->outputs.begin(), step->outputs.end(), [&](int v) { return needed.contains(v); }))
      continue;
    for_reads(Block{{*step}, {}, {}}, [&](int value, bool) { needed.insert(value); });
    kept.push_back(*step);
  }
  main.steps.assign(kept.rbegin(), kept.rend());
  std::vector<Named> used;
  for (Step& step : main.steps) {
    if (step.layer < 0) continue;
    used.push_back(modules[at(step.layer)]);
    step.layer = static_cast<int>(used.size()) - 1;
  }
  modules = std::move(used);
  std::erase_if(tensors, [&](const imported::State& state) { return !needed.contains(state.value); });
  std::erase_if(changed.constants, [&](const auto& constant) { return !needed.contains(constant.first); });
  changed.main = std::move(main);
  find_last_uses(changed.main);
  set_program(std::move(changed));
}

void ImportedNetwork::State::set_program(Program next) {
  input_infos.clear();
  output_infos.clear();
  for (const FilePort& port : next.inputs) input_infos.push_back(info_of(port));
  for (const FilePort& port : next.outputs) output_infos.push_back(info_of(port));
  program = std::make_shared<const Program>(std::move(next));
}

void ImportedNetwork::State::check_inputs(const std::vector<Tensor>& given) const {
  const std::vector<FilePort>& ports = program->inputs;
  check<ValueError>(given.size() == ports.size(), "ImportedNetwork: takes {} inputs, got {}", ports.size(),
                    given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const FilePort& port = ports[i];
    const Tensor& x = given[i];
    check<ValueError>(x.defined(), "ImportedNetwork: input '{}' is undefined", port.name);
    const std::optional<DType> dtype = dtype_of(port.type);
    if (dtype)
      check<DTypeError>(
          is_floating(*dtype) == is_floating(x.dtype()) && (*dtype == boolean) == (x.dtype() == boolean),
          "ImportedNetwork: input '{}' should be of {}, got {}", port.name, onnx::type_name(port.type), x);
    if (!port.has_shape) continue;
    bool fits = x.rank() == std::ssize(port.shape);
    for (std::size_t d = 0; d < port.shape.size() && fits; ++d) {
      const std::string& size = port.shape[d];
      const bool is_number =
          !size.empty() && std::all_of(size.begin(), size.end(), [](char c) { return c >= '0' && c <= '9'; });
      fits = !is_number || size == std::to_string(x.size(static_cast<int64_t>(d)));
    }
    check<ShapeError>(
        fits, "ImportedNetwork: input '{}' should be {}, got {}", port.name,
        [&] {
          std::string text;
          for (const std::string& size : input_infos[i].shape) text += (text.empty() ? "" : ", ") + size;
          return "[" + text + "]";
        },
        x);
  }
}

const Tensor* ImportedNetwork::State::weight_of_type() const {
  for (const imported::State& state : tensors)
    if (state.in_file == program->floating) return &state.tensor;
  for (const Named& named : modules)
    if (const auto* layer = dynamic_cast<const Layer*>(&named.module.get()))
      if (const Tensor* weight = layer->of_type(program->floating)) return weight;
  return nullptr;
}

std::vector<Tensor> ImportedNetwork::State::run(const std::vector<Tensor>& inputs, bool training) {
  check_inputs(inputs);
  DType now = program->floating;
  Device device = inputs.empty() ? default_device() : inputs[0].device();
  if (const Tensor* weight = weight_of_type()) now = weight->dtype(), device = weight->device();
  Interpreter interpreter(
      {.training = training,
       .in_file = program->floating,
       .now = now,
       .device = device,
       .operands = operands,
       .layer = [&](const Step& step, const Tensor& x) { return modules[at(step.layer)].module(x); }},
      program->values);
  for (const auto& [value, constant] : program->constants) interpreter.set(value, constant);
  for (const imported::State& state : tensors) interpreter.set(state.value, state.tensor);
  std::vector<Tensor> results;
  GraphValues given(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < given.size(); ++i) given[i].type = program->inputs[i].type;
  for (const GraphValue& output : interpreter.run(program->main, std::move(given))) {
    check<ValueError>(!output.sequence,
                      "ImportedNetwork: output {} is a sequence of tensors, which has no form here",
                      results.size());
    results.push_back(output.on_host ? interpreter.as_operand(output) : output.tensor);
    // Integers that were held as floating numbers for the sake of gradients.
    const std::optional<DType> said = dtype_of(program->outputs[results.size() - 1].type);
    if (said && !is_floating(*said) && is_floating(results.back().dtype()))
      results.back() = results.back().to(*said);
  }
  return results;
}

ImportedNetwork::ImportedNetwork(std::unique_ptr<State> state) : state_(std::move(state)) {}
ImportedNetwork::~ImportedNetwork() = default;
ImportedNetwork::ImportedNetwork(const ImportedNetwork& other)
    : Module(other), state_(other.state_ ? std::make_unique<State>(*other.state_) : nullptr) {}
ImportedNetwork::ImportedNetwork(ImportedNetwork&&) noexcept = default;
ImportedNetwork& ImportedNetwork::operator=(const ImportedNetwork& other) {
  return *this = ImportedNetwork(other);
}
ImportedNetwork& ImportedNetwork::operator=(ImportedNetwork&&) noexcept = default;

Tensor ImportedNetwork::forward(const Tensor& x) { return state_->run({x}, training()).at(0); }

std::vector<Tensor> ImportedNetwork::forward(const std::vector<Tensor>& inputs) {
  check_not_moved_from();
  const nn::RecordForward range(*this, inputs.empty() ? Tensor() : inputs[0]);
  return range.run([&] { return state_->run(inputs, training()); });
}

void ImportedNetwork::members(nn::Members& m) {
  for (State::Named& named : state_->modules) m(named.name, named.module);
  for (imported::State& state : state_->tensors)
    if (state.is_buffer)
      m.buffer(state.name, state.tensor);
    else
      m(state.name, state.tensor);
}

std::string ImportedNetwork::options_text() const {
  check_not_moved_from();
  return fmt::format("{} nodes", state_->program->main.steps.size());
}

const std::vector<TensorInfo>& ImportedNetwork::inputs() const {
  check_not_moved_from();
  return state_->input_infos;
}

const std::vector<TensorInfo>& ImportedNetwork::outputs() const {
  check_not_moved_from();
  return state_->output_infos;
}

const std::map<std::string, std::string>& ImportedNetwork::metadata() const {
  check_not_moved_from();
  return state_->metadata;
}

std::vector<std::string> ImportedNetwork::parts() const {
  check_not_moved_from();
  std::vector<std::string> all;
  std::set<std::string> seen;
  for (const Step& step : state_->program->main.steps) {
    for (std::size_t dot = step.path.find('.'); dot != std::string::npos; dot = step.path.find('.', dot + 1))
      if (seen.insert(step.path.substr(0, dot)).second) all.push_back(step.path.substr(0, dot));
    for (const std::string& name : {step.path, step.node->name})
      if (!name.empty() && seen.insert(name).second) all.push_back(name);
  }
  return all;
}

ImportedNetwork& ImportedNetwork::replace(const std::string& part, nn::AnyModule module) {
  check_not_moved_from();
  check<ValueError>(module.defined(), "ImportedNetwork: the module for '{}' is none", part);
  const std::vector<std::size_t> group = state_->steps_of(part);
  const int output = state_->single_output(group, part);
  const Block& main = state_->program->main;
  std::set<int> made, known;
  for (const std::size_t i : group) made.insert(main.steps[i].outputs.begin(), main.steps[i].outputs.end());
  for (const auto& [value, constant] : state_->program->constants) known.insert(value);
  for (const imported::State& state : state_->tensors) known.insert(state.value);
  std::set<int> inputs;
  for (const std::size_t i : group) {
    check<ValueError>(main.steps[i].blocks.empty(),
                      "ImportedNetwork: part '{}' has a branch or loop, and cannot be replaced", part);
    for (const int value : main.steps[i].inputs)
      if (value >= 0 && !made.contains(value) && !known.contains(value)) inputs.insert(value);
  }
  check<ValueError>(inputs.size() == 1,
                    "ImportedNetwork: part '{}' has {} inputs, and one that is replaced should have one",
                    part, inputs.size());
  module.get().train(training());
  Step step;
  auto node = std::make_shared<Node>();
  node->op = module.get().type_name();
  node->name = part;
  step.node = std::move(node);
  step.inputs = {*inputs.begin()};
  step.outputs = {output};
  step.path = part;
  Block changed = main;
  changed.steps[group.back()] = step;
  for (std::size_t i = group.size() - 1; i-- > 0;)
    changed.steps.erase(changed.steps.begin() + static_cast<std::ptrdiff_t>(group[i]));
  const std::size_t place = group.back() - (group.size() - 1);
  changed.steps[place].layer = static_cast<int>(state_->modules.size());
  auto next = std::make_unique<State>(*state_);
  // A node's name may not be a module's.
  std::string name = part;
  std::replace(name.begin(), name.end(), '/', '.');
  while (name.starts_with('.')) name.erase(0, 1);
  next->modules.push_back({name, std::move(module)});
  next->set_main(*state_->program, std::move(changed));
  state_ = std::move(next);
  return *this;
}

ImportedNetwork ImportedNetwork::until(const std::string& part) const {
  check_not_moved_from();
  const int output = state_->single_output(state_->steps_of(part), part);
  ImportedNetwork shorter(*this);
  Block main = state_->program->main;
  main.outputs = {output};
  Program changed = *state_->program;
  changed.outputs = {{.name = part}};
  shorter.state_->set_main(std::move(changed), std::move(main));
  return shorter;
}

void ImportedNetwork::requires_grad_(const std::string& part, Flag requires_grad) {
  check_not_moved_from();
  bool any = false;
  for (const auto& [name, tensor] : named_parameters())
    if (is_in(name, part)) {
      tensor.set_requires_grad(requires_grad);
      any = true;
    }
  if (any) return;
  (void)state_->steps_of(part);
  fail<ValueError>("ImportedNetwork: no parameter's name begins with '{}.'; named_parameters() lists them",
                   part);
}

ImportedNetwork import_onnx(const std::filesystem::path& file, ReadOptions options) {
  const std::string name = fmt::format("import_onnx: '{}'", file.string());
  ModelFile model = read_model_file(file, options);
  const auto version = model.opsets.find("");
  check<ValueError>(
      version == model.opsets.end() || version->second >= 7,
      "{}: is of opset {}, and import_onnx reads 7 and newer; onnx.version_converter makes it a newer one",
      name, version == model.opsets.end() ? 0 : version->second);
  auto state = std::make_unique<ImportedNetwork::State>();
  state->metadata = std::move(model.metadata);
  const int64_t limit = InputFile("import_onnx", file, options).memory().limit;
  state->program = std::make_shared<const Program>(imported::make_program(std::move(model), name, limit));
  state->make_layers();
  ImportedNetwork net(std::move(state));
  if (default_device() != Device()) net.to(default_device());
  return net;
}

}  // namespace pleat::onnx
