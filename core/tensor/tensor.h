#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/core/tensor/dtype.h"
#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/shape.h"
#include "pleat/core/tensor/storage.h"

namespace pleat {

class Tensor;
struct BackwardOptions;

namespace autograd {
struct Slot;  // the tape's record of a tensor; core/ only holds a pointer to it
}

/// Whether a tensor was made as another one of elements that existed already.
enum class Alias : unsigned char {
  none,
  view,     ///< by as_strided, as all views are
  detached  ///< by detach(): shows the elements as they are, without a record on the tape
};

/// Everything a Tensor refers to. Handles that are copies of each other share it.
struct TensorImpl {
  std::shared_ptr<Storage> storage;
  Shape shape;
  Strides strides;
  int64_t offset = 0;  ///< elements from the start of the storage
  DType dtype = float32;
  /// What argmax gives without a dimension: a place among all elements, which is not compared with several.
  bool is_place_among_all = false;
  uint64_t id = 0;  ///< never used twice in a process
  Alias alias = Alias::none;
  uint64_t viewed_at = 0;  ///< of an alias: the storage's version when it was made
  std::shared_ptr<autograd::Slot> slot;
};

/// A strided view of typed elements on a device, with a place on the autograd tape.
///
/// A Tensor is a handle: copying it is cheap and both copies are the same tensor (same elements, same
/// gradient). Methods query; free functions compute (`relu(x)`, `sum(x, {0, 2})`, `x + y`). A
/// default-constructed Tensor is undefined; asking it anything but `defined()` throws Error.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}
  ~Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// Writing to what a function returned writes into the elements, as `copy_` and `fill_` do, gradients
  /// included: `x[0] = y`, `narrow(x, 1, 0, 2) = 0`.
  void operator=(const Tensor& values) &&;
  void operator=(Scalar value) &&;

  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const = delete;  // use defined() or item<bool>()

  // --- What it is
  const Shape& shape() const { return impl().shape; }
  const Strides& strides() const { return impl().strides; }
  int64_t rank() const { return static_cast<int64_t>(impl().shape.size()); }
  /// Size of a dimension; negative ones count from the end. Throws IndexError.
  int64_t size(Integer dim) const;
  /// Number of elements.
  int64_t numel() const;
  DType dtype() const { return impl().dtype; }
  Device device() const { return impl().storage->device; }
  int64_t offset() const { return impl().offset; }
  /// Elements in row-major (or channels-last) order without gaps.
  bool is_contiguous(MemoryFormat format = MemoryFormat::contiguous) const;
  /// channels_last when it lies so and not also row-major; else contiguous.
  MemoryFormat memory_format() const;
  /// Elements without gaps or overlap, in whatever order of dimensions.
  bool is_dense() const;
  /// "[8, 3, 32, 32] float32 cpu channels_last": how error messages describe a tensor.
  std::string describe() const;

  // --- Elements
  /// Pointer to the first element. Throws DTypeError when T is not the element type.
  template <Element T>
  T* data() const {
    require_dtype(dtype_of<T>());
    return reinterpret_cast<T*>(raw());
  }
  /// The same without a type.
  std::byte* raw() const { return impl().storage->bytes.get() + impl().offset * size_of(impl().dtype); }
  /// The only element, converted to T. Throws ShapeError when there is not exactly one, ValueError when an
  /// integer T cannot hold it, as it does no fraction, or when a floating T would round an integer.
  template <class T = double>
  T item() const;
  /// All elements in row-major order, converted to T.
  template <class T = float>
  std::vector<T> to_vector() const;

  /// `select(x, 0, index)`, a view: `x[0]`, `x[-1]`, `x[0][1]`. Parts are `slice(x, dim, start, end)`.
  Tensor operator[](Integer index) const;

  // --- Other forms of it (differentiable)
  /// These return the tensor itself when nothing changes, else a copy.
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  Tensor to(MemoryFormat format) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::contiguous) const { return to(format); }
  /// A copy with storage of its own, in the same memory format.
  Tensor clone() const;
  /// The same elements (shared storage) off the tape. Values on the tape belong into a clone() of it: the
  /// tensor that it came from does not know their gradients, and can be read on the tape no longer
  /// (AutogradError).
  Tensor detach() const;

  // --- Gradients (autograd/)
  bool requires_grad() const;
  /// Marks a leaf whose gradient is wanted. Returns the tensor. Throws DTypeError unless floating,
  /// AutogradError on a tensor that a function produced.
  const Tensor& set_requires_grad(Flag requires_grad = true) const;
  /// The accumulated gradient; undefined before the first backward.
  Tensor grad() const;
  /// Replaces the gradient; an undefined one forgets it. Throws ShapeError, DTypeError, DeviceError unless it
  /// has the tensor's shape, type and device.
  void set_grad(const Tensor& grad) const;
  /// Accumulates the gradient of a tensor that is not a leaf, too: of its elements as they are when backward
  /// begins, should a function change them in place. Throws AutogradError off the tape.
  const Tensor& retain_grad() const;
  bool is_leaf() const;
  /// Accumulates gradients of this tensor into the leaves it was computed from. `gradient` may be omitted for
  /// one element. autograd/backward.h has the options, `loss.backward({.retain_graph = true})`, and `grad()`
  /// without accumulation.
  void backward(const Tensor& gradient = {}) const;
  void backward(const BackwardOptions& options) const;
  void backward(const Tensor& gradient, const BackwardOptions& options) const;
  /// Called once in each backward that reaches the tensor, with its whole gradient, however often the tensor
  /// was used; what it returns (if defined) replaces the gradient, also for what is accumulated or what
  /// grad() gives, and must have its shape, type and device. Several are called in the order of their
  /// registration. It belongs to the elements as they are now: after an in-place function the tensor has
  /// another gradient. Throws AutogradError off the tape, ValueError for no function.
  const Tensor& register_hook(std::function<Tensor(const Tensor&)> hook) const;

  // --- For those who write operations
  /// A view of the same storage. Throws ShapeError when it would reach outside.
  Tensor as_strided(Shape shape, Strides strides, int64_t offset) const;
  /// Makes this tensor another: same handle, other elements (module.to(...), loading weights).
  void set_data(const Tensor& other) const;
  /// Whether no other handle and no other tensor refers to these elements.
  bool is_sole_owner() const { return impl_.use_count() == 1 && impl().storage.use_count() == 1; }
  const TensorImpl& impl() const;
  TensorImpl& mutable_impl() const;
  const std::shared_ptr<TensorImpl>& shared_impl() const { return impl_; }
  /// To be called before the elements are changed in place, so that those who kept them notice.
  void begin_write() const;
  uint64_t version() const { return impl().storage->version; }

 private:
  void require_dtype(DType wanted) const;
  std::shared_ptr<TensorImpl> impl_;
};

/// A tensor over a storage. Throws ShapeError when it would reach outside.
Tensor make_tensor(std::shared_ptr<Storage> storage, Shape shape, Strides strides, int64_t offset,
                   DType dtype);

/// Prints as people know it: nested brackets, aligned columns, summarised above 1,000 elements.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
std::string to_string(const Tensor& tensor);

}  // namespace pleat
