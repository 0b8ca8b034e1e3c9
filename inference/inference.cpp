#include "pleat/inference/inference.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/inference/captured_plan.h"
#include "pleat/inference/engine_file.h"
#include "pleat/inference/fold.h"
#include "pleat/inference/plan.h"
#include "pleat/nn/attention.h"
#include "pleat/nn/mode_scope.h"
#include "pleat/onnx/plan.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

using inference::Plan;
using inference::Ports;
using inference::Program;

bool are_like(const std::vector<Tensor>& inputs, const Ports& ports) {
  return std::equal(inputs.begin(), inputs.end(), ports.begin(), ports.end(),
                    [](const Tensor& x, const inference::Port& port) {
                      return x.shape() == port.shape && x.dtype() == port.dtype && x.device() == port.device;
                    });
}

bool are_on_one_gpu(const std::vector<Tensor>& inputs) {
  return inputs[0].device().is_cuda() && std::all_of(inputs.begin(), inputs.end(), [&](const Tensor& x) {
           return x.device() == inputs[0].device();
         });
}

struct Known {
  Ports ports = {};
  std::shared_ptr<const Program> program = {};             ///< null: as the plan
  std::shared_ptr<const Plan> plan = {};                   ///< null: the network runs as it is
  std::shared_ptr<inference::CapturedPlan> captured = {};  ///< the plan on a GPU, where it can be
  std::string reason = {};                                 ///< why there is no plan, or what it is not
  uint64_t last_call = 0;
};

std::string describe(const Known& known) {
  std::string text;
  for (const inference::Port& port : known.ports)
    text += fmt::format("{}{} {}", text.empty() ? "inputs " : ", ", to_string(port.shape), name(port.dtype));
  if (known.captured != nullptr) text += ", as a CUDA graph";
  if (known.plan != nullptr)
    return text + (known.reason.empty() ? "" : ", " + known.reason) + ":\n" + known.plan->describe();
  return text + ": the network as it is, since a plan cannot follow it: " + known.reason + '\n';
}

/// A module in the network that has hooks.
std::optional<std::string> find_hook(nn::Module& net) {
  for (const auto& [path, module] : net.named_modules())
    if (module->has_hooks()) return path.empty() ? "the network" : path + " (" + module->type_name() + ')';
  return std::nullopt;
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
      : net(&network), function(std::move(forward)), options(given), input_count(examples) {
    for (const auto& list : {net->named_parameters(), net->named_buffers()})
      for (const auto& [name, tensor] : list) versions.emplace_back(tensor, tensor.version());
  }
  /// From a file.
  State(const std::filesystem::path& path, inference::SavedEngine saved)
      : options{.measure = saved.measure, .most_plans = saved.most_plans},
        input_count(saved.programs.at(saved.plans.at(0).program).ports.size()) {
    for (Program& program : saved.programs)
      programs.push_back(std::make_shared<const Program>(std::move(program)));
    if (saved.quantized)
      quantizer.emplace().restore(programs[*saved.quantized]->plan.trace, saved.quantizations);
    for (inference::SavedPlan& plan : saved.plans) {
      Known known{.ports = {}, .program = programs[plan.program]};
      known.ports = known.program->ports;
      check<ValueError>(plan.inputs.size() == known.ports.size(), "a plan has {} inputs, but its program {}",
                        plan.inputs.size(), known.ports.size());
      for (std::size_t i = 0; i < plan.inputs.size(); ++i) known.ports[i].shape = std::move(plan.inputs[i]);
      check<ValueError>(known.program->takes(known.ports),
                        "a plan has inputs that its program does not take");
      if (!saved.is_prepared)
        known.reason = "weights prepared anew: " + path.string() + " is of another processor or version";
      shared.begin(std::move(plan.prepared));
      make_plan(known, std::move(plan.choices));
      (void)shared.end();
      known.last_call = ++calls;
      all.push_back(std::make_shared<Known>(std::move(known)));
    }
  }

  /// The plan for such inputs, made if it is missing.
  std::shared_ptr<const Known> find(const std::vector<Tensor>& inputs) {
    const std::lock_guard lock(mutex);
    if (const uint64_t before = std::exchange(hooks, nn::detail::registered_hooks());
        hooks != before && net != nullptr && find_hook(*net)) {
      all.clear();
      programs.clear();
    }
    for (const std::shared_ptr<Known>& known : all)
      if (are_like(inputs, known->ports)) {
        known->last_call = ++calls;
        return known;
      }
    check_unchanged();
    const auto made =
        std::make_shared<Known>(Known{.ports = inference::ports_of(inputs), .last_call = ++calls});
    try {
      const NoGrad off_the_tape;
      made->program = program_for(inputs);
      make_plan(*made, {});
    } catch (const Error& error) {
      made->reason = error.what();
      const std::string_view traced_by = "export_onnx: ";
      if (made->reason.starts_with(traced_by)) made->reason.erase(0, traced_by.size());
      if (net == nullptr) throw;
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

  void check_unchanged() const {
    for (const auto& [tensor, version] : versions)
      check<Error>(
          tensor.version() == version,
          "Inference: the network's parameters have changed since this was made of it; make another one");
  }

  /// The calls that the network makes for such inputs, whatever the batch where that is possible.
  std::shared_ptr<const Program> program_for(const std::vector<Tensor>& inputs) {
    const Ports ports = inference::ports_of(inputs);
    for (const auto& program : programs)
      if (program->takes(ports)) return program;
    if (net == nullptr)
      fail<ValueError>(
          "Inference: the file's engine was saved for inputs like {}, got {}; call the engine of the network "
          "with such inputs before it is saved",
          programs[0]->ports[0].shape, inputs[0]);
    if (const std::optional<std::string> hooked = find_hook(*net))
      fail<ValueError>("{} has hooks, which it would not call; remove them before this is made", *hooked);
    if (std::ssize(programs) >= options.most_plans) programs.erase(programs.begin());
    const std::vector<int64_t> dims = onnx::batch_dims_of("Inference", inputs, options.batch_dims);
    const nn::ModeScope scope(*net, nn::Mode::evaluation);
    const auto add = [&](const std::vector<Tensor>& examples, const std::vector<int64_t>& batch_dims) {
      return programs.emplace_back(std::make_shared<const Program>(
          Program{ports, batch_dims, onnx::make_plan(net, function, examples, batch_dims)}));
    };
    if (inference::batch_of(ports, dims) >= 1) try {
        std::vector<Tensor> first;
        for (std::size_t i = 0; i < inputs.size(); ++i)
          first.push_back(dims[i] < 0 ? inputs[i] : narrow(inputs[i], dims[i], 0, 1));
        return add(first, dims);
      } catch (const Error&) {  // it depends on the batch in another way
      }
    return add(inputs, {});
  }

  /// Of the program, with these choices for convolutions.
  void make_plan(Known& known, std::vector<ops::FrozenConv::Choice> choices) {
    onnx::Plan plan = known.program->plan;
    check<ValueError>(!plan.trace.reads_numbers,
                      "it reads elements of a tensor (item(), to_vector()), by which it may decide");
    inference::fold(plan);
    onnx::Trace trace = onnx::trace_of(plan, inference::batch_of(known.ports, known.program->batch_dims));
    if (calibrating) quantizer->begin(trace);
    const bool in_int8 = quantizer && quantizer->fits(trace);
    if (quantizer && !calibrating && !in_int8)
      known.reason = "in float32: the forward takes another way than with the calibration examples";
    known.plan = std::make_shared<const Plan>(
        std::move(trace), inference::PlanOptions{.shared = shared,
                                                 .quantizer = in_int8 ? &*quantizer : nullptr,
                                                 .verified = net != nullptr,
                                                 .measured = options.measure && !calibrating,
                                                 .choices = std::move(choices)});
  }

  /// What a file has of it. Plans are made once more, to find what they are made of.
  inference::SavedEngine saved() {
    check_unchanged();
    if (const auto hooked = net == nullptr ? std::nullopt : find_hook(*net))
      fail<Error>("Inference::save: {} has hooks, which a file cannot hold; remove them first", *hooked);
    inference::SavedEngine engine{.measure = options.measure, .most_plans = options.most_plans};
    std::vector<const Program*> added;
    if (quantizer) quantizer->forget_made();
    for (const std::shared_ptr<Known>& known : all) {
      check<Error>(
          known->plan != nullptr,
          "Inference::save: a plan cannot follow the network for inputs {}, so a file cannot hold it: {}",
          known->ports[0].shape, known->reason);
      for (const inference::Port& port : known->ports)
        check<Error>(port.device.is_cpu(),
                     "Inference::save: the engine is on {}; make one of the network on the CPU, to(\"cpu\")",
                     port.device);
      inference::SavedPlan plan{.choices = known->plan->choices()};
      plan.program = static_cast<std::size_t>(std::find(added.begin(), added.end(), known->program.get()) -
                                              added.begin());
      if (plan.program == added.size()) {
        added.push_back(known->program.get());
        inference::fold(engine.programs.emplace_back(*known->program).plan);
      }
      for (const inference::Port& port : known->ports) plan.inputs.push_back(port.shape);
      Known again{.ports = known->ports, .program = known->program};
      shared.begin({});
      make_plan(again, plan.choices);
      plan.prepared = shared.end();
      if (quantizer && again.reason.empty()) engine.quantized = plan.program;
      engine.plans.push_back(std::move(plan));
    }
    if (engine.quantized) engine.quantizations = quantizer->quantizations();
    return engine;
  }

  std::vector<Tensor> run_network(const std::vector<Tensor>& inputs) {
    const nn::ModeScope scope(*net, nn::Mode::evaluation);
    const NoGrad off_the_tape;
    return function(inputs);
  }

  nn::Module* net = nullptr;  ///< null: it comes from a file
  Function function;
  InferenceOptions options;
  std::size_t input_count;
  std::vector<std::pair<Tensor, uint64_t>> versions;  ///< of parameters and buffers
  uint64_t hooks = nn::detail::registered_hooks();    ///< when the plans were made or last used
  std::mutex mutex;
  std::vector<std::shared_ptr<Known>> all;
  std::vector<std::shared_ptr<const Program>> programs;
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

Inference::Inference(std::unique_ptr<State> state) : state_(std::move(state)) {}

Inference Inference::load(const std::filesystem::path& path) {
  inference::SavedEngine saved = inference::read_engine(path);
  const NoGrad off_the_tape;
  return reading(inference::name_of_engine(path),
                 [&] { return Inference(std::make_unique<State>(path, std::move(saved))); });
}
void Inference::save(const std::filesystem::path& path) const {
  const std::lock_guard lock(state_->mutex);
  const NoGrad off_the_tape;
  inference::write_engine(path, state_->saved());
}

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
  check<Error>(nn::KeyValueCache::current() == nullptr,
               "Inference: a plan knows no KeyValueCache; call the network");
  const NoGrad off_the_tape;
  const std::shared_ptr<const Known> known = state_->find(inputs);
  if (known->captured != nullptr) return known->captured->run(inputs);
  if (known->plan != nullptr) return known->plan->run(inputs);
  const std::lock_guard lock(state_->mutex);  // the network is changed, to evaluation mode
  return state_->run_network(inputs);
}

double Inference::difference(const std::vector<Tensor>& inputs) const {
  check<Error>(
      state_->net != nullptr,
      "Inference: an engine from a file has no network to compare with; compare with the engine that "
      "was saved");
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
