#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/inference/inference.h"
#include "pleat/io/safetensors.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/errors/mistakes.h"

using namespace pleat;

MistakeSection inference_mistakes() {
  manual_seed(1);
  const Tensor x = randn({2, 3});
  const auto new_net = [] {
    return nn::Sequential{nn::Linear{{.in_features = 3, .out_features = 3}}, nn::ReLU{}};
  };
  return {"Calling a trained network",
          "`x` is `randn({2, 3})`, and `new_net()` makes a linear layer with a ReLU.",
          {
              MISTAKE(auto net = new_net(); const Inference engine(net, x); engine(randn({2, 4}))),
              MISTAKE(auto net = new_net(); const Inference engine(net, x); engine({x, x})),
              MISTAKE(auto net = new_net(); const Inference engine(net, x); const NoGrad guard;
                      copy_(net.get<nn::Linear>(0).weight, ones({3, 3})); engine(randn({5, 3}))),
              MISTAKE(auto net = new_net(); const Inference engine(net, x, {.most_plans = 0})),
              MISTAKE(auto net = new_net(); const Inference engine(net, x, {.calibration = {{x, x}}})),
              MISTAKE(auto net = new_net();
                      const Inference engine(net, x, {.calibration = {{randn({2, 3}, {.dtype = float64})}}})),
              MISTAKE(auto halves = new_net(); halves.to(bfloat16);
                      const Inference engine(halves, x.to(bfloat16), {.calibration = {{x.to(bfloat16)}}})),
              MISTAKE(nn::Sequential decides{[](const Tensor& t) { return t / max(t).item(); }};
                      Inference(decides, x).save("net.engine")),
              MISTAKE(auto net = new_net(); Inference(net, x).save("net.engine");
                      Inference::load("net.engine")(randn({2, 3, 3}))),
              MISTAKE(auto net = new_net(); Inference(net, x).save("net.engine");
                      Inference::load("net.engine").difference({x})),
              MISTAKE(io::write_safetensors("net.safetensors", new_net().state_dict());
                      Inference::load("net.safetensors")),
              MISTAKE(Inference::load("network.engine")),
          }};
}
