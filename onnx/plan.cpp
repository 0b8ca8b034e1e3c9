#include "pleat/onnx/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/index/index.h"

namespace pleat::onnx {
namespace {

constexpr const char* remedy = "export for one size of the batch alone: .batch_dims = {}";

/// An input like the example, with other numbers: the example's own of another place, which are as valid, and
/// floating ones moved a little. `batch`: the size of dimension `dim`, where that is not negative.
Tensor varied(const Tensor& example, int64_t dim, int64_t batch, Generator& generator) {
  Tensor x = ops::copy(example);
  if (dim >= 0) {
    std::vector<int64_t> rows(static_cast<std::size_t>(batch));
    for (int64_t i = 0; i < batch; ++i) rows[static_cast<std::size_t>(i)] = (i + 1) % example.size(dim);
    x = index_select(example, dim, from_vector(rows, {batch}, example.device()));
  }
  if (!is_floating(x.dtype())) return x;
  const Tensor noise = randn(x.shape(), {.dtype = float32, .device = x.device()}, generator) * 0.01;
  return x + ops::cast(noise, x.dtype());
}

/// Compares a run with the first one, and finds the sizes that depend on the batch.
class Comparison {
 public:
  Comparison(const Trace& first, const std::array<const Trace*, 2>& others, int64_t batch, bool dynamic)
      : first_(first), others_(others), batch_(batch), dynamic_(dynamic) {}

  void check_same_way() const {
    for (const Trace* other : others_) {
      const std::size_t calls = std::min(first_.calls.size(), other->calls.size());
      for (std::size_t i = 0; i < calls; ++i) {
        const Call& a = first_.calls[i];
        const Call& b = other->calls[i];
        check<ValueError>(a.function == b.function,
                          "export_onnx: the function calls {} with one input and {} with another: what it "
                          "does depends on {}, which a graph cannot",
                          a.where(), b.where(), cause());
        check<ValueError>(a.inputs == b.inputs && a.outputs == b.outputs,
                          "export_onnx: call {} of the function, {}, reads other tensors with another input: "
                          "what it does depends on {}, which a graph cannot",
                          i, a.where(), cause());
      }
      check<ValueError>(first_.calls.size() == other->calls.size() &&
                            first_.values.size() == other->values.size() && first_.outputs == other->outputs,
                        "export_onnx: the function makes {} calls with one input and {} with another: what "
                        "it does depends on {}, which a graph cannot",
                        first_.calls.size(), other->calls.size(), cause());
    }
  }

  SizeList sizes(const std::vector<int64_t>& a, const std::vector<int64_t>& b, const std::vector<int64_t>& c,
                 const std::string& what) const {
    check<ValueError>(a.size() == b.size() && a.size() == c.size(),
                      "export_onnx: {} depends on {} in its number of dimensions; {}", what, cause(), remedy);
    SizeList result;
    for (std::size_t i = 0; i < a.size(); ++i) {
      Size size{0, a[i]};
      if (dynamic_) size = {b[i] - a[i], a[i] - (b[i] - a[i]) * batch_};
      const int64_t third = dynamic_ ? size.scale * (batch_ + 3) + size.offset : a[i];
      check<ValueError>(third == c[i] && (dynamic_ || b[i] == a[i]),
                        "export_onnx: a size of {} is {}, {} and {} for three inputs, and no multiple of the "
                        "batch plus a number; {}",
                        what, a[i], b[i], c[i], dynamic_ ? remedy : "it depends on the input's numbers");
      result.push_back(size);
    }
    return result;
  }

  SizeList shape_of(std::size_t value) const {
    return sizes(first_.values[value].tensor.shape(), others_[0]->values[value].tensor.shape(),
                 others_[1]->values[value].tensor.shape(), "a tensor's shape");
  }

  void check_constant(std::size_t value) const {
    const Tensor& a = first_.values[value].tensor;
    for (const Trace* other : others_) {
      const Tensor& b = other->values[value].tensor;
      const bool same = a.shape() == b.shape() ? same_numbers(a, b) : is_repeated(a, b);
      check<ValueError>(
          same && a.dtype() == b.dtype(),
          "export_onnx: {} reads a tensor {} that no input leads to, but that is another one for another "
          "input: it is random, was made from numbers that the program has read (item(), to_vector()), or "
          "depends on the size of the batch{}",
          reader_of(value), a, dynamic_ ? std::string("; for the latter, ") + remedy : "");
    }
  }

  void check_attributes(std::size_t call) const {
    const Call& a = first_.calls[call];
    for (const Trace* other : others_) {
      const Call& b = other->calls[call];
      for (std::size_t i = 0; i < a.attributes.size(); ++i) {
        const Attribute::Value& x = a.attributes[i].value;
        const Attribute::Value& y = b.attributes[i].value;
        const auto* number = std::get_if<double>(&x);
        const bool both_nan = number != nullptr && std::isnan(*number) && std::isnan(std::get<double>(y));
        check<ValueError>(std::holds_alternative<int64_t>(x) ||
                              std::holds_alternative<std::vector<int64_t>>(x) || x == y || both_nan,
                          "export_onnx: the option {} of {} depends on {}", a.attributes[i].name, a.where(),
                          cause());
      }
    }
  }

  std::map<std::string, SizeList> numbers_of(std::size_t call) const {
    std::map<std::string, SizeList> result;
    const Call& a = first_.calls[call];
    const auto list = [](const Attribute& attribute) {
      const auto* one = std::get_if<int64_t>(&attribute.value);
      return one != nullptr ? std::vector<int64_t>{*one} : std::get<std::vector<int64_t>>(attribute.value);
    };
    for (std::size_t i = 0; i < a.attributes.size(); ++i) {
      const Attribute::Value& value = a.attributes[i].value;
      if (!std::holds_alternative<int64_t>(value) && !std::holds_alternative<std::vector<int64_t>>(value))
        continue;
      result.emplace(a.attributes[i].name,
                     sizes(list(a.attributes[i]), list(others_[0]->calls[call].attributes[i]),
                           list(others_[1]->calls[call].attributes[i]),
                           fmt::format("the option {} of {}", a.attributes[i].name, a.where())));
    }
    return result;
  }

 private:
  const char* cause() const {
    return dynamic_ ? "the input's numbers or the size of the batch" : "the input's numbers";
  }

  static bool same_numbers(const Tensor& a, const Tensor& b) {
    return allclose(ops::to_device(a, {}), ops::to_device(b, {}), {.rtol = 0, .atol = 0, .equal_nan = true});
  }

  /// Tensors that are the same all along the sizes in which they differ.
  static bool is_repeated(const Tensor& a, const Tensor& b) {
    if (a.rank() != b.rank() || a.numel() == 0 || b.numel() == 0) return false;
    return same_numbers(repeated(a, b.shape()), b) && same_numbers(repeated(b, a.shape()), a);
  }

  std::string reader_of(std::size_t value) const {
    for (const Call& call : first_.calls)
      if (std::find(call.inputs.begin(), call.inputs.end(), static_cast<int>(value)) != call.inputs.end())
        return call.where();
    return "the result";
  }

  const Trace& first_;
  std::array<const Trace*, 2> others_;
  int64_t batch_;
  bool dynamic_;
};

/// By calls, or as results.
std::set<int> values_read(const Trace& trace) {
  std::set<int> read(trace.outputs.begin(), trace.outputs.end());
  for (const Call& call : trace.calls) read.insert(call.inputs.begin(), call.inputs.end());
  return read;
}

}  // namespace

std::vector<int64_t> batch_dims_of(const char* op, const std::vector<Tensor>& inputs,
                                   const IntegerList& given) {
  check<ValueError>(given.size() <= 1 || given.size() == inputs.size(),
                    "{}: batch_dims needs one dimension for all inputs or one for each of {}, got {}", op,
                    inputs.size(), given.size());
  std::vector<int64_t> dims;
  for (std::size_t i = 0; i < inputs.size() && !given.empty(); ++i) {
    dims.push_back(given.size() == 1 ? given[0] : given[i]);
    check<ValueError>(dims.back() >= -1 && dims.back() < inputs[i].rank(),
                      "{}: the batch of input {} must be a dimension of {}, or -1 for none, got {}", op, i,
                      inputs[i], dims.back());
  }
  return dims;
}

Trace trace_of(const Plan& plan, int64_t batch) {
  const auto sizes_of = [batch](const SizeList& list) {
    std::vector<int64_t> sizes;
    for (const Size& size : list) sizes.push_back(size.at(batch));
    return sizes;
  };
  Trace trace = plan.trace;
  for (std::size_t v = 0; v < trace.values.size(); ++v)
    if (std::any_of(plan.shapes[v].begin(), plan.shapes[v].end(), [](const Size& s) { return !s.fixed(); }))
      trace.values[v].tensor = repeated(trace.values[v].tensor, sizes_of(plan.shapes[v]));
  for (std::size_t c = 0; c < trace.calls.size(); ++c)
    for (Attribute& attribute : trace.calls[c].attributes) {
      const auto found = plan.numbers[c].find(std::string(attribute.name));
      if (found == plan.numbers[c].end()) continue;
      if (std::holds_alternative<int64_t>(attribute.value))
        attribute.value = found->second.at(0).at(batch);
      else
        attribute.value = sizes_of(found->second);
    }
  return trace;
}

Plan make_plan(nn::Module* net, const Function& function, const std::vector<Tensor>& inputs,
               const std::vector<int64_t>& batch_dims) {
  Plan plan;
  int64_t batch = 0;
  for (std::size_t i = 0; i < batch_dims.size(); ++i) {
    if (batch_dims[i] < 0 || plan.batch_input >= 0) continue;
    plan.batch_input = static_cast<int>(i);
    plan.batch_dim = batch_dims[i];
    batch = inputs[i].size(batch_dims[i]);
  }
  const bool dynamic = plan.batch_input >= 0;
  // Copies, as one tensor may be given twice.
  std::vector<Tensor> examples;
  for (const Tensor& input : inputs) examples.push_back(ops::copy(input));
  plan.trace = trace(net, function, examples);
  Generator generator(1);
  const auto run = [&](int64_t size) {
    std::vector<Tensor> others;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      others.push_back(varied(inputs[i], dynamic ? batch_dims[i] : -1, size, generator));
    try {
      return trace(net, function, others);
    } catch (const Error& error) {
      if (!dynamic) throw;
      throw ValueError(
          fmt::format("export_onnx: the function cannot take a batch of {} where the example has {}: "
                      "{}\n{}",
                      size, batch, error.what(), remedy));
    }
  };
  const Trace second = run(batch + 1), third = run(batch + 3);
  const Comparison comparison(plan.trace, {&second, &third}, batch, dynamic);
  comparison.check_same_way();
  const std::set<int> read = values_read(plan.trace);
  for (std::size_t v = 0; v < plan.trace.values.size(); ++v) {
    if (plan.trace.values[v].kind == Value::Kind::constant && read.contains(static_cast<int>(v)))
      comparison.check_constant(v);
    plan.shapes.push_back(comparison.shape_of(v));
  }
  for (std::size_t c = 0; c < plan.trace.calls.size(); ++c) {
    comparison.check_attributes(c);
    plan.numbers.push_back(comparison.numbers_of(c));
  }
  return plan;
}

}  // namespace pleat::onnx
