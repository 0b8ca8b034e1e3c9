#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/tensor/create.h"
#include "pleat/models/lenet.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss_modules.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/sample/deform_conv.h"
#include "pleat/ops/sample/roi_align.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/errors/mistakes.h"

using namespace pleat;

MistakeSection convolution_mistakes() {
  const Tensor image = ones({8, 3, 32, 32});
  const Tensor w = ones({16, 3, 3, 3});
  return {"Convolutions, pools and norms",
          "`image = ones({8, 3, 32, 32})`, `w = ones({16, 3, 3, 3})`.",
          {
              MISTAKE(conv2d(image, ones({16, 4, 3, 3}))),
              MISTAKE(conv2d(ones({8, 32, 32, 3}), w)),
              MISTAKE(conv2d(ones({32, 32, 3}), w)),
              MISTAKE(conv2d(ones({8, 28, 28}), ones({6, 1, 5, 5}))),
              MISTAKE(conv2d(image, w, ones({8}))),
              MISTAKE(conv2d(ones({32, 32}), w)),
              MISTAKE(conv1d(image, w)),
              MISTAKE(conv2d(image, ones({16, 3, 3, 3}, {.dtype = float64}))),
              MISTAKE(conv2d(image, w, {.stride = 0})),
              MISTAKE(conv2d(image, w, {.stride = {1, 2, 3}})),
              MISTAKE(conv2d(image, w, {.padding = -1})),
              MISTAKE(conv2d(image, w, {.padding = "smae"})),
              MISTAKE(conv2d(image, w, {.stride = 2, .padding = "same"})),
              MISTAKE(conv2d(image, w, {.groups = 2})),
              MISTAKE(conv2d(ones({8, 3, 2, 2}), w)),
              MISTAKE(conv_transpose2d(image, w)),
              MISTAKE(max_pool2d(image, {.kernel_size = 64})),
              MISTAKE(max_pool2d(image, {.kernel_size = 2, .padding = 2})),
              MISTAKE(avg_pool2d(ones({3}), {.kernel_size = 2})),
              MISTAKE(batch_norm(image, ones({4}), ones({4}), {}, {})),
              MISTAKE(batch_norm(ones({8, 32, 32, 3}), ones({3}), ones({3}), {}, {})),
              MISTAKE(group_norm(image, {}, {}, {.num_groups = 2})),
              MISTAKE(layer_norm(image, {}, {}, {.normalized_shape = {16}})),
              MISTAKE(interpolate(image, {.size = 0})),
              MISTAKE(roi_align(image, tensor({{9.0, 1.0, 1.0, 4.0, 4.0}}), {.output_size = 7})),
              MISTAKE(deform_conv2d(image, zeros({8, 18, 32, 32}), ones({16, 3, 3, 3}))),
          }};
}

MistakeSection tape_mistakes() {
  const Tensor x = ones({3}).set_requires_grad();
  const Tensor w = ones({3});
  const Tensor out = zeros({2, 3});
  return {"Gradients",
          "`x = ones({3}).set_requires_grad()`, `w = ones({3})`, `out = zeros({2, 3})`.",
          {
              MISTAKE((x * 2).backward()),
              MISTAKE(sum(w).backward()),
              MISTAKE(Tensor y = sum(x * x); y.backward(); y.backward()),
              MISTAKE(Tensor y = sum(x * w); w += 1; y.backward()),
              MISTAKE(x += 1),
              MISTAKE(fill_(select(x, 0, 0), 1)),
              MISTAKE(tensor({1, 2}).set_requires_grad()),
              MISTAKE((x * 2).set_requires_grad()),
              MISTAKE(w.retain_grad()),
              MISTAKE(w.register_hook([](const Tensor& g) { return g * 2; })),
              MISTAKE(x.set_grad(ones({5}))),
              MISTAKE(x.set_grad(ones({3}, {.dtype = float64}))),
              MISTAKE((x * 2).backward(ones({5}))),
              MISTAKE(grad({sum(w * 2)}, {x})),
              MISTAKE(grad({sum(x)}, {w})),
              MISTAKE(copy_(no_grad([&] { return select(out, 0, 0); }), x * 2); sum(out)),
              MISTAKE(Tensor y = out.detach(); y += x; sum(out)),
          }};
}

namespace {
/// A network whose author gave two members one name.
struct Duplicate : nn::Module {
  nn::Linear a{{.in_features = 3, .out_features = 3}};
  nn::Linear b{{.in_features = 3, .out_features = 3}};
  Tensor forward(const Tensor& x) override { return b(a(x)); }
  void members(nn::Members& m) override {
    m("fc", a);
    m("fc", b);
  }
};
struct NoForward : nn::Module {};
/// A network whose author forgot to list `b`.
struct Forgetful : nn::Module {
  nn::Linear a{{.in_features = 3, .out_features = 3}};
  nn::Linear b{{.in_features = 3, .out_features = 3}};
  Tensor forward(const Tensor& x) override { return b(a(x)); }
  void members(nn::Members& m) override { m("a", a); }
};
}  // namespace

MistakeSection module_mistakes() {
  const Tensor x = ones({8, 3});
  const Tensor image = ones({8, 3, 32, 32});
  nn::Linear fc{{.in_features = 4, .out_features = 2}};
  return {
      "Modules",
      "`x = ones({8, 3})`, `image = ones({8, 3, 32, 32})`, `fc` is `nn::Linear{{.in_features = 4, "
      ".out_features = "
      "2}}`; `Duplicate` lists two members as \"fc\", `Forgetful` has members `a` and `b` and lists `a`, "
      "`NoForward` has "
      "no forward.",
      {
          MISTAKE(fc(x)),
          MISTAKE(nn::Linear({.in_features = 0, .out_features = 2})),
          MISTAKE(nn::Conv2d({.in_channels = 3, .out_channels = 16, .kernel_size = 0})),
          MISTAKE(nn::Conv2d({.in_channels = 3, .out_channels = 16, .kernel_size = 3, .groups = 2})),
          MISTAKE(
              nn::Conv2d({.in_channels = 3, .out_channels = 16, .kernel_size = 3, .padding_mode = "mirror"})),
          MISTAKE(nn::Conv2d net{{.in_channels = 1, .out_channels = 2, .kernel_size = 3}}; net(image)),
          MISTAKE(nn::Sequential net{
              nn::Conv2d{{.in_channels = 3, .out_channels = 8, .kernel_size = 3}},
              nn::Residual{{.body = nn::Conv2d{{.in_channels = 4, .out_channels = 8, .kernel_size = 1}}}}};
                  net(image)),
          MISTAKE(models::lenet({.num_classes = 10})(ones({8, 1, 32, 32}))),
          MISTAKE(nn::BatchNorm2d norm{{.num_features = 4}}; norm(image)),
          MISTAKE(nn::BatchNorm2d norm{{.num_features = 3}}; norm(x)),
          MISTAKE(nn::BatchNorm1d norm{{.num_features = 3}}; norm(ones({1, 3}))),
          MISTAKE(nn::GroupNorm({.num_groups = 2, .num_channels = 3})),
          MISTAKE(nn::Dropout({.p = 1.5})),
          MISTAKE(nn::CrossEntropyLoss({.label_smoothing = 1.5})),
          MISTAKE(nn::MSELoss loss; loss(x)),
          MISTAKE(NoForward net; net(x)),
          MISTAKE(Duplicate net; net.parameters()),
          MISTAKE(Forgetful net; net(x); net.state_dict()),
          MISTAKE(Forgetful net; optim::SGD sgd{net.parameters(), {.lr = 0.1}}; sum(net(x)).backward();
                  sgd.step()),
          MISTAKE(fc(ones({8, 4}, {.dtype = float64}))),
          MISTAKE(fc.to(int64)),
          MISTAKE(nn::Linear other{{.in_features = 3, .out_features = 2}};
                  fc.load_state_dict(other.state_dict())),
          MISTAKE(nn::Sequential other{fc}; fc.load_state_dict(other.state_dict())),
          MISTAKE(nn::StateDict state; for (const auto& [name, tensor]
                                            : fc.state_dict()) state["module." + name] = tensor;
                  fc.load_state_dict(state)),
          MISTAKE(fc.load_state_dict(models::lenet({.num_classes = 10}).state_dict())),
          MISTAKE(nn::StateDict state = fc.state_dict(); state.erase("bias"); fc.load_state_dict(state)),
          MISTAKE(nn::StateDict state = fc.state_dict(); state["bias"] = ones({3});
                  fc.load_state_dict(state)),
          MISTAKE(nn::Sequential net{nn::ReLU{}}; nn::Sequential other = std::move(net); net(x)),
      }};
}
