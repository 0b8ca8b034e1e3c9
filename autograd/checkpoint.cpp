#include "pleat/autograd/checkpoint.h"

#include <memory>
#include <string>
#include <utility>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/scope.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/journal.h"

namespace pleat {
namespace {

/// The second run begins where the first one began. At the end of the scope what it has changed is as it was;
/// gradients, which are accumulated after the run, are not among that.
class Rerun {
 public:
  Rerun(const Journal& first, const Generator& random) {
    now_.begin_as(first);
    // Of this thread, which may be another one.
    default_generator().set_seed(random.seed());
    default_generator().set_draws(random.draws());
  }
  ~Rerun() {
    try {
      now_.undo();
    } catch (...) {  // what keeps a copy from being made has ended the run, too
    }
  }
  void end_of_run() { now_.stop(); }
  Rerun(const Rerun&) = delete;
  Rerun& operator=(const Rerun&) = delete;

 private:
  Journal now_;
};

}  // namespace

Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs) {
  check<ValueError>(function != nullptr, "checkpoint: the function is empty");
  if (!grad_enabled()) return function(inputs);
  const Generator random = default_generator();
  const Scopes scopes = Scopes::current();
  autograd::first_run_error().clear();
  const auto first = std::make_shared<Journal>();
  const Tensor y = [&] {
    const GradMode as_it_will_be(detail::Recording::later);
    return function(inputs);
  }();
  first->stop();
  if (const std::string error = std::exchange(autograd::first_run_error(), {}); !error.empty()) {
    first->undo();
    throw AutogradError(error);
  }
  std::vector<Saved> kept;
  for (const Tensor& input : inputs) kept.push_back(saved(input));
  // Parameters inside the function are not among the inputs, so the call is recorded whether or not those
  // want gradients: an extra input that does carries it.
  std::vector<Tensor> recorded = inputs;
  recorded.push_back(full({}, 0).set_requires_grad());
  const auto again = [function, first, random, scopes, kept, shape = y.shape(),
                      dtype = y.dtype()](const Tensor& dy) -> Grads {
    std::vector<Tensor> same;
    for (const Saved& input : kept) same.push_back(*input);
    Rerun rerun(*first, random);
    const uint64_t sequence = autograd::last_sequence();
    const Tensor result = [&] {
      const EnableGrad recording;
      const UseScopes as_then(scopes);  // those of the closure are without Autocast
      const autograd::KeepCasts casts;
      return function(same);
    }();
    rerun.end_of_run();
    check<AutogradError>(
        result.shape() == shape && result.dtype() == dtype,
        "checkpoint: the function gave {} {} first, and {} when it ran again for backward; it "
        "must compute the same both times",
        shape, dtype, result);
    if (result.requires_grad()) autograd::go_on_backward(result, dy, sequence);
    return Grads(kept.size() + 1);  // they have got theirs
  };
  const Tensor result = record("checkpoint", y.detach(), recorded, again);
  if (const auto& slot = result.impl().slot) slot->node->goes_on = true;  // else it is of integers
  return result;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input) {
  check<ValueError>(function != nullptr, "checkpoint: the function is empty");
  return checkpoint([function](const std::vector<Tensor>& inputs) { return function(inputs[0]); },
                    std::vector<Tensor>{input});
}

}  // namespace pleat
