#include "pleat/tests/nn/module_fixture.h"

#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

namespace pleat::test {

Tensor find(const Named& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? Tensor() : found->second;
}

Tensor joined(const std::vector<Tensor>& results) {
  std::vector<Tensor> flat;
  for (const Tensor& t : results)
    if (t.defined()) flat.push_back(flatten(t));
  return cat(flat);
}

void check_module(const Json& c, nn::Module& module, const std::function<Tensor(const Named&)>& run) {
  module.to(float64);
  Named inputs = tensors_from(c.at("inputs"));
  nn::StateDict state;
  for (auto& [name, parameter] : module.named_parameters()) state[name] = inputs.at(name);
  module.load_state_dict(state);
  for (auto& [name, input] : inputs) input.set_requires_grad();
  const Tensor y = run(inputs);
  CHECK(relative_error(y, tensor_from(c.at("outputs").at("y"))) < 1e-13);
  y.backward(tensor_from(c.at("grad_output")));
  Named gradients;
  for (const auto& [name, input] : inputs) gradients[name] = input.grad();
  for (const auto& [name, parameter] : module.named_parameters()) gradients[name] = parameter.grad();
  for (const auto& [name, gradient] : tensors_from(c.at("grads"))) {
    CAPTURE(name);
    CHECK(relative_error(gradients.at(name), gradient) < 1e-12);
  }
}

}  // namespace pleat::test
