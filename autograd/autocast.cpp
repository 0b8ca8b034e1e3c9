#include "pleat/autograd/autocast.h"

#include <memory>
#include <unordered_map>

#include "pleat/autograd/functions/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/core/format.h"

namespace pleat {
namespace {

/// A leaf in the half type, and what it was made of.
struct CachedCast {
  Tensor cast;
  std::weak_ptr<Storage> storage;
  uint64_t version;
  bool recorded;

  bool is_of(const Tensor& leaf) const {
    return storage.lock() == leaf.impl().storage && version == leaf.version() &&
           cast.shape() == leaf.shape() && recorded == grad_enabled();
  }
};

struct Casts {
  int depth = 0;  ///< of KeepCasts
  /// By the leaf's id, which is never used twice. A nested scope may have the other half type.
  std::unordered_map<uint64_t, CachedCast> of_type[2];
};

Casts& kept() {
  thread_local Casts own;
  return own;
}

Tensor cached_cast(const Tensor& leaf, DType dtype) {
  auto& casts = kept().of_type[dtype == float16 ? 0 : 1];
  const auto found = casts.find(leaf.impl().id);
  if (found != casts.end() && found->second.is_of(leaf)) return found->second.cast;
  const Tensor cast = pleat::cast(leaf, dtype);
  // Two losses of one scope, each with a backward of its own, walk through one cast.
  if (!cast.is_leaf()) cast.impl().slot->node->keeps_nothing = true;
  casts.insert_or_assign(leaf.impl().id,
                         CachedCast{cast, leaf.impl().storage, leaf.version(), grad_enabled()});
  return cast;
}

bool is_cast(const Tensor& x) { return x.defined() && is_floating(x.dtype()) && x.dtype() != float64; }

}  // namespace

autograd::KeepCasts::KeepCasts() { ++kept().depth; }
autograd::KeepCasts::~KeepCasts() {
  if (--kept().depth > 0) return;
  for (auto& casts : kept().of_type) casts.clear();
}

Autocast::Autocast(DType dtype, AutocastOptions options) {
  check<DTypeError>(is_half(dtype), "Autocast: the type must be float16 or bfloat16, got {}", dtype);
  if (options.enabled)
    types_.emplace(autograd::AutocastTypes{dtype, options.cache_weights});
  else if (autocast_dtype())
    types_.emplace(autograd::AutocastTypes{std::nullopt, options.cache_weights});
}

std::optional<DType> autocast_dtype() {
  const autograd::AutocastTypes* types = Scoped<autograd::AutocastTypes>::innermost();
  return types != nullptr ? types->dtype : std::nullopt;
}

Tensor autocast_to_float32(const Tensor& input) {
  if (!autocast_dtype() || !input.defined() || !is_half(input.dtype())) return input;
  return cast(input, float32);
}

void autograd::cast_to_half(std::span<Tensor> inputs) {
  const AutocastTypes* types = Scoped<AutocastTypes>::innermost();
  if (types == nullptr || !types->dtype) return;
  const DType dtype = *types->dtype;
  const bool keeps = types->cache_weights && kept().depth > 0;
  for (const Tensor& input : inputs)
    if (input.defined() && input.dtype() == float64) return;
  for (Tensor& input : inputs) {
    if (!is_cast(input) || input.dtype() == dtype) continue;
    const bool is_parameter = input.is_leaf() && input.requires_grad();
    input = keeps && is_parameter ? cached_cast(input, dtype) : cast(input, dtype);
  }
}

}  // namespace pleat
