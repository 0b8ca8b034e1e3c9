// pleat-bench norm: batch, layer, group and instance normalisation.
#include <algorithm>
#include <functional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/case.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

/// Of x, weight, bias, and for batch norm in evaluation running mean and variance.
using Function = std::function<Tensor(const Tensors&)>;

/// In a backward pass the last operand is dy.
Prepare pass_of(const Function& forward, bool backward) {
  return [forward, backward](const Tensors& operands) -> Compute {
    if (!backward) return [forward, operands] { return Tensors{no_grad([&] { return forward(operands); })}; };
    Tensors leaves;
    for (const Tensor& operand : operands) leaves.push_back(operand.detach());
    for (std::size_t i = 0; i < 3; ++i) leaves[i].set_requires_grad();
    const Tensor y = forward(leaves);
    // In the format in which the convolution after it gives it back in training, y's.
    const Tensor dy = ops::to_format(leaves.back(), y.memory_format());
    return [y, dy, leaves] {
      return grad({y}, {leaves[0], leaves[1], leaves[2]}, {dy}, {.retain_graph = true});
    };
  };
}

class NormCommand : public OperationSubcommand {
 public:
  NormCommand()
      : OperationSubcommand("norm", "batch, layer, group and instance normalisation",
                            {.description = "sizes of the input: N,C or N,C,spatial...",
                             .usual = {"128,16,32,32", "128,64,32,32", "128,256,8,8", "128,512,4,4"},
                             .quick = {"8,16,16,16"},
                             .must_have = "at least 2 sizes, N,C",
                             .fits = [](std::size_t n) { return n >= 2; }}) {
    operands_.formats = {"contiguous", "channels_last"};
    passes_ = {"forward", "backward"};
    layout_ = {.columns = {"layer", "implementation"},
               .competing = {"problem", "pass", "layer", "dtype", "format"}};
    chart_ = {.title = "Normalisation", .series = {"layer", "implementation", "dtype", "format"}};
  }

  void add_options(CLI::App& app) override {
    OperationSubcommand::add_options(app);
    add_list(app, "--layer", layers_, "which normalisations, separated by commas",
             {"batch", "layer", "group", "instance"});
    of_layers_ = {
        {add_list(app, "--implementation", implementations_,
                  "of batch norm, separated by commas: native, cudnn, reference; all: all that can, but the "
                  "reference"),
         "batch"},
        {add_number(app, "--groups", groups_, 1, "of group norm"), "group"},
        {app.add_flag("--eval", evaluate_, "batch norm with running statistics, as in inference"), "batch"},
        {app.add_flag("--relu", relu_, "batch norm with a relu in the same pass"), "batch"}};
  }

 protected:
  void check_options(const std::vector<Shape>&) const override {
    for (const auto& [option, layer] : of_layers_)
      check<UsageError>(option->count() == 0 || contains(layers_, layer),
                        "norm: {}: is for {} norm, which --layer leaves out", option->get_name(), layer);
    std::vector<std::string> known = known_implementations();
    known.emplace_back("reference");
    for (const std::string& name : implementations_)
      if (!wants_all()) check_known("norm: --implementation: must be all or some of", name, known);
  }

  std::vector<Case> cases(const Shape& shape, const std::string& pass,
                          const std::vector<OperandKind>& kinds) const override {
    std::vector<Case> all;
    for (const std::string& layer : layers_)
      for (const std::string& name : layer != "batch" ? std::vector<std::string>{""}
                                     : wants_all()    ? known_implementations()
                                                      : implementations_)
        for (const OperandKind& kind : kinds) all.push_back(case_of(layer, name, shape, pass, kind));
    return all;
  }

  /// Of all implementations, those that can are shown.
  void filter(std::vector<Record>& records) const override {
    const auto failed = [](const Record& record) { return !record.time.has_value(); };
    if (wants_all() && !std::all_of(records.begin(), records.end(), failed)) std::erase_if(records, failed);
  }

 private:
  bool wants_all() const { return implementations_ == std::vector<std::string>{"all"}; }

  /// Without the reference.
  static std::vector<std::string> known_implementations() {
    std::vector<std::string> known;
    for (const ops::BatchNormImplementation* one : ops::batch_norm_implementations())
      if (const std::string name(one->name()); name != "reference" && !contains(known, name))
        known.push_back(name);
    return known;
  }

  /// `implementation` is of batch norm.
  Function function(const std::string& layer, const std::string& implementation) const {
    if (layer == "layer")
      return [](const auto& o) { return layer_norm(o[0], o[1], o[2], {.normalized_shape = o[1].shape()}); };
    if (layer == "group")
      return [n = groups_](const auto& o) { return group_norm(o[0], o[1], o[2], {.num_groups = n}); };
    if (layer == "instance") return [](const auto& o) { return instance_norm(o[0], o[1], o[2], {}, {}); };
    const BatchNormOptions options{.training = !evaluate_,
                                   .bounds = relu_ ? Bounds{.min = 0} : Bounds(),
                                   .implementation = implementation};
    if (evaluate_) return [=](const auto& o) { return batch_norm(o[0], o[1], o[2], o[3], o[4], options); };
    return [=](const auto& o) { return batch_norm(o[0], o[1], o[2], {}, {}, options); };
  }

  Case case_of(const std::string& layer, const std::string& implementation, const Shape& shape,
               const std::string& pass, const OperandKind& kind) const {
    const bool backward = pass == "backward", batch = layer == "batch";
    std::string label = layer;
    if (layer == "group") label += fmt::format(" ({})", groups_);
    if (batch) label += std::string(evaluate_ ? " eval" : "") + (relu_ ? " relu" : "");
    Case one = make_case(name(), fmt::format("{}, {}", to_string(shape), pass),
                         {{"pass", pass}, {"layer", label}, {"implementation", implementation}}, kind);
    // Layer norm is of the dimensions after the batch's.
    const Shape parameters = layer == "layer" ? Shape(shape.begin() + 1, shape.end()) : Shape{shape[1]};
    const OperandKind parameter{std::string(pleat::name(compute_dtype(one.dtype))), "", kind.device};
    one.operands = {operand(shape, kind), operand(parameters, parameter, 2),
                    operand(parameters, parameter, 3)};
    if (evaluate_ && batch) {
      one.operands.push_back(operand(parameters, parameter, 4));
      one.operands.push_back(as_kind(full(parameters, 1.5), parameter));
    }
    if (backward) one.operands.push_back(operand(shape, kind, 5));
    one.prepare = pass_of(function(layer, implementation), backward);
    one.reference = pass_of(function(layer, batch ? "reference" : ""), backward);
    // x and y; or x, dy and dx. What is read twice because it fits no cache counts once.
    one.bytes = (backward ? 3 : 2) * bytes_of({one.operands[0]});
    return one;
  }

  std::vector<std::string> layers_ = {"batch"}, implementations_ = {"all"};
  std::vector<std::pair<const CLI::Option*, std::string>> of_layers_;  ///< options that mean one layer alone
  int64_t groups_ = 8;
  bool evaluate_ = false, relu_ = false;
};

}  // namespace

SubcommandPointer make_norm() { return std::make_unique<NormCommand>(); }

}  // namespace pleat::bench
