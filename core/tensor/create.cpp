// Host and device.
#include "pleat/core/tensor/create.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/core/tensor/trace.h"

namespace pleat {
namespace {

std::shared_ptr<Storage> new_storage(const Shape& shape, DType dtype, Device device) {
  const int64_t size = checked_multiply(count(shape), size_of(dtype), "tensor");
  return std::make_shared<Storage>(allocate(size, device), size, device);
}

/// Numbers at equal distances: element i is start + i * step, as V, stored in any type.
template <class V>
struct RampElement {
  V start, step;
  int64_t last;  ///< the element that is `end`, which its formula may miss; -1: none
  V end;
  std::byte* out;
  DType dtype;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { store_as<V>(out, i, dtype, element(i)); }

  /// The same by the loops of casts.
  void run(int64_t first, int64_t stop) const {
    constexpr int64_t most = 512;
    alignas(64) V elements[most];
    const ConvertRun store = find_convert_run(dtype, dtype_of<V>());
    for (int64_t i = first; i < stop; i += most) {
      const int64_t count = std::min(most, stop - i);
      for (int64_t k = 0; k < count; ++k) elements[k] = element(i + k);
      store(out + i * size_of(dtype), {1}, reinterpret_cast<const std::byte*>(elements), {1}, count, 1);
    }
  }

  PLEAT_HOST_DEVICE V element(int64_t i) const { return i == last ? end : at(start, step, i); }
  PLEAT_HOST_DEVICE static V at(V start, V step, int64_t i) {
    if constexpr (std::is_integral_v<V>)  // without sign: the largest steps exceed int64
      return static_cast<V>(static_cast<uint64_t>(start) +
                            static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
    else
      return std::fma(static_cast<V>(i), step, start);  // rounded alike on all machines
  }
};

template <class V>
Tensor ramp(const char* op, int64_t n, V start, V step, const TensorOptions& options, int64_t last = -1,
            V end = 0) {
  const RecordOp range(op);
  const Tensor result = empty({n}, options);
  const RampElement<V> functor{start, step, last, end, result.raw(), result.dtype()};
  for_each_index(op, result.device(), n, functor, 8192);
  return result;
}

/// How many numbers start, start + step ... lie before `end`, which is on the side that step leads to.
int64_t integers_between(int64_t start, int64_t end, int64_t step) {
  // Differences of two int64 fit as unsigned ones.
  const auto a = static_cast<uint64_t>(start);
  const auto b = static_cast<uint64_t>(end);
  const uint64_t distance = step > 0 ? b - a : a - b;
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t n = distance / stride + (distance % stride != 0 ? 1 : 0);
  check<ShapeError>(n <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
                    "arange: {} elements are too many", n);
  return static_cast<int64_t>(n);
}

}  // namespace

Tensor empty(Sizes shape, TensorOptions options) {
  auto storage = new_storage(shape, options.dtype, options.device);
  Strides strides = dense_strides(shape, options.format);
  return make_tensor(std::move(storage), std::move(shape), std::move(strides), 0, options.dtype);
}

Tensor full(Sizes shape, Scalar value, TensorOptions options) {
  const RecordOp range("fill");
  check_fits("full", value, options.dtype);
  Tensor result = empty(std::move(shape), options);
  ops::fill(result, value);
  return result;
}

Tensor zeros(Sizes shape, TensorOptions options) { return full(std::move(shape), 0, options); }
Tensor ones(Sizes shape, TensorOptions options) { return full(std::move(shape), 1, options); }

Tensor empty_like(const Tensor& like) {
  const std::array inputs = {like};
  return empty_as(inputs, like.shape(), like.dtype());
}

Tensor full_like(const Tensor& like, Scalar value) {
  const TracedCall call("fill", {like}, {{"value", value}});
  check_fits("full_like", value, like.dtype());
  Tensor result = empty_like(like);
  ops::fill(result, value);
  return call.gives(result);
}

Tensor zeros_like(const Tensor& like) { return full_like(like, 0); }
Tensor ones_like(const Tensor& like) { return full_like(like, 1); }

Tensor arange(Number start, Number end, Number step, ArangeOptions asked) {
  const bool integers = start.kind() != float64 && end.kind() != float64 && step.kind() != float64;
  const TensorOptions options{.dtype = asked.dtype.value_or(integers ? int64 : float32),
                              .device = asked.device};
  const double from = start.to<double>();
  const double distance = end.to<double>() - from;
  const double stride = step.to<double>();
  const auto check_direction = [&](bool right) {
    check<ValueError>(right,
                      "arange: step must lead from start to end and is negative on the way down, got start "
                      "{}, end {}, step {}",
                      start, end, step);
  };
  const auto check_ends = [&](int64_t n, const Number& last) {
    if (n == 0) return;
    check_fits("arange", start, options.dtype);
    check_fits("arange", last, options.dtype);
  };
  check_direction(std::isfinite(distance) && std::isfinite(stride) && stride != 0);
  if (start.kind() != float64 && step.kind() != float64) {
    const auto first = start.to<int64_t>();
    const auto by = step.to<int64_t>();
    // The same numbers lie before a whole end.
    const Number whole = end.kind() != float64
                             ? end
                             : Number(by > 0 ? std::ceil(end.to<double>()) : std::floor(end.to<double>()));
    const auto last = whole.to<int64_t>();
    check_direction(by > 0 ? first <= last : first >= last);
    const int64_t n = integers_between(first, last, by);
    check_ends(n, RampElement<int64_t>::at(first, by, n - 1));
    return ramp("arange", n, first, by, options);
  }
  check_direction(distance * stride >= 0 || distance == 0);
  const double exact = std::ceil(distance / stride);
  check<ShapeError>(exact < 1e15, "arange: {} elements are too many", exact);
  const auto n = static_cast<int64_t>(exact);
  check_ends(n, RampElement<double>::at(from, stride, n - 1));
  return ramp("arange", n, from, stride, options);
}

Tensor linspace(Real start, Real end, Integer count, TensorOptions options) {
  check<ValueError>(count >= 1, "linspace: count must be at least 1, got {}", count);
  const double first = start;
  const double last = end;
  check<ValueError>(std::isfinite(first) && std::isfinite(last),
                    "linspace: start and end must be finite, got {} and {}", first, last);
  check_fits("linspace", first, options.dtype);
  check_fits("linspace", last, options.dtype);
  if (count == 1) return full({1}, first, options);
  const auto steps = static_cast<double>(count - 1);
  return ramp("linspace", count, first, last / steps - first / steps, options, count - 1, last);
}

Tensor eye(Integer rows, Integer columns, TensorOptions options) {
  const Tensor result = zeros({rows, columns}, options);
  const int64_t diagonal = std::min<int64_t>(rows, columns);
  if (diagonal > 0)
    ops::fill(result.as_strided({diagonal}, {result.strides()[0] + result.strides()[1]}, 0), 1);
  return result;
}

Tensor eye(Integer rows, TensorOptions options) { return eye(rows, rows, options); }

template <Element T>
Tensor from_span(std::span<const T> values, Sizes shape, Device device) {
  const int64_t n = count(shape);
  check<ShapeError>(n == static_cast<int64_t>(values.size()), "from_span: shape {} needs {} values, got {}",
                    shape, n, values.size());
  Tensor result = empty(std::move(shape), {.dtype = dtype_of<T>(), .device = Device()});
  if (n > 0) std::memcpy(result.raw(), values.data(), values.size_bytes());
  return ops::to_device(result, device);
}

template Tensor from_span(std::span<const bool>, Sizes, Device);
template Tensor from_span(std::span<const uint8_t>, Sizes, Device);
template Tensor from_span(std::span<const int32_t>, Sizes, Device);
template Tensor from_span(std::span<const int64_t>, Sizes, Device);
template Tensor from_span(std::span<const Half>, Sizes, Device);
template Tensor from_span(std::span<const BFloat16>, Sizes, Device);
template Tensor from_span(std::span<const float>, Sizes, Device);
template Tensor from_span(std::span<const double>, Sizes, Device);

Tensor from_vector(const std::vector<bool>& values, Sizes shape, Device device) {
  const std::vector<uint8_t> bytes(values.begin(), values.end());
  return ops::to_device(ops::cast(from_vector(bytes, std::move(shape), Device()), boolean), device);
}

Tensor from_memory(void* data, Sizes shape, DType dtype, std::shared_ptr<void> owner, Strides strides) {
  check<ValueError>(data != nullptr || count(shape) == 0, "from_memory: the pointer is null");
  check<ValueError>(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size_of(dtype)) == 0,
                    "from_memory: the pointer must be aligned to the {} bytes of {}", size_of(dtype), dtype);
  if (strides.empty()) strides = dense_strides(shape);
  check<ShapeError>(strides.size() == shape.size(), "from_memory: {} has {} sizes but {} strides", shape,
                    shape.size(), strides.size());
  int64_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    check<ValueError>(strides[d] >= 0, "from_memory: strides must not be negative, got {}", strides);
    last = checked_add(last, checked_multiply(std::max<int64_t>(shape[d], 1) - 1, strides[d], "from_memory"),
                       "from_memory");
  }
  const int64_t size = count(shape) == 0 ? 0
                                         : checked_multiply(checked_add(last, 1, "from_memory"),
                                                            size_of(dtype), "from_memory");
  auto storage = std::make_shared<Storage>(
      std::shared_ptr<std::byte>(std::move(owner), static_cast<std::byte*>(data)), size, Device());
  return make_tensor(std::move(storage), std::move(shape), std::move(strides), 0, dtype);
}

namespace detail {
Tensor from_numbers(std::span<const double> values, Shape shape, DType dtype) {
  for (const double value : values) check_fits("tensor", value, dtype);
  return ops::cast(from_span(values, std::move(shape)), dtype);
}
Tensor from_numbers(std::span<const int64_t> values, Shape shape, DType dtype) {
  for (const int64_t value : values) check_fits("tensor", value, dtype);
  return ops::cast(from_span(values, std::move(shape)), dtype);
}
}  // namespace detail

namespace {

template <class List>
Tensor from_mixed(const List& list, std::optional<DType> dtype) {
  Shape shape;
  std::vector<Number> values;
  detail::flatten(list, 0, shape, values);
  if (std::ranges::any_of(values, [](const Number& v) { return v.kind() == float64; })) {
    std::vector<double> reals;
    for (const Number& value : values) reals.push_back(value.to<double>());
    return detail::from_numbers(std::span<const double>(reals), std::move(shape), dtype.value_or(float32));
  }
  std::vector<int64_t> integers;
  for (const Number& value : values) integers.push_back(value.to<int64_t>());
  return detail::from_numbers(std::span<const int64_t>(integers), std::move(shape), dtype.value_or(int64));
}

}  // namespace

Tensor tensor(std::initializer_list<Number> values, std::optional<DType> dtype) {
  return from_mixed(values, dtype);
}
Tensor tensor(std::initializer_list<std::initializer_list<Number>> rows, std::optional<DType> dtype) {
  return from_mixed(rows, dtype);
}

Tensor scalar(Scalar value, DType dtype) {
  check_fits("scalar", value, dtype);
  return full({}, value, {.dtype = dtype});
}
Tensor scalar(Scalar value) { return scalar(value, value.kind() == float64 ? float32 : value.kind()); }

}  // namespace pleat
