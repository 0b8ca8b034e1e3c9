#include "pleat/onnx/import/operators.h"
#include "pleat/onnx/import/program.h"

/// Branches, loops and sequences. They are run as they come: a condition that depends on the network's input
/// is read.

namespace pleat::onnx::imported {
namespace {

bool is_true(NodeCall& n, const GraphValue& condition) {
  if (!condition.tensor.defined() || condition.tensor.numel() != 1) n.fail("needs one condition");
  return condition.tensor.to_vector<double>()[0] != 0;
}

NodeResults branch(NodeCall& n) {
  return n.run(n.block(is_true(n, n.value(0)) ? "then_branch" : "else_branch"), {});
}

/// Inputs: a number of steps, a condition, states. The body takes the step, the condition and the states, and
/// gives the condition, the states and what is collected.
NodeResults loop(NodeCall& n) {
  const int64_t most = n.has(0) ? n.integer(0) : std::numeric_limits<int64_t>::max();
  GraphValue condition = n.has(1) ? n.value(1) : on_host(scalar(true));
  GraphValues states;
  for (std::size_t i = 2; i < n.inputs(); ++i) states.push_back(n.value(i));
  const Block& body = n.block("body");
  if (body.outputs.size() < states.size() + 1) n.fail("the body gives too few values");
  std::vector<std::vector<Tensor>> collected(body.outputs.size() - states.size() - 1);
  for (int64_t step = 0; step < most && is_true(n, condition); ++step) {
    GraphValues inputs{on_host(scalar(step, int64)), condition};
    inputs.insert(inputs.end(), states.begin(), states.end());
    GraphValues results = n.run(body, std::move(inputs));
    condition = results[0];
    for (std::size_t i = 0; i < states.size(); ++i) states[i] = results[1 + i];
    for (std::size_t i = 0; i < collected.size(); ++i)
      collected[i].push_back(n.operand(results[1 + states.size() + i]));
  }
  for (const std::vector<Tensor>& each : collected) {
    if (each.empty()) n.fail("made no step, and the shape of what it collects is not known");
    states.push_back(stack(each, 0));
  }
  return states;
}

/// States, then inputs that are read step by step along an axis.
NodeResults scan(NodeCall& n) {
  const auto scanned = static_cast<std::size_t>(n.integer("num_scan_inputs", 1));
  // Opset 8 has a batch and lengths.
  if (n.opset() < 9) n.fail("is of opset 8, which is not computed; export with a newer one");
  if (scanned > n.inputs() || scanned == 0) n.fail("has fewer inputs than it scans");
  const std::size_t count = n.inputs() - scanned;
  const Block& body = n.block("body");
  if (body.outputs.size() < count) n.fail("the body gives too few values");
  const auto at = [](const std::vector<int64_t>& list, std::size_t i) {
    return i < list.size() ? list[i] : 0;
  };
  const auto axes = n.integers("scan_input_axes"), turned = n.integers("scan_input_directions");
  const auto out_axes = n.integers("scan_output_axes"), out_turned = n.integers("scan_output_directions");
  GraphValues states;
  for (std::size_t i = 0; i < count; ++i) states.push_back(n.value(i));
  std::vector<std::vector<Tensor>> collected(body.outputs.size() - count);
  const int64_t steps = n.x(count).size(n.axis(at(axes, 0), n.rank(count)));
  for (int64_t step = 0; step < steps; ++step) {
    GraphValues inputs = states;
    for (std::size_t i = 0; i < scanned; ++i) {
      const Tensor& x = n.x(count + i);
      const int64_t axis = n.axis(at(axes, i), x.rank());
      const int64_t place = at(turned, i) == 1 ? x.size(axis) - 1 - step : step;
      inputs.push_back(squeeze(narrow(x, axis, place, 1), {axis}));
      inputs.back().on_host = n.on_host();
    }
    GraphValues results = n.run(body, std::move(inputs));
    for (std::size_t i = 0; i < count; ++i) states[i] = results[i];
    for (std::size_t i = 0; i < collected.size(); ++i) collected[i].push_back(n.operand(results[count + i]));
  }
  for (std::size_t i = 0; i < collected.size(); ++i) {
    if (collected[i].empty()) n.fail("made no step, and the shape of what it collects is not known");
    if (at(out_turned, i) == 1) std::reverse(collected[i].begin(), collected[i].end());
    states.push_back(stack(collected[i], at(out_axes, i)));
  }
  return states;
}

const GraphValues& sequence(NodeCall& n, std::size_t i = 0) {
  const GraphValue& value = n.value(i);
  if (!value.sequence) n.fail(fmt::format("input {} should be a sequence", i));
  return *value.sequence;
}

std::size_t place(NodeCall& n, std::size_t input, std::size_t size) {
  const int64_t given = n.integer(input), i = given < 0 ? given + static_cast<int64_t>(size) : given;
  if (i < 0 || i >= static_cast<int64_t>(size))
    n.fail(fmt::format("place {} is outside of a sequence of {}", given, size));
  return static_cast<std::size_t>(i);
}

NodeResults sequence_construct(NodeCall& n) {
  GraphValues all;
  for (std::size_t i = 0; i < n.inputs(); ++i) all.push_back(n.value(i));
  return GraphValue(std::move(all));
}

NodeResults sequence_insert(NodeCall& n) {
  GraphValues all = sequence(n);
  const std::size_t at = n.has(2) ? place(n, 2, all.size() + 1) : all.size();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), n.value(1));
  return GraphValue(std::move(all));
}

NodeResults sequence_erase(NodeCall& n) {
  GraphValues all = sequence(n);
  if (all.empty()) n.fail("the sequence is empty");
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(n.has(1) ? place(n, 1, all.size()) : all.size() - 1));
  return GraphValue(std::move(all));
}

NodeResults split_to_sequence(NodeCall& n) {
  const Tensor& x = n.x(0);
  const int64_t axis = n.axis(n.integer("axis", 0), x.rank());
  const bool each_alone = !n.has(1);
  std::vector<Tensor> parts;
  if (each_alone || n.value(1).tensor.rank() == 0)
    parts = split(x, each_alone ? 1 : n.integer(1), axis);
  else
    parts = split_with_sizes(x, IntegerList(n.integers(1)), axis);
  if (each_alone && !n.flag("keepdims", true))
    for (Tensor& part : parts) part = squeeze(part, {axis});
  GraphValues all(parts.begin(), parts.end());
  for (GraphValue& one : all) one.on_host = n.on_host();
  return GraphValue(std::move(all));
}

NodeResults concat_from_sequence(NodeCall& n) {
  std::vector<Tensor> parts;
  for (const GraphValue& one : sequence(n)) parts.push_back(n.operand(one));
  if (parts.empty()) n.fail("the sequence is empty");
  const bool is_new = n.flag("new_axis");
  const int64_t axis = n.axis(n.integer("axis", 0), parts[0].rank() + (is_new ? 1 : 0));
  return is_new ? stack(parts, axis) : cat(parts, axis);
}

}  // namespace

Operators control_operators() {
  return {
      {"ConcatFromSequence/1(axis new_axis)", {concat_from_sequence}},
      {"If/1(else_branch then_branch)", {branch}},
      {"Loop(body)", {loop}},
      {"Scan(body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
       "scan_output_directions)",
       {scan}},
      {"SequenceAt/2",
       {[](NodeCall& n) -> NodeResults { return sequence(n)[place(n, 1, sequence(n).size())]; }}},
      {"SequenceConstruct", {sequence_construct}},
      {"SequenceEmpty/0(dtype)", {[](NodeCall&) -> NodeResults { return GraphValue(GraphValues()); }}},
      {"SequenceErase/2", {sequence_erase}},
      {"SequenceInsert/3", {sequence_insert}},
      {"SequenceLength/1",
       {[](NodeCall& n) -> NodeResults { return on_host(scalar(std::ssize(sequence(n)), int64)); }}},
      {"SplitToSequence/2(axis keepdims)", {split_to_sequence}},
  };
}

}  // namespace pleat::onnx::imported
