// The survey's rows that move or make elements: copies of views, joins, indices, sorting, resizing, random
// numbers; optimisers, files, and what a call costs at all.
#include <filesystem>

#include "pleat/bench/op_table.h"
#include "pleat/models/make_classifier.h"

namespace pleat::bench {
namespace {

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

/// A file that lies in the system's cache.
Work saving_or_loading(bool load) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "pleat_survey.safetensors";
  std::map<std::string, Tensor> tensors;
  for (const Tensor& p : models::make_classifier("resnet18", {.num_classes = 10}).parameters())
    tensors[std::to_string(tensors.size())] = p.detach();
  io::write_safetensors(path, tensors);
  if (load) return [path] { (void)io::read_safetensors(path); };
  return [path, tensors] { io::write_safetensors(path, tensors); };
}

// clang-format off
std::vector<OpRow> layouts() {
  const char* family = "layout";
  return {
      BOTH("copy of a transpose", "R,L", transpose(x, 0, 1).contiguous(), "x.T.contiguous()"),
      BOTH("copy of a transpose, square", "M,M", transpose(x, 0, 1).contiguous(), "x.T.contiguous()"),
      BOTH("add a transpose", "M,M M,M", x + transpose(y, 0, 1), "x + y.T"),
      BOTH("permute to N H W C", "N,C,H,W", permute(x, {0, 2, 3, 1}).contiguous(), "x.permute(0, 2, 3, 1).contiguous()"),
      BOTH("permute all", "N,C,H,W", permute(x, {3, 2, 1, 0}).contiguous(), "x.permute(3, 2, 1, 0).contiguous()"),
      BOTH("split of heads", "N,A,4,32", permute(x, {0, 2, 1, 3}).contiguous(), "x.permute(0, 2, 1, 3).contiguous()"),
      BOTH("transpose of batches", "N,A,128", transpose(x, 1, 2).contiguous(), "x.transpose(1, 2).contiguous()"),
      BOTH("flatten of images", "N,C,H,W", flatten(x, 1), "x.flatten(1)"),
      BOTH("part of rows", "R,L", slice(x, 1, 7, 71).contiguous(), "x[:, 7:71].contiguous()"),
      BOTH("every other row", "R,L", slice(x, 0, 0, x.size(0), 2).contiguous(), "x[::2].contiguous()"),
      BOTH("every other column", "R,L", slice(x, 1, 0, x.size(1), 2).contiguous(), "x[:, ::2].contiguous()"),
      BOTH("every other pixel", "N,C,H,W", slice(slice(x, 2, 0, x.size(2), 2), 3, 0, x.size(3), 2) * 2, "x[:, :, ::2, ::2] * 2"),
      BOTH("half of the channels", "N,C,H,W", narrow(x, 1, 0, x.size(1) / 2) * 2, "x[:, :x.shape[1] // 2] * 2"),
      BOTH("expand rows", "L", expand(x, {64, x.size(0)}).contiguous(), "x.expand(64, -1).contiguous()"),
      BOTH("expand columns", "R,1", expand(x, {x.size(0), 300}).contiguous(), "x.expand(-1, 300).contiguous()"),
      BOTH("windows of a signal", "N,T", unfold_dimension(x, 1, 16, 8).contiguous(), "x.unfold(1, 16, 8).contiguous()"),
      BOTH("diagonal", "M,M", diagonal(x).contiguous(), "x.diagonal().contiguous()"),
      BOTH("flip of rows", "R,L", flip(x, 0), "x.flip(0)"),
      BOTH("flip in rows", "R,L", flip(x, 1), "x.flip(1)"),
      BOTH("flip of images", "N,3,G,G", flip(x, 3), "x.flip(3)"),
      BOTH("flip of images, many channels", "N,C,H,W", flip(x, 3), "x.flip(3)"),
      BOTH("roll of rows", "R,L", roll(x, 1, 0), "x.roll(1, 0)"),
      BOTH("roll in rows", "R,L", roll(x, 3, 1), "x.roll(3, 1)"),
      BOTH("roll of images", "N,C,H,W", roll(x, {3, 3}, {2, 3}), "x.roll((3, 3), (2, 3))"),
      BOTH("repeat", "R,L", repeat(x, {2, 3}), "x.repeat(2, 3)"),
      BOTH("repeat_interleave of rows", "R,L", repeat_interleave(x, 2, 0), "x.repeat_interleave(2, 0)"),
      BOTH("repeat_interleave in rows", "R,L", repeat_interleave(x, 2, 1), "x.repeat_interleave(2, 1)"),
      BOTH("repeat_interleave of channels", "N,C,H,W", repeat_interleave(x, 2, 1), "x.repeat_interleave(2, 1)"),
      BOTH("pad", "N,C,H,W", pad(x, {1, 1, 1, 1}), "F.pad(x, (1, 1, 1, 1))"),
      BOTH("pad, RGB", "N,3,G,G", pad(x, {4, 4, 4, 4}), "F.pad(x, (4, 4, 4, 4))"),
      BOTH("pad of rows", "R,L", pad(x, {3, 5}), "F.pad(x, (3, 5))"),
      BOTH("pad by reflection", "N,C,H,W", pad(x, {1, 1, 1, 1}, {.mode = PadMode::reflect}), "F.pad(x, (1, 1, 1, 1), 'reflect')"),
      BOTH("pad by replication", "N,C,H,W", pad(x, {2, 2, 2, 2}, {.mode = PadMode::replicate}), "F.pad(x, (2, 2, 2, 2), 'replicate')"),
      BOTH("pad in a circle", "N,C,H,W", pad(x, {1, 1, 1, 1}, {.mode = PadMode::circular}), "F.pad(x, (1, 1, 1, 1), 'circular')"),
      BOTH("cat of rows", "R,L R,L", cat({x, y}), "torch.cat((x, y))"),
      BOTH("cat in rows", "R,L R,L", cat({x, y}, 1), "torch.cat((x, y), 1)"),
      BOTH("cat of channels", "N,C,H,W N,C,H,W", cat({x, y}, 1), "torch.cat((x, y), 1)"),
      BOTH("cat of few channels", "N,C,H,W N,3,H,W", cat({x, y}, 1), "torch.cat((x, y), 1)"),
      BOTH("cat of batches", "N,C,H,W N,C,H,W", cat({x, y}), "torch.cat((x, y))"),
      BOTH("stack", "R,L R,L R,L", stack({x, y, z}), "torch.stack((x, y, z))"),
      BOTH("stack of the last dimension", "R,L R,L R,L", stack({x, y, z}, -1), "torch.stack((x, y, z), -1)"),
      BOTH("chunk", "N,C,H,W", chunk(x, 4, 1), "x.chunk(4, 1)"),
      BOTH("split, gated", "R,L", (chunk(x, 2, 1)[0] * sigmoid(chunk(x, 2, 1)[1])), "x.chunk(2, 1)[0] * x.chunk(2, 1)[1].sigmoid()"),
  };
}

std::vector<OpRow> indices() {
  const char* family = "index";
  return {
      FORWARD("nonzero", "bool:E", nonzero(x), "x.nonzero()"),
      FORWARD("nonzero of rows", "bool:R,L", nonzero(x), "x.nonzero()"),
      BOTH("masked_select", "E bool:E", masked_select(x, y), "x.masked_select(y)"),
      BOTH("masked_select by rows", "R,L bool:R,1", masked_select(x, y), "x.masked_select(y)"),
      BOTH("index_select of rows", "R,L <R:R", index_select(x, 0, y), "x.index_select(0, y)"),
      BOTH("index_select in rows", "R,L <L:L", index_select(x, 1, y), "x.index_select(1, y)"),
      BOTH("index_select of numbers", "E perm:E", index_select(x, 0, y), "x.index_select(0, y)"),
      BOTH("index_select of channels", "N,C,H,W perm:C", index_select(x, 1, y), "x.index_select(1, y)"),
      BOTH("gather in rows", "R,L <L:R,L", gather(x, 1, y), "x.gather(1, y)"),
      BOTH("gather of one a row", "R,L <L:R,1", gather(x, 1, y), "x.gather(1, y)"),
      BOTH("gather of rows", "R,L <R:R,L", gather(x, 0, y), "x.gather(0, y)"),
      BOTH("scatter in rows", "R,L <L:R,1 R,1", scatter(x, 1, y, z), "x.scatter(1, y, z)"),
      BOTH("scatter_add in rows", "R,L <L:R,L R,L", scatter_add(x, 1, y, z), "x.scatter_add(1, y, z)"),
      BOTH("scatter_add of rows", "R,L <R:R,L R,L", scatter_add(x, 0, y, z), "x.scatter_add(0, y, z)"),
      BOTH("scatter_add, histogram", "100 <100:E E", scatter_add(x, 0, y, z), "x.scatter_add(0, y, z)"),
      BOTH("index_add of rows", "R,L <R:R R,L", index_add(x, 0, y, z), "x.index_add(0, y, z)"),
      BOTH("index_copy of rows", "R,L perm:R R,L", index_copy(x, 0, y, z), "x.index_copy(0, y, z)"),
      BOTH("index_fill of rows", "R,L <R:R", index_fill(x, 0, y, 0), "x.index_fill(0, y, 0)"),
      BOTH("index_put", "R,L <R:S <L:S S", index_put(x, {y, z}, w), "x.index_put((y, z), w)"),
      BOTH("index_put, adding", "R,L <R:S <L:S S", index_put(x, {y, z}, w, true), "x.index_put((y, z), w, True)"),
      BOTH("embedding", "V,128 <V:N,A", embedding(y, x), "F.embedding(y, x)"),
      BOTH("embedding, wide", "V,512 <V:N", embedding(y, x), "F.embedding(y, x)"),
      FORWARD("one_hot", "<C:S", one_hot(x, 64), "F.one_hot(x, 64)"),
  };
}

std::vector<OpRow> sorting() {
  const char* family = "sort";
  return {
      BOTH("sort of all", "E", sort(x), "x.sort()"),
      BOTH("sort of rows", "R,L", sort(x), "x.sort()"),
      BOTH("sort of short rows", "S,10", sort(x), "x.sort()"),
      BOTH("sort of columns", "R,L", sort(x, {.dim = 0}), "x.sort(0)"),
      FORWARD("sort, int64", "int:E", sort(x), "x.sort()"),
      FORWARD("argsort of rows", "R,L", argsort(x), "x.argsort()"),
      BOTH("topk 5 of rows", "R,L", topk(x, 5), "x.topk(5)"),
      BOTH("topk 50 of rows", "R,L", topk(x, 50), "x.topk(50)"),
      BOTH("topk 100 of all", "E", topk(x, 100), "x.topk(100)"),
      BOTH("topk 3 of short rows", "S,10", topk(x, 3), "x.topk(3)"),
  };
}

std::vector<OpRow> resizing() {
  const char* family = "resize";
  constexpr auto linear = Interpolation::linear;
  return {
      BOTH("nearest, double", "N,C,H,W", interpolate(x, {.scale_factor = 2.0}), "F.interpolate(x, scale_factor=2)"),
      BOTH("nearest, half", "N,C,H,W", interpolate(x, {.scale_factor = 0.5}), "F.interpolate(x, scale_factor=0.5)"),
      BOTH("nearest, to 37 x 41", "N,C,H,W", interpolate(x, {.size = {37, 41}}), "F.interpolate(x, (37, 41))"),
      BOTH("nearest, RGB", "N,3,G,G", interpolate(x, {.scale_factor = 2.0}), "F.interpolate(x, scale_factor=2)"),
      BOTH("bilinear, double", "N,C,H,W", interpolate(x, {.scale_factor = 2.0, .mode = linear}), "F.interpolate(x, scale_factor=2, mode='bilinear')"),
      BOTH("bilinear, half", "N,C,H,W", interpolate(x, {.scale_factor = 0.5, .mode = linear}), "F.interpolate(x, scale_factor=0.5, mode='bilinear')"),
      BOTH("bilinear, aligned", "N,C,H,W", interpolate(x, {.size = {37, 41}, .mode = linear, .align_corners = true}), "F.interpolate(x, (37, 41), mode='bilinear', align_corners=True)"),
      BOTH("bilinear, RGB to 64 x 64", "N,3,G,G", interpolate(x, {.size = 64, .mode = linear}), "F.interpolate(x, (64, 64), mode='bilinear')"),
      BOTH("linear, double", "N,C,T", interpolate(x, {.scale_factor = 2.0, .mode = linear}), "F.interpolate(x, scale_factor=2, mode='linear')"),
      BOTH("nearest of volumes", "N,C,D,D,D", interpolate(x, {.scale_factor = 2.0}), "F.interpolate(x, scale_factor=2)"),
      BOTH("trilinear", "N,C,D,D,D", interpolate(x, {.scale_factor = 2.0, .mode = linear}), "F.interpolate(x, scale_factor=2, mode='trilinear')"),
  };
}

std::vector<OpRow> makers() {
  const char* family = "make";
  return {
      FORWARD("rand", "E", rand(x.shape()), "torch.rand(x.shape)"),
      FORWARD("randn", "E", randn(x.shape()), "torch.randn(x.shape)"),
      FORWARD("randint", "E", randint(0, 1000, x.shape()), "torch.randint(1000, x.shape)"),
      FORWARD("randperm", "E", randperm(x.size(0)), "torch.randperm(len(x))"),
      FORWARD("bernoulli", "E", bernoulli(0.3, x.shape()), "torch.empty(x.shape, dtype=torch.bool).bernoulli_(0.3)"),
      FORWARD("arange", "E", arange(x.size(0)), "torch.arange(len(x))"),
      FORWARD("arange, float32", "E", arange(0, x.size(0), 1, {.dtype = float32}), "torch.arange(0, len(x), 1, dtype=torch.float32)"),
      FORWARD("linspace", "E", linspace(0, 1, x.size(0)), "torch.linspace(0, 1, len(x))"),
      FORWARD("eye", "M", eye(x.size(0)), "torch.eye(len(x))"),
  };
}

std::vector<OpRow> overheads() {
  const char* family = "overhead";
  return {
      FORWARD("item()", "1", done(x.item<float>()), "x.item()"),
      TRAINING("add", "64 64", x + y, "x + y"),
      TRAINING("add a number", "64", x + 1, "x + 1"),
      TRAINING("multiply by a column", "8,8 8,1", x * y, "x * y"),
      TRAINING("sum", "64", sum(x), "x.sum()"),
      TRAINING("reshape", "8,8", reshape(x, {64}), "x.reshape(64)"),
      TRAINING("transpose and slice", "8,8", slice(transpose(x, 0, 1), 0, 2, 6), "x.T[2:6]"),
      TRAINING("linear", "8,16 16,16 16", linear(x, y, z), "F.linear(x, y, z)"),
      TRAINING("softmax", "8,8", softmax(x, 1), "x.softmax(1)"),
      TRAINING("cross_entropy", "8,10 <10:8", cross_entropy(x, y), "F.cross_entropy(x, y)"),
      TRAINING("layer_norm", "8,16 16 16", layer_norm(x, y, z, {.normalized_shape = 16}), "F.layer_norm(x, (16,), y, z)"),
      TRAINING("chain of eight", "64 64", relu(tanh((x * y + x) * 2 - y) / 3 + 1), "F.relu(((x * y + x) * 2 - y).tanh() / 3 + 1)"),
      TRAINING("chain of eight, rows", "50,50 50", relu(tanh((x * y + x) * 2 - y) / 3 + 1), "F.relu(((x * y + x) * 2 - y).tanh() / 3 + 1)"),
      TRAINING("gate", "16,64 64,64 64,64", sigmoid(linear(x, y)) * tanh(linear(x, z)), "F.linear(x, y).sigmoid() * F.linear(x, z).tanh()"),
  };
}

std::vector<OpRow> updates() {
  const char* family = "update";
  return {
      STATEFUL("SGD, resnet18", sgd("resnet18", 0.9), "stepping(torch.optim.SGD, 'resnet18', lr=1e-3, momentum=0.9)"),
      STATEFUL("SGD, resnet18, fused", sgd("resnet18", 0.9), "stepping(torch.optim.SGD, 'resnet18', lr=1e-3, momentum=0.9, fused=True)"),
      STATEFUL("SGD without momentum, resnet18", sgd("resnet18", 0), "stepping(torch.optim.SGD, 'resnet18', lr=1e-3)"),
      STATEFUL("SGD, resnet20", sgd("resnet20", 0.9), "stepping(torch.optim.SGD, 'resnet20', lr=1e-3, momentum=0.9)"),
      STATEFUL("Adam, resnet18", stepping<optim::Adam>("resnet18", optim::AdamOptions{}), "stepping(torch.optim.Adam, 'resnet18')"),
      STATEFUL("Adam, resnet18, fused", stepping<optim::Adam>("resnet18", optim::AdamOptions{}), "stepping(torch.optim.Adam, 'resnet18', fused=True)"),
      STATEFUL("Adam, resnet20", stepping<optim::Adam>("resnet20", optim::AdamOptions{}), "stepping(torch.optim.Adam, 'resnet20')"),
      STATEFUL("AdamW, resnet18", stepping<optim::AdamW>("resnet18", optim::AdamWOptions{}), "stepping(torch.optim.AdamW, 'resnet18')"),
      STATEFUL("RMSprop, resnet18", stepping<optim::RMSprop>("resnet18", optim::RMSpropOptions{}), "stepping(torch.optim.RMSprop, 'resnet18')"),
      STATEFUL("Adagrad, resnet18", stepping<optim::Adagrad>("resnet18", optim::AdagradOptions{}), "stepping(torch.optim.Adagrad, 'resnet18')"),
      STATEFUL("clip_grad_norm_, resnet18", clipping("resnet18"), "clipping('resnet18')"),
      STATEFUL("clip_grad_norm_, resnet20", clipping("resnet20"), "clipping('resnet20')"),
  };
}

std::vector<OpRow> files() {
  const char* family = "file";
  return {
      STATEFUL("save, resnet18", saving_or_loading(false), "saving_or_loading(False)"),
      STATEFUL("load, resnet18", saving_or_loading(true), "saving_or_loading(True)"),
  };
}
// clang-format on

}  // namespace

std::vector<OpRow> movement_rows() {
  return joined({layouts(), indices(), sorting(), resizing(), makers(), overheads(), updates(), files()});
}

}  // namespace pleat::bench
