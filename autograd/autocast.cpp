#include "pleat/autograd/autocast.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pleat/autograd/copy.h"
#include "pleat/autograd/functions.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"

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

/// A leaf that a scope asked for, and the format in which it wanted it; none: the leaf's own.
struct AskedLeaf {
  std::weak_ptr<TensorImpl> leaf;
  std::optional<MemoryFormat> format;
};
/// In the order in which a scope asked for them: what is likely to be asked for again.
using Leaves = std::vector<AskedLeaf>;
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
    const auto first = asked.front().leaf.lock();
    std::erase_if(before, [&](const Leaves& leaves) {
      const auto other = leaves.front().leaf.lock();
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
  thread_local ThreadObject<Casts> own;
  return *own;
}

/// A tensor to be cast, which may be undefined, and what it is to become. Without a format it keeps its own.
struct Cast {
  Tensor from;
  DType dtype;
  std::optional<MemoryFormat> format;
};

std::optional<MemoryFormat> format_of_images(const Tensor& x, std::optional<MemoryFormat> format) {
  return x.rank() >= 3 && x.rank() <= 5 ? format : std::nullopt;
}

/// One launch for all on a GPU.
std::vector<Tensor> cast_together(const std::vector<Cast>& casts) {
  std::vector<Tensor> to(casts.size()), defined_to, defined_from;
  for (std::size_t i = 0; i < casts.size(); ++i) {
    const auto& [from, dtype, format] = casts[i];
    if (!from.defined()) continue;
    to[i] = format ? empty(from.shape(), {.dtype = dtype, .device = from.device(), .format = *format})
                   : empty_as({&from, 1}, from.shape(), dtype);
    defined_to.push_back(to[i]);
    defined_from.push_back(from);
  }
  detail::copy_all(defined_to, defined_from);
  return to;
}

/// The same as one node, which casts the gradients together; each comes to lie as its leaf does.
std::vector<Tensor> cast_leaves(const std::vector<Cast>& leaves) {
  std::vector<Cast> own;  // what gradients are to become
  std::vector<Tensor> inputs;
  for (const auto& [leaf, dtype, format] : leaves) {
    own.push_back({{}, leaf.dtype(), format_of_images(leaf, leaf.memory_format())});
    inputs.push_back(leaf);
  }
  std::vector<Tensor> casts =
      record("cast", cast_together(leaves),
             {Derivative{inputs, [own](const Grads& dys, const Needs& needs) -> Grads {
                           if (grad_enabled()) return dys;  // the tape converts them, one by one
                           std::vector<Cast> wanted = own;
                           for (std::size_t i = 0; i < wanted.size(); ++i)
                             if (needs[i]) wanted[i].from = dys[i];
                           return cast_together(wanted);
                         }}});
  if (!casts[0].is_leaf()) {
    // A leaf that a backward does not reach gets no gradient.
    casts[0].impl().slot->node->takes_what_arrives = casts.size() > 1;
    // Two losses of one scope, each with a backward of its own, walk through one cast.
    casts[0].impl().slot->node->keeps_nothing = true;
  }
  return casts;
}

/// What to cast when `leaf` is cast: with it what an earlier scope that began with it went on to cast
/// for, as it is now.
std::vector<Cast> leaves_to_cast(const Cast& leaf, const CastsOfType& casts) {
  std::vector<Cast> leaves{leaf};
  for (const Leaves& earlier : casts.before) {
    if (earlier.front().leaf.lock() != leaf.from.shared_impl()) continue;
    for (std::size_t i = 1; i < earlier.size(); ++i) {
      const Tensor other(earlier[i].leaf.lock());
      if (is_cast(other) && is_parameter(other) && other.dtype() != leaf.dtype &&
          other.device() == leaf.from.device() && !casts.made.contains(other.impl().id))
        leaves.push_back({other, leaf.dtype, earlier[i].format});
    }
  }
  return leaves;
}

Tensor cached_cast(const Cast& asked) {
  const Tensor& leaf = asked.from;
  CastsOfType& casts = kept().of_type[asked.dtype == float16 ? 0 : 1];
  auto found = casts.made.find(leaf.impl().id);
  if (found == casts.made.end() || !found->second.is_of(leaf)) {
    const bool asked_for = found != casts.made.end() && found->second.asked_for;
    const std::vector<Cast> leaves = leaves_to_cast(asked, casts);
    const std::vector<Tensor> made = cast_leaves(leaves);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Tensor& from = leaves[i].from;
      casts.made.insert_or_assign(
          from.impl().id, CachedCast{made[i], from.impl().storage, from.version(), grad_enabled(), false});
    }
    found = casts.made.find(leaf.impl().id);
    found->second.asked_for = asked_for;
  }
  if (!std::exchange(found->second.asked_for, true))
    casts.asked.push_back({leaf.shared_impl(), asked.format});
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

void autograd::cast_to_half(std::span<Tensor> inputs, std::optional<MemoryFormat> images) {
  const AutocastTypes* types = Scoped<AutocastTypes>::innermost();
  if (types == nullptr || !types->dtype) return;
  const DType dtype = *types->dtype;
  const bool keeps = types->cache_weights && kept().depth > 0;
  for (const Tensor& input : inputs)
    if (input.defined() && input.dtype() == float64) return;
  for (Tensor& input : inputs) {
    if (!is_cast(input) || input.dtype() == dtype) continue;
    const std::optional<MemoryFormat> format = format_of_images(input, images);
    if (keeps && is_parameter(input))
      input = cached_cast({input, dtype, format});
    else
      input = format ? cast(input, dtype, *format) : cast(input, dtype);
  }
}

}  // namespace pleat
