#include "pleat/autograd/autocast.h"

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pleat/autograd/functions/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/core/elementwise.h"
#include "pleat/core/format.h"
#include "pleat/ops/update/update.h"

namespace pleat {
namespace {

bool is_cast(const Tensor& x) { return x.defined() && is_floating(x.dtype()) && x.dtype() != float64; }
bool is_parameter(const Tensor& x) { return x.is_leaf() && x.requires_grad(); }

/// A leaf in the half type, and what it was made of.
struct CachedCast {
  Tensor cast;
  std::weak_ptr<Storage> storage;
  uint64_t version;
  bool recorded;
  bool asked_for;  ///< else made beside another one

  bool is_of(const Tensor& leaf) const {
    return storage.lock() == leaf.impl().storage && version == leaf.version() &&
           cast.shape() == leaf.shape() && recorded == grad_enabled();
  }
};

/// Leaves in the order in which a scope asked for them: what is likely to be asked for again.
using Leaves = std::vector<std::weak_ptr<TensorImpl>>;
constexpr std::size_t most_scopes = 8;

/// Of one half type.
struct CastsOfType {
  /// By the leaf's id, which is never used twice.
  std::unordered_map<uint64_t, CachedCast> made;
  Leaves asked;
  std::vector<Leaves> before;  ///< of earlier scopes, the last one first; no two begin with the same leaf

  void end_scope() {
    made.clear();
    if (asked.empty()) return;
    const auto first = asked.front().lock();
    std::erase_if(before, [&](const Leaves& leaves) {
      const auto other = leaves.front().lock();
      return other == nullptr || other == first;
    });
    before.insert(before.begin(), std::move(asked));
    if (before.size() > most_scopes) before.pop_back();
    asked.clear();
  }
};

struct Casts {
  int depth = 0;  ///< of KeepCasts
  CastsOfType of_type[2];
};

Casts& kept() {
  thread_local Casts own;
  return own;
}

/// Tensors in other types, undefined ones left as they are: one launch for all on a GPU.
std::vector<Tensor> cast_together(const std::vector<Tensor>& from, const std::vector<DType>& types) {
  std::vector<Tensor> to(from.size());
  std::vector<ops::Update<ops::CopyTo>> updates;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i].defined()) continue;
    to[i] = empty_as({&from[i], 1}, from[i].shape(), types[i]);
    updates.push_back({{}, {to[i], from[i]}});
  }
  ops::update("to", updates);
  return to;
}

/// The same as one node, which casts the gradients together.
std::vector<Tensor> cast_leaves(const std::vector<Tensor>& leaves, DType dtype) {
  std::vector<DType> own_types;
  for (const Tensor& leaf : leaves) own_types.push_back(leaf.dtype());
  std::vector<Tensor> casts = cast_together(leaves, std::vector<DType>(leaves.size(), dtype));
  casts = record("to", std::move(casts),
                 {Derivative{leaves, [own_types](const Grads& dys, const Needs& needs) -> Grads {
                               if (grad_enabled()) return dys;  // the tape converts them, one by one
                               Grads wanted = dys;
                               for (std::size_t i = 0; i < wanted.size(); ++i)
                                 if (!needs[i]) wanted[i] = {};
                               return cast_together(wanted, own_types);
                             }}});
  if (!casts[0].is_leaf()) {
    // A leaf that a backward does not reach gets no gradient.
    casts[0].impl().slot->node->takes_what_arrives = casts.size() > 1;
    // Two losses of one scope, each with a backward of its own, walk through one cast.
    casts[0].impl().slot->node->keeps_nothing = true;
  }
  return casts;
}

/// What to cast when `leaf` is asked for: with it what an earlier scope that began with it went on to ask
/// for, as it is now.
std::vector<Tensor> leaves_to_cast(const Tensor& leaf, const CastsOfType& casts, DType dtype) {
  std::vector<Tensor> leaves{leaf};
  for (const Leaves& earlier : casts.before) {
    if (earlier.front().lock() != leaf.shared_impl()) continue;
    for (std::size_t i = 1; i < earlier.size(); ++i) {
      const Tensor other(earlier[i].lock());
      if (is_cast(other) && is_parameter(other) && other.dtype() != dtype &&
          other.device() == leaf.device() && !casts.made.contains(other.impl().id))
        leaves.push_back(other);
    }
  }
  return leaves;
}

Tensor cached_cast(const Tensor& leaf, DType dtype) {
  CastsOfType& casts = kept().of_type[dtype == float16 ? 0 : 1];
  auto found = casts.made.find(leaf.impl().id);
  if (found == casts.made.end() || !found->second.is_of(leaf)) {
    const bool asked_for = found != casts.made.end() && found->second.asked_for;
    const std::vector<Tensor> leaves = leaves_to_cast(leaf, casts, dtype);
    const std::vector<Tensor> made = cast_leaves(leaves, dtype);
    for (std::size_t i = 0; i < leaves.size(); ++i)
      casts.made.insert_or_assign(
          leaves[i].impl().id,
          CachedCast{made[i], leaves[i].impl().storage, leaves[i].version(), grad_enabled(), false});
    found = casts.made.find(leaf.impl().id);
    found->second.asked_for = asked_for;
  }
  if (!std::exchange(found->second.asked_for, true)) casts.asked.push_back(leaf.shared_impl());
  return found->second.cast;
}

}  // namespace

autograd::KeepCasts::KeepCasts() { ++kept().depth; }
autograd::KeepCasts::~KeepCasts() {
  if (--kept().depth > 0) return;
  for (CastsOfType& casts : kept().of_type) casts.end_scope();
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
    input = keeps && is_parameter(input) ? cached_cast(input, dtype) : cast(input, dtype);
  }
}

}  // namespace pleat
