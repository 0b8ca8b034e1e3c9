#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/onnx/export.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/tests/errors/mistakes.h"

using namespace pleat;
using onnx::export_onnx;

MistakeSection export_mistakes() {
  manual_seed(1);
  const Tensor x = randn({2, 3});
  const auto net_of = [](Tensor (*f)(const Tensor&)) {
    return nn::Sequential{nn::Linear{{.in_features = 3, .out_features = 3}}, f};
  };
  return {"Export to ONNX",
          "`x` is `randn({2, 3})`, and `net_of(f)` a linear layer and the function `f`.",
          {
              MISTAKE(auto net = net_of([](const Tensor& t) { return cumprod(t, 1); });
                      export_onnx("net.onnx", net, x)),
              MISTAKE(auto net = net_of([](const Tensor& t) { return t / max(t).item(); });
                      export_onnx("net.onnx", net, x)),
              MISTAKE(auto net = net_of([](const Tensor& t) { return t.size(0) > 2 ? relu(t) : t; });
                      export_onnx("net.onnx", net, x)),
              MISTAKE(auto net = net_of([](const Tensor& t) { return t - var(t, 0); });
                      export_onnx("net.onnx", net, x)),
              MISTAKE(auto net = net_of([](const Tensor& t) {
                        const Tensor y = t + 1;
                        y[0] = 0;
                        return relu(y);
                      });
                      export_onnx("net.onnx", net, x)),
              MISTAKE(auto net = net_of(relu); export_onnx("net.onnx", net, x, {.input_names = {"a", "b"}})),
          }};
}
