#include "pleat/nn/summary.h"

#include <map>
#include <ostream>
#include <set>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/terminal.h"
#include "pleat/core/base/text_table.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/mode_scope.h"

namespace pleat::nn {
namespace {

/// A weight element takes part once for each place of the side that the weight's first dimension belongs to.
int64_t places(const Tensor& side, int64_t channels) { return channels == 0 ? 0 : side.numel() / channels; }

template <class M>
bool count_as(const Module& module, const Tensor& side, int64_t& count) {
  const auto* layer = dynamic_cast<const M*>(&module);
  if (layer != nullptr)
    count = checked_multiply(layer->weight.numel(), places(side, layer->weight.size(0)), "summary");
  return layer != nullptr;
}

int64_t multiply_adds(const Module& module, const Tensor& input, const Tensor& output) {
  int64_t n = 0;
  count_as<Linear>(module, output, n) || count_as<ConvModule>(module, output, n) ||
      count_as<ConvTransposeModule>(module, input, n);
  return n;
}

class Recorder : public ForwardObserver {
 public:
  explicit Recorder(Module& net) {
    for (const auto& [path, module] : net.named_modules()) paths_.emplace(module, path);
  }

  void enter(Module& module, const Tensor& input) override {
    const auto path = paths_.find(&module);
    open_.push_back(rows.size());
    rows.push_back({path == paths_.end() ? std::string() : path->second,
                    module.type_name(),
                    static_cast<int>(open_.size()) - 1,
                    input.shape(),
                    {},
                    own_parameters(module),
                    0});
  }

  void leave(Module& module, const Tensor& input, const Tensor& output) override {
    const std::size_t row = open_.back();
    open_.pop_back();
    if (!output.defined()) return;
    rows[row].output = output.shape();
    rows[row].multiply_adds = multiply_adds(module, input, output);
    if (row + 1 == rows.size()) activation_bytes += output.numel() * size_of(output.dtype());
  }

  std::vector<SummaryRow> rows;
  int64_t activation_bytes = 0;

 private:
  int64_t own_parameters(Module& module) {
    Members members;
    module.members(members);
    int64_t n = 0;
    for (const Members::Item& item : members.items())
      if (item.tensor != nullptr && !item.buffer && item.tensor->defined() &&
          counted_.insert(&item.tensor->impl()).second)
        n += item.tensor->numel();
    return n;
  }

  std::map<const Module*, std::string> paths_;
  std::set<const TensorImpl*> counted_;
  std::vector<std::size_t> open_;  ///< rows of the calls that have not ended
};

std::string bytes_text(int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", b / 1024);
  if (bytes < 1024 * 1024 * 1024) return fmt::format("{:.1f} MiB", b / (1024 * 1024));
  return fmt::format("{:.2f} GiB", b / (1024 * 1024 * 1024));
}

}  // namespace

Summary summary(Module& net, const Tensor& input) {
  Summary result;
  for (const auto& [name, parameter] : net.named_parameters()) {
    result.parameters += parameter.numel();
    if (parameter.requires_grad()) result.trainable_parameters += parameter.numel();
    result.parameter_bytes += parameter.numel() * size_of(parameter.dtype());
  }
  const NoGrad no_grad;
  const ModeScope scope(net, Mode::evaluation);
  Recorder recorder(net);
  net(input);
  result.rows = std::move(recorder.rows);
  result.activation_bytes = recorder.activation_bytes;
  for (const SummaryRow& row : result.rows) result.multiply_adds += row.multiply_adds;
  return result;
}

Summary summary(Module& net, const Sizes& input_shape) {
  TensorOptions options;
  if (const std::vector<Tensor> parameters = net.parameters(); !parameters.empty())
    options = {.dtype = parameters[0].dtype(), .device = parameters[0].device()};
  return summary(net, zeros(input_shape, options));
}

std::string to_string(const Summary& summary) {
  TextTable table({{.left = true, .wraps = 24}, {.left = true, .wraps = 24}, {}, {}});
  table.add_rule(true);
  table.add({"Layer", "Output", "Parameters", "Multiply-adds"});
  table.add_rule(true);
  std::vector<std::string> open;  // paths of the calls around a row
  for (const SummaryRow& row : summary.rows) {
    open.resize(static_cast<std::size_t>(row.depth));
    // The path within the module around it.
    std::string name = row.path;
    if (!open.empty() && !open.back().empty() && name.starts_with(open.back() + '.'))
      name.erase(0, open.back().size() + 1);
    open.push_back(row.path);
    table.add({std::string(static_cast<std::size_t>(2 * row.depth), ' ') + (name.empty() ? "" : name + ": ") +
                   row.type,
               pleat::to_string(row.output), row.parameters == 0 ? "" : grouped(row.parameters),
               row.multiply_adds == 0 ? "" : grouped(row.multiply_adds)});
  }
  table.add_rule(true);
  const int width = page_width();
  table.fit(static_cast<std::size_t>(width));
  return table.text() +
         wrapped(
             fmt::format(
                 "Parameters: {} ({}), {} to train\nMultiply-adds: {}, activations: {}, for the input {}\n",
                 grouped(summary.parameters), bytes_text(summary.parameter_bytes),
                 grouped(summary.trainable_parameters), grouped(summary.multiply_adds),
                 bytes_text(summary.activation_bytes),
                 summary.rows.empty() ? Shape() : summary.rows.front().input),
             width);
}

std::ostream& operator<<(std::ostream& out, const Summary& summary) { return out << to_string(summary); }

}  // namespace pleat::nn
