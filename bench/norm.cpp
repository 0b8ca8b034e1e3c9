// pleat-bench norm: batch, layer, group and instance normalisation.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/case.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

/// What tells one from another: everything but sizes and types, which the operands have.
struct Norm {
  std::string layer;
  std::string implementation;  ///< of batch norm
  bool evaluate = false;
  bool relu = false;
  int64_t groups = 1;
};

/// operands: x, weight, bias, and in evaluation running mean and variance.
Tensor forward(const Norm& norm, const std::vector<Tensor>& o) {
  if (norm.layer == "layer") return layer_norm(o[0], o[1], o[2], {.normalized_shape = o[1].shape()});
  if (norm.layer == "group") return group_norm(o[0], o[1], o[2], {.num_groups = norm.groups});
  if (norm.layer == "instance") return instance_norm(o[0], o[1], o[2], {}, {});
  const BatchNormOptions options{
      .training = !norm.evaluate, .relu = norm.relu, .implementation = norm.implementation};
  return norm.evaluate ? batch_norm(o[0], o[1], o[2], o[3], o[4], options)
                       : batch_norm(o[0], o[1], o[2], {}, {}, options);
}

Prepare forward_pass(const Norm& norm) {
  return [norm](const std::vector<Tensor>& operands) -> Compute {
    return [norm, operands] {
      const NoGrad guard;
      return std::vector<Tensor>{forward(norm, operands)};
    };
  };
}

/// The last operand is dy.
Prepare backward_pass(const Norm& norm) {
  return [norm](const std::vector<Tensor>& operands) -> Compute {
    std::vector<Tensor> leaves;
    for (const Tensor& operand : operands) leaves.push_back(operand.detach());
    for (std::size_t i = 0; i < 3; ++i) leaves[i].set_requires_grad();
    const Tensor y = forward(norm, leaves);
    // In the format in which the convolution after it gives it back in training, y's.
    const Tensor dy = ops::to_format(leaves.back(), y.memory_format());
    return [y, dy, leaves] {
      return grad({y}, {leaves[0], leaves[1], leaves[2]}, {dy}, {.retain_graph = true});
    };
  };
}

class NormCommand : public OperationSubcommand {
 public:
  NormCommand() : OperationSubcommand("norm", "batch, layer, group and instance normalisation") {
    operands_.formats = {"contiguous", "channels_last"};
  }

  void add_options(CLI::App& app) override {
    app.add_option("--shape", shapes_, "sizes of the input: N,C or N,C,spatial...; several may be given")
        ->take_all();
    add_list(app, "--layer", layers_, "which normalisations, separated by commas",
             {"batch", "layer", "group", "instance"});
    add_list(app, "--pass", passes_, "which passes, separated by commas", {"forward", "backward"});
    const CLI::Option* implementation =
        add_list(app, "--implementation", implementations_,
                 "of batch norm, separated by commas: native, cudnn, reference; all: all that can, but the "
                 "reference");
    const CLI::Option* groups = app.add_option("--groups", groups_, "of group norm")
                                    ->transform(whole_number(1, 1 << 24))
                                    ->capture_default_str();
    const CLI::Option* eval =
        app.add_flag("--eval", evaluate_, "batch norm with running statistics, as in inference");
    const CLI::Option* relu = app.add_flag("--relu", relu_, "batch norm with a relu in the same pass");
    of_layers_ = {{implementation, "batch"}, {groups, "group"}, {eval, "batch"}, {relu, "batch"}};
    add_operand_options(app, operands_, With::format);
  }

  std::string plot(const std::vector<Record>& records) const override {
    return time_bars("Normalisation", records, {"layer", "implementation", "dtype", "format"});
  }

 protected:
  Layout layout() const override {
    return {.columns = {"layer", "implementation"},
            .competing = {"problem", "pass", "layer", "dtype", "format"}};
  }

  void list(const CommonOptions& common, const Block& block) const override {
    for (const auto& [option, layer] : of_layers_)
      check<UsageError>(
          option->count() == 0 || std::find(layers_.begin(), layers_.end(), layer) != layers_.end(),
          "norm: {}: is for {} norm, which --layer leaves out", option->get_name(), layer);
    const std::vector<Shape> all_shapes =
        shapes(common, {"128,16,32,32", "128,64,32,32", "128,256,8,8", "128,512,4,4"}, {"8,16,16,16"});
    for (const Shape& shape : all_shapes)
      check<UsageError>(shape.size() >= 2, "norm: --shape: must have at least 2 sizes, N,C, got \"{}\"",
                        fmt::join(shape, ","));
    const std::vector<std::string> implementations = chosen_implementations();
    for (const Shape& shape : all_shapes)
      for (const std::string& pass : passes_) {
        std::vector<Case> cases;
        for (const std::string& layer : layers_)
          for (const std::string& name : layer == "batch" ? implementations : std::vector<std::string>{""})
            for (const OperandKind& kind : operands_.kinds(common.chosen_device()))
              cases.push_back(case_of({layer, name, evaluate_, relu_, groups_}, shape, pass, kind));
        block(cases, true);
      }
  }

  /// Of all implementations, those that can are shown.
  void filter(std::vector<Record>& records) const override {
    const auto failed = [](const Record& record) { return !record.time.has_value(); };
    if (wants_all() && !std::all_of(records.begin(), records.end(), failed)) std::erase_if(records, failed);
  }

 private:
  bool wants_all() const { return implementations_ == std::vector<std::string>{"all"}; }

  std::vector<std::string> chosen_implementations() const {
    std::vector<std::string> known;
    for (const ops::BatchNormImplementation* implementation : ops::batch_norm_implementations())
      if (const std::string name(implementation->name());
          std::find(known.begin(), known.end(), name) == known.end())
        known.push_back(name);
    for (const std::string& name : implementations_)
      if (!wants_all()) check_known("norm: --implementation: must be all or some of", name, known);
    std::erase(known, "reference");
    return wants_all() ? known : implementations_;
  }

  Case case_of(const Norm& norm, const Shape& shape, const std::string& pass, const OperandKind& kind) const {
    const bool backward = pass == "backward", batch = norm.layer == "batch";
    std::string layer = norm.layer;
    if (norm.layer == "group") layer += fmt::format(" ({})", norm.groups);
    if (batch) layer += std::string(norm.evaluate ? " eval" : "") + (norm.relu ? " relu" : "");
    Case one = make_case(name(), fmt::format("{}, {}", to_string(shape), pass),
                         {{"pass", pass}, {"layer", layer}, {"implementation", norm.implementation}}, kind);
    // Layer norm is of the dimensions after the batch's.
    const Shape parameters = norm.layer == "layer" ? Shape(shape.begin() + 1, shape.end()) : Shape{shape[1]};
    const DType kept = compute_dtype(one.dtype);
    const OperandKind parameter{std::string(pleat::name(kept)), "", kind.device};
    one.operands = {operand(shape, kind), operand(parameters, parameter, 2),
                    operand(parameters, parameter, 3)};
    if (norm.evaluate && batch) {
      one.operands.push_back(operand(parameters, parameter, 4));
      one.operands.push_back(full(parameters, 1.5, {.dtype = kept, .device = kind.device}));
    }
    if (backward) one.operands.push_back(operand(shape, kind, 5));
    Norm exact = norm;
    if (batch) exact.implementation = "reference";
    one.prepare = backward ? backward_pass(norm) : forward_pass(norm);
    one.reference = backward ? backward_pass(exact) : forward_pass(exact);
    // x and y; or x, dy and dx. What is read twice because it fits no cache counts once.
    const auto elements = static_cast<double>(one.operands[0].numel());
    one.bytes = (backward ? 3 : 2) * elements * static_cast<double>(size_of(one.dtype));
    return one;
  }

  std::vector<std::string> layers_ = {"batch"};
  std::vector<std::string> passes_ = {"forward", "backward"};
  std::vector<std::string> implementations_ = {"all"};
  std::vector<std::pair<const CLI::Option*, std::string>> of_layers_;  ///< options that mean one layer alone
  int64_t groups_ = 8;
  bool evaluate_ = false;
  bool relu_ = false;
};

}  // namespace

SubcommandPointer make_norm() { return std::make_unique<NormCommand>(); }

}  // namespace pleat::bench
