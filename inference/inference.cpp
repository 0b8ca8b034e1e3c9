#include "pleat/inference/inference.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/inference/captured_plan.h"
#include "pleat/inference/fold.h"
#include "pleat/inference/plan.h"
#include "pleat/nn/mode_scope.h"
#include "pleat/onnx/plan.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// What a plan is for: shapes, types and devices of inputs, whatever the size of their batch where `dims`
/// says which dimension that is.
struct Key {
  Key(const std::vector<Tensor>& inputs, std::vector<int64_t> dims) : batch_dims(std::move(dims)) {
    for (const Tensor& x : inputs) ports.push_back({x.shape(), x.dtype(), x.device()});
  }

  bool fits(const std::vector<Tensor>& inputs) const {
    if (inputs.size() != ports.size()) return false;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const Tensor& x = inputs[i];
      if (ports[i].dtype != x.dtype() || ports[i].device != x.device() ||
          ports[i].shape.size() != x.shape().size())
        return false;
      for (std::size_t d = 0; d < ports[i].shape.size(); ++d)
        if (ports[i].shape[d] != x.shape()[d] && !is_batch(i, d)) return false;
    }
    return true;
  }
  bool is_batch(std::size_t input, std::size_t dim) const {
    return !batch_dims.empty() && batch_dims[input] == static_cast<int64_t>(dim);
  }

  struct Port {
    Shape shape;
    DType dtype;
    Device device;
  };
  std::vector<Port> ports;
  std::vector<int64_t> batch_dims;  ///< of each input, or -1; empty: no size is free
};

/// The size of the batch that all inputs with one have; -1: they have none, of different sizes, or of 0.
int64_t batch_of(const std::vector<Tensor>& inputs, const std::vector<int64_t>& dims) {
  int64_t batch = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) continue;
    const int64_t size = inputs[i].size(dims[i]);
    if (size < 1 || (batch >= 0 && batch != size)) return -1;
    batch = size;
  }
  return batch;
}

bool are_on_one_gpu(const std::vector<Tensor>& inputs) {
  return inputs[0].device().is_cuda() && std::all_of(inputs.begin(), inputs.end(), [&](const Tensor& x) {
           return x.device() == inputs[0].device();
         });
}

struct Program {
  Key key;
  onnx::Plan plan;
};

struct Known {
  Key key;
  std::shared_ptr<const inference::Plan> plan;        ///< null: the network runs as it is
  std::shared_ptr<inference::CapturedPlan> captured;  ///< the plan on a GPU, where it can be
  std::string reason;                                 ///< why there is no plan, or what it is not
  uint64_t last_call;
};

std::string describe(const Known& known) {
  std::string text;
  for (const Key::Port& port : known.key.ports)
    text += fmt::format("{}{} {}", text.empty() ? "inputs " : ", ", to_string(port.shape), name(port.dtype));
  if (known.captured != nullptr) text += ", as a CUDA graph";
  if (known.plan != nullptr)
    return text + (known.reason.empty() ? "" : ", " + known.reason) + ":\n" + known.plan->describe();
  return text + ": the network as it is, since a plan cannot follow it: " + known.reason + '\n';
}

/// Throws ValueError unless int8 can be introduced by the examples.
void check_calibration(nn::Module& net, const std::vector<Tensor>& inputs,
                       const std::vector<std::vector<Tensor>>& calibration) {
  const auto check_type = [](const Tensor& t, const char* what) {
    check<ValueError>(t.device().is_cpu() && (!is_floating(t.dtype()) || t.dtype() == float32),
                      "Inference: int8 is for float32 on the CPU, got {} {}; convert with to(float32) and "
                      "to(\"cpu\"), or leave out calibration",
                      what, t);
  };
  for (const Tensor& input : inputs) check_type(input, "an input");
  for (const Tensor& parameter : net.parameters()) check_type(parameter, "a parameter");
  for (std::size_t e = 0; e < calibration.size(); ++e) {
    const std::vector<Tensor>& example = calibration[e];
    check<ValueError>(
        example.size() == inputs.size(),
        "Inference: calibration: each example needs {} inputs, as the network, got {} in example {}",
        inputs.size(), example.size(), e);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check<ValueError>(example[i].defined() && example[i].numel() > 0,
                        "Inference: calibration: input {} of example {} is undefined or empty", i, e);
      check<ValueError>(
          example[i].dtype() == inputs[i].dtype() && example[i].device() == inputs[i].device() &&
              example[i].rank() == inputs[i].rank(),
          "Inference: calibration: input {} of example {} must be as that of the network, {}, got {}", i, e,
          inputs[i], example[i]);
    }
  }
}

}  // namespace

struct Inference::State {
  State(nn::Module& network, Function forward, const InferenceOptions& given, std::size_t examples)
      : net(network), function(std::move(forward)), options(given), input_count(examples) {
    for (const auto& list : {net.named_parameters(), net.named_buffers()})
      for (const auto& [name, tensor] : list) versions.emplace_back(tensor, tensor.version());
  }

  /// The plan for such inputs, made if it is missing.
  std::shared_ptr<const Known> find(const std::vector<Tensor>& inputs) {
    const std::lock_guard lock(mutex);
    for (const std::shared_ptr<Known>& known : all)
      if (known->key.fits(inputs)) {
        known->last_call = ++calls;
        return known;
      }
    for (const auto& [tensor, version] : versions)
      check<Error>(
          tensor.version() == version,
          "Inference: the network's parameters have changed since this was made of it; make another one");
    const auto made = std::make_shared<Known>(Known{Key(inputs, {}), nullptr, nullptr, {}, ++calls});
    try {
      const NoGrad off_the_tape;
      onnx::Trace trace = trace_for(inputs);
      if (calibrating) quantizer->begin(trace);
      const bool in_int8 = quantizer && quantizer->fits(trace);
      if (quantizer && !calibrating && !in_int8)
        made->reason = "in float32: the forward takes another way than with the calibration examples";
      made->plan = std::make_shared<const inference::Plan>(std::move(trace), options.measure && !calibrating,
                                                           shared, in_int8 ? &*quantizer : nullptr);
    } catch (const Error& error) {
      made->reason = error.what();
      const std::string_view traced_by = "export_onnx: ";
      if (made->reason.starts_with(traced_by)) made->reason.erase(0, traced_by.size());
      (void)run_network(inputs);  // where the forward itself does not take them, this throws
    }
    if (made->plan != nullptr && options.cuda_graph && are_on_one_gpu(inputs)) try {
        const NoGrad off_the_tape;
        made->captured = std::make_shared<inference::CapturedPlan>(*made->plan, inputs);
      } catch (const Error& error) {
        made->reason = std::string("not as a CUDA graph: ") + error.what();
      }
    if (std::ssize(all) >= options.most_plans)
      all.erase(std::min_element(all.begin(), all.end(),
                                 [](const auto& a, const auto& b) { return a->last_call < b->last_call; }));
    all.push_back(made);
    return made;
  }

  /// Finds how values are held as uint8.
  void calibrate() {
    const std::vector<std::vector<Tensor>> examples = std::exchange(options.calibration, {});
    quantizer.emplace();
    calibrating = true;
    for (const bool counts : {false, true}) {
      if (counts) quantizer->begin_counting();
      for (const std::vector<Tensor>& example : examples) {
        const std::shared_ptr<const Known> known = find(example);
        check<ValueError>(known->plan != nullptr, "Inference: int8 needs a plan, which cannot be made: {}",
                          known->reason);
        quantizer->next_run();
        (void)known->plan->run(example, &*quantizer);
      }
    }
    quantizer->finish();
    calibrating = false;
    all.clear();
  }

  /// The calls that the network makes for such inputs, whatever the batch where that is possible.
  const Program& program_for(const std::vector<Tensor>& inputs) {
    for (const Program& program : programs)
      if (program.key.fits(inputs) &&
          (program.key.batch_dims.empty() || batch_of(inputs, program.key.batch_dims) >= 1))
        return program;
    if (std::ssize(programs) >= options.most_plans) programs.erase(programs.begin());
    const std::vector<int64_t> dims = onnx::batch_dims_of("Inference", inputs, options.batch_dims);
    const nn::ModeScope scope(net, nn::Mode::evaluation);
    if (batch_of(inputs, dims) >= 1) try {
        std::vector<Tensor> first;
        for (std::size_t i = 0; i < inputs.size(); ++i)
          first.push_back(dims[i] < 0 ? inputs[i] : narrow(inputs[i], dims[i], 0, 1));
        return programs.emplace_back(
            Program{Key(inputs, dims), onnx::make_plan(&net, function, first, dims)});
      } catch (const Error&) {  // it depends on the batch in another way
      }
    return programs.emplace_back(Program{Key(inputs, {}), onnx::make_plan(&net, function, inputs, {})});
  }
  /// These calls, folded, for the batch.
  onnx::Trace trace_for(const std::vector<Tensor>& inputs) {
    const Program& program = program_for(inputs);
    check<ValueError>(!program.plan.trace.reads_numbers,
                      "it reads elements of a tensor (item(), to_vector()), by which it may decide");
    onnx::Plan plan = program.plan;
    inference::fold(plan);
    return trace_of(plan, batch_of(inputs, program.key.batch_dims));
  }

  std::vector<Tensor> run_network(const std::vector<Tensor>& inputs) {
    const nn::ModeScope scope(net, nn::Mode::evaluation);
    const NoGrad off_the_tape;
    return function(inputs);
  }

  nn::Module& net;
  Function function;
  InferenceOptions options;
  std::size_t input_count;
  std::vector<std::pair<Tensor, uint64_t>> versions;  ///< of parameters and buffers
  std::mutex mutex;
  std::vector<std::shared_ptr<Known>> all;
  std::vector<Program> programs;
  uint64_t calls = 0;
  SharedBlocks shared;
  std::optional<inference::Quantizer> quantizer;
  bool calibrating = false;
};

Inference::Inference(nn::Module& net, const Tensor& example, const InferenceOptions& options)
    : Inference(
          net, std::vector{example},
          [&net](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; }, options) {}

Inference::Inference(nn::Module& net, const std::vector<Tensor>& examples, Function function,
                     const InferenceOptions& options) {
  check<ValueError>(function != nullptr, "Inference: the function is empty");
  check<ValueError>(options.most_plans >= 1, "Inference: most_plans must be at least 1, got {}",
                    int64_t{options.most_plans});
  check<ValueError>(!examples.empty(), "Inference: needs an example of each input");
  for (const Tensor& example : examples)
    check<ValueError>(example.defined(), "Inference: an example of an input is undefined");
  (void)onnx::batch_dims_of("Inference", examples, options.batch_dims);
  if (!options.calibration.empty()) check_calibration(net, examples, options.calibration);
  state_ = std::make_unique<State>(net, std::move(function), options, examples.size());
  if (!options.calibration.empty()) {
    const NoGrad off_the_tape;
    state_->calibrate();
  }
  (void)(*this)(examples);
}
Inference::~Inference() = default;
Inference::Inference(Inference&&) noexcept = default;
Inference& Inference::operator=(Inference&&) noexcept = default;

Tensor Inference::operator()(const Tensor& input) const {
  std::vector<Tensor> outputs = (*this)(std::vector{input});
  check<ValueError>(outputs.size() == 1, "Inference: the network has {} outputs; call it with a vector",
                    outputs.size());
  return std::move(outputs[0]);
}

std::vector<Tensor> Inference::operator()(const std::vector<Tensor>& inputs) const {
  check<ValueError>(inputs.size() == state_->input_count,
                    "Inference: needs {} inputs, like the examples, got {}", state_->input_count,
                    inputs.size());
  for (const Tensor& x : inputs) check<ValueError>(x.defined(), "Inference: an input is undefined");
  check<Error>(
      !autocast_dtype(),
      "Inference: is called under Autocast; leave the scope, and convert the network with to(float16) "
      "where halves are wanted");
  const NoGrad off_the_tape;
  const std::shared_ptr<const Known> known = state_->find(inputs);
  if (known->captured != nullptr) return known->captured->run(inputs);
  if (known->plan != nullptr) return known->plan->run(inputs);
  const std::lock_guard lock(state_->mutex);  // the network is changed, to evaluation mode
  return state_->run_network(inputs);
}

double Inference::difference(const std::vector<Tensor>& inputs) const {
  const std::vector<Tensor> outputs = (*this)(inputs);
  const std::lock_guard lock(state_->mutex);
  const std::vector<Tensor> expected = state_->run_network(inputs);
  const NoGrad off_the_tape;
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].numel() == 0) continue;
    const Tensor a = ops::cast(outputs[i], float64), b = ops::cast(expected[i], float64);
    apart = std::max(apart, max(abs(a - b)).item<double>());
    largest = std::max(largest, max(abs(b)).item<double>());
  }
  return largest > 0 ? apart / largest : apart;
}

std::string Inference::summary() const {
  const std::lock_guard lock(state_->mutex);
  std::string text;
  for (const auto& known : state_->all) text += describe(*known);
  return text;
}

}  // namespace pleat
