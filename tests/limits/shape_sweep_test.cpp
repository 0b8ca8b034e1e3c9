#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/index/scatter.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/limits/sweep.h"

using namespace pleat;
using namespace pleat_test;

TEST_CASE("views take integers from all over int64", "[limits]") {
  for (const int64_t rank : {1, 2, 4}) {
    sweep_tensors("view", rank, {2, -1}, [](const Tensor& x, const Integers& i) {
      return view(x, {i[0], i[1]});
    });
    sweep_tensors("reshape", rank, {2, -1}, [](const Tensor& x, const Integers& i) {
      return reshape(x, {i[0], i[1]});
    });
    sweep_tensors("transpose", rank, {0, -1},
                  [](const Tensor& x, const Integers& i) { return transpose(x, i[0], i[1]); });
    sweep_tensors("slice", rank, {0, 0, 2, 1},
                  [](const Tensor& x, const Integers& i) { return slice(x, i[0], i[1], i[2], i[3]); });
    sweep_tensors("narrow", rank, {0, 0, 1},
                  [](const Tensor& x, const Integers& i) { return narrow(x, i[0], i[1], i[2]); });
    sweep_tensors("select", rank, {0, 1},
                  [](const Tensor& x, const Integers& i) { return select(x, i[0], i[1]); });
    sweep_tensors("squeeze", rank, {0, 1}, [](const Tensor& x, const Integers& i) {
      return squeeze(x, {i[0], i[1]});
    });
    sweep_tensors("unsqueeze", rank, {0},
                  [](const Tensor& x, const Integers& i) { return unsqueeze(x, i[0]); });
    sweep_tensors("flatten", rank, {0, -1},
                  [](const Tensor& x, const Integers& i) { return flatten(x, i[0], i[1]); });
    sweep_tensors("unflatten", rank, {0, 1, 2}, [](const Tensor& x, const Integers& i) {
      return unflatten(x, i[0], {i[1], i[2]});
    });
    sweep_tensors("unfold_dimension", rank, {0, 2, 1},
                  [](const Tensor& x, const Integers& i) { return unfold_dimension(x, i[0], i[1], i[2]); });
    sweep_tensors("diagonal", rank, {0, 0, 1},
                  [](const Tensor& x, const Integers& i) { return diagonal(x, i[0], i[1], i[2]); });
    sweep_tensors("movedim", rank, {0, -1, -1, 0}, [](const Tensor& x, const Integers& i) {
      return movedim(x, {i[0], i[1]}, {i[2], i[3]});
    });
    sweep_tensors("unbind", rank, {0}, [](const Tensor& x, const Integers& i) {
      const std::vector<Tensor> parts = unbind(x, i[0]);
      return parts.empty() ? x : parts[0];
    });
    sweep_tensors("size", rank, {0}, [](const Tensor& x, const Integers& i) { return x.size(i[0]); });
    sweep_tensors("as_strided", rank, {1, 1, 0},
                  [](const Tensor& x, const Integers& i) { return x.as_strided({i[0]}, {i[1]}, i[2]); });
    sweep_tensors("as_strided, then views", rank, {1, 1, 1}, [](const Tensor& x, const Integers& i) {
      const Tensor y = x.as_strided({1, 1}, {i[0], i[1]}, 0);
      (void)unsqueeze(y, 0);
      (void)reshape(y, {1});
      return diagonal(y, i[2]);
    });
  }
  sweep_tensors("permute", 2, {1, 0}, [](const Tensor& x, const Integers& i) {
    return permute(x, {i[0], i[1]});
  });
  sweep_tensors("expand", 2, {3, 2, 4}, [](const Tensor& x, const Integers& i) {
    return expand(x, {i[0], i[1], i[2]});
  });
}

TEST_CASE("rearranging takes integers from all over int64", "[limits]") {
  for (const int64_t rank : {1, 2, 4}) {
    sweep_tensors("flip", rank, {0, -1}, [](const Tensor& x, const Integers& i) {
      return flip(x, {i[0], i[1]});
    });
    sweep_tensors("rot90", rank, {1, 0, 1}, [](const Tensor& x, const Integers& i) {
      return rot90(x, i[0], {i[1], i[2]});
    });
    sweep_tensors("roll", rank, {1, 0},
                  [](const Tensor& x, const Integers& i) { return roll(x, i[0], i[1]); });
    sweep_tensors("roll", rank, {1}, [](const Tensor& x, const Integers& i) { return roll(x, i[0]); });
    sweep_tensors("tile", rank, {2, 1}, [](const Tensor& x, const Integers& i) {
      return tile(x, {i[0], i[1]});
    });
    sweep_tensors("pixel_shuffle", rank, {1},
                  [](const Tensor& x, const Integers& i) { return pixel_shuffle(x, i[0]); });
    sweep_tensors("pixel_unshuffle", rank, {1},
                  [](const Tensor& x, const Integers& i) { return pixel_unshuffle(x, i[0]); });
    sweep_tensors("channel_shuffle", rank, {1},
                  [](const Tensor& x, const Integers& i) { return channel_shuffle(x, i[0]); });
    sweep_tensors("repeat_interleave", rank, {2, 0},
                  [](const Tensor& x, const Integers& i) { return repeat_interleave(x, i[0], i[1]); });
    sweep_tensors("split", rank, {2, 0},
                  [](const Tensor& x, const Integers& i) { return split(x, i[0], i[1]).at(0); });
    sweep_tensors("chunk", rank, {2, 0},
                  [](const Tensor& x, const Integers& i) { return chunk(x, i[0], i[1]).at(0); });
    sweep_tensors("split_with_sizes", rank, {2, 0, -1}, [](const Tensor& x, const Integers& i) {
      return split_with_sizes(x, {i[0], i[1]}, i[2]).at(0);
    });
    sweep_tensors("cat", rank, {0}, [](const Tensor& x, const Integers& i) { return cat({x, x}, i[0]); });
    sweep_tensors("stack", rank, {0}, [](const Tensor& x, const Integers& i) { return stack({x, x}, i[0]); });
    for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular})
      sweep_tensors("pad " + std::to_string(static_cast<int>(mode)), rank, {1, 1},
                    [&](const Tensor& x, const Integers& i) {
                      return pad(x, {i[0], i[1]}, {.mode = mode});
                    });
  }
  sweep_tensors("pad value", 2, {0}, [](const Tensor& x, const Integers& i) {
    return pad(x, {1, 1}, {.value = i[0]});
  });
  sweep_tensors("repeat", 2, {1, 2, 2}, [](const Tensor& x, const Integers& i) {
    return repeat(x, {i[0], i[1], i[2]});
  });
}

TEST_CASE("new tensors take integers from all over int64", "[limits]") {
  for (const DType dtype : {float32, uint8, int64, float16, boolean}) {
    const TensorOptions as = {.dtype = dtype};
    sweep("empty", {2, 3}, [&](const Integers& i) { return empty({i[0], i[1]}, as).shape(); });
    sweep("zeros", {2, 3}, [&](const Integers& i) { return zeros({i[0], i[1]}, as); });
    sweep("ones", {2, 3}, [&](const Integers& i) { return ones({i[0], i[1]}, as); });
    sweep("full", {2, 3}, [&](const Integers& i) { return full({i[0]}, i[1], as); });
    sweep("full_like", {3}, [&](const Integers& i) { return full_like(zeros({2}, as), i[0]); });
    sweep("scalar", {3}, [&](const Integers& i) { return scalar(i[0], dtype); });
    sweep("arange", {1, 5, 2}, [&](const Integers& i) { return arange(i[0], i[1], i[2], {.dtype = dtype}); });
    sweep("arange of doubles", {1, 5, 2}, [&](const Integers& i) {
      return arange(static_cast<double>(i[0]), i[1], static_cast<double>(i[2]), {.dtype = dtype});
    });
    sweep("linspace", {1, 5, 3}, [&](const Integers& i) {
      return linspace(static_cast<double>(i[0]), static_cast<double>(i[1]), i[2], as);
    });
    sweep("eye", {2, 3}, [&](const Integers& i) { return eye(i[0], i[1], as); });
    sweep("tensor", {2, 3}, [&](const Integers& i) { return tensor({i[0], i[1]}, dtype); });
  }
  sweep("zeros, channels_last", {2, 3, 4, 5}, [](const Integers& i) {
    return zeros({i[0], i[1], i[2], i[3]}, {.format = MemoryFormat::channels_last});
  });
  sweep("rand", {2, 3}, [](const Integers& i) { return rand({i[0], i[1]}); });
  sweep("randn", {2, 3}, [](const Integers& i) { return randn({i[0], i[1]}); });
  sweep("randint", {0, 9, 4}, [](const Integers& i) { return randint(i[0], i[1], {i[2]}); });
  sweep("randperm", {4}, [](const Integers& i) { return randperm(i[0]); });
  sweep("bernoulli", {4}, [](const Integers& i) { return bernoulli(0.5, {i[0]}); });
  sweep("manual_seed", {4}, [](const Integers& i) { manual_seed(static_cast<uint64_t>(i[0])); });
  std::vector<float> memory(8);
  sweep("from_memory", {2, 3, 1}, [&](const Integers& i) {
    if (i[0] > 2 || i[1] > 3) return Tensor();  // the caller answers for what is there
    (void)from_memory(memory.data(), {i[0], i[1]}, float32, nullptr, {i[1], i[2]});
    return Tensor();
  });
  sweep("from_span", {8},
        [&](const Integers& i) { return from_span(std::span<const float>(memory), {i[0]}); });
  sweep("from_vector", {8}, [&](const Integers& i) { return from_vector(memory, {i[0]}); });
}

TEST_CASE("indexing takes integers from all over int64", "[limits]") {
  for (const int64_t rank : {1, 2, 4}) {
    const auto index_of = [rank](int64_t value) {
      return expand(tensor({value}), Shape(static_cast<std::size_t>(rank), 1));
    };
    sweep_tensors("gather", rank, {0, 1},
                  [&](const Tensor& x, const Integers& i) { return gather(x, i[0], index_of(i[1])); });
    sweep_tensors("scatter", rank, {0, 1},
                  [&](const Tensor& x, const Integers& i) { return scatter(x, i[0], index_of(i[1]), 1); });
    sweep_tensors("scatter value", rank, {1},
                  [&](const Tensor& x, const Integers& i) { return scatter(x, 0, index_of(0), i[0]); });
    sweep_tensors("scatter_add", rank, {0, 1}, [&](const Tensor& x, const Integers& i) {
      return scatter_add(x, i[0], index_of(i[1]),
                         ones(Shape(static_cast<std::size_t>(rank), 1), {.dtype = x.dtype()}));
    });
    for (const ScatterReduction reduce :
         {ScatterReduction::prod, ScatterReduction::mean, ScatterReduction::amax})
      sweep_tensors("scatter_reduce", rank, {0, 1}, [&](const Tensor& x, const Integers& i) {
        return scatter_reduce(x, i[0], index_of(i[1]),
                              ones(Shape(static_cast<std::size_t>(rank), 1), {.dtype = x.dtype()}),
                              {.reduce = reduce, .include_self = false});
      });
    sweep_tensors("gather_nd", rank, {1, 0}, [&](const Tensor& x, const Integers& i) {
      return gather_nd(x, index_of(i[0]), {.batch_dims = i[1]});
    });
    sweep("scatter_nd", {1, 0}, [&](const Integers& i) {
      const Tensor index = view(tensor({i[0], i[1]}), {1, 2});
      return scatter_nd(ones({4, 3}), index, ones({1}), {.reduction = ScatterReduction::amin});
    });
    sweep_tensors("index_select", rank, {0, 1},
                  [](const Tensor& x, const Integers& i) { return index_select(x, i[0], tensor({i[1]})); });
    sweep_tensors("index_add", rank, {0, 1}, [](const Tensor& x, const Integers& i) {
      return index_add(x, i[0], tensor({i[1]}), narrow(x, i[0], 0, 1));
    });
    sweep_tensors("index_copy", rank, {0, 1}, [](const Tensor& x, const Integers& i) {
      return index_copy(x, i[0], tensor({i[1]}), narrow(x, i[0], 0, 1));
    });
    sweep_tensors("index_fill", rank, {0, 1, 3}, [](const Tensor& x, const Integers& i) {
      return index_fill(x, i[0], tensor({i[1]}), i[2]);
    });
    sweep_tensors("index_put", rank, {0, 1},
                  [](const Tensor& x, const Integers& i) { return index_put(x, {tensor({i[0]})}, i[1]); });
    sweep_tensors("take_rows", rank, {0},
                  [](const Tensor& x, const Integers& i) { return ops::take_rows(x, i); });
    sweep_tensors("sort", rank, {0},
                  [](const Tensor& x, const Integers& i) { return sort(x, {.dim = i[0]}).values; });
    sweep_tensors("argsort", rank, {0},
                  [](const Tensor& x, const Integers& i) { return argsort(x, {.dim = i[0]}); });
    sweep_tensors("topk", rank, {1, 0},
                  [](const Tensor& x, const Integers& i) { return topk(x, i[0], {.dim = i[1]}).values; });
  }
  sweep("in place", {0, 1, 1}, [](const Integers& i) {
    const Tensor index = tensor({i[1]});
    const Tensor row = ones({1, 3});
    (void)index_copy_(ones({4, 3}), i[0], index, row), index_add_(ones({4, 3}), i[0], index, row);
    (void)index_fill_(ones({4, 3}), i[0], index, i[2]), index_put_(ones({4, 3}), {index}, i[2]);
    (void)scatter_(ones({4, 3}), i[0], expand(index, {1, 1}), ones({1, 1}));
    (void)scatter_add_(ones({4, 3}), i[0], expand(index, {1, 1}), ones({1, 1}));
    (void)scatter_reduce_(ones({4, 3}), i[0], expand(index, {1, 1}), ones({1, 1}),
                          {.reduce = ScatterReduction::sum});
    return ones({1});
  });
  sweep("one_hot", {1, 3, 2}, [](const Integers& i) { return one_hot(tensor({i[0], i[2]}), i[1]); });
  sweep("one_hot of nothing", {3},
        [](const Integers& i) { return one_hot(zeros({0}, {.dtype = int64}), i[0]); });
  sweep("embedding", {1, 2}, [](const Integers& i) {
    return embedding(tensor({i[0]}), ones({4, 3}).set_requires_grad(), {.padding_idx = i[1]});
  });
}
