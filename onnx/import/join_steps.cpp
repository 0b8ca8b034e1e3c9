#include <algorithm>
#include <map>
#include <set>

#include "pleat/onnx/import/program.h"
#include "pleat/ops/attention/attention.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

/// Nodes that are one function of Pleat: a product with a matrix of weights and the addition of its bias are
/// `linear`, scores, softmax and the product with values are `scaled_dot_product_attention`.

namespace pleat::onnx::imported {
namespace {

/// x, a matrix [inputs, outputs] and a bias.
const Operator linear_operator{
    [](NodeCall& n) -> NodeResults { return linear(n.x(0), transpose(n.x(1), 0, 1), n.x_or_none(2)); }};

/// Whether a mask does not make scores [..., L, S] larger.
bool is_mask_of(const Tensor& mask, const Tensor& query, int64_t keys) {
  if (!is_floating(mask.dtype()) || mask.rank() > query.rank()) return false;
  for (int64_t d = 1; d <= mask.rank(); ++d) {
    const int64_t size = d == 1 ? keys : query.size(-d);
    if (mask.size(-d) != 1 && mask.size(-d) != size) return false;
  }
  return true;
}

/// softmax(A B + mask) V, A [..., L, E], B [..., E, S] and V [..., S, Ev]. A query whose scores are all
/// -infinity gives 0, as in attention, where ONNX's Softmax has NaN.
Tensor attention(NodeCall& n) {
  const Tensor &a = n.x(0), &b = n.x(1), &v = n.x(2), &mask = n.x_or_none(3);
  const bool batched = a.rank() >= 3 && b.rank() == a.rank() && v.rank() == a.rank();
  if (batched && is_floating(a.dtype()) && (!mask.defined() || is_mask_of(mask, a, b.size(-1))))
    return scaled_dot_product_attention(a, transpose(b, -1, -2), v, {.mask = mask, .scale = 1});
  Tensor scores = matmul(a, b);
  if (mask.defined()) scores = scores + mask;
  return matmul(softmax(scores, -1), v);
}
const Operator attention_operator{[](NodeCall& n) -> NodeResults { return attention(n); }};

class Joiner {
 public:
  explicit Joiner(Program& program) : steps_(program.main.steps) {
    for (const State& state : program.state) weights_.emplace(state.value, state.tensor);
    for (const auto& [value, constant] : program.constants) weights_.emplace(value, constant.tensor);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      for (const int value : steps_[i].inputs) ++readers_[value];
      for (const int value : steps_[i].outputs) made_by_[value] = i;
      for (const auto& [name, block] : steps_[i].blocks) read_inside(*block);
    }
    for (const int value : program.main.outputs) readers_[value] += 2;
  }

  void join() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      join_attention(i);
      join_linear(i);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (!gone_.contains(i)) {
        if (kept != i) steps_[kept] = std::move(steps_[i]);
        ++kept;
      }
    steps_.resize(kept);
  }

 private:
  void read_inside(const Block& block) {
    for (const Step& step : block.steps) {
      for (const int value : step.inputs) readers_[value] += 2;
      for (const auto& [name, inner] : step.blocks) read_inside(*inner);
    }
    for (const int value : block.outputs) readers_[value] += 2;
  }

  bool is(const Step& step, const char* op, std::size_t inputs) const {
    return step.node->op == op && step.node->domain.empty() && step.inputs.size() == inputs &&
           step.op != nullptr;
  }
  /// The step that makes a value which one other reads; none otherwise.
  Step* sole_maker(int value, const char* op, std::size_t inputs) {
    const auto made = made_by_.find(value);
    if (made == made_by_.end() || readers_[value] != 1 || gone_.contains(made->second)) return nullptr;
    Step& step = steps_[made->second];
    return is(step, op, inputs) ? &step : nullptr;
  }
  const Tensor* weight(int value, int64_t rank) const {
    const auto found = weights_.find(value);
    const bool fits = found != weights_.end() && found->second.defined() && found->second.rank() == rank &&
                      is_floating(found->second.dtype());
    return fits ? &found->second : nullptr;
  }
  void take_out(const Step* step) { gone_.insert(static_cast<std::size_t>(step - steps_.data())); }
  static bool is_over_last(const Step& softmax) {
    for (const NodeAttribute& attribute : softmax.node->attributes)
      if (const auto* axis = std::get_if<int64_t>(&attribute.value)) return *axis == -1;
    return softmax.opset >= 13;
  }

  void join_linear(std::size_t i) {
    Step& step = steps_[i];
    if (gone_.contains(i)) return;
    if (is(step, "MatMul", 2) && weight(step.inputs[1], 2) != nullptr) step.op = &linear_operator;
    if (!is(step, "Add", 2)) return;
    for (const std::size_t side : {0, 1}) {
      Step* product = sole_maker(step.inputs[side], "MatMul", 2);
      const Tensor* bias = weight(step.inputs[1 - side], 1);
      if (product == nullptr || bias == nullptr) continue;
      const Tensor* matrix = weight(product->inputs[1], 2);
      if (matrix == nullptr || matrix->size(1) != bias->numel() || matrix->dtype() != bias->dtype()) continue;
      const int added = step.inputs[1 - side];
      step.inputs = {product->inputs[0], product->inputs[1], added};
      step.op = &linear_operator;
      step.node = product->node;
      if (step.path.empty()) step.path = product->path;
      take_out(product);
      return;
    }
  }

  void join_attention(std::size_t i) {
    Step& step = steps_[i];
    if (!is(step, "MatMul", 2)) return;
    Step* softmax = sole_maker(step.inputs[0], "Softmax", 1);
    if (softmax == nullptr || !is_over_last(*softmax)) return;
    int mask = -1;
    Step* scores = sole_maker(softmax->inputs[0], "MatMul", 2);
    Step* sum = scores == nullptr ? sole_maker(softmax->inputs[0], "Add", 2) : nullptr;
    for (const std::size_t side : {0, 1})
      if (sum != nullptr && scores == nullptr) {
        scores = sole_maker(sum->inputs[side], "MatMul", 2);
        mask = sum->inputs[1 - side];
      }
    if (scores == nullptr || weight(scores->inputs[1], 2) != nullptr) return;
    step.inputs = {scores->inputs[0], scores->inputs[1], step.inputs[1]};
    if (mask >= 0) step.inputs.push_back(mask);
    step.op = &attention_operator;
    for (const Step* one : {softmax, scores, sum})
      if (one != nullptr) take_out(one);
  }

  std::vector<Step>& steps_;
  std::map<int, Tensor> weights_;
  std::map<int, int> readers_;
  std::map<int, std::size_t> made_by_;
  std::set<std::size_t> gone_;
};

}  // namespace

void join_steps(Program& program) { Joiner(program).join(); }

}  // namespace pleat::onnx::imported
