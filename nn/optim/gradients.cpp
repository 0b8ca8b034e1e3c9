#include "pleat/nn/optim/gradients.h"

#include <algorithm>
#include <cstddef>
#include <set>

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
