#include "pleat/onnx/export.h"

#include <algorithm>
#include <optional>
#include <set>

#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/nn/mode_scope.h"
#include "pleat/onnx/emit.h"
#include "pleat/onnx/functions.h"

namespace pleat::onnx {
namespace {

/// What batch_dims_of gives, of inputs with one size of the batch; empty where no input has one.
std::vector<int64_t> checked_batch_dims(const std::vector<Tensor>& examples, const IntegerList& given) {
  const std::vector<int64_t> dims = batch_dims_of("export_onnx", examples, given);
  std::optional<int64_t> batch;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) continue;
    const int64_t size = examples[i].size(dims[i]);
    check<ValueError>(size >= 1 && batch.value_or(size) == size,
                      "export_onnx: all inputs need one size of the batch, at least 1, got {} and {}; "
                      ".batch_dims says which dimension it is",
                      batch.value_or(size), size);
    batch = size;
  }
  return batch ? dims : std::vector<int64_t>();
}

std::vector<std::string> port_names(const char* what, const std::vector<std::string>& given,
                                    std::size_t count) {
  check<ValueError>(given.empty() || given.size() == count, "export_onnx: there are {} {}s, but {} names",
                    count, what, given.size());
  if (!given.empty()) return given;
  if (count == 1) return {what};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("{}_{}", what, i));
  return names;
}

void check_names(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::set<std::string> seen;
  for (const auto* list : {&inputs, &outputs})
    for (const std::string& name : *list)
      check<ValueError>(!name.empty() && seen.insert(name).second,
                        "export_onnx: names of inputs and outputs must differ and not be empty, got \"{}\"{}",
                        name, name.empty() ? "" : " twice");
}

void convert(GraphBuilder& builder, const Plan& plan, std::size_t index) {
  const Call& call = plan.trace.calls[index];
  const auto found = conversions().find(call.function);
  check<ValueError>(found != conversions().end(),
                    "export_onnx: {} has no form in ONNX; docs/modules.md lists the functions that have one",
                    call.where());
  check<ValueError>(knows_function(call.function, call.inputs.size()),
                    "export_onnx: {} cannot be written in the form that was called", call.where());
  Emit emit(builder, plan, index);
  const Results results = found->second.convert(emit);
  for (std::size_t i = 0; i < call.outputs.size(); ++i)
    if (call.outputs[i] >= 0) builder.set_name(call.outputs[i], results.at(i).name(emit));
}

/// The values that a result needs: others may have been computed by functions without a form.
std::vector<bool> needed_calls(const Trace& trace) {
  std::set<int> needed(trace.outputs.begin(), trace.outputs.end());
  std::vector<bool> result(trace.calls.size());
  for (std::size_t i = trace.calls.size(); i-- > 0;) {
    const Call& call = trace.calls[i];
    result[i] =
        std::any_of(call.outputs.begin(), call.outputs.end(), [&](int v) { return needed.contains(v); });
    if (result[i]) needed.insert(call.inputs.begin(), call.inputs.end());
  }
  return result;
}

Port port_of(const Plan& plan, int value, std::string name) {
  const auto v = static_cast<std::size_t>(value);
  return {std::move(name), plan.trace.values[v].tensor.dtype(), plan.shapes[v]};
}

Graph graph_of(const Plan& plan, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
  GraphBuilder builder(plan);
  for (const auto* list : {&inputs, &outputs})
    for (const std::string& name : *list) builder.unique(name);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    builder.set_name(plan.trace.inputs[i], inputs[i]);
    builder.graph.inputs.push_back(port_of(plan, plan.trace.inputs[i], inputs[i]));
  }
  const std::vector<bool> needed = needed_calls(plan.trace);
  for (std::size_t i = 0; i < plan.trace.calls.size(); ++i)
    if (needed[i]) convert(builder, plan, i);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<std::string> made =
        builder.node("Identity", "", {builder.name_of(plan.trace.outputs[i])}, {}, 1);
    builder.graph.nodes.back().outputs = {outputs[i]};
    builder.graph.outputs.push_back(port_of(plan, plan.trace.outputs[i], outputs[i]));
  }
  return std::move(builder.graph);
}

/// Takes away identities that only give a node's result the name of an output.
void name_results(Graph& graph) {
  std::map<std::string, std::string> names;
  std::map<std::string, std::size_t> makers;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const std::string& output : graph.nodes[n].outputs) makers.emplace(output, n);
  std::vector<bool> gone(graph.nodes.size());
  for (std::size_t n = graph.nodes.size(); n-- > 0 && graph.nodes[n].op == "Identity";)
    if (makers.contains(graph.nodes[n].inputs[0]) &&
        names.emplace(graph.nodes[n].inputs[0], graph.nodes[n].outputs[0]).second)
      gone[n] = true;
  std::vector<Node> kept;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (gone[n]) continue;
    Node& node = graph.nodes[n];
    for (auto* list : {&node.inputs, &node.outputs})
      for (std::string& name : *list)
        if (const auto found = names.find(name); found != names.end()) name = found->second;
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
}

void write(const std::filesystem::path& file, nn::Module* net, const std::vector<Tensor>& examples,
           const Function& function, const ExportOptions& options) {
  check<ValueError>(function != nullptr, "export_onnx: the function is empty");
  check<ValueError>(!examples.empty(), "export_onnx: needs an example of each input");
  for (const Tensor& example : examples)
    check<ValueError>(example.defined(), "export_onnx: an example of an input is undefined");
  const std::vector<int64_t> batch_dims = checked_batch_dims(examples, options.batch_dims);
  const std::vector<std::string> inputs = port_names("input", options.input_names, examples.size());
  check_names(inputs, options.output_names);
  AtomicFile::check_writable("export_onnx", file);
  std::optional<nn::ModeScope> scope;
  if (net != nullptr) scope.emplace(*net, nn::Mode::evaluation);
  const Plan plan = make_plan(net, function, examples, batch_dims);
  const std::vector<std::string> outputs =
      port_names("output", options.output_names, plan.trace.outputs.size());
  check_names(inputs, outputs);
  Graph graph = graph_of(plan, inputs, outputs);
  graph.name = net != nullptr ? net->type_name() : "function";
  graph.metadata = options.metadata;
  name_results(graph);
  prune(graph);
  write_file("export_onnx", file, bytes_of(graph));
}

}  // namespace

void export_onnx(const std::filesystem::path& file, nn::Module& net, const Tensor& example,
                 const ExportOptions& options) {
  write(
      file, &net, {example}, [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; },
      options);
}

void export_onnx(const std::filesystem::path& file, nn::Module& net, const std::vector<Tensor>& examples,
                 const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                 const ExportOptions& options) {
  write(file, &net, examples, function, options);
}

void export_onnx(const std::filesystem::path& file, const std::vector<Tensor>& examples,
                 const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                 const ExportOptions& options) {
  write(file, nullptr, examples, function, options);
}

}  // namespace pleat::onnx
