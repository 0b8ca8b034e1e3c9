// The survey's rows that combine elements: reductions, softmax, losses, norms, pooling, scans, products.
#include "pleat/bench/op_table.h"

// clang-format off
namespace pleat::bench {
namespace {

std::vector<OpRow> reductions() {
  const char* family = "reduce";
  return {
      BOTH("sum of all", "E", sum(x), "x.sum()"),
      BOTH("sum of rows", "R,L", sum(x, 1), "x.sum(1)"),
      BOTH("sum of columns", "R,L", sum(x, 0), "x.sum(0)"),
      BOTH("sum of images", "N,C,H,W", sum(x, {0, 2, 3}), "x.sum((0, 2, 3))"),
      BOTH("sum of pixels", "N,C,H,W", sum(x, {2, 3}), "x.sum((2, 3))"),
      BOTH("sum of channels", "N,C,H,W", sum(x, 1), "x.sum(1)"),
      BOTH("sum of 7 x 7", "N,K,7,7", sum(x, {2, 3}), "x.sum((2, 3))"),
      BOTH("sum of short rows", "S,10", sum(x, 1), "x.sum(1)"),
      BOTH("sum of the middle", "N,A,128", sum(x, 1), "x.sum(1)"),
      BOTH("sum, float16", "float16:R,L", sum(x, 1), "x.sum(1)"),
      FORWARD("sum, int64", "int:R,L", sum(x, 1), "x.sum(1)"),
      FORWARD("count of bool", "bool:E", sum(x), "x.sum()"),
      BOTH("mean of all", "E", mean(x), "x.mean()"),
      BOTH("mean of rows", "R,L", mean(x, 1), "x.mean(1)"),
      BOTH("mean of pixels", "N,C,H,W", mean(x, {2, 3}, true), "x.mean((2, 3), True)"),
      BOTH("mean of 7 x 7", "N,K,7,7", mean(x, {2, 3}), "x.mean((2, 3))"),
      BOTH("mean of channels", "N,C,H,W", mean(x, 1, true), "x.mean(1, True)"),
      BOTH("mean of volumes", "N,C,D,D,D", mean(x, {2, 3, 4}), "x.mean((2, 3, 4))"),
      BOTH("prod of rows", "u:R,L", prod(x, 1), "x.prod(1)"),
      BOTH("prod of short rows", "u:S,10", prod(x, 1), "x.prod(1)"),
      BOTH("var of all", "E", var(x), "x.var()"),
      BOTH("var of rows", "R,L", var(x, 1), "x.var(1)"),
      BOTH("var of columns", "R,L", var(x, 0), "x.var(0)"),
      BOTH("var of images", "N,C,H,W", var(x, {0, 2, 3}), "x.var((0, 2, 3))"),
      BOTH("var of 7 x 7", "N,K,7,7", var(x, {2, 3}), "x.var((2, 3))"),
      BOTH("var of channels", "N,C,H,W", var(x, 1), "x.var(1)"),
      BOTH("stddev of short rows", "S,10", stddev(x, 1), "x.std(1)"),
      BOTH("var_mean of rows", "R,L", var_mean(x, 1), "torch.var_mean(x, 1)"),
      BOTH("norm of all", "E", norm(x), "torch.linalg.vector_norm(x)"),
      BOTH("norm of rows", "R,L", norm(x, 1), "torch.linalg.vector_norm(x, dim=1)"),
      BOTH("norm 1 of rows", "R,L", norm(x, 1, {.p = 1}), "torch.linalg.vector_norm(x, 1, 1)"),
      BOTH("norm 3 of rows", "R,L", norm(x, 1, {.p = 3}), "torch.linalg.vector_norm(x, 3, 1)"),
      BOTH("norm of channels", "N,C,H,W", norm(x, 1, {.keepdim = true}), "torch.linalg.vector_norm(x, 2, 1, True)"),
      BOTH("logsumexp of rows", "R,L", logsumexp(x, 1), "x.logsumexp(1)"),
      BOTH("logsumexp of channels", "N,C,H,W", logsumexp(x, 1), "x.logsumexp(1)"),
      BOTH("max of all", "E", max(x), "x.amax()"),
      BOTH("max of rows", "R,L", max(x, 1), "x.amax(1)"),
      BOTH("min of columns", "R,L", min(x, 0), "x.amin(0)"),
      BOTH("max of pixels", "N,C,H,W", max(x, {2, 3}), "x.amax((2, 3))"),
      BOTH("max of channels", "N,C,H,W", max(x, 1), "x.amax(1)"),
      BOTH("max of 7 x 7", "N,K,7,7", max(x, {2, 3}), "x.amax((2, 3))"),
      BOTH("max_with_indices of rows", "R,L", max_with_indices(x, 1), "x.max(1)"),
      BOTH("max_with_indices of columns", "R,L", max_with_indices(x, 0), "x.max(0)"),
      BOTH("max_with_indices of short rows", "S,10", max_with_indices(x, 1), "x.max(1)"),
      BOTH("min_with_indices of channels", "N,C,H,W", min_with_indices(x, 1), "x.min(1)"),
      FORWARD("argmax of all", "E", argmax(x), "x.argmax()"),
      FORWARD("argmax of rows", "R,L", argmax(x, 1), "x.argmax(1)"),
      FORWARD("argmax of short rows", "S,10", argmax(x, 1), "x.argmax(1)"),
      FORWARD("argmax of channels", "N,C,H,W", argmax(x, 1), "x.argmax(1)"),
      FORWARD("argmin of columns", "R,L", argmin(x, 0), "x.argmin(0)"),
      FORWARD("any of rows", "bool:R,L", any(x, 1), "x.any(1)"),
      FORWARD("all of all", "bool:E", all(x), "x.all()"),
  };
}

std::vector<OpRow> softmaxes() {
  const char* family = "softmax";
  return {
      BOTH("softmax of rows", "R,L", softmax(x, 1), "x.softmax(1)"),
      BOTH("softmax of short rows", "S,10", softmax(x, 1), "x.softmax(1)"),
      BOTH("softmax of columns", "R,L", softmax(x, 0), "x.softmax(0)"),
      BOTH("softmax of channels", "N,C,H,W", softmax(x, 1), "x.softmax(1)"),
      BOTH("softmax of attention", "N,4,A,A", softmax(x, -1), "x.softmax(-1)"),
      BOTH("log_softmax of rows", "R,L", log_softmax(x, 1), "x.log_softmax(1)"),
      BOTH("log_softmax of short rows", "S,10", log_softmax(x, 1), "x.log_softmax(1)"),
      BOTH("log_softmax of channels", "N,C,H,W", log_softmax(x, 1), "x.log_softmax(1)"),
  };
}

std::vector<OpRow> losses() {
  const char* family = "loss";
  return {
      BOTH("mse_loss", "E t:E", mse_loss(x, y), "F.mse_loss(x, y)"),
      BOTH("mse_loss, images", "N,3,G,G t:N,3,G,G", mse_loss(x, y), "F.mse_loss(x, y)"),
      BOTH("mse_loss, not reduced", "E t:E", mse_loss(x, y, {.reduction = Reduction::none}), "F.mse_loss(x, y, reduction='none')"),
      BOTH("l1_loss", "E t:E", l1_loss(x, y), "F.l1_loss(x, y)"),
      BOTH("smooth_l1_loss", "E t:E", smooth_l1_loss(x, y), "F.smooth_l1_loss(x, y)"),
      BOTH("huber_loss", "E t:E", huber_loss(x, y), "F.huber_loss(x, y)"),
      BOTH("binary_cross_entropy", "u:E t:E", binary_cross_entropy(x, y), "F.binary_cross_entropy(x, y)"),
      BOTH("soft_margin_loss", "E t:E", soft_margin_loss(x, y), "F.soft_margin_loss(x, y)"),
      BOTH("poisson_nll_loss", "E t:E", poisson_nll_loss(x, y), "F.poisson_nll_loss(x, y)"),
      BOTH("bce_with_logits", "E t:E", bce_with_logits(x, y), "F.binary_cross_entropy_with_logits(x, y)"),
      BOTH("kl_div", "E t:E", kl_div(x, y), "F.kl_div(x, y)"),
      BOTH("cross_entropy", "R,L <L:R", cross_entropy(x, y), "F.cross_entropy(x, y)"),
      BOTH("cross_entropy, 10 classes", "S,10 <10:S", cross_entropy(x, y), "F.cross_entropy(x, y)"),
      BOTH("cross_entropy, smoothed", "R,L <L:R", cross_entropy(x, y, {.label_smoothing = 0.1}), "F.cross_entropy(x, y, label_smoothing=0.1)"),
      BOTH("cross_entropy of pixels", "N,C,H,W <C:N,H,W", cross_entropy(x, y), "F.cross_entropy(x, y)"),
      BOTH("nll_loss", "R,L <L:R", nll_loss(x, y), "F.nll_loss(x, y)"),
  };
}

std::vector<OpRow> norms() {
  const char* family = "norm";
  return {
      BOTH("batch_norm", "N,C,H,W C C", batch_norm(x, y, z, {}, {}, {.training = true}), "F.batch_norm(x, None, None, y, z, True)"),
      BOTH("batch_norm, evaluation", "N,C,H,W C t:C t:C", batch_norm(x, y, y, z, w), "F.batch_norm(x, z, w, y, y)"),
      BOTH("batch_norm, 7 x 7", "N,K,7,7 K K", batch_norm(x, y, z, {}, {}, {.training = true}), "F.batch_norm(x, None, None, y, z, True)"),
      BOTH("batch_norm of rows", "R,L L L", batch_norm(x, y, z, {}, {}, {.training = true}), "F.batch_norm(x, None, None, y, z, True)"),
      BOTH("batch_norm of signals", "N,C,T C C", batch_norm(x, y, z, {}, {}, {.training = true}), "F.batch_norm(x, None, None, y, z, True)"),
      BOTH("batch_norm of volumes", "N,C,D,D,D C C", batch_norm(x, y, z, {}, {}, {.training = true}), "F.batch_norm(x, None, None, y, z, True)"),
      BOTH("layer_norm", "R,L L L", layer_norm(x, y, z, {.normalized_shape = x.size(1)}), "F.layer_norm(x, x.shape[1:], y, z)"),
      BOTH("rms_norm", "R,L L", rms_norm(x, y, {.normalized_shape = x.size(1)}), "F.rms_norm(x, x.shape[1:], y)"),
      BOTH("rms_norm of words", "N,A,128 128", rms_norm(x, y, {.normalized_shape = 128}), "F.rms_norm(x, (128,), y)"),
      BOTH("local_response_norm", "N,C,H,W", local_response_norm(x, {.size = 5}), "F.local_response_norm(x, 5)"),
      BOTH("normalize", "R,L", normalize(x), "F.normalize(x)"),
      BOTH("cosine_similarity", "R,L R,L", cosine_similarity(x, y), "F.cosine_similarity(x, y)"),
      BOTH("pairwise_distance", "R,L R,L", pairwise_distance(x, y), "F.pairwise_distance(x, y)"),
      BOTH("layer_norm of words", "N,A,128 128 128", layer_norm(x, y, z, {.normalized_shape = 128}), "F.layer_norm(x, (128,), y, z)"),
      BOTH("layer_norm of short rows", "S,10 10 10", layer_norm(x, y, z, {.normalized_shape = 10}), "F.layer_norm(x, (10,), y, z)"),
      BOTH("layer_norm, images", "N,3,G,G", layer_norm(x, {}, {}, {.normalized_shape = {x.size(1), x.size(2), x.size(3)}}), "F.layer_norm(x, x.shape[1:])"),
      BOTH("group_norm", "N,C,H,W C C", group_norm(x, y, z, {.num_groups = 8}), "F.group_norm(x, 8, y, z)"),
      BOTH("group_norm, 7 x 7", "N,K,7,7 K K", group_norm(x, y, z, {.num_groups = 32}), "F.group_norm(x, 32, y, z)"),
      BOTH("instance_norm", "N,C,H,W C C", instance_norm(x, y, z, {}, {}), "F.instance_norm(x, weight=y, bias=z)"),
  };
}

std::vector<OpRow> pooling() {
  const char* family = "pool";
  return {
      BOTH("max_pool2d 2", "N,C,H,W", max_pool2d(x, {.kernel_size = 2}), "F.max_pool2d(x, 2)"),
      BOTH("max_pool2d 3/2", "N,C,H,W", max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1}), "F.max_pool2d(x, 3, 2, 1)"),
      BOTH("max_pool2d 3/1", "N,C,H,W", max_pool2d(x, {.kernel_size = 3, .stride = 1, .padding = 1}), "F.max_pool2d(x, 3, 1, 1)"),
      BOTH("max_pool2d 2, RGB", "N,3,G,G", max_pool2d(x, {.kernel_size = 2}), "F.max_pool2d(x, 2)"),
      BOTH("avg_pool2d 2", "N,C,H,W", avg_pool2d(x, {.kernel_size = 2}), "F.avg_pool2d(x, 2)"),
      BOTH("avg_pool2d 3/1", "N,C,H,W", avg_pool2d(x, {.kernel_size = 3, .stride = 1, .padding = 1}), "F.avg_pool2d(x, 3, 1, 1)"),
      BOTH("avg_pool2d 2, RGB", "N,3,G,G", avg_pool2d(x, {.kernel_size = 2}), "F.avg_pool2d(x, 2)"),
      BOTH("avg_pool2d 7, 7 x 7", "N,K,7,7", avg_pool2d(x, {.kernel_size = 7}), "F.avg_pool2d(x, 7)"),
      BOTH("lp_pool2d 2", "N,C,H,W", lp_pool2d(x, {.norm_type = 2, .kernel_size = 2}), "F.lp_pool2d(x, 2, 2)"),
      BOTH("adaptive_avg_pool2d 1", "N,C,H,W", adaptive_avg_pool2d(x, {.output_size = 1}), "F.adaptive_avg_pool2d(x, 1)"),
      BOTH("adaptive_avg_pool2d 1, 7 x 7", "N,K,7,7", adaptive_avg_pool2d(x, {.output_size = 1}), "F.adaptive_avg_pool2d(x, 1)"),
      BOTH("adaptive_avg_pool2d 3", "N,C,H,W", adaptive_avg_pool2d(x, {.output_size = 3}), "F.adaptive_avg_pool2d(x, 3)"),
      BOTH("adaptive_max_pool2d 1", "N,C,H,W", adaptive_max_pool2d(x, {.output_size = 1}), "F.adaptive_max_pool2d(x, 1)"),
      BOTH("max_pool1d 2", "N,C,T", max_pool1d(x, {.kernel_size = 2}), "F.max_pool1d(x, 2)"),
      BOTH("max_pool1d 3/1", "N,C,T", max_pool1d(x, {.kernel_size = 3, .stride = 1, .padding = 1}), "F.max_pool1d(x, 3, 1, 1)"),
      BOTH("avg_pool1d 4", "N,C,T", avg_pool1d(x, {.kernel_size = 4}), "F.avg_pool1d(x, 4)"),
      BOTH("adaptive_avg_pool1d 1", "N,C,T", adaptive_avg_pool1d(x, {.output_size = 1}), "F.adaptive_avg_pool1d(x, 1)"),
      BOTH("max_pool3d 2", "N,C,D,D,D", max_pool3d(x, {.kernel_size = 2}), "F.max_pool3d(x, 2)"),
      BOTH("avg_pool3d 2", "N,C,D,D,D", avg_pool3d(x, {.kernel_size = 2}), "F.avg_pool3d(x, 2)"),
      BOTH("adaptive_avg_pool3d 1", "N,C,D,D,D", adaptive_avg_pool3d(x, {.output_size = 1}), "F.adaptive_avg_pool3d(x, 1)"),
  };
}

std::vector<OpRow> scans() {
  const char* family = "scan";
  return {
      BOTH("cumsum of all", "E", cumsum(x, 0), "x.cumsum(0)"),
      BOTH("cumsum of rows", "R,L", cumsum(x, 1), "x.cumsum(1)"),
      BOTH("cumsum of columns", "R,L", cumsum(x, 0), "x.cumsum(0)"),
      BOTH("cumsum of short rows", "S,10", cumsum(x, 1), "x.cumsum(1)"),
      BOTH("cumsum of channels", "N,C,H,W", cumsum(x, 1), "x.cumsum(1)"),
      FORWARD("cumsum, int64", "int:R,L", cumsum(x, 1), "x.cumsum(1)"),
      BOTH("cumprod of rows", "u:R,L", cumprod(x, 1), "x.cumprod(1)"),
      BOTH("cumprod of columns", "u:R,L", cumprod(x, 0), "x.cumprod(0)"),
  };
}

std::vector<OpRow> products() {
  const char* family = "product";
  return {
      BOTH("dot", "E E", matmul(x, y), "x @ y"),
      BOTH("matmul", "M,M M,M", matmul(x, y), "x @ y"),
      BOTH("matmul, first transposed", "M,M M,M", matmul(transpose(x, 0, 1), y), "x.T @ y"),
      BOTH("matmul, second transposed", "M,M M,M", matmul(x, transpose(y, 0, 1)), "x @ y.T"),
      BOTH("matmul, thin", "R,L L,10", matmul(x, y), "x @ y"),
      BOTH("matmul, inner", "4,E E,1", matmul(x, y), "x @ y"),
      BOTH("matrix times vector", "R,L L", matmul(x, y), "x @ y"),
      BOTH("vector times matrix", "R R,L", matmul(x, y), "x @ y"),
      BOTH("matmul, float64", "float64:M,M float64:M,M", matmul(x, y), "x @ y"),
      BOTH("matmul, bfloat16", "bfloat16:M,M bfloat16:M,M", matmul(x, y), "x @ y"),
      BOTH("addmm", "M M,M M,M", addmm(x, y, z), "torch.addmm(x, y, z)"),
      BOTH("linear", "R,256 256,256 256", linear(x, y, z), "F.linear(x, y, z)"),
      BOTH("linear, 10 classes", "R,L 10,L 10", linear(x, y, z), "F.linear(x, y, z)"),
      BOTH("linear of words", "N,A,128 512,128 512", linear(x, y, z), "F.linear(x, y, z)"),
      BOTH("linear, batch 1", "1,L 1000,L 1000", linear(x, y, z), "F.linear(x, y, z)"),
      BOTH("batched matmul", "N,A,32 N,32,A", matmul(x, y), "x @ y"),
      BOTH("matmul of heads", "N,4,A,A N,4,A,32", matmul(x, y), "x @ y"),
      BOTH("matmul of many small ones", "S,4,4 S,4,4", matmul(x, y), "x @ y"),
      BOTH("einsum of heads", "N,A,4,32 N,A,4,32", einsum("bqhd,bkhd->bhqk", {x, y}), "torch.einsum('bqhd,bkhd->bhqk', x, y)"),
      BOTH("einsum, outer", "R L", einsum("i,j->ij", {x, y}), "torch.einsum('i,j->ij', x, y)"),
      BOTH("einsum, weighted sum of rows", "R,L R", einsum("ij,i->j", {x, y}), "torch.einsum('ij,i->j', x, y)"),
      BOTH("einsum, rows times rows", "R,L R,L", einsum("ij,ij->i", {x, y}), "torch.einsum('ij,ij->i', x, y)"),
  };
}

}  // namespace

std::vector<OpRow> reduction_rows() {
  return joined({reductions(), softmaxes(), losses(), norms(), pooling(), scans(), products()});
}

}  // namespace pleat::bench
