#include "pleat/core/tensor/shape.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"

namespace pleat {

std::string name(MemoryFormat format) {
  return format == MemoryFormat::contiguous ? "contiguous" : "channels_last";
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

int64_t count(std::span<const int64_t> shape) {
  int64_t result = 1;
  bool overflow = false;
  bool empty = false;
  for (const int64_t size : shape) {
    check<ShapeError>(size >= 0, "shape: sizes must not be negative, got [{}]", fmt::join(shape, ", "));
    empty = empty || size == 0;
    overflow = __builtin_mul_overflow(result, size, &result) || overflow;
  }
  if (empty) return 0;
  check<ShapeError>(!overflow, "shape: the number of elements of [{}] does not fit 64 bits",
                    fmt::join(shape, ", "));
  return result;
}

Strides dense_strides(const Shape& shape, MemoryFormat format) {
  const auto rank = shape.size();
  Strides strides(rank);
  int64_t step = 1;
  const auto lay = [&](std::size_t dim) {
    strides[dim] = step;
    step = checked_multiply(step, std::max<int64_t>(shape[dim], 1), "strides");
  };
  if (format == MemoryFormat::contiguous) {
    for (std::size_t dim = rank; dim-- > 0;) lay(dim);
    return strides;
  }
  check<ShapeError>(rank >= 3 && rank <= 5, "channels_last needs 3 to 5 dimensions [N, C, ...], got {}",
                    shape);
  lay(1);
  for (std::size_t dim = rank; dim-- > 2;) lay(dim);
  lay(0);
  return strides;
}

Shape broadcast(const Shape& a, const Shape& b, const char* op) {
  const auto rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (std::size_t i = 1; i <= rank; ++i) {
    const int64_t size_a = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t size_b = i <= b.size() ? b[b.size() - i] : 1;
    check<ShapeError>(
        size_a == size_b || size_a == 1 || size_b == 1,
        "{}: shapes {} and {} do not broadcast: sizes {} and {}, {} from the end, must be equal or one "
        "of them 1",
        op, a, b, size_a, size_b, i);
    result[rank - i] = size_a == 1 ? size_b : size_a;
  }
  return result;
}

int64_t normalize_dim(int64_t dim, int64_t rank, const char* op) {
  const int64_t range = std::max<int64_t>(rank, 1);
  check<IndexError>(dim >= -range && dim < range,
                    "{}: dimension {} is outside [{}, {}] of a tensor of rank {}", op, dim, -range, range - 1,
                    rank);
  return dim < 0 ? dim + range : dim;
}

Shape PerDim::expand(int64_t dims, const char* op, const char* what) const {
  if (size() == 1) return Shape(static_cast<std::size_t>(dims), front());
  check<ShapeError>(static_cast<int64_t>(size()) == dims,
                    "{}: {} needs one value, or {} (one for each spatial dimension), got {}", op, what, dims,
                    *this);
  return {begin(), end()};
}

void detail::fail_integer(uint64_t value) {
  fail<ValueError>(
      "{} does not fit int64; where it is a difference of unsigned numbers, make these signed first: "
      "x.rank(), "
      "x.size(0)",
      value);
}

void detail::fail_real(bool negative, uint64_t size) {
  fail<ValueError>(
      "{}{} would be rounded: float64, in which a real number is given, has integers to 2^53 only; write the "
      "nearest one that it has, {:.0f}",
      negative ? "-" : "", size, (negative ? -1 : 1) * static_cast<double>(size));
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, MemoryFormat format) { return out << name(format); }

}  // namespace pleat
