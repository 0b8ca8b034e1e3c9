#include "pleat/core/base/scope.h"

#include "pleat/core/base/precision.h"

namespace pleat {
namespace detail {
namespace {

using Frames = std::shared_ptr<const ScopeFrame>;

thread_local bool gone = false;  // a guard of static duration is closed after its thread's variables

struct OpenScopes {
  Frames innermost;
  ~OpenScopes() { gone = true; }
};
thread_local OpenScopes open;

Frames without(const Frames& frames, const void* value) {
  if (!frames || frames->value.get() == value) return frames ? frames->outer : frames;
  Frames outer = without(frames->outer, value);
  if (outer == frames->outer) return frames;
  return std::make_shared<const ScopeFrame>(ScopeFrame{frames->key, frames->value, std::move(outer)});
}

}  // namespace

void open_scope(const void* key, std::shared_ptr<const void> value) {
  open.innermost =
      std::make_shared<const ScopeFrame>(ScopeFrame{key, std::move(value), std::move(open.innermost)});
}

void close_scope(const void* value) {
  if (!gone) open.innermost = without(open.innermost, value);
}

const void* innermost_scope(const void* key) {
  if (gone) return nullptr;
  for (const ScopeFrame* frame = open.innermost.get(); frame != nullptr; frame = frame->outer.get())
    if (frame->key == key) return frame->value.get();
  return nullptr;
}

}  // namespace detail

Scopes Scopes::current() {
  Scopes now;
  now.frames_ = detail::open.innermost;
  now.precision_ = float32_precision();
  return now;
}

UseScopes::UseScopes(const Scopes& scopes) : own_(std::exchange(detail::open.innermost, scopes.frames_)) {
  // What the process decided then, and decides otherwise by now.
  if (float32_precision() != scopes.precision_)
    detail::open_scope(&detail::scope_key<Precision>, std::make_shared<const Precision>(scopes.precision_));
}
UseScopes::~UseScopes() { detail::open.innermost = std::move(own_); }

}  // namespace pleat
