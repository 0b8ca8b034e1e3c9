#include "pleat/core/tensor/tensor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/core/tensor/journal.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/core/tensor/undefined.h"

namespace pleat {
namespace {

/// Rides along with the null pointer of an undefined tensor.
struct UndefinedReason {
  std::string text;
  void operator()(TensorImpl*) const {}
};

uint64_t next_id() {
  static std::atomic<uint64_t> id{0};
  return ++id;
}

/// Throws unless every element lies inside the storage.
void check_bounds(const Storage& storage, const Shape& shape, const Strides& strides, int64_t offset,
                  DType dtype) {
  check<ShapeError>(shape.size() == strides.size(), "tensor: {} has {} sizes but {} strides", shape,
                    shape.size(), strides.size());
  if (count(shape) == 0) {
    dense_strides(shape);  // so that the product of any of the sizes fits
    return;
  }
  int64_t low = offset;
  int64_t high = offset;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const int64_t reach = checked_multiply(shape[d] - 1, strides[d], "tensor");
    (reach < 0 ? low : high) = checked_add(reach < 0 ? low : high, reach, "tensor");
  }
  const int64_t capacity = storage.size / size_of(dtype);
  check<ShapeError>(
      low >= 0 && high < capacity,
      "tensor: shape {} with strides {} from element {} reaches elements {} to {} of a storage of {}", shape,
      strides, offset, low, high, capacity);
}

/// Dimensions of size 1 have no neighbours: their stride means nothing.
bool lies_as(const Shape& shape, const Strides& strides, MemoryFormat format) {
  const auto rank = shape.size();
  int64_t expected = 1;
  const auto follows = [&](std::size_t d) {
    if (shape[d] == 1) return true;
    const bool fits = strides[d] == expected;
    expected *= shape[d];
    return fits;
  };
  const bool channels_last = format == MemoryFormat::channels_last;
  if (channels_last && !follows(1)) return false;
  for (std::size_t d = rank; d-- > 0;)
    if (!(channels_last && d == 1) && !follows(d)) return false;
  return true;
}

}  // namespace

Tensor make_tensor(std::shared_ptr<Storage> storage, Shape shape, Strides strides, int64_t offset,
                   DType dtype) {
  check_bounds(*storage, shape, strides, offset, dtype);
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::move(storage);
  impl->shape = std::move(shape);
  impl->strides = std::move(strides);
  impl->offset = offset;
  impl->dtype = dtype;
  impl->id = next_id();
  return Tensor(std::move(impl));
}

Tensor undefined_because(std::string reason) {
  return Tensor(
      std::shared_ptr<TensorImpl>(static_cast<TensorImpl*>(nullptr), UndefinedReason{std::move(reason)}));
}

const TensorImpl& Tensor::impl() const {
  if (!impl_) [[unlikely]] {
    const auto* known = std::get_deleter<UndefinedReason>(impl_);
    throw Error(
        known != nullptr
            ? known->text
            : "tensor: this Tensor is undefined: it was never given a value (zeros({2, 3}) is one), or was "
              "moved from (use the one that it was moved to)");
  }
  return *impl_;
}

TensorImpl& Tensor::mutable_impl() const { return const_cast<TensorImpl&>(impl()); }

int64_t Tensor::size(Integer dim) const {
  const int64_t dims = rank();
  check<IndexError>(dims > 0, "size: a tensor of rank 0 has no dimension {}", dim);
  return shape()[static_cast<std::size_t>(normalize_dim(dim, dims, "size"))];
}

int64_t Tensor::numel() const { return count(shape()); }

bool Tensor::is_contiguous(MemoryFormat format) const {
  const TensorImpl& t = impl();
  if (format == MemoryFormat::channels_last && (t.shape.size() < 3 || t.shape.size() > 5)) return false;
  return numel() == 0 || lies_as(t.shape, t.strides, format);
}

MemoryFormat Tensor::memory_format() const {
  return !is_contiguous() && is_contiguous(MemoryFormat::channels_last) ? MemoryFormat::channels_last
                                                                        : MemoryFormat::contiguous;
}

bool Tensor::is_dense() const {
  const TensorImpl& t = impl();
  if (is_contiguous()) return true;
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (std::size_t d = 0; d < t.shape.size(); ++d)
    if (t.shape[d] > 1) dims.emplace_back(t.strides[d], t.shape[d]);
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : dims) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

std::string Tensor::describe() const {
  if (!defined()) return "undefined";
  const bool plain = is_contiguous();
  const bool last = !plain && is_contiguous(MemoryFormat::channels_last);
  return fmt::format("{} {} {}{}", shape(), dtype(), device(),
                     plain  ? std::string()
                     : last ? std::string(" channels_last")
                            : " strides " + to_string(strides()));
}

void Tensor::require_dtype(DType wanted) const {
  check<DTypeError>(dtype() == wanted, "data: the tensor {} holds {}, not {}; convert it with to({})", *this,
                    dtype(), wanted, wanted);
}

Tensor Tensor::as_strided(Shape shape, Strides strides, int64_t offset) const {
  Tensor view = make_tensor(impl().storage, std::move(shape), std::move(strides), offset, dtype());
  view.impl_->alias = Alias::view;
  view.impl_->viewed_at = version();
  return view;
}

void Tensor::begin_write() const {
  const auto& storage = impl().storage;
  Journal::note(storage);
  storage->version = next_version();
}

void Tensor::set_data(const Tensor& other) const {
  TensorImpl& own = mutable_impl();
  const TensorImpl& from = other.impl();
  own.storage = from.storage;
  own.shape = from.shape;
  own.strides = from.strides;
  own.offset = from.offset;
  own.dtype = from.dtype;
  own.alias = from.alias;
  own.viewed_at = from.viewed_at;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  std::optional<RecordOp> range;  // for those who write down what a program computes
  if (detail::call_observer != nullptr) [[unlikely]]
    range.emplace("to_vector", *this);
  const Tensor plain = ops::to_format(ops::to_device(*this, Device()), MemoryFormat::contiguous);
  const auto n = static_cast<std::size_t>(plain.numel());
  std::vector<T> values(n);
  if (n == 0) return values;
  if constexpr (std::is_same_v<T, bool>) {
    const Tensor typed = ops::cast(plain, boolean);
    std::copy_n(typed.data<bool>(), n, values.begin());
  } else if (is_floating(dtype_of<T>()) && is_floating(plain.dtype())) {
    find_convert_run(dtype_of<T>(), plain.dtype())(reinterpret_cast<std::byte*>(values.data()), {1},
                                                   plain.raw(), {1}, plain.numel(), 1);
  } else {
    const Tensor typed = ops::cast(plain, dtype_of<T>());
    std::copy_n(reinterpret_cast<const T*>(typed.raw()), n, values.begin());
  }
  return values;
}

template <class T>
T Tensor::item() const {
  const RecordOp range("item", *this);
  check<ShapeError>(numel() == 1,
                    "item: needs a tensor of one element, got {}; reduce it (sum, mean), take one (x[0]) or "
                    "read all by to_vector()",
                    *this);
  const Tensor here = ops::to_device(*this, Device());
  return dispatch(dtype(), [&]<class From>(Type<From>) {
    const From value = *here.data<From>();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using Wide = std::conditional_t<is_floating(dtype_of<From>()), double, int64_t>;
      const Wide wide = convert<Wide>(value);
      check_fits("item", wide, dtype_of<T>());
      check<ValueError>(
          static_cast<Wide>(static_cast<T>(wide)) == wide,
          "item: {} is not an integer; read it by item<double>(), or round the tensor (round, floor)", wide);
    }
    const T converted = convert<T>(value);
    if constexpr (is_floating(dtype_of<T>()) && !is_floating(dtype_of<From>())) {
      const auto integer = convert<int64_t>(value);
      const auto real = convert<double>(converted);
      check<ValueError>(std::abs(real) <= 0x1p63 && real != 0x1p63 && static_cast<int64_t>(real) == integer,
                        "item: {} would be rounded as {}; read it by item<int64_t>()", integer,
                        dtype_of<T>());
    }
    return converted;
  });
}

#define PLEAT_INSTANTIATE(T)                         \
  template std::vector<T> Tensor::to_vector() const; \
  template T Tensor::item() const;
PLEAT_INSTANTIATE(bool)
PLEAT_INSTANTIATE(uint8_t)
PLEAT_INSTANTIATE(int32_t)
PLEAT_INSTANTIATE(int64_t)
PLEAT_INSTANTIATE(Half)
PLEAT_INSTANTIATE(BFloat16)
PLEAT_INSTANTIATE(float)
PLEAT_INSTANTIATE(double)
#undef PLEAT_INSTANTIATE

}  // namespace pleat
