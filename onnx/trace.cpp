#include "pleat/onnx/trace.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/onnx/functions.h"
#include "pleat/onnx/op_watch.h"

namespace pleat::onnx {
namespace {

/// Functions whose result has the input's elements, wherever it lies.
bool is_identity(std::string_view function) {
  constexpr std::array<std::string_view, 4> names{"detach", "clone", "to_format", "to_device"};
  return std::find(names.begin(), names.end(), function) != names.end();
}

/// "conv" of "conv2d".
std::string_view without_dimensions(std::string_view function) {
  const std::size_t n = function.size();
  const bool has = n > 2 && function[n - 1] == 'd' && function[n - 2] >= '1' && function[n - 2] <= '3';
  return has ? function.substr(0, n - 2) : function;
}

/// Raw functions that report themselves. Where one is part of a function, the rest of that is as unseen as
/// before.
bool is_raw(std::string_view function) {
  constexpr std::array<std::string_view, 19> names{
      "equal",    "not_equal",   "less",       "less_equal",  "close",       "isnan", "isinf",
      "isfinite", "logical_and", "logical_or", "logical_xor", "logical_not", "any",   "all",
      "argmax",   "argmin",      "argsort",    "one_hot",     "fill"};
  return std::find(names.begin(), names.end(), function) != names.end();
}

/// As much of a result as its shape and type: all results of a run would take much memory.
Tensor without_elements(const Tensor& t) {
  return repeated(empty({1}, {.dtype = t.dtype(), .device = t.device()}), t.shape());
}

class Tracer final : public CallObserver, public nn::ForwardObserver {
 public:
  Tracer(nn::Module* net, const std::vector<Tensor>& inputs)
      : watch_([this](const Tensor& tensor) { return depends(tensor); }), first_id_(next_tensor_id()) {
    if (net != nullptr) {
      for (const auto& [path, module] : net->named_modules()) paths_.emplace(module, path);
      for (const auto& list : {net->named_parameters(), net->named_buffers()})
        for (const auto& [name, tensor] : list) state_.emplace(tensor.impl().id, name);
    }
    for (const Tensor& input : inputs)
      result_.inputs.push_back(know(input, add({Value::Kind::input, input, {}})));
    detail::call_observer = this;
  }
  ~Tracer() override { detail::call_observer = nullptr; }

  Trace finish(const std::vector<Tensor>& outputs) {
    detail::call_observer = nullptr;
    for (const Tensor& output : outputs) {
      check<ValueError>(output.defined(), "export_onnx: output {} is undefined", result_.outputs.size());
      result_.outputs.push_back(value_of(output, output.version(), "the result"));
    }
    for (const auto& [id, known] : known_)
      check<ValueError>(result_.values[static_cast<std::size_t>(known.value)].kind != Value::Kind::state ||
                            known.handle.version() == known.version,
                        "export_onnx: the forward has changed {} in place, as in training; export in "
                        "evaluation mode",
                        result_.values[static_cast<std::size_t>(known.value)].name);
    result_.reads_numbers = watch_.reads_numbers();
    known_.clear();
    for (Value& value : result_.values)
      if (value.kind == Value::Kind::result) value.tensor = without_elements(value.tensor);
    return std::move(result_);
  }

  void called(std::string_view name, const std::vector<TracedInput>& inputs, std::span<const Tensor> outputs,
              const Attributes& attributes) override {
    // What is called to write things down is no part of the trace.
    detail::call_observer = nullptr;
    write_down(name, inputs, outputs, attributes);
    detail::call_observer = this;
  }

  void enter(nn::Module& module, const Tensor&) override {
    const auto path = paths_.find(&module);
    open_.push_back(path == paths_.end() ? (open_.empty() ? std::string() : open_.back()) : path->second);
  }
  void leave(nn::Module&, const Tensor&, const Tensor&) override { open_.pop_back(); }

 private:
  /// What a tensor is in the trace; held, so that its storage stays its own.
  struct Known {
    int value;
    uint64_t version;
    Tensor handle;
  };

  void write_down(std::string_view name, const std::vector<TracedInput>& inputs,
                  std::span<const Tensor> outputs, const Attributes& attributes) {
    if (!is_raw(name)) watch_.saw_call();
    // A new tensor of one number within a raw function is what that one writes to.
    const bool is_new = inputs.empty() || inputs[0].tensor.shared_impl() != outputs[0].shared_impl();
    if (name == "fill" && is_new && watch_.depth() > 1) return;
    const std::string function(without_dimensions(name));
    Call call{.function = function,
              .module = open_.empty() ? "" : open_.back(),
              .inputs = {},
              .outputs = {},
              .attributes = attributes};
    check<ValueError>(!autocast_dtype(),
                      "export_onnx: {} is called under Autocast; leave the scope, and convert the network "
                      "with to(float16) where halves are wanted",
                      call.where());
    bool constant = true;
    for (const auto& [tensor, version] : inputs) {
      const int value = tensor.defined() ? value_of(tensor, version, call.where()) : -1;
      constant = constant && (value < 0 || kind(value) == Value::Kind::constant);
      call.inputs.push_back(value);
    }
    if (is_identity(name) && inputs.size() == 1) {
      // A constant that was moved is another one: a plan computes with it where it is.
      const bool moved = constant && outputs[0].device() != inputs[0].tensor.device();
      know(outputs[0], moved ? add({Value::Kind::constant, ops::copy(outputs[0]), {}}) : call.inputs[0]);
      return;
    }
    // Of a function that is not known, inputs may be missing in the list: its result is left unknown.
    if (constant && !knows_function(function, inputs.size())) {
      for (const Tensor& output : outputs)
        if (output.defined()) unseen_.emplace(output.impl().id, call.where());
      return;
    }
    for (const Tensor& output : outputs) {
      if (!output.defined())
        call.outputs.push_back(-1);
      else if (constant)
        know(output, add({Value::Kind::constant, ops::copy(output), {}}));
      else
        call.outputs.push_back(know(output, add({Value::Kind::result, output, {}})));
    }
    if (!constant) result_.calls.push_back(std::move(call));
  }

  Value::Kind kind(int value) const { return result_.values[static_cast<std::size_t>(value)].kind; }

  int add(Value value) {
    result_.values.push_back(std::move(value));
    return static_cast<int>(result_.values.size()) - 1;
  }

  int know(const Tensor& tensor, int value) {
    known_.insert_or_assign(tensor.impl().id, Known{value, tensor.version(), tensor});
    storages_.insert_or_assign(tensor.impl().storage.get(), value);
    return value;
  }

  int value_of(const Tensor& tensor, uint64_t version, const std::string& reader) {
    const auto known = known_.find(tensor.impl().id);
    if (known != known_.end()) {
      check<ValueError>(known->second.version == version,
                        "export_onnx: {} reads a tensor {} that was changed in place, by a function that "
                        "the export cannot follow or through a view of it; use functions that return a "
                        "new tensor",
                        reader, tensor);
      return known->second.value;
    }
    const auto state = state_.find(tensor.impl().id);
    if (state != state_.end()) return know(tensor, add({Value::Kind::state, tensor, state->second}));
    check_constant(tensor, reader);
    return know(tensor, add({Value::Kind::constant, ops::copy(tensor), {}}));
  }

  /// Throws where a tensor that no call has given may depend on the inputs.
  void check_constant(const Tensor& tensor, const std::string& reader) const {
    const auto unseen = unseen_.find(tensor.impl().id);
    check<ValueError>(unseen == unseen_.end(),
                      "export_onnx: {} reads what {} gave, which has no form in ONNX; docs/modules.md lists "
                      "what has",
                      reader, unseen == unseen_.end() ? "" : unseen->second);
    const std::optional<std::string> maker = watch_.maker_of(tensor);
    check<ValueError>(!maker,
                      "export_onnx: {} reads a tensor {} that {} computed, which the export cannot follow; "
                      "docs/modules.md lists the functions that it can",
                      reader, tensor, maker.value_or(""));
    if (tensor.impl().id < first_id_ && !storages_.contains(tensor.impl().storage.get())) return;
    check<ValueError>(tensor.impl().alias == Alias::none,
                      "export_onnx: {} reads a view {} that the export has not seen being made; make views "
                      "with pleat's functions, not with as_strided or pleat::ops",
                      reader, tensor);
  }

  /// For the watch: false only of constants.
  bool depends(const Tensor& tensor) const {
    const auto known = known_.find(tensor.impl().id);
    if (known != known_.end()) return kind(known->second.value) != Value::Kind::constant;
    if (state_.contains(tensor.impl().id) || unseen_.contains(tensor.impl().id)) return true;
    if (watch_.maker_of(tensor)) return true;
    const auto storage = storages_.find(tensor.impl().storage.get());
    if (storage != storages_.end()) return kind(storage->second) != Value::Kind::constant;
    return tensor.impl().id >= first_id_ && tensor.impl().alias != Alias::none;
  }

  Trace result_;
  OpWatch watch_;
  uint64_t first_id_;
  std::unordered_map<uint64_t, Known> known_;
  std::unordered_map<const Storage*, int> storages_;  ///< of known tensors
  std::unordered_map<uint64_t, std::string> state_;   ///< names by tensor
  std::unordered_map<uint64_t, std::string> unseen_;  ///< results of functions that are not known
  std::unordered_map<const nn::Module*, std::string> paths_;
  std::vector<std::string> open_;  ///< paths of the modules that are running
};

}  // namespace

Tensor repeated(const Tensor& tensor, const Shape& shape) {
  Strides strides(shape.size(), 0);
  for (std::size_t d = 0; d < shape.size() && shape.size() == tensor.shape().size(); ++d)
    if (shape[d] == tensor.shape()[d]) strides[d] = tensor.strides()[d];
  return tensor.as_strided(shape, strides, tensor.offset());
}

std::string Call::where() const { return module.empty() ? function : function + " in " + module; }

Trace trace(nn::Module* net, const Function& function, const std::vector<Tensor>& inputs) {
  const NoGrad off;
  Tracer tracer(net, inputs);
  return tracer.finish(function(inputs));
}

}  // namespace pleat::onnx
