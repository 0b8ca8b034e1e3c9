#include <limits>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/onnx/export_check.h"

using namespace pleat;
using namespace pleat_test;

/// Functions in place, and those that sizes of the batch matter to. Of each function the rows of op_cases/
/// are computed by tests/op_cases/export_test.cpp.

namespace {

using Tensors = std::vector<Tensor>;

struct Holder : nn::Module {};

/// Exports with the batch 2 and computes with 2 and 5.
class Functions {
 public:
  void add(const std::string& name, Shape shape, const std::function<Tensors(const Tensor&)>& f,
           double tolerance = 2e-5) {
    const auto function = [f](const Tensors& in) { return f(in[0]); };
    shape.insert(shape.begin(), 2);
    const Tensor example = randn(shape);
    shape[0] = 5;
    all_.add(name, holder_, function, {example}, {randn(shape)}, {}, tolerance);
  }
  /// With a batch that is fixed.
  void add_fixed(const std::string& name, const Tensor& x, const std::function<Tensors(const Tensor&)>& f) {
    all_.add(name, holder_, [f](const Tensors& in) { return f(in[0]); }, {x}, {}, {.batch_dims = {}});
  }
  void add_integers(const std::string& name, Shape shape, int64_t most,
                    const std::function<Tensors(const Tensor&)>& f) {
    shape.insert(shape.begin(), 2);
    const Tensor example = randint(0, most, shape);
    shape[0] = 5;
    all_.add(name, holder_, [f](const Tensors& in) { return f(in[0]); }, {example},
             {randint(0, most, shape)});
  }
  std::string run() const { return all_.run(); }

 private:
  Holder holder_;
  ExportCheck all_;
};

}  // namespace

TEST_CASE("a file of ONNX computes functions of integers and those in place", "[onnx][cpu]") {
  manual_seed(11);
  Functions cases;
  cases.add_integers("integers", {4}, 9, [](const Tensor& i) {
    return Tensors{i + 1,
                   i * i,
                   i / 2,
                   remainder(i, 4),
                   floor_divide(i, 2),
                   i.to(float32) / 3,
                   sum(i, 1),
                   mean(i, 1),
                   i > 3,
                   maximum(i, 4),
                   exp(i),
                   clamp(i, 2, 5),
                   one_hot(i, 9),
                   one_hot(i, 10, float32),
                   i + 0.5,
                   sqrt(i)};
  });
  cases.add("in place", {4}, [](const Tensor& x) {
    const Tensor y = x.clone(), z = zeros({3});
    relu_(y);
    y += 1;
    y *= x;
    const Tensor w = y.clone();
    w -= 2;
    clamp_(w, {.max = 1});
    masked_fill_(w, x > 0, 5);
    fill_(z, 3);
    const Tensor copied = zeros({4});
    copy_(copied, select(x, 0, 0) * 0 + 7);
    return Tensors{y, w, x + select(z, 0, 0), copied};
  });
  CHECK(cases.run() == "");
}

TEST_CASE("a file of ONNX computes functions of shapes and indices", "[onnx][cpu]") {
  manual_seed(12);
  Functions cases;
  cases.add("shapes", {3, 4}, [](const Tensor& x) {
    const int64_t n = x.size(0);
    return Tensors{reshape(x, {n, 12}),
                   reshape(x, {n * 3, 4}),
                   reshape(x, {-1}),
                   reshape(x, {2, 6, n}),
                   flatten(x, 1),
                   unflatten(x, 2, {2, 2}),
                   unsqueeze(x, 1),
                   squeeze(unsqueeze(x, 0), {0}),
                   permute(x, {2, 0, 1}),
                   transpose(x, 0, -1),
                   expand(unsqueeze(x, 0), {2, n, 3, 4}),
                   expand(select(x, 0, 0), {n, 3, 4}),
                   expand(narrow(x, 0, 0, 1), {n + 1, 3, 4}),
                   reshape(permute(x, {1, 0, 2}), {3, 2, n, 2})};
  });
  cases.add("parts", {5, 4}, [](const Tensor& x) {
    const std::vector<Tensor> pieces = split_with_sizes(x, {1, 3, 1}, 1), halves = chunk(x, 2, -1);
    return Tensors{slice(x, 1, 1, 4),
                   slice(x, 1, -3, 100, 2),
                   slice(x, 0, 1, x.size(0)),
                   narrow(x, 1, -2, 2),
                   narrow(x, 0, x.size(0) - 1, 1),
                   select(x, 1, 2),
                   select(x, -1, -1),
                   x[0],
                   x[-1],
                   select(x, 0, x.size(0) - 1),
                   pieces[1],
                   halves[0] + halves[1],
                   cat({x, x * 2}, 1),
                   cat({x, narrow(x, 0, 0, 1)}, 0),
                   stack({x, x * 2}, 1),
                   stack({x, x}, -1),
                   cat({x, x > 0}, 0)};
  });
  cases.add("rearranged", {4, 6}, [](const Tensor& x) {
    return Tensors{flip(x, {1, -1}),
                   flip(x, 0),
                   roll(x, 1, 1),
                   roll(x, {-1, 8}, {1, 2}),
                   repeat(x, {1, 2, 1}),
                   repeat(x, {2, 1, 1, 3}),
                   tile(x, {2, 1}),
                   repeat_interleave(x, 2, 1),
                   tril(x),
                   triu(x, 1),
                   pad(x, {1, 2}),
                   pad(x, {1, 2, 0, 3}, {.value = 4}),
                   pad(x, {2, 1}, {.mode = PadMode::reflect}),
                   pad(x, {2, 1}, {.mode = PadMode::replicate}),
                   pad(x, {2, 1, 1, 0}, {.mode = PadMode::circular}),
                   pad(x, {-1, 2, 1, -1}),
                   pad(x, {-1, 2}, {.mode = PadMode::circular})};
  });
  cases.add("shuffles", {8, 4, 6}, [](const Tensor& x) {
    const Tensor volumes = unsqueeze(x, 1);
    return Tensors{pixel_shuffle(x, 2), pixel_unshuffle(x, 2), channel_shuffle(x, 4),
                   pixel_shuffle(volumes, 2), pixel_unshuffle(volumes, 2)};
  });
  cases.add("indices", {6, 4}, [](const Tensor& x) {
    const Tensor index = tensor({5, 0, 5});
    const ValuesIndices most = max_with_indices(x, 1), least = min_with_indices(x, -1, true);
    const ValuesIndices sorted = sort(x, {.dim = 1, .descending = true}), best = topk(x, 2);
    const Tensor places = argmax(x, 2, true);
    return Tensors{index_select(x, 1, index),
                   most.values,
                   most.indices,
                   least.values,
                   least.indices,
                   sorted.values,
                   sorted.indices,
                   best.values,
                   best.indices,
                   argsort(x, {.dim = 1}),
                   argmax(x, 1),
                   argmin(x, 1, true),
                   argmax(x),
                   gather(x, 2, places),
                   scatter(zeros_like(x), 2, places, gather(x, 2, places)),
                   scatter_add(x, 2, places, gather(x, 2, places)),
                   embedding(argmax(x, 1), reshape(arange(24), {6, 4}).to(float32)),
                   sort(x, {.dim = 0}).values};
  });
  cases.add("einsum", {3, 4}, [](const Tensor& x) {
    return Tensors{einsum("nij,nkj->nik", {x, x}),
                   einsum("nij->n", {x}),
                   matmul(x, transpose(x, 1, 2)),
                   matmul(x, tensor({1.0F, 2.0F, 3.0F, 4.0F})),
                   addmm(ones({1, 2}), flatten(x, 1), ones({12, 2}), {.beta = 2, .alpha = 0.5}),
                   linear(x, ones({2, 4}), ones({2}))};
  });
  CHECK(cases.run() == "");
}

TEST_CASE("a file of ONNX computes reductions", "[onnx][cpu]") {
  manual_seed(13);
  Functions cases;
  cases.add("reductions", {3, 4}, [](const Tensor& x) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const VarMean moments = var_mean(x, {1, 2});
    return Tensors{sum(x),
                   sum(x, 1),
                   sum(x, {0, 2}, true),
                   mean(x, -1),
                   mean(x),
                   prod(x, 1),
                   max(x, {1, 2}),
                   min(x),
                   var(x, 1),
                   stddev(x, {1, 2}, {.correction = 0}),
                   moments.var,
                   moments.mean,
                   norm(x, 1),
                   norm(x, 1, {.p = 1, .keepdim = true}),
                   norm(x, 2, {.p = 3}),
                   norm(x, 1, {.p = 0}),
                   norm(x, 1, {.p = infinity}),
                   norm(x, 1, {.p = -infinity}),
                   logsumexp(x, 1),
                   cumsum(x, 1),
                   cumsum(x, -1, true),
                   cosine_similarity(x, flip(x, 1), {.dim = 1}),
                   pairwise_distance(x, flip(x, 1))};
  });
  cases.add_fixed("var of everything", randn({3, 4}), [](const Tensor& x) {
    return Tensors{var(x), stddev(x)};
  });
  CHECK(cases.run() == "");
}

TEST_CASE("a file of ONNX computes convolutions, pools and norms", "[onnx][cpu]") {
  manual_seed(14);
  Functions cases;
  const Tensor w = randn({6, 2, 3, 3}), b = randn({6}), t = randn({4, 3, 3, 2}), scale = randn({5, 3});
  cases.add("convolutions", {4, 9, 7}, [=](const Tensor& x) {
    return Tensors{
        conv2d(x, w, b, {.stride = {2, 1}, .padding = {{0, 1}, {2, 0}}, .groups = 2}),
        conv2d(x, w, {}, {.padding = "same", .dilation = 2, .groups = 2}),
        conv_transpose2d(x, t, randn({6}) * 0,
                         {.stride = 2, .padding = 1, .output_padding = {1, 0}, .groups = 2}),
        conv_transpose2d(x, t, {},
                         {.stride = 3, .padding = {{0, 1}, {1, 0}}, .output_padding = 2, .dilation = 2}),
        conv2d(x[0], w, b, {.groups = 2})};
  });
  cases.add("pools", {3, 10, 7}, [](const Tensor& x) {
    return Tensors{
        max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1}),
        max_pool2d(x, {.kernel_size = 3, .stride = 2, .ceil_mode = true}),
        max_pool2d(x, {.kernel_size = 2, .stride = 1, .padding = 2, .dilation = 4}),
        max_pool2d(x, {.kernel_size = {9, 1}, .stride = 5}),
        max_pool2d(x, {.kernel_size = {11, 9}, .stride = 3, .ceil_mode = true}),
        avg_pool2d(x, {.kernel_size = {11, 9}, .stride = 3, .ceil_mode = true}),
        avg_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1}),
        avg_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1, .count_include_pad = false}),
        avg_pool2d(x, {.kernel_size = 4, .stride = 3, .padding = {{1, 0}, {2, 1}}, .ceil_mode = true}),
        avg_pool2d(x, {.kernel_size = 3, .stride = 2, .ceil_mode = true, .count_include_pad = false}),
        avg_pool2d(x,
                   {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .divisor_override = 5}),
        lp_pool2d(x, {.norm_type = 2, .kernel_size = 3}),
        adaptive_avg_pool2d(x, {.output_size = 1}),
        adaptive_avg_pool2d(x, {.output_size = {5, 7}}),
        adaptive_avg_pool2d(x, {.output_size = {3, 4}}),
        adaptive_max_pool2d(x, {.output_size = 1}),
        adaptive_max_pool2d(x, {.output_size = {5, 1}}),
        adaptive_max_pool2d(x, {.output_size = {3, 4}}),
        max_pool2d(x[0], {.kernel_size = 2}),
        max_pool1d(flatten(x, 1, 2), {.kernel_size = 3}),
        adaptive_avg_pool1d(flatten(x, 1, 2), {.output_size = 3})};
  });
  cases.add("interpolation", {2, 6, 5}, [](const Tensor& x) {
    using enum Interpolation;
    Tensors y;
    for (const Interpolation mode : {nearest, nearest_exact, linear, cubic, area})
      for (const PerDim& size : {PerDim{12, 15}, PerDim{4, 7}, PerDim{1, 9}})
        y.push_back(interpolate(x, {.size = size, .mode = mode}));
    for (const Interpolation mode : {linear, cubic}) {
      y.push_back(interpolate(x, {.size = {11, 3}, .mode = mode, .align_corners = true}));
      y.push_back(interpolate(x, {.size = {4, 3}, .mode = mode, .antialias = true}));
      y.push_back(interpolate(x, {.scale_factor = 1.7, .mode = mode}));
    }
    y.push_back(interpolate(x, {.scale_factor = 1.7}));
    y.push_back(interpolate(flatten(x, 1, 2), {.size = 8, .mode = linear}));
    y.push_back(interpolate(unsqueeze(x, 2), {.size = {2, 9, 4}, .mode = linear}));
    return y;
  });
  const Tensor four = randn({4}), positive = abs(randn({4})) + 0.5;
  cases.add("norms", {4, 5, 3}, [=](const Tensor& x) {
    return Tensors{batch_norm(x, four, four, four, positive, {.eps = 1e-3}),
                   batch_norm(x, {}, {}, four, positive, {.bounds = {.min = 0}}),
                   batch_norm(x, four, {}, four, positive, {.residual = x, .bounds = {.min = -1, .max = 6}}),
                   batch_norm(x, four, four, {}, {}, {.training = true}),
                   group_norm(x, four, four, {.num_groups = 2}),
                   group_norm(x, {}, {}, {.num_groups = 4}),
                   instance_norm(x, four, four, {}, {}, {}),
                   instance_norm(x, {}, {}, {}, {}, {.eps = 1e-2}),
                   instance_norm(x, four, four, four, positive, {.use_input_stats = false}),
                   layer_norm(x, scale, {}, {.normalized_shape = {5, 3}}),
                   layer_norm(x, {}, {}, {.normalized_shape = 3}),
                   rms_norm(x, {}, {.normalized_shape = 3}),
                   local_response_norm(x, {.size = 3, .alpha = 0.1}),
                   local_response_norm(x, {.size = 2})};
  });
  CHECK(cases.run() == "");
}
