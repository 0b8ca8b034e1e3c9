#include "pleat/inference/engine_file.h"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "pleat/core/base/format.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/files/input_file.h"
#include "pleat/core/files/json_input.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/storage.h"
#include "pleat/io/safetensors.h"
#include "pleat/io/safetensors_map.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/quantized/u8s8_kernels.h"

namespace pleat::inference {
namespace {

using nlohmann::json;
using onnx::Call;
using onnx::Size;
using onnx::SizeList;
using onnx::Value;

constexpr const char* format = "pleat engine 1";
constexpr int64_t most_size = int64_t{1} << 31;  ///< of a batch, and its factors: no product overflows

std::size_t at(int v) { return static_cast<std::size_t>(v); }

/// What choices and the layout of prepared weights depend on.
std::string prepared_for() {
  std::string text =
      fmt::format("pleat " PLEAT_VERSION " layout {}: vectors of {} bytes, {} registers, int8 of {}",
                  prepared_layout, simd::register_bytes, simd::registers, ops::u8s8_kernels().widest_block);
  for (const std::string& name : ops::conv_implementations()) text += ", " + name;
  return text;
}

// --- writing

json json_of(const Size& size) {
  return size.fixed() ? json(size.offset) : json{{"scale", size.scale}, {"offset", size.offset}};
}
json json_of(const SizeList& sizes) {
  json list = json::array();
  for (const Size& size : sizes) list.push_back(json_of(size));
  return list;
}
/// JSON has no such numbers.
json json_of(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

/// Tensors by name, equal ones once.
class TensorNames {
 public:
  /// The name of a constant.
  std::string of(const Tensor& constant, const std::string& wanted) {
    const Tensor dense = ops::to_format(constant, MemoryFormat::contiguous);
    const SharedBlocks::Block block =
        one_of({{dense.impl().storage->bytes, dense.raw()}, dense.numel() * size_of(dense.dtype())});
    for (const std::string& name : names_[block.bytes.get()])
      if (tensors_.at(name).dtype() == dense.dtype() && tensors_.at(name).shape() == dense.shape())
        return name;
    return add(block, dense.dtype(), dense.shape(), wanted.empty() ? "constant" : wanted);
  }
  std::string of(const SharedBlocks::Block& prepared) {
    const SharedBlocks::Block block = one_of(prepared);
    const std::vector<std::string>& names = names_[block.bytes.get()];
    return names.empty() ? add(block, uint8, {block.size}, "prepared") : names[0];
  }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

 private:
  SharedBlocks::Block one_of(const SharedBlocks::Block& block) {
    return {blocks_.of(block.bytes, block.size), block.size};
  }
  std::string add(const SharedBlocks::Block& block, DType dtype, const Shape& shape,
                  const std::string& wanted) {
    std::string name = wanted;
    for (int n = 2; tensors_.contains(name); ++n) name = fmt::format("{}.{}", wanted, n);
    tensors_.emplace(name, make_tensor(std::make_shared<Storage>(block.bytes, block.size, Device()), shape,
                                       dense_strides(shape), 0, dtype));
    names_[block.bytes.get()].push_back(name);
    return name;
  }

  SharedBlocks blocks_;
  std::map<std::string, Tensor> tensors_;
  std::map<const std::byte*, std::vector<std::string>> names_;
};

json json_of(const Program& program, TensorNames& names) {
  const onnx::Trace& trace = program.plan.trace;
  std::vector<bool> is_used(trace.values.size());
  const auto use = [&](const std::vector<int>& values) {
    for (const int v : values)
      if (v >= 0) is_used[at(v)] = true;
  };
  use(trace.inputs);
  use(trace.outputs);
  json calls = json::array(), values = json::array();
  for (std::size_t c = 0; c < trace.calls.size(); ++c) {
    const Call& call = trace.calls[c];
    use(call.inputs);
    use(call.outputs);
    json attributes = json::array();
    for (const Attribute& attribute : call.attributes) {
      const std::string name(attribute.name);
      json value;
      if (std::holds_alternative<int64_t>(attribute.value))
        value = json_of(program.plan.numbers[c].at(name).at(0));
      else if (std::holds_alternative<std::vector<int64_t>>(attribute.value))
        value = json_of(program.plan.numbers[c].at(name));
      else if (const auto* number = std::get_if<double>(&attribute.value))
        value = json_of(*number);
      else
        value = std::string(std::get<std::string_view>(attribute.value));
      attributes.push_back({name, std::move(value)});
    }
    calls.push_back({{"function", call.function},
                     {"module", call.module},
                     {"inputs", call.inputs},
                     {"outputs", call.outputs},
                     {"attributes", std::move(attributes)}});
  }
  for (std::size_t v = 0; v < trace.values.size(); ++v) {
    const Value& value = trace.values[v];
    if (!is_used[v]) {
      values.push_back(nullptr);
      continue;
    }
    json entry{{"shape", json_of(program.plan.shapes[v])}};
    if (value.kind == Value::Kind::state || value.kind == Value::Kind::constant)
      entry["tensor"] = names.of(value.tensor, value.name);
    else
      entry["dtype"] = name(value.tensor.dtype());
    values.push_back(std::move(entry));
  }
  return {{"inputs", trace.inputs},
          {"outputs", trace.outputs},
          {"batch_dims", program.batch_dims},
          {"values", std::move(values)},
          {"calls", std::move(calls)}};
}

// --- reading

int64_t integer(const json& value) {
  check<ValueError>(
      value.is_number_integer() &&
          (!value.is_number_unsigned() || value.get<uint64_t>() <= std::numeric_limits<int64_t>::max()),
      "a number must be an integer of 64 bits");
  return value.get<int64_t>();
}
Size size_of_json(const json& value) {
  if (!value.is_object()) return {0, integer(value)};
  const Size size{integer(value.at("scale")), integer(value.at("offset"))};
  for (const int64_t number : {size.scale, size.offset})
    check<ValueError>(number > -most_size && number < most_size,
                      "a size that depends on the batch is too large");
  return size;
}
SizeList sizes_of_json(const json& list) {
  check<ValueError>(list.is_array(), "sizes must be a list");
  SizeList sizes;
  for (const json& value : list) sizes.push_back(size_of_json(value));
  return sizes;
}
std::vector<int64_t> sizes_at_1(const SizeList& sizes) {
  std::vector<int64_t> list;
  for (const Size& size : sizes) list.push_back(size.at(1));
  return list;
}

using Tensors = std::map<std::string, Tensor>;

const Tensor& tensor_of(const Tensors& tensors, const json& name) {
  const auto found = tensors.find(name.get<std::string>());
  check<ValueError>(found != tensors.end(), "the tensor '{}' is missing", name.get<std::string>());
  return found->second;
}

class ProgramReader {
 public:
  ProgramReader(const json& text, const Tensors& tensors) : text_(text), tensors_(tensors) {}

  Program read() {
    read_values();
    for (const int v : trace_.inputs = numbers(text_.at("inputs"))) {
      check<ValueError>(v >= 0 && at(v) < trace_.values.size() && !is_there_[at(v)] &&
                            trace_.values[at(v)].tensor.defined(),
                        "an input is none of the values");
      trace_.values[at(v)].kind = Value::Kind::input;
      is_there_[at(v)] = true;
      program_.ports.push_back(
          {trace_.values[at(v)].tensor.shape(), trace_.values[at(v)].tensor.dtype(), Device()});
    }
    for (const json& call : text_.at("calls")) read_call(call);
    for (const int v : trace_.outputs = numbers(text_.at("outputs")))
      check<ValueError>(v >= 0 && is_read(v), "an output is never computed");
    for (const json& dim : text_.at("batch_dims")) program_.batch_dims.push_back(integer(dim));
    const std::vector<int64_t>& dims = program_.batch_dims;
    check<ValueError>(!trace_.inputs.empty() && (dims.empty() || dims.size() == trace_.inputs.size()),
                      "each input needs a dimension of the batch");
    for (std::size_t i = 0; i < dims.size(); ++i)
      check<ValueError>(dims[i] >= -1 && dims[i] < std::ssize(program_.ports[i].shape),
                        "the batch of input {} is none of its dimensions", i);
    program_.texts = std::move(texts_);
    return std::move(program_);
  }

 private:
  static std::vector<int> numbers(const json& list) {
    std::vector<int> result;
    for (const json& value : list) {
      const int64_t number = integer(value);
      check<ValueError>(number >= -1 && number < std::numeric_limits<int>::max(),
                        "a value's number is out of range");
      result.push_back(static_cast<int>(number));
    }
    return result;
  }
  bool is_read(int v) const { return v < 0 || (at(v) < is_there_.size() && is_there_[at(v)]); }
  const char* lasting(const std::string& text) { return texts_->insert(text).first->c_str(); }

  void read_values() {
    for (const json& value : text_.at("values")) {
      SizeList sizes;
      Value made{Value::Kind::result, {}, {}};
      if (!value.is_null()) {
        sizes = sizes_of_json(value.at("shape"));
        if (value.contains("tensor")) {
          made = {Value::Kind::constant, tensor_of(tensors_, value.at("tensor")), value.at("tensor")};
          check<ValueError>(made.tensor.shape() == Shape(sizes_at_1(sizes)),
                            "the tensor '{}' has the shape {}, but needs {}", made.name, made.tensor.shape(),
                            sizes_at_1(sizes));
        } else {
          made.tensor = onnx::repeated(zeros({1}, {.dtype = dtype_of(value.at("dtype"))}), sizes_at_1(sizes));
        }
      }
      is_there_.push_back(made.kind == Value::Kind::constant);
      trace_.values.push_back(std::move(made));
      program_.plan.shapes.push_back(std::move(sizes));
    }
  }
  static DType dtype_of(const json& given) {
    for (const DType dtype : {float32, float64, float16, bfloat16, int32, int64, uint8, boolean})
      if (given == name(dtype)) return dtype;
    throw ValueError("there is no such type of a value: " + given.dump());
  }

  void read_call(const json& text) {
    Call call{.function = text.at("function"),
              .module = text.at("module"),
              .inputs = numbers(text.at("inputs")),
              .outputs = numbers(text.at("outputs")),
              .attributes = {}};
    check<ValueError>(!call.inputs.empty() && !call.outputs.empty(), "{} needs inputs and outputs",
                      call.where());
    for (const int v : call.inputs)
      check<ValueError>(is_read(v), "{} reads a value before it is computed", call.where());
    for (const int v : call.outputs) {
      check<ValueError>(
          v < 0 || (at(v) < is_there_.size() && !is_there_[at(v)] && trace_.values[at(v)].tensor.defined()),
          "{} computes a value that is none, or is there already", call.where());
      if (v >= 0) is_there_[at(v)] = true;
    }
    std::map<std::string, SizeList> sizes;
    for (const json& attribute : text.at("attributes")) {
      const char* const name = lasting(attribute.at(0));
      const json& value = attribute.at(1);
      if (value.is_number_float()) {
        call.attributes.emplace_back(name, value.get<double>());
      } else if (value == "inf" || value == "-inf" || value == "nan") {
        call.attributes.emplace_back(name, std::stod(value.get<std::string>()));
      } else if (value.is_string()) {
        call.attributes.emplace_back(name, lasting(value));
      } else if (value.is_array()) {
        sizes[name] = sizes_of_json(value);
        call.attributes.emplace_back(name, sizes_at_1(sizes[name]));
      } else {
        sizes[name] = {size_of_json(value)};
        call.attributes.emplace_back(name, sizes_at_1(sizes[name])[0]);
      }
    }
    trace_.calls.push_back(std::move(call));
    program_.plan.numbers.push_back(std::move(sizes));
  }

  const json& text_;
  const Tensors& tensors_;
  Program program_ = {};
  onnx::Trace& trace_ = program_.plan.trace;
  std::shared_ptr<std::set<std::string>> texts_ = std::make_shared<std::set<std::string>>();
  std::vector<bool> is_there_;  ///< of each value: an input, constant or computed so far
};

/// The bytes of a tensor, where kernels can read them as they lie.
SharedBlocks::Block block_of(const Tensor& tensor) {
  constexpr std::size_t aligned = 64;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(tensor.raw()) % aligned == 0;
  const Tensor t = is_aligned ? tensor : ops::copy(tensor);
  return {{t.impl().storage->bytes, t.raw()}, t.numel() * size_of(t.dtype())};
}

SavedPlan plan_of(const json& text, const SavedEngine& engine, const Tensors& tensors) {
  SavedPlan plan{.program = text.at("program"), .inputs = {}, .choices = {}, .prepared = {}};
  check<ValueError>(plan.program < engine.programs.size(), "a plan is of no program");
  for (const json& shape : text.at("inputs"))
    for (const int64_t size : plan.inputs.emplace_back(shape.get<std::vector<int64_t>>()))
      check<ValueError>(size < most_size, "a plan's input is too large");
  if (!engine.is_prepared) return plan;
  for (const json& choice : text.at("choices")) plan.choices.push_back({choice.at(0), choice.at(1)});
  for (const json& name : text.at("prepared")) plan.prepared.push_back(block_of(tensor_of(tensors, name)));
  return plan;
}

}  // namespace

std::string name_of_engine(const std::filesystem::path& path) {
  return fmt::format("Inference::load: '{}'", path.string());
}

void write_engine(const std::filesystem::path& path, const SavedEngine& engine) {
  TensorNames names;
  json programs = json::array(), plans = json::array(), quantizations = json::array();
  for (const Program& program : engine.programs) programs.push_back(json_of(program, names));
  for (const SavedPlan& plan : engine.plans) {
    json choices = json::array(), prepared = json::array();
    for (const auto& [implementation, alone] : plan.choices) choices.push_back({implementation, alone});
    for (const SharedBlocks::Block& block : plan.prepared) prepared.push_back(names.of(block));
    plans.push_back({{"program", plan.program},
                     {"inputs", plan.inputs},
                     {"choices", std::move(choices)},
                     {"prepared", std::move(prepared)}});
  }
  json text{{"measure", engine.measure},
            {"most_plans", engine.most_plans},
            {"programs", std::move(programs)},
            {"plans", std::move(plans)}};
  if (engine.quantized) {
    for (std::size_t v = 0; v < engine.quantizations.size(); ++v)
      if (const auto& how = engine.quantizations[v]) quantizations.push_back({v, how->scale, how->zero});
    text["int8"] = {{"program", *engine.quantized}, {"values", std::move(quantizations)}};
  }
  io::write_safetensors(path, names.tensors(),
                        {{"format", format}, {"prepared_for", prepared_for()}, {"engine", text.dump()}});
}

SavedEngine read_engine(const std::filesystem::path& path) {
  const io::SafetensorsContent content = io::map_safetensors("Inference::load", path);
  const std::string name = name_of_engine(path);
  return reading(name, [&] {
    const auto entry = [&](const char* key) {
      const auto found = content.metadata.find(key);
      check<ValueError>(found != content.metadata.end(),
                        "has no entry '{}' in its metadata, which files of Inference::save have", key);
      return found->second;
    };
    check<ValueError>(entry("format") == format,
                      "has the format '{}', but this version reads '{}'; save the engine again",
                      entry("format"), format);
    SavedEngine engine{.is_prepared = entry("prepared_for") == prepared_for()};
    const auto text = parse_json<json>(entry("engine"), name);
    engine.measure = text.at("measure").get<bool>();
    engine.most_plans = integer(text.at("most_plans"));
    for (const json& program : text.at("programs"))
      engine.programs.push_back(ProgramReader(program, content.tensors).read());
    for (const json& plan : text.at("plans")) engine.plans.push_back(plan_of(plan, engine, content.tensors));
    check<ValueError>(!engine.plans.empty(), "has no plan");
    check<ValueError>(engine.most_plans >= std::ssize(engine.plans), "has more plans than most_plans");
    if (text.contains("int8")) {
      const json& int8 = text.at("int8");
      engine.quantized = int8.at("program").get<std::size_t>();
      check<ValueError>(*engine.quantized < engine.programs.size(), "int8 is of no program");
      engine.quantizations.resize(engine.programs[*engine.quantized].plan.trace.values.size());
      for (const json& value : int8.at("values")) {
        const ops::Quantization how{value.at(1).get<float>(), value.at(2).get<int32_t>()};
        check<ValueError>(std::isnormal(how.scale) && how.scale > 0 && how.zero >= 0 && how.zero <= 255,
                          "a range of int8 is out of bounds");
        engine.quantizations.at(value.at(0).get<std::size_t>()) = how;
      }
    }
    return engine;
  });
}

}  // namespace pleat::inference
