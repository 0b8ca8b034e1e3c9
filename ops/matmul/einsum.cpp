#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "pleat/autograd/autocast.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// A dimension's name: a letter's code, or `ellipsis` plus the distance from the last dimension that "..."
/// stands for.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label ellipsis = 1000;

/// Its place among the labels, or behind them.
int64_t place_of(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}
bool has(const Labels& labels, Label label) { return place_of(labels, label) < std::ssize(labels); }

/// One side of an operand in the equation: its letters, and where "..." stands among them.
struct Term {
  std::string letters;
  std::optional<std::size_t> dots;

  /// The labels when "..." stands for `extra` dimensions.
  Labels labels(std::size_t extra) const {
    Labels result(letters.begin(), letters.end());
    if (!dots) return result;
    Labels middle(extra);
    for (std::size_t i = 0; i < extra; ++i) middle[i] = ellipsis + static_cast<Label>(extra - 1 - i);
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(*dots), middle.begin(), middle.end());
    return result;
  }
};

struct Equation {
  std::vector<Term> inputs;
  std::optional<Term> output;
};

Equation parse(std::string_view text) {
  Equation equation{{Term()}, {}};
  Term* term = &equation.inputs.back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      term->letters += c;
    } else if (text.substr(i, 3) == "..." && !term->dots) {
      term->dots = term->letters.size();
      i += 2;
    } else if (c == ',' && !equation.output) {
      term = &equation.inputs.emplace_back();
    } else if (text.substr(i, 2) == "->" && !equation.output) {
      term = &equation.output.emplace();
      ++i;
    } else {
      fail<ValueError>(
          "einsum: \"{}\" must be letters and ... separated by commas, then at most one ->; got '{}' at {}",
          text, c, i);
    }
  }
  return equation;
}

/// A tensor whose dimensions have names.
struct Named {
  Tensor tensor;
  Labels labels;
};

class Einsum {
 public:
  Einsum(std::string_view text, const std::vector<Tensor>& operands) : text_(text), equation_(parse(text)) {
    check<ValueError>(equation_.inputs.size() == operands.size(), "einsum: \"{}\" names {} operands, got {}",
                      text, equation_.inputs.size(), operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) add_operand(equation_.inputs[i], operands[i]);
    find_output();
    for (Named& operand : operands_) drop_broadcast(operand);
  }

  Tensor run() {
    for (std::size_t i = 0; i < operands_.size(); ++i) sum_unneeded(i);
    while (operands_.size() > 1) contract_cheapest();
    const Named& result = operands_[0];
    std::vector<int64_t> order;
    for (const Label label : output_) order.push_back(place_of(result.labels, label));
    return std::is_sorted(order.begin(), order.end()) ? result.tensor : permute(result.tensor, order);
  }

 private:
  void add_operand(const Term& term, const Tensor& operand) {
    const auto rank = operand.shape().size();
    check<ShapeError>(term.dots ? rank >= term.letters.size() : rank == term.letters.size(),
                      "einsum: operand {} of \"{}\" has {} letters, which do not fit its shape {}",
                      operands_.size(), text_, term.letters.size(), operand.shape());
    const std::size_t extra = rank - term.letters.size();
    extra_ = std::max(extra_, extra);
    Named named{operand, term.labels(extra)};
    for (std::size_t d = 0; d < rank; ++d) note_size(named.labels[d], operand.shape()[d], operand);
    take_diagonals(named);
    operands_.push_back(std::move(named));
  }

  void note_size(Label label, int64_t size, const Tensor& operand) {
    const auto [known, added] = sizes_.emplace(label, size);
    if (added || known->second == size) return;
    const bool fits = size == 1 || known->second == 1;
    check<ShapeError>(fits || label >= ellipsis,
                      "einsum: {} of \"{}\" has size {}, but an operand of shape {} has {}",
                      static_cast<char>(label), text_, known->second, operand.shape(), size);
    check<ShapeError>(fits, "einsum: the dimensions of ... in \"{}\" do not broadcast: sizes {} and {}",
                      text_, known->second, size);
    known->second = size == 1 ? known->second : size;
  }

  void take_diagonals(Named& named) {
    for (std::size_t i = 0; i < named.labels.size(); ++i) {
      const Label label = named.labels[i];
      const auto twin =
          std::find(named.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, named.labels.end(), label);
      if (twin == named.labels.end()) continue;
      const auto other = twin - named.labels.begin();
      const Shape& shape = named.tensor.shape();
      check<ShapeError>(shape[i] == shape[static_cast<std::size_t>(other)],
                        "einsum: the diagonal {} of \"{}\" needs equal sizes, got {}",
                        static_cast<char>(label), text_, shape);
      named.tensor = diagonal(named.tensor, 0, static_cast<int64_t>(i), other);
      named.labels.erase(twin);
      named.labels.erase(named.labels.begin() + static_cast<std::ptrdiff_t>(i));
      named.labels.push_back(label);
      --i;
    }
  }

  void find_output() {
    Term term;
    if (equation_.output) {
      term = *equation_.output;
      for (std::size_t i = 0; i < term.letters.size(); ++i) {
        const char letter = term.letters[i];
        check<ValueError>(sizes_.contains(letter),
                          "einsum: the result of \"{}\" has {}, which no operand has", text_, letter);
        check<ValueError>(term.letters.find(letter) == i, "einsum: the result of \"{}\" has {} twice", text_,
                          letter);
      }
    } else {
      std::map<char, int> times;
      for (const Term& input : equation_.inputs) {
        for (const char letter : input.letters) ++times[letter];
        if (input.dots) term.dots = 0;
      }
      for (const auto& [letter, number] : times)
        if (number == 1) term.letters += letter;
    }
    output_ = term.labels(extra_);
  }

  /// Takes away dimensions of size 1 that are stretched: other operands bring their size.
  void drop_broadcast(Named& named) const {
    Shape shape;
    Labels kept;
    for (std::size_t d = 0; d < named.labels.size(); ++d) {
      const int64_t size = named.tensor.shape()[d];
      if (size == 1 && sizes_.at(named.labels[d]) != 1) continue;
      shape.push_back(size);
      kept.push_back(named.labels[d]);
    }
    if (kept.size() == named.labels.size()) return;
    named.tensor = reshape(named.tensor, std::move(shape));
    named.labels = std::move(kept);
  }

  /// Whether the result or an operand besides `i` and `j` has the label.
  bool needed(Label label, std::size_t i, std::size_t j) const {
    if (has(output_, label)) return true;
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (k != i && k != j && has(operands_[k].labels, label)) return true;
    return false;
  }

  void sum_unneeded(std::size_t i) {
    Named& named = operands_[i];
    Dims dims;
    Labels kept;
    for (std::size_t d = 0; d < named.labels.size(); ++d)
      if (needed(named.labels[d], i, i))
        kept.push_back(named.labels[d]);
      else
        dims.push_back(static_cast<int64_t>(d));
    if (dims.empty()) return;
    named.tensor = sum(named.tensor, dims, false);
    named.labels = std::move(kept);
  }

  /// What becomes of the labels of a pair.
  struct Roles {
    Labels batch, left, right, contracted;

    Labels of_result() const {
      Labels labels = batch;
      labels.insert(labels.end(), left.begin(), left.end());
      labels.insert(labels.end(), right.begin(), right.end());
      return labels;
    }
  };

  Roles roles(std::size_t i, std::size_t j) const {
    Roles result;
    const Labels& right = operands_[j].labels;
    for (const Label label : operands_[i].labels)
      if (!has(right, label))
        result.left.push_back(label);
      else
        (needed(label, i, j) ? result.batch : result.contracted).push_back(label);
    for (const Label label : right)
      if (!has(operands_[i].labels, label)) result.right.push_back(label);
    return result;
  }

  int64_t elements(const Labels& labels) const {
    int64_t product = 1;
    for (const Label label : labels) product = checked_multiply(product, sizes_.at(label), "einsum");
    return product;
  }

  void contract_cheapest() {
    std::size_t best_i = 0, best_j = 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < operands_.size(); ++i)
      for (std::size_t j = i + 1; j < operands_.size(); ++j) {
        double size = 1;
        for (const Label label : roles(i, j).of_result()) size *= static_cast<double>(sizes_.at(label));
        if (size >= least) continue;
        least = size;
        best_i = i;
        best_j = j;
      }
    operands_[best_i] = contract(operands_[best_i], operands_[best_j], roles(best_i, best_j));
    operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(best_j));
  }

  Tensor arrange(const Named& named, std::initializer_list<Labels> order, Shape shape) const {
    std::vector<int64_t> dims;
    for (const Labels& labels : order)
      for (const Label label : labels) dims.push_back(place_of(named.labels, label));
    return reshape(permute(named.tensor, dims), std::move(shape));
  }

  Shape sizes(const Labels& labels) const {
    Shape shape;
    for (const Label label : labels) shape.push_back(sizes_.at(label));
    return shape;
  }

  Named contract(const Named& a, const Named& b, const Roles& r) const {
    Labels labels = r.of_result();
    Shape shape = sizes(labels);
    if (r.contracted.empty()) {
      Shape left = shape, right = shape;
      std::fill_n(left.end() - std::ssize(r.right), r.right.size(), 1);
      std::fill_n(right.begin() + std::ssize(r.batch), r.left.size(), 1);
      return {multiply(arrange(a, {r.batch, r.left}, std::move(left)),
                       arrange(b, {r.batch, r.right}, std::move(right))),
              std::move(labels)};
    }
    const int64_t batch = elements(r.batch);
    const int64_t k = elements(r.contracted);
    const Tensor left = arrange(a, {r.batch, r.left, r.contracted}, {batch, elements(r.left), k});
    const Tensor right = arrange(b, {r.batch, r.contracted, r.right}, {batch, k, elements(r.right)});
    return {reshape(matmul(left, right), std::move(shape)), std::move(labels)};
  }

  std::string_view text_;
  Equation equation_;
  std::vector<Named> operands_;
  std::map<Label, int64_t> sizes_;
  std::size_t extra_ = 0;  // dimensions that "..." stands for
  Labels output_;
};

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, MatmulOptions options) {
  const RecordOp range("einsum", operands);
  std::vector<Tensor> inputs = operands;
  autograd::cast_to_half(inputs);
  for (const Tensor& input : inputs)
    ops::check_one_type("einsum", "one operand", input, "the first", inputs[0]);
  const Autocast one_type{float16, {.enabled = false}};  // its sums are parts of the product
  const PrecisionScope scope(options.precision);
  return Einsum(equation, inputs).run();
}

}  // namespace pleat
