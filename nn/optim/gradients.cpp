#include "pleat/nn/optim/gradients.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "pleat/core/base/format.h"

namespace pleat::optim {

std::vector<Tensor> gradients_of(const std::vector<Tensor>& params) {
  std::vector<Tensor> grads;
  std::set<const std::byte*> known;
  for (const Tensor& param : params)
    if (const Tensor grad = param.grad();
        grad.defined() && (grad.numel() == 0 || known.insert(grad.raw()).second))
      grads.push_back(grad);
  return grads;
}

void fail_without_gradients(const std::string& op, const std::vector<Tensor>& params) {
  check<ValueError>(!params.empty(), "{}: got no parameters; a module lists its own in members()", op);
  const bool required = std::ranges::any_of(params, [](const Tensor& p) { return p.requires_grad(); });
  const bool leaves = std::ranges::any_of(params, [](const Tensor& p) { return p.is_leaf(); });
  const char* reason =
      !required ? "none requires one; call requires_grad_(true) of the module, or set_requires_grad() of the "
                  "tensors, before the forward"
      : !leaves
          ? "they were computed by functions; only leaves keep their gradients, others after retain_grad()"
          : "no backward() has reached them since they were made or zero_grad() was called; call "
            "loss.backward() first, of a loss that was computed from them and not under NoGrad";
  fail<ValueError>("{}: no parameter (of {}) has a gradient: {}", op, params.size(), reason);
}

std::vector<std::vector<Tensor>> by_device(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<Tensor>> groups;
  for (const Tensor& tensor : tensors) {
    const auto same = [&](const std::vector<Tensor>& group) { return group[0].device() == tensor.device(); };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end())
      groups.push_back({tensor});
    else
      found->push_back(tensor);
  }
  return groups;
}

}  // namespace pleat::optim
