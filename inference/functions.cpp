#include "pleat/inference/functions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/attention/attention.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/scatter.h"
#include "pleat/ops/index/sort.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/recurrent/recurrent.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat::inference {
namespace {

/// Makes a Run of a call's options; null where there is none.
using Maker = std::function<Run(const Options&)>;

/// A function of the first one, two or three inputs.
template <class F>
Run run(F f) {
  return [f = std::move(f)](Inputs in, Outputs out) {
    if constexpr (std::is_invocable_v<F, const Tensor&>)
      *out[0] = f(*in[0]);
    else if constexpr (std::is_invocable_v<F, const Tensor&, const Tensor&>)
      *out[0] = f(*in[0], *in[1]);
    else
      *out[0] = f(*in[0], *in[1], *in[2]);
  };
}
/// Of one without options.
template <class... T>
Maker plain(Tensor (*f)(const T&...)) {
  return [f](const Options&) { return run([f](const T&... in) { return f(in...); }); };
}
/// Of one tensor, and of a dimension.
Maker along(Tensor (*f)(const Tensor&, Integer)) {
  return [f](const Options& o) {
    return run([f, dim = o.integer("dim")](const Tensor& x) { return f(x, dim); });
  };
}
/// Of one tensor, and of a number.
Maker with(Tensor (*f)(const Tensor&, Real), const char* name) {
  return [f, name](const Options& o) {
    return run([f, a = o.number(name)](const Tensor& x) { return f(x, a); });
  };
}
Maker reduction(Tensor (*f)(const Tensor&, const Dims&, Flag)) {
  return [f](const Options& o) {
    return run([f, dims = Dims(o.integers("dims")), keep = o.flag("keepdim")](const Tensor& x) {
      return f(x, dims, keep);
    });
  };
}
/// Of the shape of the result.
Maker shaped(Tensor (*f)(const Tensor&, Sizes)) {
  return [f](const Options& o) {
    return run([f, shape = Sizes(o.output().shape())](const Tensor& x) { return f(x, shape); });
  };
}
/// Of one tensor, with two results.
template <class F>
Run run_pair(F f) {
  return [f = std::move(f)](Inputs in, Outputs out) { std::tie(*out[0], *out[1]) = f(*in[0]); };
}
auto both(ValuesIndices found) { return std::pair(std::move(found.values), std::move(found.indices)); }
Maker pair_of(ValuesIndices (*f)(const Tensor&, Integer, Flag)) {
  return [f](const Options& o) {
    return run_pair([f, dim = o.integer("dim"), keep = o.flag("keepdim")](const Tensor& x) {
      return both(f(x, dim, keep));
    });
  };
}
VarOptions var_options(const Options& o) {
  return {.correction = o.number("correction"), .keepdim = o.flag("keepdim")};
}
Maker variance(Tensor (*f)(const Tensor&, const Dims&, VarOptions)) {
  return [f](const Options& o) {
    return run([f, dims = Dims(o.integers("dims")), options = var_options(o)](const Tensor& x) {
      return f(x, dims, options);
    });
  };
}
Run var_mean_run(const Options& o) {
  return run_pair([dims = Dims(o.integers("dims")), options = var_options(o)](const Tensor& x) {
    auto [var, mean] = var_mean(x, dims, options);
    return std::pair(std::move(var), std::move(mean));
  });
}
Run norm_run(const Options& o) {
  return run([dims = Dims(o.integers("dims")), p = o.number("p"), keep = o.flag("keepdim")](const Tensor& x) {
    return norm(x, dims, {.p = p, .keepdim = keep});
  });
}

SortOptions sort_options(const Options& o) {
  return {.dim = o.integer("dim"), .descending = o.flag("descending")};
}
Run sort_run(const Options& o) {
  return run_pair([options = sort_options(o)](const Tensor& x) { return both(sort(x, options)); });
}
Run argsort_run(const Options& o) {
  return run([options = sort_options(o)](const Tensor& x) { return argsort(x, options); });
}
Run topk_run(const Options& o) {
  const TopkOptions options{.dim = o.integer("dim"), .largest = o.flag("largest")};
  return run_pair([k = o.integer("k"), options](const Tensor& x) { return both(topk(x, k, options)); });
}
Run one_hot_run(const Options& o) {
  return run([classes = o.integer("classes"), dtype = o.output().dtype()](const Tensor& index) {
    return one_hot(index, classes, dtype);
  });
}
/// Of a dimension, and x, indices and what goes there.
Maker scattered(Tensor (*f)(const Tensor&, Integer, const Tensor&, const Tensor&)) {
  return [f](const Options& o) {
    return run([f, dim = o.integer("dim")](const Tensor& x, const Tensor& index, const Tensor& source) {
      return f(x, dim, index, source);
    });
  };
}
/// As ONNX says it, but for "mean"; none for "none".
std::optional<ScatterReduction> reduction_of(const Options& o) {
  static constexpr std::pair<std::string_view, ScatterReduction> names[] = {{"add", ScatterReduction::sum},
                                                                            {"mul", ScatterReduction::prod},
                                                                            {"mean", ScatterReduction::mean},
                                                                            {"max", ScatterReduction::amax},
                                                                            {"min", ScatterReduction::amin}};
  for (const auto& [name, reduction] : names)
    if (o.text("reduction") == name) return reduction;
  return std::nullopt;
}
Run scatter_reduce_run(const Options& o) {
  const ScatterReduceOptions options{.reduce = reduction_of(o).value(),
                                     .include_self = o.flag("include_self")};
  return run([dim = o.integer("dim"), options](const Tensor& x, const Tensor& index, const Tensor& source) {
    return scatter_reduce(x, dim, index, source, options);
  });
}
Run scatter_nd_run(const Options& o) {
  return run([options = ScatterNdOptions{.reduction = reduction_of(o)}](
                 const Tensor& x, const Tensor& indices, const Tensor& updates) {
    return scatter_nd(x, indices, updates, options);
  });
}
Run gather_nd_run(const Options& o) {
  return run([options = GatherNdOptions{.batch_dims = o.integer("batch_dims")}](
                 const Tensor& x, const Tensor& indices) { return gather_nd(x, indices, options); });
}
/// Of what x has become, as a new tensor.
Tensor copied(const Tensor& x, const Tensor& from) {
  const Tensor y = empty_like(x);
  ops::copy_into(y, from);
  return y;
}

Padding padding_of(const Options& o) {
  Padding::List sides;
  const auto low = o.integers("padding_low"), high = o.integers("padding_high", low.size());
  for (std::size_t d = 0; d < low.size(); ++d) sides.emplace_back(low[d], high[d]);
  return sides;
}

/// Whether windows were rounded up: the result is larger than whole ones make it.
bool rounds_up(const Options& o) {
  const auto kernel = o.integers("kernel");
  const std::size_t dims = kernel.size();
  const auto stride = o.integers("stride", dims), dilation = o.integers("dilation", dims),
             low = o.integers("padding_low", dims), high = o.integers("padding_high", dims);
  const Shape &in = o.input(0).shape(), &out = o.output().shape();
  o.check(in.size() == dims + 2 && out.size() == dims + 2 &&
              std::all_of(stride.begin(), stride.end(), [](int64_t step) { return step > 0; }),
          "kernel");
  for (std::size_t d = 0; d < kernel.size(); ++d)
    if (out[d + 2] > (in[d + 2] + low[d] + high[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1)
      return true;
  return false;
}

MaxPoolOptions max_pool_options(const Options& o) {
  return {.kernel_size = PerDim(o.integers("kernel")),
          .stride = o.integers("stride"),
          .padding = padding_of(o),
          .dilation = o.integers("dilation"),
          .ceil_mode = rounds_up(o)};
}

Run max_pool_run(const Options& o) {
  return run([options = max_pool_options(o)](const Tensor& x) { return max_pool(x, options); });
}
Run max_pool_with_indices_run(const Options& o) {
  return run_pair([options = max_pool_options(o)](const Tensor& x) {
    auto [values, indices] = max_pool_with_indices(x, options);
    return std::pair(std::move(values), std::move(indices));
  });
}
Run avg_pool_run(const Options& o) {
  AvgPoolOptions options{.kernel_size = PerDim(o.integers("kernel")),
                         .stride = o.integers("stride"),
                         .padding = padding_of(o),
                         .dilation = o.integers("dilation"),
                         .ceil_mode = rounds_up(o),
                         .count_include_pad = o.flag("count_include_pad")};
  if (o.integer("divisor") != 0) options.divisor_override = o.integer("divisor");
  return run([options](const Tensor& x) { return avg_pool(x, options); });
}

/// Of the result.
PerDim spatial_sizes(const Options& o) {
  const Shape& shape = o.output().shape();
  o.check(shape.size() > 2, "output");
  return std::vector<int64_t>(shape.begin() + 2, shape.end());
}

Maker adaptive(Tensor (*f)(const Tensor&, const AdaptivePoolOptions&)) {
  return [f](const Options& o) -> Run {
    return [f, options = AdaptivePoolOptions{.output_size = spatial_sizes(o)}](Inputs in, Outputs out) {
      *out[0] = f(*in[0], options);
    };
  };
}

Run max_unpool_run(const Options& o) {
  const MaxUnpoolOptions options{.kernel_size = PerDim(o.integers("kernel")),
                                 .stride = o.integers("stride"),
                                 .padding = o.integers("padding"),
                                 .output_size = spatial_sizes(o)};
  return run([options](const Tensor& x, const Tensor& indices) { return max_unpool(x, indices, options); });
}
Run interpolate_run(const Options& o) {
  InterpolateOptions options{.mode = o.choice("mode", Interpolation::area),
                             .align_corners = o.flag("align_corners"),
                             .antialias = o.flag("antialias")};
  if (o.flag("by_sizes")) {
    options.size = spatial_sizes(o);
  } else {
    std::vector<double> factors;
    for (const char* name : {"factor0", "factor1", "factor2"})
      if (std::ssize(factors) < o.output().rank() - 2) factors.push_back(o.number(name));
    options.scale_factor = factors;
  }
  return [options](Inputs in, Outputs out) { *out[0] = interpolate(*in[0], options); };
}

/// The function of one, two or three spatial dimensions, by the rank of the weight.
template <class F>
F by_rank(const Options& o, F one, F two, F three) {
  const int64_t rank = o.input(1).rank();
  return rank == 3 ? one : rank == 4 ? two : three;
}
Run conv_run(const Options& o) {
  using Conv = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const ConvOptions&);
  const auto f = by_rank<Conv>(o, conv1d, conv2d, conv3d);
  return run([f, options = conv_options(o)](const Tensor& x, const Tensor& w, const Tensor& b) {
    return f(x, w, b, options);
  });
}
Run conv_transpose_run(const Options& o) {
  using Conv = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const ConvTransposeOptions&);
  const auto f = by_rank<Conv>(o, conv_transpose1d, conv_transpose2d, conv_transpose3d);
  return run([f, options = conv_transpose_options(o)](const Tensor& x, const Tensor& w, const Tensor& b) {
    return f(x, w, b, options);
  });
}

/// x, weight, bias, running mean and variance, residual.
Run batch_norm_run(const Options& o) {
  const bool training = o.flag("training");
  if (training && o.has(3)) return nullptr;  // it changes the running statistics
  const BatchNormOptions options{.training = training,
                                 .eps = o.number("eps"),
                                 .bounds = {.min = o.number("min"), .max = o.number("max")}};
  return [options](Inputs in, Outputs out) {
    BatchNormOptions own = options;
    own.residual = *in[5];
    *out[0] = batch_norm(*in[0], *in[1], *in[2], *in[3], *in[4], own);
  };
}
Run group_norm_run(const Options& o) {
  return run([options = GroupNormOptions{.num_groups = o.integer("num_groups"), .eps = o.number("eps")}](
                 const Tensor& x, const Tensor& w, const Tensor& b) { return group_norm(x, w, b, options); });
}
Run instance_norm_run(const Options& o) {
  if (o.inputs() > 3) return batch_norm_run(o);
  return run([options = InstanceNormOptions{.eps = o.number("eps")}](const Tensor& x, const Tensor& w,
                                                                     const Tensor& b) {
    return instance_norm(x, w, b, {}, {}, options);
  });
}
Sizes last_sizes(const Options& o) {
  const Shape& shape = o.input(0).shape();
  const int64_t dims = o.integer("dims");
  o.check(dims >= 0 && dims <= std::ssize(shape), "dims");
  return std::vector<int64_t>(shape.end() - dims, shape.end());
}
Run layer_norm_run(const Options& o) {
  return run([options = LayerNormOptions{.normalized_shape = last_sizes(o), .eps = o.number("eps")}](
                 const Tensor& x, const Tensor& w, const Tensor& b) { return layer_norm(x, w, b, options); });
}
Run rms_norm_run(const Options& o) {
  return run([options = RmsNormOptions{.normalized_shape = last_sizes(o), .eps = o.number("eps")}](
                 const Tensor& x, const Tensor& w) { return rms_norm(x, w, options); });
}

/// query, key, value, mask.
Run attention_run(const Options& o) {
  if (o.number("dropout") != 0) return nullptr;
  const AttentionOptions options{.is_causal = o.flag("is_causal"), .scale = o.number("scale")};
  return [options](Inputs in, Outputs out) {
    AttentionOptions own = options;
    own.mask = *in[3];
    *out[0] = scaled_dot_product_attention(*in[0], *in[1], *in[2], own);
  };
}

/// x, w_ih, w_hh, b_ih, b_hh, h, c, lengths.
Run recurrent_run(const Options& o) {
  const RecurrentOptions options{.cell = o.choice("cell", RecurrentCell::rnn_relu),
                                 .reverse = o.flag("reverse")};
  return [options](Inputs in, Outputs out) {
    RecurrentOptions own = options;
    own.lengths = *in[7];
    RecurrentResult y = recurrent(linear(*in[0], *in[1], *in[3]), *in[2], *in[4], *in[5], *in[6], own);
    *out[0] = std::move(y.output);
    *out[1] = std::move(y.h);
    *out[2] = std::move(y.c);
  };
}

std::vector<Tensor> all_of(Inputs in) {
  std::vector<Tensor> tensors;
  tensors.reserve(in.size());
  for (const Tensor* tensor : in)
    if (tensor->defined()) tensors.push_back(*tensor);
  return tensors;
}
Maker joined(Tensor (*f)(const std::vector<Tensor>&, Integer)) {
  return [f](const Options& o) -> Run {
    return [f, dim = o.integer("dim")](Inputs in, Outputs out) { *out[0] = f(all_of(in), dim); };
  };
}

Run cast_run(const Options& o) {
  return run([dtype = o.output().dtype()](const Tensor& x) { return ops::cast(x, dtype); });
}
Run pow_run(const Options& o) {
  if (o.inputs() == 2) return run([](const Tensor& x, const Tensor& y) { return pow(x, y); });
  return run([exponent = o.number("exponent")](const Tensor& x) { return pow(x, exponent); });
}
Run clamp_run(const Options& o) {
  return run([options = ClampOptions{.min = o.number("min"), .max = o.number("max")}](const Tensor& x) {
    return clamp(x, options);
  });
}
Run extremum_place(const Options& o, Tensor (*f)(const Tensor&, std::optional<Integer>, Flag)) {
  std::optional<Integer> dim;
  if (!o.flag("all")) dim = o.integer("dim");
  return run([f, dim, keep = o.flag("keepdim")](const Tensor& x) { return f(x, dim, keep); });
}
Run pad_run(const Options& o) {
  return run([widths = IntegerList(o.integers("widths")),
              options = PadOptions{.mode = o.choice("mode", PadMode::circular), .value = o.number("value")}](
                 const Tensor& x) { return pad(x, widths, options); });
}
Run split_run(const Options& o) {
  return [sizes = IntegerList(o.integers("sizes")), dim = o.integer("dim")](Inputs in, Outputs out) {
    std::vector<Tensor> parts = split_with_sizes(*in[0], sizes, dim);
    for (std::size_t i = 0; i < std::min(parts.size(), out.size()); ++i) *out[i] = std::move(parts[i]);
  };
}

const std::map<std::string_view, Maker>& makers() {
  static const auto& table = *new std::map<std::string_view, Maker>{
      {"add", plain<Tensor, Tensor>(add)},
      {"subtract", plain<Tensor, Tensor>(subtract)},
      {"multiply", plain<Tensor, Tensor>(multiply)},
      {"divide", plain<Tensor, Tensor>(divide)},
      {"maximum", plain<Tensor, Tensor>(maximum)},
      {"minimum", plain<Tensor, Tensor>(minimum)},
      {"remainder", plain<Tensor, Tensor>(remainder)},
      {"fmod", plain<Tensor, Tensor>(fmod)},
      {"floor_divide", plain<Tensor, Tensor>(floor_divide)},
      {"hypot", plain<Tensor, Tensor>(hypot)},
      {"lerp", plain<Tensor, Tensor, Tensor>(lerp)},
      {"where", plain<Tensor, Tensor, Tensor>(where)},
      {"negate", plain<Tensor>(negate)},
      {"exp", plain<Tensor>(exp)},
      {"exp2", plain<Tensor>(exp2)},
      {"expm1", plain<Tensor>(expm1)},
      {"log", plain<Tensor>(log)},
      {"log1p", plain<Tensor>(log1p)},
      {"log2", plain<Tensor>(log2)},
      {"log10", plain<Tensor>(log10)},
      {"sqrt", plain<Tensor>(sqrt)},
      {"rsqrt", plain<Tensor>(rsqrt)},
      {"reciprocal", plain<Tensor>(reciprocal)},
      {"square", plain<Tensor>(square)},
      {"abs", plain<Tensor>(abs)},
      {"sign", plain<Tensor>(sign)},
      {"floor", plain<Tensor>(floor)},
      {"ceil", plain<Tensor>(ceil)},
      {"round", plain<Tensor>(round)},
      {"trunc", plain<Tensor>(trunc)},
      {"sin", plain<Tensor>(sin)},
      {"cos", plain<Tensor>(cos)},
      {"tan", plain<Tensor>(tan)},
      {"asin", plain<Tensor>(asin)},
      {"acos", plain<Tensor>(acos)},
      {"atan", plain<Tensor>(atan)},
      {"sinh", plain<Tensor>(sinh)},
      {"cosh", plain<Tensor>(cosh)},
      {"tanh", plain<Tensor>(tanh)},
      {"asinh", plain<Tensor>(asinh)},
      {"acosh", plain<Tensor>(acosh)},
      {"atanh", plain<Tensor>(atanh)},
      {"erf", plain<Tensor>(erf)},
      {"erfc", plain<Tensor>(erfc)},
      {"relu", plain<Tensor>(relu)},
      {"prelu", [](const Options&) {
         return run([](const Tensor& x, const Tensor& w) { return prelu(x, reshape(w, {-1})); });  // [C, 1, ...]
       }},
      {"selu", plain<Tensor>(selu)},
      {"softsign", plain<Tensor>(softsign)},
      {"tanhshrink", plain<Tensor>(tanhshrink)},
      {"sigmoid", plain<Tensor>(sigmoid)},
      {"log_sigmoid", plain<Tensor>(log_sigmoid)},
      {"silu", plain<Tensor>(silu)},
      {"mish", plain<Tensor>(mish)},
      {"hardswish", plain<Tensor>(hardswish)},
      {"hardsigmoid", plain<Tensor>(hardsigmoid)},
      {"leaky_relu", with(leaky_relu, "negative_slope")},
      {"elu", with(elu, "alpha")},
      {"celu", with(celu, "alpha")},
      {"softshrink", with(softshrink, "lambd")},
      {"hardshrink", with(hardshrink, "lambd")},
      {"glu", along(glu)},
      {"softplus",
       [](const Options& o) {
         return run([options = SoftplusOptions{.beta = o.number("beta"), .threshold = o.number("threshold")}](
                        const Tensor& x) { return softplus(x, options); });
       }},
      {"gelu",
       [](const Options& o) {
         const auto how = o.flag("tanh") ? GeluApproximation::tanh : GeluApproximation::none;
         return run([how](const Tensor& x) { return gelu(x, how); });
       }},
      {"hardtanh",
       [](const Options& o) {
         return run([min = o.number("min"), max = o.number("max")](const Tensor& x) { return hardtanh(x, min, max); });
       }},
      {"threshold",
       [](const Options& o) {
         return run([at = o.number("threshold"), value = o.number("value")](const Tensor& x) {
           return threshold(x, at, value);
         });
       }},
      {"clamp", clamp_run},
      {"pow", pow_run},
      {"cast", cast_run},
      {"masked_fill",
       [](const Options& o) {
         return run([value = o.scalar("value")](const Tensor& x, const Tensor& mask) {
           return masked_fill(x, mask, value);
         });
       }},
      {"fill",
       [](const Options& o) {
         return run([value = o.scalar("value")](const Tensor& x) { return full_like(x, value); });
       }},
      {"equal", plain<Tensor, Tensor>(equal)},
      {"not_equal", plain<Tensor, Tensor>(not_equal)},
      {"less", plain<Tensor, Tensor>(less)},
      {"less_equal", plain<Tensor, Tensor>(less_equal)},
      {"logical_and", plain<Tensor, Tensor>(logical_and)},
      {"logical_or", plain<Tensor, Tensor>(logical_or)},
      {"logical_xor", plain<Tensor, Tensor>(logical_xor)},
      {"logical_not", plain<Tensor>(logical_not)},
      {"isnan", plain<Tensor>(isnan)},
      {"isinf", plain<Tensor>(isinf)},
      {"isfinite", plain<Tensor>(isfinite)},
      {"matmul", [](const Options&) { return run([](const Tensor& a, const Tensor& b) { return matmul(a, b); }); }},
      {"linear", [](const Options&) {
         return run([](const Tensor& x, const Tensor& w, const Tensor& b) { return linear(x, w, b); });
       }},
      {"addmm",
       [](const Options& o) {
         return run([beta = o.number("beta"), alpha = o.number("alpha")](const Tensor& c, const Tensor& a, const Tensor& b) {
           return addmm(c, a, b, {.beta = beta, .alpha = alpha});
         });
       }},
      {"conv", conv_run},
      {"conv_transpose", conv_transpose_run},
      {"batch_norm", batch_norm_run},
      {"group_norm", group_norm_run},
      {"instance_norm", instance_norm_run},
      {"layer_norm", layer_norm_run},
      {"rms_norm", rms_norm_run},
      {"softmax", along(softmax)},
      {"log_softmax", along(log_softmax)},
      {"max_pool", max_pool_run},
      {"max_pool_with_indices", max_pool_with_indices_run},
      {"max_unpool", max_unpool_run},
      {"avg_pool", avg_pool_run},
      {"adaptive_avg_pool", adaptive(adaptive_avg_pool)},
      {"adaptive_max_pool", adaptive(adaptive_max_pool)},
      {"interpolate", interpolate_run},
      {"scaled_dot_product_attention", attention_run},
      {"recurrent_layer", recurrent_run},
      {"sum", reduction(sum)},
      {"mean", reduction(mean)},
      {"prod", reduction(prod)},
      {"max", reduction(max)},
      {"min", reduction(min)},
      {"any", reduction(any)},
      {"all", reduction(all)},
      {"logsumexp", reduction(logsumexp)},
      {"argmax", [](const Options& o) { return extremum_place(o, argmax); }},
      {"argmin", [](const Options& o) { return extremum_place(o, argmin); }},
      {"max_with_indices", pair_of(max_with_indices)},
      {"min_with_indices", pair_of(min_with_indices)},
      {"var", variance(var)},
      {"stddev", variance(stddev)},
      {"var_mean", var_mean_run},
      {"norm", norm_run},
      {"sort", sort_run},
      {"argsort", argsort_run},
      {"topk", topk_run},
      {"one_hot", one_hot_run},
      {"scatter", scattered(scatter)},
      {"scatter_add", scattered(scatter_add)},
      {"scatter_reduce", scatter_reduce_run},
      {"scatter_nd", scatter_nd_run},
      {"gather_nd", gather_nd_run},
      {"copy_", plain<Tensor, Tensor>(copied)},
      {"cumsum",
       [](const Options& o) {
         return run([dim = o.integer("dim"), reverse = o.flag("reverse")](const Tensor& x) { return cumsum(x, dim, reverse); });
       }},
      {"embedding", [](const Options&) {
         return run([](const Tensor& index, const Tensor& weight) { return embedding(index, weight); });
       }},
      {"index_select",
       [](const Options& o) {
         return run([dim = o.integer("dim")](const Tensor& x, const Tensor& index) { return index_select(x, dim, index); });
       }},
      {"gather",
       [](const Options& o) {
         return run([dim = o.integer("dim")](const Tensor& x, const Tensor& index) { return gather(x, dim, index); });
       }},
      {"view", shaped(view)},
      {"reshape", shaped(reshape)},
      {"flatten", shaped(reshape)},
      {"unflatten", shaped(reshape)},
      {"squeeze", shaped(reshape)},
      {"unsqueeze", shaped(reshape)},
      {"expand",
       [](const Options& o) {
         return run([shape = Sizes(o.output().shape())](const Tensor& x) { return expand(x, shape); });
       }},
      {"permute",
       [](const Options& o) {
         return run([order = Dims(o.integers("order"))](const Tensor& x) { return permute(x, order); });
       }},
      {"transpose",
       [](const Options& o) {
         return run([a = o.integer("dim0"), b = o.integer("dim1")](const Tensor& x) { return transpose(x, a, b); });
       }},
      {"slice",
       [](const Options& o) {
         return run([dim = o.integer("dim"), start = o.integer("start"), end = o.integer("end"),
                     step = o.integer("step")](const Tensor& x) { return slice(x, dim, start, end, step); });
       }},
      {"narrow",
       [](const Options& o) {
         return run([dim = o.integer("dim"), start = o.integer("start"), length = o.integer("length")](const Tensor& x) {
           return narrow(x, dim, start, length);
         });
       }},
      {"select",
       [](const Options& o) {
         return run([dim = o.integer("dim"), index = o.integer("index")](const Tensor& x) { return select(x, dim, index); });
       }},
      {"cat", joined(cat)},
      {"stack", joined(stack)},
      {"split", split_run},
      {"flip",
       [](const Options& o) { return run([dims = Dims(o.integers("dims"))](const Tensor& x) { return flip(x, dims); }); }},
      {"roll",
       [](const Options& o) {
         return run([shifts = Dims(o.integers("shifts")), dims = Dims(o.integers("dims"))](const Tensor& x) {
           return roll(x, shifts, dims);
         });
       }},
      {"repeat",
       [](const Options& o) { return run([n = Sizes(o.integers("repeats"))](const Tensor& x) { return repeat(x, n); }); }},
      {"repeat_interleave",
       [](const Options& o) {
         return run([times = o.integer("times"), dim = o.integer("dim")](const Tensor& x) {
           return repeat_interleave(x, times, dim);
         });
       }},
      {"pixel_shuffle",
       [](const Options& o) { return run([r = o.integer("factor")](const Tensor& x) { return pixel_shuffle(x, r); }); }},
      {"pixel_unshuffle",
       [](const Options& o) { return run([r = o.integer("factor")](const Tensor& x) { return pixel_unshuffle(x, r); }); }},
      {"channel_shuffle",
       [](const Options& o) { return run([n = o.integer("groups")](const Tensor& x) { return channel_shuffle(x, n); }); }},
      {"pad", pad_run},
      {"tril",
       [](const Options& o) { return run([k = o.integer("diagonal")](const Tensor& x) { return tril(x, k); }); }},
      {"triu",
       [](const Options& o) { return run([k = o.integer("diagonal")](const Tensor& x) { return triu(x, k); }); }},
  };
  return table;
}

}  // namespace

const Attribute::Value& Options::get(std::string_view name) const {
  const auto found = std::find_if(call_.attributes.begin(), call_.attributes.end(),
                                  [&](const Attribute& attribute) { return attribute.name == name; });
  pleat::check<Error>(found != call_.attributes.end(), "Inference: {} tells no option {}", call_.where(),
                      name);
  return found->value;
}
std::string_view Options::text(std::string_view name) const { return std::get<std::string_view>(get(name)); }
Scalar Options::scalar(std::string_view name) const {
  const Attribute::Value& value = get(name);
  const auto* whole = std::get_if<int64_t>(&value);
  return whole != nullptr ? Scalar(*whole) : Scalar(std::get<double>(value));
}
double Options::number(std::string_view name) const { return scalar(name).to<double>(); }
std::vector<int64_t> Options::integers(std::string_view name, std::size_t count) const {
  std::vector<int64_t> list = integers(name);
  check(list.size() == count, name);
  return list;
}
void Options::check(bool holds, std::string_view name) const {
  pleat::check<ValueError>(holds, "Inference: the option {} of {} is out of range", name, call_.where());
}
const Tensor& Options::value(const std::vector<int>& values, std::size_t i) const {
  pleat::check<ValueError>(i < values.size() && values[i] >= 0, "Inference: {} lacks a tensor",
                           call_.where());
  return trace_.values[static_cast<std::size_t>(values[i])].tensor;
}
std::vector<int64_t> Options::integers(std::string_view name) const {
  const Attribute::Value& value = get(name);
  const auto* one = std::get_if<int64_t>(&value);
  return one != nullptr ? std::vector<int64_t>{*one} : std::get<std::vector<int64_t>>(value);
}

ConvOptions conv_options(const Options& o) {
  return {.stride = o.integers("stride"),
          .padding = padding_of(o),
          .dilation = o.integers("dilation"),
          .groups = o.integer("groups")};
}
ConvTransposeOptions conv_transpose_options(const Options& o) {
  return {.stride = o.integers("stride"),
          .padding = padding_of(o),
          .output_padding = o.integers("output_padding"),
          .dilation = o.integers("dilation"),
          .groups = o.integer("groups")};
}
Run run_of(const onnx::Trace& trace, const onnx::Call& call) {
  const auto found = makers().find(call.function);
  Run run = found == makers().end() ? nullptr : found->second(Options(trace, call));
  check<ValueError>(run != nullptr, "{} cannot be called again by a plan", call.where());
  return run;
}

}  // namespace pleat::inference
