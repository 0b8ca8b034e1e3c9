// What holds for every module: gradients, states, names.

#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/state_dict.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/nn/module_cases.h"

using namespace pleat;
using Catch::Matchers::StartsWith;

namespace {

/// Compares gradients of the parameters of `loss` with central differences.
void check_parameter_gradients(nn::Module& module, const std::function<Tensor()>& loss) {
  module.zero_grad();
  loss().backward();
  for (const auto& named : module.named_parameters()) {
    const std::string& name = named.first;
    const Tensor& parameter = named.second;
    const std::vector<double> gradient = parameter.grad().to_vector<double>();
    const std::vector<double> values = parameter.to_vector<double>();
    const NoGrad off_the_tape;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto loss_at = [&](double value) {
        std::vector<double> changed = values;
        changed[i] = value;
        ops::copy_into(parameter, from_vector(changed, parameter.shape(), parameter.device()));
        return loss().item<double>();
      };
      const double numerical = (loss_at(values[i] + 1e-6) - loss_at(values[i] - 1e-6)) / 2e-6;
      CAPTURE(name, i);
      CHECK(gradient[i] == Approx(numerical).epsilon(1e-5).margin(1e-6));
    }
    ops::copy_into(parameter, from_vector(values, parameter.shape(), parameter.device()));
  }
}

}  // namespace

TEST_CASE("modules: gradients of inputs and parameters, and gradients of gradients", "[nn][cpu]") {
  for (const test::ModuleCase& c : test::module_cases())
    for (const bool training : {true, false}) {
      CAPTURE(c.name, training);
      manual_seed(1);
      const auto module = c.make();
      module->to(float64);
      module->train(training);
      const Tensor x = c.make_input();
      const auto run = [&](const Tensor& input) {
        manual_seed(2);  // for dropout
        return (*module)(input);
      };
      if (is_floating(x.dtype())) {
        const auto function = [&](const std::vector<Tensor>& t) { return run(t[0]); };
        CHECK(gradcheck(function, {x}));
        CHECK(gradgradcheck(function, {x}));
      }
      if (module->parameters().empty()) continue;
      const Tensor share = randn(run(x).shape(), {.dtype = float64});
      check_parameter_gradients(*module, [&] { return sum(run(x) * share); });
    }
}

TEST_CASE("modules: a state makes another module the same one, and texts say what it is", "[nn]") {
  for (const test::ModuleCase& c : test::module_cases()) {
    CAPTURE(c.name);
    const auto one = c.make();
    const auto other = c.make();
    const Tensor x = is_floating(c.make_input().dtype()) ? c.make_input().to(float32) : c.make_input();
    (void)(*one)(is_floating(x.dtype()) ? x * 2 : x);  // running statistics of its own
    other->load_state_dict(one->state_dict());
    for (const bool training : {true, false}) {
      one->train(training);
      other->train(training);
      manual_seed(1);
      const Tensor y = (*one)(x);
      manual_seed(1);
      CHECK(y.to_vector<double>() == (*other)(x).to_vector<double>());
    }
    CHECK_THAT(c.name, StartsWith(one->type_name()));
    CHECK_THAT(nn::to_string(*one), StartsWith(one->type_name()));
    CHECK(nn::to_string(*one) == nn::to_string(*other));
    for (std::size_t option = 0; option < c.usual.size(); ++option) {
      bool shows = false;
      for (const int64_t change : {1, -1, 2}) {
        std::vector<int64_t> options = c.usual;
        options[option] += change;
        try {
          shows = shows || nn::to_string(*c.make_with(options)) != nn::to_string(*one);
        } catch (const Error&) {
          // a number of groups divides the channels
        }
      }
      CAPTURE(option);
      CHECK(shows);
    }
  }
}
