#include "pleat/autograd/checkpoint.h"

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/backward.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/scope.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"

namespace pleat {
namespace {

/// Puts the default generator where it was at the first run, for a scope.
class ReplayRandom {
 public:
  explicit ReplayRandom(const Generator& then) : now_(default_generator()) { default_generator() = then; }
  ~ReplayRandom() { default_generator() = now_; }
  ReplayRandom(const ReplayRandom&) = delete;
  ReplayRandom& operator=(const ReplayRandom&) = delete;

 private:
  Generator now_;
};

}  // namespace

Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs) {
  check<ValueError>(function != nullptr, "checkpoint: the function is empty");
  const Generator random = default_generator();
  const Scopes scopes = Scopes::current();
  const Tensor y = no_grad([&] { return function(inputs); });
  if (!grad_enabled()) return y;
  std::vector<Saved> kept;
  std::vector<bool> wanted;
  for (const Tensor& input : inputs) {
    kept.push_back(saved(input));
    wanted.push_back(input.requires_grad());
  }
  // Parameters inside the function are not among the inputs, so the call is recorded whether or not those
  // want gradients: an extra input that does carries it.
  std::vector<Tensor> recorded = inputs;
  recorded.push_back(full({}, 0).set_requires_grad());
  const Tensor recorded_y = record("checkpoint", y.detach(), recorded, [=](const Tensor& dy) -> Grads {
    std::vector<Tensor> again;
    const bool graph = grad_enabled();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      Tensor input = *kept[i];
      // A gradient of a gradient has to reach through the input; else the second run stands by itself.
      if (!graph) input = input.detach().set_requires_grad(wanted[i]);
      again.push_back(input);
    }
    const EnableGrad recording;
    const Tensor result = [&] {
      const ReplayRandom replay(random);
      const UseScopes as_then(scopes);  // those of the closure are without Autocast
      const autograd::KeepCasts casts;
      return function(again);
    }();
    Grads gradients(again.size() + 1);
    if (!result.requires_grad()) return gradients;
    if (graph) {
      std::vector<Tensor> differentiable;
      for (std::size_t i = 0; i < again.size(); ++i)
        if (wanted[i]) differentiable.push_back(again[i]);
      const Grads found = grad({result}, differentiable, {dy}, {.create_graph = true, .allow_unused = true});
      for (std::size_t i = 0, next = 0; i < again.size(); ++i)
        if (wanted[i]) gradients[i] = found[next++];
      return gradients;
    }
    backward({result}, {dy});
    for (std::size_t i = 0; i < again.size(); ++i)
      if (wanted[i]) gradients[i] = again[i].grad();
    return gradients;
  });
  recorded_y.impl().slot->node->calls_backward = true;
  return recorded_y;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input) {
  check<ValueError>(function != nullptr, "checkpoint: the function is empty");
  return checkpoint([function](const std::vector<Tensor>& inputs) { return function(inputs[0]); },
                    std::vector<Tensor>{input});
}

}  // namespace pleat
