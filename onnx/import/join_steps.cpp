#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "pleat/onnx/import/program.h"
#include "pleat/ops/attention/attention.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

/// Nodes that are one function of Pleat, as exporters write it: a product with a matrix of weights and the
/// addition of its bias are `linear`, scores, softmax and the product with values are
/// `scaled_dot_product_attention`, x sigmoid(x) is `silu`, x (1 + erf(x / sqrt(2))) / 2 is `gelu`.

namespace pleat::onnx::imported {
namespace {

/// Whether a mask does not make scores [..., L, S] larger.
bool is_mask_of(const Tensor& mask, const Tensor& query, int64_t keys) {
  if (!is_floating(mask.dtype()) || mask.rank() > query.rank()) return false;
  for (int64_t d = 1; d <= mask.rank(); ++d) {
    const int64_t size = d == 1 ? keys : query.size(-d);
    if (mask.size(-d) != 1 && mask.size(-d) != size) return false;
  }
  return true;
}

/// Whether a mask lets query i take the keys 0 ... i, and no other.
bool is_causal(const Tensor& mask) {
  if (mask.rank() < 2 || mask.numel() != mask.size(-1) * mask.size(-2) || !is_floating(mask.dtype()))
    return false;
  const std::vector<double> numbers = mask.to_vector<double>();
  const auto keys = static_cast<std::size_t>(mask.size(-1));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (i % keys <= i / keys ? numbers[i] != 0 : numbers[i] > -1e30) return false;
  return true;
}

/// softmax(A B scale + mask) V, A [..., L, E], B [..., E, S] and V [..., S, Ev]. A query whose scores are all
/// -infinity gives 0, as in attention, where ONNX's Softmax has NaN.
NodeResults attention(NodeCall& n) {
  const Tensor &a = n.x(0), &b = n.x(1), &v = n.x(2), &mask = n.x_or_none(3);
  const bool causal = n.flag("is_causal") && mask.size(-1) == b.size(-1) && mask.size(-2) == a.size(-2);
  const double scale = n.has(4) ? n.number(4) : 1;
  const bool batched = a.rank() >= 3 && b.rank() == a.rank() && v.rank() == a.rank();
  if (batched && is_floating(a.dtype()) && (!mask.defined() || is_mask_of(mask, a, b.size(-1))))
    return scaled_dot_product_attention(
        a, transpose(b, -1, -2), v, {.mask = causal ? Tensor() : mask, .is_causal = causal, .scale = scale});
  Tensor scores = matmul(a, b) * scale;
  if (mask.defined()) scores = scores + mask;
  return matmul(softmax(scores, -1), v);
}

/// What joined steps run. A linear layer has x, a weight [outputs, inputs] (transB) or [inputs, outputs], and
/// perhaps a bias.
const Operators& joined_operators() {
  static const auto& all = *new Operators{
      {"Attention", {attention}},
      {"Gelu", {[](NodeCall& n) -> NodeResults { return gelu(n.x()); }}},
      {"Linear", {[](NodeCall& n) -> NodeResults {
         return linear(n.x(0), n.flag("transB") ? n.x(1) : transpose(n.x(1), 0, 1), n.x_or_none(2));
       }}},
      {"Silu", {[](NodeCall& n) -> NodeResults { return silu(n.x()); }}},
  };
  return all;
}

class Joiner {
 public:
  explicit Joiner(Program& program) : steps_(program.main.steps) {
    for (const auto& [value, constant] : program.constants) constants_.emplace(value, constant.tensor);
    weights_ = constants_;
    for (const State& state : program.state) weights_.emplace(state.value, state.tensor);
    for_reads(program.main, [&](int value, bool inside) { readers_[value] += inside ? 2 : 1; });
    for (std::size_t i = 0; i < steps_.size(); ++i)
      for (const int value : steps_[i].outputs) made_by_[value] = i;
  }

  void join() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      if (is(step, "MatMul")) join_attention(step) || join_linear(step, step, -1);
      if (is(step, "Add")) join_bias(step);
      if (is(step, "Mul")) join_silu(step) || join_gelu(step);
    }
    std::size_t i = 0;
    std::erase_if(steps_, [&](const Step&) { return gone_.contains(i++); });
  }

 private:
  static bool is(const Step& step, const char* op) {
    return step.node->op == op && step.node->domain.empty() && step.inputs.size() == (is_unary(op) ? 1U : 2U);
  }
  static bool is_unary(std::string_view op) {
    return op == "Softmax" || op == "Sigmoid" || op == "Erf" || op == "Transpose";
  }

  /// The step that makes a value which one other reads; none otherwise.
  Step* made(int value, const char* op) {
    const auto by = made_by_.find(value);
    if (by == made_by_.end() || readers_[value] != 1 || gone_.contains(by->second)) return nullptr;
    Step& step = steps_[by->second];
    return is(step, op) ? &step : nullptr;
  }
  const Tensor* weight(int value, int64_t rank) const {
    const auto found = weights_.find(value);
    const bool fits = found != weights_.end() && found->second.defined() && found->second.rank() == rank &&
                      is_floating(found->second.dtype());
    return fits ? &found->second : nullptr;
  }
  std::optional<double> number(int value) const {
    const auto found = constants_.find(value);
    if (found == constants_.end() || !found->second.defined() || found->second.numel() != 1)
      return std::nullopt;
    return found->second.rank() <= 1 && is_floating(found->second.dtype())
               ? std::optional(found->second.to_vector<double>()[0])
               : std::nullopt;
  }
  bool is_number(int value, double wanted) const {
    const std::optional<double> found = number(value);
    return found && std::abs(*found - wanted) <= 1e-6 * std::abs(wanted);
  }

  /// Makes a step the whole of it; the others go.
  bool become(Step& step, const char* op, std::vector<int> inputs, std::initializer_list<Step*> others,
              NodeAttributes attributes = {}) {
    auto node = std::make_shared<Node>(*step.node);
    node->op = op;
    node->attributes = std::move(attributes);
    step.node = std::move(node);
    step.op = &joined_operators().find(op)->second;
    step.inputs = std::move(inputs);
    while (step.inputs.back() < 0) step.inputs.pop_back();
    for (Step* other : others)
      if (other != nullptr && other != &step) {
        gone_.insert(static_cast<std::size_t>(other - steps_.data()));
        if (step.path.empty()) step.path = other->path;
      }
    return true;
  }

  /// A product with a matrix of weights, which may be transposed before it, as a step with a bias or none.
  bool join_linear(Step& step, Step& product, int bias) {
    const auto fits = [&](const Tensor* matrix, int64_t outputs) {
      const Tensor* added = bias < 0 ? nullptr : weight(bias, 1);
      return matrix != nullptr && (bias < 0 || (added != nullptr && added->numel() == matrix->size(outputs) &&
                                                added->dtype() == matrix->dtype()));
    };
    const int x = product.inputs[0];
    if (fits(weight(product.inputs[1], 2), 1))
      return become(step, "Linear", {x, product.inputs[1], bias}, {&product});
    Step* turned = made(product.inputs[1], "Transpose");
    if (turned == nullptr || !fits(weight(turned->inputs[0], 2), 0)) return false;
    return become(step, "Linear", {x, turned->inputs[0], bias}, {&product, turned}, {{"transB", 1}});
  }

  void join_bias(Step& sum) {
    for (const std::size_t side : {0, 1}) {
      // The product has become a linear layer without a bias.
      const auto by = made_by_.find(sum.inputs[side]);
      if (by == made_by_.end() || readers_[sum.inputs[side]] != 1 || gone_.contains(by->second)) continue;
      Step& product = steps_[by->second];
      const Tensor* bias = weight(sum.inputs[1 - side], 1);
      if (product.node->op != "Linear" || product.inputs.size() != 2 || bias == nullptr) continue;
      const Tensor* matrix = weight(product.inputs[1], 2);
      const NodeAttributes layout = product.node->attributes;
      if (matrix == nullptr || matrix->size(layout.empty() ? 1 : 0) != bias->numel() ||
          matrix->dtype() != bias->dtype())
        continue;
      become(sum, "Linear", {product.inputs[0], product.inputs[1], sum.inputs[1 - side]}, {&product}, layout);
      return;
    }
  }

  bool join_silu(Step& product) {
    for (const std::size_t side : {0, 1}) {
      Step* gate = made(product.inputs[side], "Sigmoid");
      if (gate != nullptr && gate->inputs[0] == product.inputs[1 - side])
        return become(product, "Silu", {gate->inputs[0]}, {gate});
    }
    return false;
  }

  /// erf(x / sqrt(2)) + 1, and x; false where a value is not that.
  bool is_erf_part(int value, Step*& sum, Step*& erf, Step*& scaled, int& x) {
    sum = made(value, "Add");
    for (const std::size_t side : {0, 1}) {
      if (sum == nullptr || !is_number(sum->inputs[1 - side], 1)) continue;
      erf = made(sum->inputs[side], "Erf");
      if (erf == nullptr) continue;
      scaled = made(erf->inputs[0], "Div");
      if (scaled != nullptr && is_number(scaled->inputs[1], std::sqrt(2.0)))
        return x = scaled->inputs[0], true;
      scaled = made(erf->inputs[0], "Mul");
      for (const std::size_t s : {0, 1})
        if (scaled != nullptr && is_number(scaled->inputs[1 - s], std::sqrt(0.5)))
          return x = scaled->inputs[s], true;
    }
    return false;
  }

  /// The product of three, x, 1/2 and 1 + erf(x / sqrt(2)), in any order.
  bool join_gelu(Step& last) {
    for (const std::size_t side : {0, 1}) {
      Step *first = made(last.inputs[side], "Mul"), *sum = nullptr, *erf = nullptr, *scaled = nullptr;
      if (first == nullptr) continue;
      int x = -1;
      const int a = first->inputs[0], b = first->inputs[1], c = last.inputs[1 - side];
      for (const auto& [part, u, v] : {std::tuple(a, b, c), std::tuple(b, a, c), std::tuple(c, a, b)})
        if (is_erf_part(part, sum, erf, scaled, x) &&
            ((u == x && is_number(v, 0.5)) || (v == x && is_number(u, 0.5))))
          return become(last, "Gelu", {x}, {first, sum, erf, scaled});
    }
    return false;
  }

  static bool is_over_last(const Step& softmax) {
    for (const NodeAttribute& attribute : softmax.node->attributes)
      if (const auto* axis = std::get_if<int64_t>(&attribute.value)) return *axis == -1;
    return softmax.opset >= 13;
  }

  /// The product that makes scores, perhaps times a number.
  Step* scores_of(int value, Step*& scaled, int& scale) {
    if (Step* product = made(value, "MatMul")) return product;
    Step* times = made(value, "Mul");
    for (const std::size_t side : {0, 1}) {
      if (times == nullptr || !number(times->inputs[1 - side])) continue;
      Step* product = made(times->inputs[side], "MatMul");
      if (product == nullptr) continue;
      scaled = times;
      scale = times->inputs[1 - side];
      return product;
    }
    return nullptr;
  }

  bool join_attention(Step& values) {
    Step *softmax = made(values.inputs[0], "Softmax"), *scaled = nullptr, *sum = nullptr;
    if (softmax == nullptr || !is_over_last(*softmax)) return false;
    int mask = -1, scale = -1;
    Step* scores = scores_of(softmax->inputs[0], scaled, scale);
    if (scores == nullptr) sum = made(softmax->inputs[0], "Add");
    for (const std::size_t side : {0, 1})
      if (sum != nullptr && scores == nullptr) {
        scores = scores_of(sum->inputs[side], scaled, scale);
        mask = sum->inputs[1 - side];
      }
    if (scores == nullptr) return false;
    const auto known = constants_.find(mask);
    const bool causal = known != constants_.end() && known->second.defined() && is_causal(known->second);
    return become(values, "Attention", {scores->inputs[0], scores->inputs[1], values.inputs[1], mask, scale},
                  {softmax, scores, sum, scaled}, {{"is_causal", causal}});
  }

  std::vector<Step>& steps_;
  std::map<int, Tensor> constants_, weights_;  ///< the latter with what is trained
  std::map<int, int> readers_;
  std::map<int, std::size_t> made_by_;
  std::set<std::size_t> gone_;
};

}  // namespace

void join_steps(Program& program) { Joiner(program).join(); }

}  // namespace pleat::onnx::imported
