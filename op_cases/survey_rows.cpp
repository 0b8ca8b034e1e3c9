// The survey's rows, beside those of pointwise functions, which come from the table of op cases: reductions,
// losses, norms, pools, products, what moves or makes elements, optimisers, files, and what a call costs at
// all.
#include <algorithm>
#include <memory>

#include <fmt/ranges.h>

#include "pleat/core/base/format.h"
#include "pleat/models/make_classifier.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/op_cases/survey.h"
#include "pleat/pleat.h"

namespace pleat::test {
namespace {

/// Of what gives no tensor.
template <class T>
Outputs done(const T&) {
  return Tensors{};
}

const char* last_of(std::initializer_list<const char*> texts) { return texts.end()[-1]; }

constexpr auto linear_mode = Interpolation::linear;

/// Parameters of a network, each with a gradient.
std::vector<Tensor> trained(const std::string& model) {
  std::vector<Tensor> parameters = models::make_classifier(model, {.num_classes = 10}).parameters();
  for (const Tensor& p : parameters) p.set_grad(p.detach() * 1e-3);  // lies as p does, as after backward
  return parameters;
}

template <class Optimizer, class Options>
Work stepping(const std::string& model, const Options& options) {
  return [optimizer = std::make_shared<Optimizer>(trained(model), options)] { optimizer->step(); };
}

Work sgd(const std::string& model, double momentum) {
  return stepping<optim::SGD>(model, optim::SGDOptions{.lr = 1e-3, .momentum = momentum});
}

Work clipping(const std::string& model) {
  return [parameters = trained(model)] { (void)optim::clip_grad_norm_(parameters, {.max_norm = 1.0}); };
}

/// Numbers of (0.1, 0.9) for functions whose own values do not lie on both sides of (-1, 1).
std::string kind_of(const Tensor& x) {
  if (x.dtype() == boolean) return "bool:E";
  const auto values = x.to_vector<double>();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least < -1 && *most > 1 ? "E" : "u:E";
}

/// Of each pointwise function of the table of op cases that PyTorch has by that name.
std::vector<OpRow> pointwise_rows() {
  std::vector<OpRow> rows;
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      if (!c.elementwise || !c.variant.empty() || c.name.ends_with('_')) continue;
      const bool has_derivative = c.order > 0 && c.name != "floor_divide";  // in PyTorch, too
      std::vector<std::string> operands;
      for (const Tensor& x : c.inputs) operands.push_back(kind_of(x));
      rows.push_back({fmt::format("{}/{}: {}", family.name, c.name, fmt::join(operands, " ")),
                      c.name + std::string("(x, y, z").substr(0, 3 * operands.size() - 1) + ')',
                      has_derivative ? Passes::both : Passes::forward, c.call});
    }
  return rows;
}

// A row is the problems, a call of their operands x, y, z, w, and PyTorch's expression where it is written in
// another way. BOTH: forward and backward; FORWARD: alone; TRAINING: forward, and recorded forward and
// backward in one run; STATEFUL: a function that makes what is run.
// clang-format off
#define PLEAT_ROW(which, problems, call, ...)                                        \
  {                                                                                  \
    problems, last_of({#call __VA_OPT__(, ) __VA_ARGS__}), Passes::which,           \
        [](const Tensors& in) -> Outputs {                               \
          [[maybe_unused]] const Tensor &x = in[0], &y = in[1], &z = in[2], &w = in[3]; \
          return call;                                                               \
        }                                                                            \
  }
#define BOTH(problems, ...) PLEAT_ROW(both, problems, __VA_ARGS__)
#define FORWARD(problems, ...) PLEAT_ROW(forward, problems, __VA_ARGS__)
#define TRAINING(problems, ...) PLEAT_ROW(training, problems, __VA_ARGS__)
#define STATEFUL(name, make, torch) {name ": 1", torch, Passes::forward, nullptr, [] { return make; }}

std::vector<OpRow> written_rows() {
  return {
      BOTH("math/pow 2: E", pow(x, 2)),
      BOTH("math/pow 2.3: u:E", pow(x, 2.3)),
      BOTH("math/exp, images: N,C,H,W; exp, float16: float16:E; exp, float64: float64:E", exp(x)),
      BOTH("activation/prelu: N,C,H,W C", prelu(x, y)),
      BOTH("activation/gelu by tanh: R,L", gelu(x, GeluApproximation::tanh), "F.gelu(x, approximate='tanh')"),
      BOTH("activation/glu: R,L", glu(x)),
      FORWARD("activation/relu_: N,C,H,W", relu_(x), "x.relu_()"),
      BOTH("activation/dropout: N,C,H,W", dropout(x, 0.5)),
      BOTH("activation/dropout, rows: R,L", dropout(x, 0.1)),
      BOTH("activation/channel_dropout: N,C,H,W", channel_dropout(x, 0.2), "F.dropout2d(x, 0.2)"),
      BOTH("arithmetic/add, images: N,C,H,W N,C,H,W; add, float16: float16:E float16:E; add, float64: float64:E float64:E", x + y),
      BOTH("arithmetic/tril: N,A,A", tril(x)),
      BOTH("arithmetic/triu of a matrix: R,L", triu(x, 1)),
      BOTH("arithmetic/outer: R L", outer(x, y)),
      BOTH("arithmetic/cross: R,3", cross(x, x), "torch.linalg.cross(x, x)"),
      BOTH("arithmetic/minimum with a number: E", minimum(x, 0.5), "x.clamp(max=0.5)"),
      BOTH("arithmetic/lerp by a number: E E", lerp(x, y, 0.3)),
      BOTH("arithmetic/where, images: bool:N,C,H,W N,C,H,W", where(x, y, 0)),
      BOTH("arithmetic/masked_fill of attention: N,4,A,A bool:A,A", masked_fill(x, y, -1e9)),
      BOTH("arithmetic/add a number: E", x + 2),
      BOTH("arithmetic/multiply by a number: N,C,H,W", x * 0.5),
      BOTH("arithmetic/number over tensor: u:E", 1 / x),
      FORWARD("arithmetic/add_: E E", add_(x, y), "x.add_(y)"),
      FORWARD("arithmetic/multiply_ by a number: E", multiply_(x, 1.0), "x.mul_(1.0)"),
      FORWARD("arithmetic/clamp_: E", clamp_(x, {.min = -1, .max = 1}), "x.clamp_(-1, 1)"),
      FORWARD("arithmetic/lerp_: E E", lerp_(x, y, 0.1), "x.lerp_(y, 0.1)"),
      FORWARD("arithmetic/add, int64: int:E int:E; add, uint8: byte:E byte:E", x + y),
      FORWARD("arithmetic/remainder, int64 by a number: int:E", remainder(x, 7), "x % 7"),
      BOTH("broadcast/add to channels: N,C,H,W 1,C,1,1; add of columns: N,C,H,W 1,1,1,W; add a row: R,L L; "
           "short rows and a row: S,10 10; position on words: N,A,128 A,128", x + y),
      BOTH("broadcast/gate of channels: N,C,H,W u:N,C,1,1; mask of pixels: N,C,H,W N,1,H,W; scale of images: N,C,H,W N,1,1,1; "
           "gate, few pixels: N,K,7,7 u:N,K,1,1; volumes: N,C,D,D,D N,C,1,1,1; multiply by a row: R,L L", x * y),
      BOTH("broadcast/divide by channels: N,C,H,W u:1,C,1,1; divide by a column: R,L u:R,1; short rows by a column: S,10 u:S,1",
           x / y),
      BOTH("broadcast/few channels: N,3,G,G 1,3,1,1; subtract a column: R,L R,1; column and row: R,1 1,L", x - y),
      FORWARD("broadcast/compare with a column: R,L R,1", x > y),
      FORWARD("compare/less than a number: E", x < 0),
      FORWARD("compare/greater_equal, images: N,C,H,W N,C,H,W", x >= y),
      FORWARD("compare/equal, int64: <10:E <10:E; equal, uint8: byte:E byte:E", x == y),
      FORWARD("compare/array_equal: E", done(array_equal(x, x + 0)), "torch.equal(x, x + 0)"),
      FORWARD("compare/allclose: E", done(allclose(x, x + 0)), "torch.allclose(x, x + 0)"),
      BOTH("cast/float32 to float16: E; float32 to float16, images: N,C,H,W", x.to(float16), "x.half()"),
      BOTH("cast/float16 to float32: float16:E; bfloat16 to float32: bfloat16:E", x.to(float32), "x.float()"),
      BOTH("cast/float32 to bfloat16: E", x.to(bfloat16), "x.bfloat16()"),
      BOTH("cast/float32 to float64: E", x.to(float64), "x.double()"),
      FORWARD("cast/float32 to int64: E", x.to(int64), "x.long()"),
      FORWARD("cast/float32 to uint8: u:E", x.to(uint8), "x.byte()"),
      FORWARD("cast/int64 to float32: int:E; uint8 to float32: byte:N,3,G,G; bool to float32: bool:E", x.to(float32), "x.float()"),
      BOTH("cast/clone: N,C,H,W", clone(x)),
      FORWARD("cast/copy_: E E; copy_ with a cast: E float16:E", copy_(x, y), "x.copy_(y)"),
      BOTH("cast/to contiguous: N,C,H,W", x.to(MemoryFormat::contiguous), "x.contiguous()"),
      BOTH("cast/to channels_last: N,C,H,W; to channels_last, RGB: N,3,G,G; to channels_last, 7 x 7: N,K,7,7; "
           "to channels_last, volumes: N,C,D,D,D", x.to(MemoryFormat::channels_last), "channels_last(x)"),
      BOTH("reduce/sum of all: E", sum(x)),
      BOTH("reduce/sum of rows: R,L; sum of channels: N,C,H,W; sum of short rows: S,10; sum of the middle: N,A,128; "
           "sum, float16: float16:R,L", sum(x, 1)),
      BOTH("reduce/sum of columns: R,L", sum(x, 0)),
      BOTH("reduce/sum of images: N,C,H,W", sum(x, {0, 2, 3})),
      BOTH("reduce/sum of pixels: N,C,H,W; sum of 7 x 7: N,K,7,7", sum(x, {2, 3})),
      FORWARD("reduce/sum, int64: int:R,L", sum(x, 1)),
      FORWARD("reduce/count of bool: bool:E", sum(x)),
      BOTH("reduce/mean of all: E", mean(x)),
      BOTH("reduce/mean of rows: R,L", mean(x, 1)),
      BOTH("reduce/mean of pixels: N,C,H,W", mean(x, {2, 3}, true)),
      BOTH("reduce/mean of 7 x 7: N,K,7,7", mean(x, {2, 3})),
      BOTH("reduce/prod of rows: u:R,L; prod of short rows: u:S,10", prod(x, 1)),
      BOTH("reduce/var of all: E", var(x)),
      BOTH("reduce/var of rows: R,L; var of channels: N,C,H,W", var(x, 1)),
      BOTH("reduce/stddev of short rows: S,10", stddev(x, 1), "x.std(1)"),
      BOTH("reduce/var_mean of rows: R,L", var_mean(x, 1)),
      BOTH("reduce/norm of all: E", norm(x), "torch.linalg.vector_norm(x)"),
      BOTH("reduce/norm of rows: R,L", norm(x, 1), "torch.linalg.vector_norm(x, dim=1)"),
      BOTH("reduce/norm 3 of rows: R,L", norm(x, 1, {.p = 3}), "torch.linalg.vector_norm(x, 3, 1)"),
      BOTH("reduce/logsumexp of rows: R,L; logsumexp of channels: N,C,H,W", logsumexp(x, 1)),
      BOTH("reduce/max of all: E", max(x), "x.amax()"),
      BOTH("reduce/max of rows: R,L; max of channels: N,C,H,W", max(x, 1), "x.amax(1)"),
      BOTH("reduce/min of columns: R,L", min(x, 0), "x.amin(0)"),
      BOTH("reduce/max of pixels: N,C,H,W; max of 7 x 7: N,K,7,7", max(x, {2, 3}), "x.amax((2, 3))"),
      BOTH("reduce/max_with_indices of rows: R,L; max_with_indices of short rows: S,10", max_with_indices(x, 1), "x.max(1)"),
      BOTH("reduce/min_with_indices of channels: N,C,H,W", min_with_indices(x, 1), "x.min(1)"),
      FORWARD("reduce/argmax of all: E", argmax(x)),
      FORWARD("reduce/argmax of rows: R,L; argmax of short rows: S,10; argmax of channels: N,C,H,W", argmax(x, 1)),
      FORWARD("reduce/any of rows: bool:R,L", any(x, 1)),
      FORWARD("reduce/all of all: bool:E", all(x)),
      BOTH("softmax/softmax of rows: R,L; softmax of short rows: S,10; softmax of channels: N,C,H,W", softmax(x, 1)),
      BOTH("softmax/softmax of columns: R,L", softmax(x, 0)),
      BOTH("softmax/softmax of attention: N,4,A,A", softmax(x, -1)),
      BOTH("softmax/log_softmax of rows: R,L; log_softmax of short rows: S,10; log_softmax of channels: N,C,H,W",
           log_softmax(x, 1)),
      BOTH("loss/mse_loss: E t:E; mse_loss, images: N,3,G,G t:N,3,G,G", mse_loss(x, y)),
      BOTH("loss/mse_loss, not reduced: E t:E",
           mse_loss(x, y, {.reduction = Reduction::none}), "F.mse_loss(x, y, reduction='none')"),
      BOTH("loss/l1_loss: E t:E", l1_loss(x, y)),
      BOTH("loss/smooth_l1_loss: E t:E", smooth_l1_loss(x, y)),
      BOTH("loss/huber_loss: E t:E", huber_loss(x, y)),
      BOTH("loss/binary_cross_entropy: u:E t:E", binary_cross_entropy(x, y)),
      BOTH("loss/soft_margin_loss: E t:E", soft_margin_loss(x, y)),
      BOTH("loss/poisson_nll_loss: E t:E", poisson_nll_loss(x, y)),
      BOTH("loss/bce_with_logits: E t:E", bce_with_logits(x, y), "F.binary_cross_entropy_with_logits(x, y)"),
      BOTH("loss/kl_div: E t:E", kl_div(x, y)),
      BOTH("loss/cross_entropy: R,L <L:R; cross_entropy, 10 classes: S,10 <10:S; cross_entropy of pixels: N,C,H,W <C:N,H,W",
           cross_entropy(x, y)),
      BOTH("loss/cross_entropy, smoothed: R,L <L:R", cross_entropy(x, y, {.label_smoothing = 0.1})),
      BOTH("loss/nll_loss: R,L <L:R", nll_loss(x, y)),
      BOTH("norm/batch_norm: N,C,H,W C C; batch_norm, 7 x 7: N,K,7,7 K K; batch_norm of rows: R,L L L; "
           "batch_norm of signals: N,C,T C C; batch_norm of volumes: N,C,D,D,D C C",
           batch_norm(x, y, z, {}, {}, {.training = true}), "F.batch_norm(x, None, None, y, z, True)"),
      BOTH("norm/batch_norm, evaluation: N,C,H,W C t:C t:C", batch_norm(x, y, y, z, w), "F.batch_norm(x, z, w, y, y)"),
      BOTH("norm/layer_norm: R,L L L", layer_norm(x, y, z, {.normalized_shape = x.size(1)}), "F.layer_norm(x, x.shape[1:], y, z)"),
      BOTH("norm/rms_norm: R,L L", rms_norm(x, y, {.normalized_shape = x.size(1)}), "F.rms_norm(x, x.shape[1:], y)"),
      BOTH("norm/rms_norm of words: N,A,128 128", rms_norm(x, y, {.normalized_shape = 128}), "F.rms_norm(x, (128,), y)"),
      BOTH("norm/local_response_norm: N,C,H,W", local_response_norm(x, {.size = 5})),
      BOTH("norm/normalize: R,L", normalize(x)),
      BOTH("norm/cosine_similarity: R,L R,L", cosine_similarity(x, y)),
      BOTH("norm/pairwise_distance: R,L R,L", pairwise_distance(x, y)),
      BOTH("norm/layer_norm of words: N,A,128 128 128",
           layer_norm(x, y, z, {.normalized_shape = 128}), "F.layer_norm(x, (128,), y, z)"),
      BOTH("norm/layer_norm, images: N,3,G,G",
           layer_norm(x, {}, {}, {.normalized_shape = {x.size(1), x.size(2), x.size(3)}}), "F.layer_norm(x, x.shape[1:])"),
      BOTH("norm/group_norm: N,C,H,W C C", group_norm(x, y, z, {.num_groups = 8}), "F.group_norm(x, 8, y, z)"),
      BOTH("norm/group_norm, 7 x 7: N,K,7,7 K K", group_norm(x, y, z, {.num_groups = 32}), "F.group_norm(x, 32, y, z)"),
      BOTH("norm/instance_norm: N,C,H,W C C", instance_norm(x, y, z, {}, {}), "F.instance_norm(x, weight=y, bias=z)"),
      BOTH("norm/batch_norm by the reference: N,C,H,W C C",
           batch_norm(x, y, z, {}, {}, {.training = true, .implementation = "reference"}), ""),
      BOTH("pool/max_pool2d 2: N,C,H,W; max_pool2d 2, RGB: N,3,G,G", max_pool2d(x, {.kernel_size = 2})),
      BOTH("pool/max_pool2d 3/2: N,C,H,W", max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1})),
      BOTH("pool/max_pool2d 3/1: N,C,H,W", max_pool2d(x, {.kernel_size = 3, .stride = 1, .padding = 1})),
      BOTH("pool/avg_pool2d 2: N,C,H,W; avg_pool2d 2, RGB: N,3,G,G", avg_pool2d(x, {.kernel_size = 2})),
      BOTH("pool/avg_pool2d 3/1: N,C,H,W", avg_pool2d(x, {.kernel_size = 3, .stride = 1, .padding = 1})),
      BOTH("pool/lp_pool2d 2: N,C,H,W", lp_pool2d(x, {.norm_type = 2, .kernel_size = 2})),
      BOTH("pool/adaptive_avg_pool2d 1: N,C,H,W; adaptive_avg_pool2d 1, 7 x 7: N,K,7,7",
           adaptive_avg_pool2d(x, {.output_size = 1})),
      BOTH("pool/adaptive_max_pool2d 1: N,C,H,W", adaptive_max_pool2d(x, {.output_size = 1})),
      BOTH("pool/max_pool1d 2: N,C,T", max_pool1d(x, {.kernel_size = 2})),
      BOTH("pool/max_pool3d 2: N,C,D,D,D", max_pool3d(x, {.kernel_size = 2})),
      BOTH("pool/avg_pool3d 2: N,C,D,D,D", avg_pool3d(x, {.kernel_size = 2})),
      BOTH("pool/adaptive_avg_pool3d 1: N,C,D,D,D", adaptive_avg_pool3d(x, {.output_size = 1})),
      BOTH("unfold/unfold 3 x 3: N,C,H,W", unfold(x, {.kernel_size = 3, .padding = 1})),
      BOTH("unfold/fold 3 x 3: N,144,64", fold(x, {8, 8}, {.kernel_size = 3, .padding = 1})),
      BOTH("unfold/convolution by hand: N,32,4,4 64,288",
           fold(matmul(y, unfold(x, {.kernel_size = 3, .padding = 1})), {4, 4}, {.kernel_size = 1})),
      BOTH("scan/cumsum of all: E; cumsum of columns: R,L", cumsum(x, 0)),
      BOTH("scan/cumsum of rows: R,L; cumsum of short rows: S,10; cumsum of channels: N,C,H,W", cumsum(x, 1)),
      FORWARD("scan/cumsum, int64: int:R,L", cumsum(x, 1)),
      BOTH("scan/cumprod of rows: u:R,L", cumprod(x, 1)),
      BOTH("product/dot: E E; matmul: M,M M,M; matmul, thin: R,L L,10; matmul, inner: 4,E E,1; matrix times vector: R,L L; "
           "vector times matrix: R R,L; matmul, float64: float64:M,M float64:M,M; matmul, bfloat16: bfloat16:M,M bfloat16:M,M; "
           "batched matmul: N,A,32 N,32,A; matmul of heads: N,4,A,A N,4,A,32; matmul of many small ones: S,4,4 S,4,4",
           matmul(x, y)),
      BOTH("product/matmul, first transposed: M,M M,M", matmul(transpose(x, 0, 1), y)),
      BOTH("product/matmul, second transposed: M,M M,M", matmul(x, transpose(y, 0, 1))),
      BOTH("product/addmm: M M,M M,M", addmm(x, y, z)),
      BOTH("product/linear: R,256 256,256 256; linear, 10 classes: R,L 10,L 10; linear of words: N,A,128 512,128 512; "
           "linear, batch 1: 1,L 1000,L 1000", linear(x, y, z)),
      BOTH("product/einsum of heads: N,A,4,32 N,A,4,32",
           einsum("bqhd,bkhd->bhqk", {x, y}), "torch.einsum('bqhd,bkhd->bhqk', x, y)"),
      BOTH("product/einsum, rows times rows: R,L R,L", einsum("ij,ij->i", {x, y}), "torch.einsum('ij,ij->i', x, y)"),
      BOTH("layout/copy of a transpose: R,L; copy of a transpose, square: M,M",
           transpose(x, 0, 1).contiguous(), "x.T.contiguous()"),
      BOTH("layout/add a transpose: M,M M,M", x + transpose(y, 0, 1)),
      BOTH("layout/permute to N H W C: N,C,H,W", permute(x, {0, 2, 3, 1}).contiguous()),
      BOTH("layout/split of heads: N,A,4,32", permute(x, {0, 2, 1, 3}).contiguous()),
      BOTH("layout/transpose of batches: N,A,128", transpose(x, 1, 2).contiguous()),
      BOTH("layout/flatten of images: N,C,H,W", flatten(x, 1)),
      BOTH("layout/part of rows: R,L", slice(x, 1, 7, 71).contiguous(), "x[:, 7:71].contiguous()"),
      BOTH("layout/every other row: R,L", slice(x, 0, 0, x.size(0), 2).contiguous(), "x[::2].contiguous()"),
      BOTH("layout/every other column: R,L", slice(x, 1, 0, x.size(1), 2).contiguous(), "x[:, ::2].contiguous()"),
      BOTH("layout/expand rows: L", expand(x, {64, x.size(0)}).contiguous(), "x.expand(64, -1).contiguous()"),
      BOTH("layout/windows of a signal: N,T", unfold_dimension(x, 1, 16, 8).contiguous(), "x.unfold(1, 16, 8).contiguous()"),
      BOTH("layout/diagonal: M,M", diagonal(x).contiguous()),
      BOTH("layout/flip of rows: R,L", flip(x, 0), "x.flip(0)"),
      BOTH("layout/flip of images: N,3,G,G; flip of images, many channels: N,C,H,W", flip(x, 3), "x.flip(3)"),
      BOTH("layout/roll of rows: R,L", roll(x, 1, 0)),
      BOTH("layout/roll of images: N,C,H,W", roll(x, {3, 3}, {2, 3})),
      BOTH("layout/repeat: R,L", repeat(x, {2, 3}), "x.repeat(2, 3)"),
      BOTH("layout/repeat_interleave of rows: R,L", repeat_interleave(x, 2, 0)),
      BOTH("layout/repeat_interleave in rows: R,L; repeat_interleave of channels: N,C,H,W", repeat_interleave(x, 2, 1)),
      BOTH("layout/pad: N,C,H,W", pad(x, {1, 1, 1, 1})),
      BOTH("layout/pad by reflection: N,C,H,W",
           pad(x, {1, 1, 1, 1}, {.mode = PadMode::reflect}), "F.pad(x, (1, 1, 1, 1), 'reflect')"),
      BOTH("layout/pad by replication: N,C,H,W",
           pad(x, {2, 2, 2, 2}, {.mode = PadMode::replicate}), "F.pad(x, (2, 2, 2, 2), 'replicate')"),
      BOTH("layout/pad in a circle: N,C,H,W",
           pad(x, {1, 1, 1, 1}, {.mode = PadMode::circular}), "F.pad(x, (1, 1, 1, 1), 'circular')"),
      BOTH("layout/cat of rows: R,L R,L; cat of batches: N,C,H,W N,C,H,W", cat({x, y})),
      BOTH("layout/cat in rows: R,L R,L; cat of channels: N,C,H,W N,C,H,W; cat of few channels: N,C,H,W N,3,H,W", cat({x, y}, 1)),
      BOTH("layout/stack: R,L R,L R,L", stack({x, y, z})),
      BOTH("layout/stack of the last dimension: R,L R,L R,L", stack({x, y, z}, -1)),
      BOTH("layout/chunk: N,C,H,W", chunk(x, 4, 1)),
      BOTH("layout/split, gated: R,L",
           (chunk(x, 2, 1)[0] * sigmoid(chunk(x, 2, 1)[1])), "x.chunk(2, 1)[0] * x.chunk(2, 1)[1].sigmoid()"),
      FORWARD("index/nonzero: bool:E; nonzero of rows: bool:R,L", nonzero(x)),
      BOTH("index/masked_select: E bool:E; masked_select by rows: R,L bool:R,1", masked_select(x, y)),
      BOTH("index/index_select of rows: R,L <R:R; index_select of numbers: E perm:E", index_select(x, 0, y)),
      BOTH("index/index_select in rows: R,L <L:L; index_select of channels: N,C,H,W perm:C", index_select(x, 1, y)),
      BOTH("index/gather in rows: R,L <L:R,L; gather of one a row: R,L <L:R,1", gather(x, 1, y)),
      BOTH("index/gather of rows: R,L <R:R,L", gather(x, 0, y)),
      BOTH("index/scatter in rows: R,L <L:R,1 R,1", scatter(x, 1, y, z)),
      BOTH("index/scatter_add in rows: R,L <L:R,L R,L", scatter_add(x, 1, y, z)),
      BOTH("index/scatter_add of rows: R,L <R:R,L R,L; scatter_add, histogram: 100 <100:E E", scatter_add(x, 0, y, z)),
      BOTH("index/index_add of rows: R,L <R:R R,L", index_add(x, 0, y, z)),
      BOTH("index/index_copy of rows: R,L perm:R R,L", index_copy(x, 0, y, z)),
      BOTH("index/index_fill of rows: R,L <R:R", index_fill(x, 0, y, 0)),
      BOTH("index/index_put: R,L <R:S <L:S S", index_put(x, {y, z}, w)),
      BOTH("index/embedding: V,128 <V:N,A; embedding, wide: V,512 <V:N", embedding(y, x)),
      FORWARD("index/one_hot: <C:S", one_hot(x, 64)),
      BOTH("sort/sort of all: E; sort of rows: R,L; sort of short rows: S,10", sort(x)),
      BOTH("sort/sort of columns: R,L", sort(x, {.dim = 0})),
      FORWARD("sort/sort, int64: int:E", sort(x)),
      FORWARD("sort/argsort of rows: R,L", argsort(x)),
      BOTH("sort/topk 5 of rows: R,L", topk(x, 5)),
      BOTH("sort/topk 3 of short rows: S,10", topk(x, 3)),
      BOTH("resize/nearest, double: N,C,H,W; nearest, RGB: N,3,G,G; nearest of volumes: N,C,D,D,D",
           interpolate(x, {.scale_factor = 2.0})),
      BOTH("resize/nearest, to 37 x 41: N,C,H,W", interpolate(x, {.size = {37, 41}})),
      BOTH("resize/bilinear, double: N,C,H,W",
           interpolate(x, {.scale_factor = 2.0, .mode = linear_mode}), "F.interpolate(x, scale_factor=2, mode='bilinear')"),
      BOTH("resize/bilinear, half: N,C,H,W",
           interpolate(x, {.scale_factor = 0.5, .mode = linear_mode}), "F.interpolate(x, scale_factor=0.5, mode='bilinear')"),
      BOTH("resize/bilinear, RGB to 64 x 64: N,3,G,G",
           interpolate(x, {.size = 64, .mode = linear_mode}), "F.interpolate(x, (64, 64), mode='bilinear')"),
      BOTH("resize/trilinear: N,C,D,D,D",
           interpolate(x, {.scale_factor = 2.0, .mode = linear_mode}), "F.interpolate(x, scale_factor=2, mode='trilinear')"),
      FORWARD("make/rand: E", rand(x.shape()), "torch.rand(x.shape)"),
      FORWARD("make/randn: E", randn(x.shape()), "torch.randn(x.shape)"),
      FORWARD("make/randint: E", randint(0, 1000, x.shape()), "torch.randint(1000, x.shape)"),
      FORWARD("make/randperm: E", randperm(x.size(0))),
      FORWARD("make/bernoulli: E", bernoulli(0.3, x.shape()), "torch.empty(x.shape, dtype=torch.bool).bernoulli_(0.3)"),
      FORWARD("make/arange: E", arange(x.size(0))),
      FORWARD("make/eye: M", eye(x.size(0))),
      FORWARD("overhead/item(): 1", done(x.item<float>()), "x.item()"),
      TRAINING("overhead/add: 64 64", x + y),
      TRAINING("overhead/add a number: 64", x + 1),
      TRAINING("overhead/multiply by a column: 8,8 8,1", x * y),
      TRAINING("overhead/sum: 64", sum(x), "x.sum()"),
      TRAINING("overhead/reshape: 8,8", reshape(x, {64}), "x.reshape(64)"),
      TRAINING("overhead/linear: 8,16 16,16 16", linear(x, y, z), "F.linear(x, y, z)"),
      TRAINING("overhead/softmax: 8,8", softmax(x, 1), "x.softmax(1)"),
      TRAINING("overhead/cross_entropy: 8,10 <10:8", cross_entropy(x, y), "F.cross_entropy(x, y)"),
      TRAINING("overhead/chain of eight: 64 64; chain of eight, rows: 50,50 50",
               relu(tanh((x * y + x) * 2 - y) / 3 + 1), "F.relu(((x * y + x) * 2 - y).tanh() / 3 + 1)"),
      STATEFUL("update/SGD, resnet18", sgd("resnet18", 0.9), "stepping(torch.optim.SGD, 'resnet18', lr=1e-3, momentum=0.9)"),
      STATEFUL("update/Adam, resnet18",
               stepping<optim::Adam>("resnet18", optim::AdamOptions{}), "stepping(torch.optim.Adam, 'resnet18')"),
      STATEFUL("update/Adam, resnet18, fused",
               stepping<optim::Adam>("resnet18", optim::AdamOptions{}), "stepping(torch.optim.Adam, 'resnet18', fused=True)"),
      STATEFUL("update/AdamW, resnet18",
               stepping<optim::AdamW>("resnet18", optim::AdamWOptions{}), "stepping(torch.optim.AdamW, 'resnet18')"),
      STATEFUL("update/RMSprop, resnet18",
               stepping<optim::RMSprop>("resnet18", optim::RMSpropOptions{}), "stepping(torch.optim.RMSprop, 'resnet18')"),
      STATEFUL("update/Adagrad, resnet18",
               stepping<optim::Adagrad>("resnet18", optim::AdagradOptions{}), "stepping(torch.optim.Adagrad, 'resnet18')"),
      STATEFUL("update/clip_grad_norm_, resnet18", clipping("resnet18"), "clipping('resnet18')"),
  };
}
// clang-format on

}  // namespace

const std::vector<OpRow>& survey_rows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all = pointwise_rows();
    for (OpRow& row : written_rows()) all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

}  // namespace pleat::test
