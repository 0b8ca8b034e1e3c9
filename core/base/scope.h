#pragma once

#include <memory>
#include <utility>

/// What guards decide for a scope (ConvPolicy, BatchNormPolicy, PrecisionScope, Autocast), and how it is kept
/// for later. A guard holds a `Scoped<T>`; code that depends on it reads `Scoped<T>::innermost()`. `Scopes`
/// is all that is in force in a thread at one moment: the tape keeps it with each recorded call, and the
/// call's backward runs in it, whenever and in whichever thread that is. Work that is handed to another
/// thread can be given its scopes in the same way:
///
///   std::thread worker([scopes = Scopes::current()] {
///     const UseScopes as_outside(scopes);
///     ...
///   });

namespace pleat {

enum class Precision : unsigned char;

namespace detail {

/// One open scope. Frames are never changed, so that those of a moment can be kept by one pointer.
struct ScopeFrame {
  const void* key;
  std::shared_ptr<const void> value;
  std::shared_ptr<const ScopeFrame> outer;
};

template <class T>
inline char scope_key = 0;  // its address is the type of what a frame holds

void open_scope(const void* key, std::shared_ptr<const void> value);
/// Wherever the value stands: guards may go in another order than they came in.
void close_scope(const void* value);
const void* innermost_scope(const void* key);

}  // namespace detail

/// Sets a value for this thread, from here to the end of the scope.
template <class T>
class Scoped {
 public:
  explicit Scoped(T value) : value_(std::make_shared<const T>(std::move(value))) {
    detail::open_scope(&detail::scope_key<T>, value_);
  }
  ~Scoped() { detail::close_scope(value_.get()); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

  /// The value of the innermost scope; null outside of any.
  static const T* innermost() {
    return static_cast<const T*>(detail::innermost_scope(&detail::scope_key<T>));
  }

 private:
  std::shared_ptr<const T> value_;
};

/// Everything that the scopes around a call decide, with the process's float32_precision() where none does.
/// Cheap to copy; outside of any scope it holds nothing.
class Scopes {
 public:
  static Scopes current();

 private:
  friend class UseScopes;
  std::shared_ptr<const detail::ScopeFrame> frames_;
  Precision precision_{};
};

/// Puts other scopes in the place of this thread's, for a scope.
class UseScopes {
 public:
  explicit UseScopes(const Scopes& scopes);
  ~UseScopes();
  UseScopes(const UseScopes&) = delete;
  UseScopes& operator=(const UseScopes&) = delete;

 private:
  std::shared_ptr<const detail::ScopeFrame> own_;
};

}  // namespace pleat
