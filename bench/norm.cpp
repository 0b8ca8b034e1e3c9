// pleat-bench norm: batch, layer, group and instance normalisation.
#include "pleat/autograd/functions/norm.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/bench/candidate.h"
#include "pleat/bench/parse.h"
#include "pleat/bench/pictures.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/norm/implementation.h"

namespace pleat::bench {
namespace {

const std::vector<std::string> layer_names = {"batch", "layer", "group", "instance"};
const std::vector<std::string> pass_names = {"forward", "backward"};

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
    // Where training has it, too: in the format in which the convolution after it gives it back, y's.
    const Tensor dy = ops::to_format(leaves.back(), y.memory_format());
    return [y, dy, leaves] {
      return grad({y}, {leaves[0], leaves[1], leaves[2]}, {dy}, {.retain_graph = true});
    };
  };
}

class NormCommand : public Subcommand {
 public:
  std::string name() const override { return "norm"; }
  std::string summary() const override { return "batch, layer, group and instance normalisation"; }

  void add_options(CLI::App& app) override {
    app.add_option("--shape", shapes_, "sizes of the input: N,C or N,C,spatial...; several may be given")
        ->take_all();
    add_list(app, "--layer", layers_, "which normalisations, separated by commas", layer_names);
    add_list(app, "--pass", passes_, "which passes, separated by commas", pass_names);
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
    add_dtype_option(app, operands_);
    add_format_option(app, operands_);
    add_check_option(app, operands_);
  }

  void run(const CommonOptions& common, Report& report) override {
    for (const auto& [option, layer] : of_layers_)
      check<UsageError>(
          option->count() == 0 || std::find(layers_.begin(), layers_.end(), layer) != layers_.end(),
          "norm: {}: is for {} norm, which --layer leaves out", option->get_name(), layer);
    std::vector<std::string> texts = shapes_;
    if (texts.empty())
      texts = common.quick
                  ? std::vector<std::string>{"8,16,16,16"}
                  : std::vector<std::string>{"128,16,32,32", "128,64,32,32", "128,256,8,8", "128,512,4,4"};
    std::vector<Shape> shapes;
    for (const std::string& text : texts) {
      shapes.push_back(parse_sizes("norm: --shape", text));
      check<UsageError>(shapes.back().size() >= 2,
                        "norm: --shape: must have at least 2 sizes, N,C, got \"{}\"", text);
    }
    const std::vector<std::string> implementations = chosen_implementations();
    std::vector<Column> columns{label_column("layer", "layer"),
                                label_column("implementation", "implementation"),
                                label_column("type", "dtype"), label_column("format", "format")};
    for (Column& column : measured_columns()) columns.push_back(std::move(column));
    report.set_layout({.heading = {"problem"},
                       .columns = std::move(columns),
                       .race = {"problem", "pass", "layer", "dtype", "format"}});
    for (const Shape& shape : shapes)
      for (const std::string& pass : passes_) {
        std::vector<Candidate> candidates;
        for (const std::string& layer : layers_)
          for (const std::string& implementation :
               layer == "batch" ? implementations : std::vector<std::string>{""})
            for (const std::string& dtype : operands_.dtypes)
              for (const std::string& format : operands_.formats)
                candidates.push_back(candidate({.layer = layer,
                                                .implementation = implementation,
                                                .evaluate = evaluate_,
                                                .relu = relu_,
                                                .groups = groups_},
                                               shape, pass, dtype, format, common));
        std::vector<Record> records = measure(name(), candidates, common, operands_.check);
        // Who asks for all has those that can.
        const auto failed = [](const Record& record) { return !record.time.has_value(); };
        if (implementations_ == std::vector<std::string>{"all"} &&
            !std::all_of(records.begin(), records.end(), failed))
          std::erase_if(records, failed);
        report.add(records);
      }
  }

  bool has_plot() const override { return true; }
  std::string plot(const std::vector<Record>& records) const override {
    return time_bars("Normalisation", records, {"layer", "implementation", "dtype", "format"});
  }

 private:
  std::vector<std::string> chosen_implementations() const {
    std::vector<std::string> known;
    for (const ops::BatchNormImplementation* implementation : ops::batch_norm_implementations())
      if (const std::string name(implementation->name());
          std::find(known.begin(), known.end(), name) == known.end())
        known.push_back(name);
    if (implementations_ == std::vector<std::string>{"all"}) {
      std::erase(known, "reference");
      return known;
    }
    for (const std::string& wish : implementations_)
      check<UsageError>(std::find(known.begin(), known.end(), wish) != known.end(),
                        "norm: --implementation: must be all or some of {}, got \"{}\"",
                        fmt::join(known, ", "), wish);
    return implementations_;
  }

  Candidate candidate(const Norm& norm, const Shape& shape, const std::string& pass,
                      const std::string& dtype_name, const std::string& format,
                      const CommonOptions& common) const {
    const DType dtype = parse_dtype(dtype_name);
    const Device device = common.chosen_device();
    const bool backward = pass == "backward";
    // Layer norm, of the dimensions after the batch's.
    const Shape parameters = norm.layer == "layer" ? Shape(shape.begin() + 1, shape.end()) : Shape{shape[1]};
    const DType kept = is_half(dtype) ? DType::float32 : dtype;
    Candidate result;
    result.operands = {operand(shape, dtype, device, format),
                       operand(parameters, kept, device, "contiguous", 2),
                       operand(parameters, kept, device, "contiguous", 3)};
    if (norm.evaluate && norm.layer == "batch") {
      result.operands.push_back(operand(parameters, kept, device, "contiguous", 4));
      result.operands.push_back(full(parameters, 1.5, {.dtype = kept, .device = device}));
    }
    if (backward) result.operands.push_back(operand(shape, dtype, device, format, 5));
    result.labels = {{"problem", fmt::format("{}, {}", to_string(shape), pass)},
                     {"pass", pass},
                     {"layer", description(norm)},
                     {"implementation", norm.implementation},
                     {"dtype", dtype_name},
                     {"format", format},
                     {"device", pleat::name(device)}};
    Norm exact = norm;
    if (norm.layer == "batch") exact.implementation = "reference";
    result.prepare = backward ? backward_pass(norm) : forward_pass(norm);
    result.reference = backward ? backward_pass(exact) : forward_pass(exact);
    // x and y; or x, dy and dx. What is read twice because it fits no cache counts once.
    double elements = 1;
    for (const int64_t size : shape) elements *= static_cast<double>(size);
    result.bytes = (backward ? 3 : 2) * elements * static_cast<double>(size_of(dtype));
    return result;
  }

  static std::string description(const Norm& norm) {
    if (norm.layer == "group") return fmt::format("group ({})", norm.groups);
    if (norm.layer != "batch") return norm.layer;
    return std::string("batch") + (norm.evaluate ? " eval" : "") + (norm.relu ? " relu" : "");
  }

  std::vector<std::string> shapes_;
  std::vector<std::string> layers_ = {"batch"};
  std::vector<std::string> passes_ = pass_names;
  std::vector<std::string> implementations_ = {"all"};
  std::vector<std::pair<const CLI::Option*, std::string>> of_layers_;  ///< options that mean one layer alone
  int64_t groups_ = 8;
  bool evaluate_ = false;
  bool relu_ = false;
  OperandOptions operands_{.formats = {"contiguous", "channels_last"}};
};

}  // namespace

SubcommandPointer make_norm() { return std::make_unique<NormCommand>(); }

}  // namespace pleat::bench
