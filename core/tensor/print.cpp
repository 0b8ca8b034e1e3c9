#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"

namespace pleat {
namespace {

constexpr int64_t summarise_above = 1000;
constexpr int64_t edge_items = 3;
constexpr std::size_t line_width = 100;

/// How the numbers of one tensor are written: all alike, so that columns line up.
class NumberStyle {
 public:
  NumberStyle(const std::vector<Number>& shown, DType dtype) : floating_(is_floating(dtype)), dtype_(dtype) {
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    bool whole = true;
    for (const Number& number : shown) {
      const auto value = number.to<double>();
      if (!std::isfinite(value)) continue;
      whole = whole && value == std::trunc(value);
      if (value != 0) low = std::min(low, std::abs(value));
      high = std::max(high, std::abs(value));
    }
    whole_ = whole && high < 1e8;
    scientific_ = !whole_ &&
                  (high >= 1e8 || (high > 0 && high / low > 1000 && low < 1e-4) || (high > 0 && high < 1e-4));
    for (const Number& value : shown) width_ = std::max(width_, write(value).size());
  }

  std::string padded(const Number& value) const { return fmt::format("{:>{}}", write(value), width_); }
  std::size_t width() const { return width_; }

 private:
  std::string write(const Number& number) const {
    if (dtype_ == boolean) return number.to<bool>() ? "true" : "false";
    if (!floating_) return text_of(number);
    const auto value = number.to<double>();
    if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    if (whole_) return fmt::format("{:.0f}.", value);
    return scientific_ ? fmt::format("{:.4e}", value) : fmt::format("{:.4f}", value);
  }

  bool floating_;
  DType dtype_;
  bool whole_ = false;
  bool scientific_ = false;
  std::size_t width_ = 0;
};

class Printer {
 public:
  explicit Printer(const Tensor& tensor)
      : tensor_(ops::to_device(tensor, Device())), summary_(tensor.numel() > summarise_above) {
    collect(0, tensor_.offset());
  }

  std::string print() {
    const NumberStyle style(values_, tensor_.dtype());
    std::string text;
    std::size_t next = 0;
    write(text, style, 0, next);
    return text;
  }

 private:
  /// Indices shown along a dimension; -1 stands for the dots.
  std::vector<int64_t> shown(std::size_t dim) const {
    const int64_t size = tensor_.shape()[dim];
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < size; ++i) {
      if (summary_ && size > 2 * edge_items && i == edge_items) {
        indices.push_back(-1);
        i = size - edge_items;
      }
      indices.push_back(i);
    }
    return indices;
  }

  void collect(std::size_t dim, int64_t at) {
    if (dim == tensor_.shape().size()) {
      const Tensor one = tensor_.as_strided({}, {}, at);
      if (is_floating(tensor_.dtype()))
        values_.emplace_back(one.item<double>());
      else
        values_.emplace_back(one.item<int64_t>());
      return;
    }
    for (const int64_t i : shown(dim))
      if (i >= 0) collect(dim + 1, at + i * tensor_.strides()[dim]);
  }

  void write(std::string& text, const NumberStyle& style, std::size_t dim, std::size_t& next) const {
    const std::size_t rank = tensor_.shape().size();
    if (dim == rank) {
      text += style.padded(values_[next++]);
      return;
    }
    text += '[';
    const bool innermost = dim + 1 == rank;
    const std::size_t per_line = std::max<std::size_t>(1, (line_width - dim) / (style.width() + 2));
    std::size_t on_line = 0;
    bool first = true;
    for (const int64_t i : shown(dim)) {
      if (!first) {
        if (!innermost)
          text += ',' + std::string(rank - 1 - dim, '\n') + std::string(dim + 1, ' ');
        else if (on_line == per_line)
          text += ",\n" + std::string(dim + 1, ' ');
        else
          text += ", ";
      }
      if (on_line == per_line) on_line = 0;
      if (i < 0)
        text += "...";
      else
        write(text, style, dim + 1, next);
      first = false;
      ++on_line;
    }
    text += ']';
  }

  Tensor tensor_;
  bool summary_;
  std::vector<Number> values_;
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "Tensor(undefined)";
  std::string text = tensor.numel() == 0 ? std::string("[]") : Printer(tensor).print();
  std::string note;
  if (tensor.dtype() != float32 && tensor.dtype() != int64 && tensor.dtype() != boolean)
    note += ' ' + std::string(name(tensor.dtype()));
  if (!tensor.device().is_cpu()) note += ' ' + name(tensor.device());
  if (tensor.numel() == 0 || tensor.numel() > summarise_above) note += ' ' + to_string(tensor.shape());
  return text + note;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

std::string text_of(DType dtype) { return std::string(name(dtype)); }
std::string text_of(std::span<const int64_t> shape) { return to_string({shape.begin(), shape.end()}); }
std::string text_of(const Tensor& tensor) { return tensor.describe(); }

}  // namespace pleat
