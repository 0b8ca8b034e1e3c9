#include "pleat/op_cases/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pleat::test {

double Array::operator()(const Index& at) const { return const_cast<Array&>(*this)(at); }

double& Array::operator()(const Index& at) {
  int64_t linear = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) linear = linear * shape[d] + at[d];
  return elements.at(static_cast<std::size_t>(linear));
}

double Array::broadcast(const Index& at) const {
  Index own(at.end() - static_cast<std::ptrdiff_t>(shape.size()), at.end());
  for (std::size_t d = 0; d < own.size(); ++d)
    if (shape[d] == 1) own[d] = 0;
  return (*this)(own);
}

int64_t Array::size(int64_t d) const { return shape[dimension(*this, d)]; }

std::size_t dimension(const Array& x, int64_t d) {
  return static_cast<std::size_t>(d < 0 ? d + x.rank() : d);
}

Array array_of(const Tensor& x) { return {x.shape(), x.to_vector<double>()}; }

Array computed(const Shape& shape, const std::function<double(const Index&)>& f) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  Array result{shape, Numbers(static_cast<std::size_t>(count))};
  for (int64_t i = 0; i < count; ++i) {
    Index at(shape.size());
    int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      at[d] = rest % shape[d];
      rest /= shape[d];
    }
    result.elements[static_cast<std::size_t>(i)] = f(at);
  }
  return result;
}

Reference each_element(std::size_t inputs, const std::function<double(const double*)>& f) {
  return [=](const Arrays& x) -> Arrays {
    Shape shape;
    for (std::size_t k = 0; k < inputs; ++k)
      for (std::size_t d = 0; d < x[k].shape.size(); ++d) {
        if (shape.size() < x[k].shape.size())
          shape.insert(shape.begin(), x[k].shape.size() - shape.size(), 1);
        int64_t& size = shape[shape.size() - x[k].shape.size() + d];
        if (size == 1) size = x[k].shape[d];
      }
    return {computed(shape, [&](const Index& at) {
      double numbers[3] = {};
      for (std::size_t k = 0; k < inputs; ++k) numbers[k] = x[k].broadcast(at);
      return f(numbers);
    })};
  };
}

Array reduced(const Array& x, const Index& dims, bool keepdim,
              const std::function<double(const Numbers&)>& f) {
  std::vector<bool> gone(x.shape.size(), dims.empty());
  for (const int64_t d : dims) gone[dimension(x, d)] = true;
  Shape kept = x.shape, inner = x.shape, shape;
  for (std::size_t d = 0; d < gone.size(); ++d) {
    (gone[d] ? kept : inner)[d] = 1;
    if (!gone[d] || keepdim) shape.push_back(kept[d]);
  }
  Array result = computed(kept, [&](const Index& outer) {
    return f(computed(inner, [&](const Index& at) {
               Index sum = at;
               for (std::size_t d = 0; d < at.size(); ++d) sum[d] += outer[d];
               return x(sum);
             }).elements);
  });
  result.shape = shape;
  return result;
}

Reference over(const Index& dims, bool keepdim, const std::function<double(const Numbers&)>& f) {
  return [=](const Arrays& x) { return Arrays{reduced(x[0], dims, keepdim, f)}; };
}

Array mapped_lines(const Array& x, int64_t dim, const std::function<Numbers(const Numbers&)>& f) {
  const std::size_t d = dimension(x, dim);
  const auto line_at = [&](Index at) {
    Numbers line;
    for (at[d] = 0; at[d] < x.shape[d]; ++at[d]) line.push_back(x(at));
    return f(line);
  };
  Shape shape = x.shape;
  shape[d] = static_cast<int64_t>(f(Numbers(static_cast<std::size_t>(x.shape[d]))).size());
  return computed(shape, [&](const Index& at) { return line_at(at).at(static_cast<std::size_t>(at[d])); });
}

Reference along(int64_t dim, const std::function<Numbers(const Numbers&)>& f) {
  return [=](const Arrays& x) { return Arrays{mapped_lines(x[0], dim, f)}; };
}

Reference moved(const std::function<Shape(const Shape&)>& shape,
                const std::function<Index(const Index&, const Shape&)>& place) {
  return [=](const Arrays& x) {
    return Arrays{computed(shape(x[0].shape), [&](const Index& at) { return x[0](place(at, x[0].shape)); })};
  };
}

Reference all_of(const std::vector<Reference>& references) {
  return [=](const Arrays& x) {
    Arrays all;
    for (const Reference& one : references)
      for (Array& result : one(x)) all.push_back(std::move(result));
    return all;
  };
}

}  // namespace pleat::test
