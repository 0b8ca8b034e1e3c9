// A layer of one's own, with options, a parameter, a buffer and a layer inside.
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

struct GatedOptions {
  Required<int64_t> features;
  double start = 0.1;
};

/// y = x + scale * sigmoid(gate(x)) * x for x [..., features]. Counts its calls in training.
struct Gated : nn::Module {
  explicit Gated(GatedOptions o)
      : scale(nn::parameter(full({o.features}, o.start))),
        gate{{.in_features = o.features, .out_features = o.features}} {}

  Tensor forward(const Tensor& x) override {
    if (training()) calls += 1;
    return x + scale * sigmoid(gate(x)) * x;
  }
  void members(nn::Members& m) override {
    m("scale", scale);
    m.buffer("calls", calls);
    m("gate", gate);
  }
  std::string type_name() const override { return "Gated"; }

  Tensor scale;
  Tensor calls = zeros({}, int64);
  nn::Linear gate;
};

int main() {
  manual_seed(1);
  nn::Sequential net{nn::Linear{{.in_features = 3, .out_features = 4}}, Gated{{.features = 4}}};
  std::cout << net << '\n';
  net(randn({2, 3}));
  for (const auto& [name, tensor] : net.state_dict()) std::cout << name << "  " << tensor.describe() << '\n';

  Gated layer{{.features = 2}};
  layer.to(float64);
  const auto function = [&](const std::vector<Tensor>& x) { return layer(x[0]); };
  std::cout << "gradients are right: " << gradcheck(function, {randn({3, 2}, float64)}) << '\n';
}
