#include <limits>

#include "pleat/autograd/copy.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/errors/mistakes.h"

using namespace pleat;

MistakeSection tensor_mistakes() {
  const Tensor x = ones({2, 3});
  const Tensor bytes = full({3}, 7, {.dtype = uint8});
  const Tensor nothing;
  return {"Tensors",
          "`x = ones({2, 3})`, `bytes = full({3}, 7, {.dtype = uint8})`, and `nothing` is a `Tensor` without "
          "a value.",
          {
              MISTAKE(nothing.shape()),
              MISTAKE(x + nothing),
              MISTAKE(x.item()),
              MISTAKE(x.size(2)),
              MISTAKE(x.data<double>()),
              MISTAKE(zeros({2, -3})),
              MISTAKE(zeros({int64_t{1} << 40, int64_t{1} << 40})),
              MISTAKE(from_vector<float>({1, 2, 3}, {2, 2})),
              MISTAKE(tensor({{1, 2}, {3}})),
              MISTAKE(full({1}, 300, {.dtype = uint8})),
              MISTAKE(full({1}, std::numeric_limits<double>::quiet_NaN(), {.dtype = int64})),
              MISTAKE(fill_(bytes, -1)),
              MISTAKE(arange(0, 10, 0)),
              MISTAKE(arange(10, 0)),
              MISTAKE(randperm(-1)),
              MISTAKE(eye(-2)),
              MISTAKE(tensor({16777217}).item<float>()),
              MISTAKE(linspace(0, 9007199254740993, 3)),
              MISTAKE(x.to("gpu")),
              MISTAKE(bernoulli(3, {2})),
              MISTAKE(x.to(MemoryFormat::channels_last)),
          }};
}

MistakeSection function_mistakes() {
  const Tensor x = ones({2, 3});
  const Tensor y = ones({4, 5});
  const Tensor half = ones({2, 3}, {.dtype = float64});
  const Tensor labels = tensor({1, 0});
  return {"Functions",
          "`x = ones({2, 3})`, `y = ones({4, 5})`, `labels = tensor({1, 0})`.",
          {
              MISTAKE(x + y),
              MISTAKE(matmul(x, y)),
              MISTAKE(matmul(x, labels)),
              MISTAKE(einsum("ij,jk->ik", {x, y})),
              MISTAKE(einsum("ij,jk->iz", {x, x})),
              MISTAKE(einsum("i?", {x})),
              MISTAKE(reshape(x, {4, 2})),
              MISTAKE(reshape(x, {-1, -1})),
              MISTAKE(view(transpose(x, 0, 1), {6})),
              MISTAKE(permute(x, {0})),
              MISTAKE(permute(x, {0, 0})),
              MISTAKE(transpose(x, 0, 2)),
              MISTAKE(expand(x, {4, 3})),
              MISTAKE(unsqueeze(x, 4)),
              MISTAKE(select(x, 0, 5)),
              MISTAKE(narrow(x, 1, 2, 3)),
              MISTAKE(slice(x, 1, 0, 3, 0)),
              MISTAKE(split(x, 0)),
              MISTAKE(cat({x, y})),
              MISTAKE(cat({})),
              MISTAKE(stack({x, y})),
              MISTAKE(sum(x, 2)),
              MISTAKE(sum(x, {0, 0})),
              MISTAKE(max(zeros({0}))),
              MISTAKE(argmax(x, 3)),
              MISTAKE(topk(x, 5)),
              MISTAKE(gather(x, 1, labels)),
              MISTAKE(gather(x, 1, tensor({{0, 9}}))),
              MISTAKE(index_select(x, 0, tensor({0.0, 1.0}))),
              MISTAKE(index_select(x, 0, tensor({0, 2}))),
              MISTAKE(embedding(tensor({0, 9}), x)),
              MISTAKE(one_hot(labels, 1)),
              MISTAKE(masked_select(x, labels)),
              MISTAKE(where(x, x, x)),
              MISTAKE(pad(x, {1})),
              MISTAKE(pad(x, {5, 5}, {.mode = PadMode::reflect})),
              MISTAKE(labels += 0.5),
              MISTAKE(expand(x, {2, 2, 3}) += 1),
              MISTAKE(copy_(x, y)),
              MISTAKE(linear(x, y)),
          }};
}
