#pragma once

#include <functional>
#include <type_traits>
#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Results computed from plain numbers in float64, by loops that share nothing with the library.

namespace pleat::test {

using Index = std::vector<int64_t>;
using Numbers = std::vector<double>;

/// Numbers in row-major order.
struct Array {
  Shape shape;
  Numbers elements;

  double operator()(const Index& at) const;
  double& operator()(const Index& at);
  /// The element that broadcasting puts at an index of a larger shape.
  double broadcast(const Index& at) const;
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  /// Of dimension d, which may be negative.
  int64_t size(int64_t d) const;
};
using Arrays = std::vector<Array>;
using Reference = std::function<Arrays(const Arrays& inputs)>;

Array array_of(const Tensor& x);
/// f at each index of a shape.
Array computed(const Shape& shape, const std::function<double(const Index&)>& f);
/// 0 ... rank - 1 for a dimension that may be negative.
std::size_t dimension(const Array& x, int64_t d);

/// What `each` does: a function of the inputs' elements, which broadcast.
Reference each_element(std::size_t inputs, const std::function<double(const double*)>& f);

/// A function of one, two or three numbers for each element of inputs that broadcast.
template <class F>
Reference each(F f) {
  if constexpr (std::is_invocable_v<F, double>)
    return each_element(1, [f](const double* x) { return static_cast<double>(f(x[0])); });
  else if constexpr (std::is_invocable_v<F, double, double>)
    return each_element(2, [f](const double* x) { return static_cast<double>(f(x[0], x[1])); });
  else
    return each_element(3, [f](const double* x) { return static_cast<double>(f(x[0], x[1], x[2])); });
}

/// A function of all elements that differ in `dims` only; of all where there are no dims.
Reference over(const Index& dims, bool keepdim, const std::function<double(const Numbers&)>& f);
Array reduced(const Array& x, const Index& dims, bool keepdim,
              const std::function<double(const Numbers&)>& f);

/// A function of each line along a dimension, which gives another line.
Reference along(int64_t dim, const std::function<Numbers(const Numbers&)>& f);
Array mapped_lines(const Array& x, int64_t dim, const std::function<Numbers(const Numbers&)>& f);

/// A result whose element at i is the first input's element at `place(i)`.
Reference moved(const std::function<Shape(const Shape&)>& shape,
                const std::function<Index(const Index& at, const Shape& from)>& place);

/// The results of several references.
Reference all_of(const std::vector<Reference>& references);

}  // namespace pleat::test
