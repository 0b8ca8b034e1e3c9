#include "pleat/core/base/scope.h"

#include "pleat/core/base/precision.h"
#include "pleat/core/base/thread_object.h"

namespace pleat {
namespace detail {
namespace {

using Frames = std::shared_ptr<const ScopeFrame>;

constinit thread_local ThreadObject<Frames> innermost;

Frames without(const Frames& frames, const void* value) {
  if (!frames || frames->value.get() == value) return frames ? frames->outer : frames;
  Frames outer = without(frames->outer, value);
  if (outer == frames->outer) return frames;
  return std::make_shared<const ScopeFrame>(ScopeFrame{frames->key, frames->value, std::move(outer)});
}

}  // namespace

void open_scope(const void* key, std::shared_ptr<const void> value) {
  *innermost = std::make_shared<const ScopeFrame>(ScopeFrame{key, std::move(value), std::move(*innermost)});
}

void close_scope(const void* value) { *innermost = without(*innermost, value); }

const void* innermost_scope(const void* key) {
  for (const ScopeFrame* frame = innermost->get(); frame != nullptr; frame = frame->outer.get())
    if (frame->key == key) return frame->value.get();
  return nullptr;
}

}  // namespace detail

Scopes Scopes::current() {
  Scopes now;
  now.frames_ = *detail::innermost;
  now.precision_ = float32_precision();
  return now;
}

UseScopes::UseScopes(const Scopes& scopes) : own_(std::exchange(*detail::innermost, scopes.frames_)) {
  // What the process decided then, and decides otherwise by now.
  if (float32_precision() != scopes.precision_)
    detail::open_scope(&detail::scope_key<Precision>, std::make_shared<const Precision>(scopes.precision_));
}
UseScopes::~UseScopes() { *detail::innermost = std::move(own_); }

}  // namespace pleat
