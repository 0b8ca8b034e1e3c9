#include "pleat/ops/norm/group_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/norm/cpu/channel_kernels.h"
#include "pleat/ops/norm/cpu/row_kernels.h"
#include "pleat/ops/norm/cuda/norm_cuda.h"
#include "pleat/ops/norm/per_channel.h"
#include "pleat/ops/norm/problem.h"
#include "pleat/ops/norm/running_statistics.h"

namespace pleat::ops {
namespace {

/// Elements of a group that stay in the second-level cache between readings. Larger ones are worth more than
/// one thread each.
constexpr double cached_group = 1 << 18;

/// Sizes of a problem on the CPU; `dense` is x, in float32 or float64, as the kernels take it.
struct Groups {
  Tensor dense;
  ChannelView view;
  int64_t groups;    ///< of an image
  int64_t channels;  ///< of a group

  int64_t count() const { return view.images * groups; }
  double values() const { return static_cast<double>(channels * view.pixels); }
  /// Small planes are worked on as rows of elements with a weight each, as without spatial dimensions, where
  /// a channel of an image is a single element.
  bool is_rows() const {
    constexpr int64_t small_plane = 128;
    return view.pixels == 1 || (!view.channels_last && view.pixels < small_plane);
  }
  /// Whether the elements of a group are.
  bool are_neighbours() const { return !view.channels_last || view.pixels == 1; }
  RowView rows() const { return {view.images, view.channels * view.pixels, groups}; }
  /// Calls `f(at, c, group)` for each channel c of each image, number `at` of all.
  template <class F>
  void for_each_channel(const F& f) const {
    std::size_t at = 0, group = 0;
    for (int64_t n = 0; n < view.images; ++n)
      for (std::size_t c = 0; c < static_cast<std::size_t>(view.channels); ++group)
        for (int64_t k = 0; k < channels; ++k, ++at, ++c) f(at, c, group);
  }
};

void check_arguments(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const GroupNormOptions& options) {
  check<ShapeError>(x.rank() >= 2, "{}: input must be [N, C] or [N, C, spatial...], got {}", op, x);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
  check<ValueError>(options.eps > 0 && std::isfinite(options.eps), "{}: eps must be above 0, got {}", op,
                    options.eps);
  check<ValueError>(options.num_groups >= 1, "{}: num_groups must be at least 1, got {}", op,
                    options.num_groups);
  check<ShapeError>(x.size(1) % options.num_groups == 0,
                    "{}: {} groups do not divide the {} channels of {}, which are dimension 1", op,
                    options.num_groups, x.size(1), x);
  check_per_channel(op, "weight", weight, x, x.dtype());
  check_per_channel(op, "bias", bias, x, x.dtype());
}

Groups groups_of(const Tensor& x, const GroupNormOptions& options) {
  Groups result{channel_dense(cast(x, compute_dtype(x.dtype()))), {}, options.num_groups, 0};
  result.view = channel_view(result.dense);
  result.channels = result.view.channels / result.groups;
  return result;
}

template <class T>
Moments group_moments(const Groups& of, const T* x) {
  if (of.are_neighbours()) {
    // One long plane.
    return channel_moments(ChannelView{of.count(), 1, of.channels * of.view.pixels, false}, true, x);
  }
  const Moments each = channel_moments(of.view, true, x);
  Moments merged{std::vector<double>(static_cast<std::size_t>(of.count())),
                 std::vector<double>(static_cast<std::size_t>(of.count()))};
  const auto pixels = static_cast<double>(of.view.pixels);
  for (std::size_t group = 0, at = 0; group < merged.mean.size(); ++group)
    for (int64_t c = 0; c < of.channels; ++c, ++at)
      merge_moments(merged.mean[group], merged.m2[group], static_cast<double>(c) * pixels, each.mean[at],
                    each.m2[at], pixels);
  return merged;
}

/// The numbers of a parameter [channels], each `times` times, or `otherwise` where it is undefined.
template <class T>
std::vector<T> row_numbers(const Tensor& t, int64_t channels, int64_t times, T otherwise) {
  if (t.defined() && times == 1) return t.to_vector<T>();
  std::vector<T> numbers(static_cast<std::size_t>(channels * times), otherwise);
  if (!t.defined()) return numbers;
  auto to = numbers.begin();
  for (const T number : t.to_vector<T>()) to = std::fill_n(to, times, number);
  return numbers;
}

template <class T>
void run_forward(const Groups& of, const Tensor& weight, const Tensor& bias, double eps,
                 const GroupNormResult& to) {
  double* mean = to.mean.data<double>();
  double* variance = to.variance.data<double>();
  double* rstd = to.rstd.data<double>();
  if (of.is_rows() || (of.are_neighbours() && of.values() <= cached_group)) {
    const int64_t pixels = of.is_rows() ? 1 : of.view.pixels;
    return normalize_rows<T>(of.rows(), pixels, of.dense.data<T>(),
                             row_numbers<T>(weight, of.view.channels, of.view.pixels / pixels, 1).data(),
                             row_numbers<T>(bias, of.view.channels, of.view.pixels / pixels, 0).data(), eps,
                             {mean, variance, rstd}, to.y.data<T>());
  }
  const Moments moments = group_moments(of, of.dense.data<T>());
  for (std::size_t group = 0; group < moments.mean.size(); ++group) {
    mean[group] = moments.mean[group];
    variance[group] = moments.m2[group] / of.values();
    rstd[group] = 1 / std::sqrt(variance[group] + eps);
  }
  const std::vector<double> scale = per_channel(weight, of.view.channels, 1);
  const std::vector<double> offset = per_channel(bias, of.view.channels, 0);
  Affine<T> numbers(static_cast<std::size_t>(of.view.images * of.view.channels));
  of.for_each_channel([&](std::size_t at, std::size_t c, std::size_t group) {
    const double factor = scale[c] * rstd[group];
    numbers.shift[at] = static_cast<T>(mean[group]);
    numbers.scale[at] = static_cast<T>(factor);
    // The part of the mean that its rounding cuts off.
    numbers.bias[at] =
        static_cast<T>(offset[c] + (static_cast<double>(numbers.shift[at]) - mean[group]) * factor);
  });
  channel_affine(of.view, true, of.dense.data<T>(), numbers, {}, to.y.data<T>());
}

/// With h = (x - mean) rstd and n values in a group:
///   dbias = sum dy,  dweight = sum dy h  over images and pixels,
///   dx = rstd (weight dy - (a + h b) / n),  a = sum weight dy,  b = sum weight dy h  over the group.
/// dbias counts only where dweight is not null.
template <class T>
void run_backward(const Groups& of, const Tensor& dy, const Tensor& weight, const double* mean,
                  const double* rstd, const Tensor& dx, double* dweight, double* dbias) {
  if (of.is_rows()) {
    const auto columns = static_cast<std::size_t>(of.view.channels * of.view.pixels);
    std::vector<double> dweights(dweight != nullptr ? columns : 0), dbiases(dweights.size());
    normalize_rows_backward<T>(of.rows(), dy.data<T>(), of.dense.data<T>(), mean, rstd,
                               row_numbers<T>(weight, of.view.channels, of.view.pixels, 1).data(),
                               dx.defined() ? dx.data<T>() : nullptr,
                               dweight != nullptr ? dweights.data() : nullptr, dbiases.data());
    if (dweight == nullptr) return;
    for (int64_t c = 0; c < of.view.channels; ++c) {
      const auto sum = [&](const std::vector<double>& sums) {
        const double* const own = sums.data() + c * of.view.pixels;
        return std::accumulate(own, own + of.view.pixels, 0.0);
      };
      dweight[c] = sum(dweights);
      dbias[c] = sum(dbiases);
    }
    return;
  }
  const auto numbers_count = static_cast<std::size_t>(of.view.images * of.view.channels);
  InputGradient<T> numbers(numbers_count);
  of.for_each_channel([&](std::size_t at, std::size_t, std::size_t group) {
    numbers.shift[at] = static_cast<T>(mean[group]);
  });
  const T* x = of.dense.data<T>();
  const GradientSums sums = channel_gradient_sums(of.view, true, dy.data<T>(), x, numbers.shift);
  const std::vector<double> scale = per_channel(weight, of.view.channels, 1);
  std::vector<double> a(static_cast<std::size_t>(of.count()));
  std::vector<double> b(a.size());
  of.for_each_channel([&](std::size_t at, std::size_t c, std::size_t group) {
    const double cut = static_cast<double>(numbers.shift[at]) - mean[group];
    const double product = (sums.dy_x[at] + cut * sums.dy[at]) * rstd[group];
    if (dweight != nullptr) {
      dbias[c] += sums.dy[at];
      dweight[c] += product;
    }
    a[group] += scale[c] * sums.dy[at];
    b[group] += scale[c] * product;
  });
  if (!dx.defined()) return;
  of.for_each_channel([&](std::size_t at, std::size_t c, std::size_t group) {
    const double cut = static_cast<double>(numbers.shift[at]) - mean[group];
    const double slope = rstd[group] * rstd[group] * b[group] / of.values();
    numbers.scale[at] = static_cast<T>(rstd[group] * scale[c]);
    numbers.slope[at] = static_cast<T>(-slope);
    numbers.offset[at] = static_cast<T>(rstd[group] * a[group] / of.values() + slope * cut);
  });
  channel_input_gradient(of.view, true, dy.data<T>(), x, numbers, dx.data<T>());
}

void check_instances(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                     const InstanceNormOptions& options) {
  constexpr const char* op = "instance_norm";
  check<ShapeError>(x.numel() == 0 || x.numel() != x.size(0) * x.size(1),
                    "{}: needs more than one element per channel and image, got input {}", op, x);
  check<ValueError>(options.momentum >= 0 && options.momentum <= 1, "{}: momentum must be in [0, 1], got {}",
                    op, options.momentum);
  check<ValueError>(running_mean.defined() == running_var.defined(),
                    "{}: running_mean and running_var go together, got only one", op);
  check_per_channel(op, "running_mean", running_mean, x, x.dtype());
  check_per_channel(op, "running_var", running_var, x, x.dtype());
  for (const Tensor& running : {running_mean, running_var})
    check<ShapeError>(!running.defined() || running.is_dense(),
                      "{}: running statistics are written to and must be dense, got {}", op, running);
}

GroupNormResult forward_on_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const GroupNormOptions& options) {
  const Groups of = groups_of(x, options);
  const TensorOptions statistics{.dtype = float64};
  const Shape shape{of.view.images, of.groups};
  const auto of_groups = [&] { return x.numel() > 0 ? empty(shape, statistics) : zeros(shape, statistics); };
  GroupNormResult result{empty_like(of.dense), of_groups(), of_groups(), of_groups()};
  if (x.numel() > 0) {
    if (of.dense.dtype() == float64)
      run_forward<double>(of, weight, bias, options.eps, result);
    else
      run_forward<float>(of, weight, bias, options.eps, result);
  }
  result.y = cast(result.y, x.dtype());
  return result;
}

GroupNormGrads backward_on_cpu(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                               const Tensor& rstd, const GroupNormOptions& options, bool need_input,
                               bool need_parameters) {
  const Groups of = groups_of(x, options);
  const Tensor gradient = laid_out_as(cast(dy, of.dense.dtype()), of.dense);
  const Tensor dx = need_input ? empty_like(of.dense) : Tensor();
  const Tensor dweight = zeros({x.size(1)}, {.dtype = float64, .device = Device()});
  const Tensor dbias = zeros_like(dweight);
  if (x.numel() > 0) {
    const auto run = [&]<class T>(Type<T>) {
      run_backward<T>(of, gradient, weight, mean.data<double>(), rstd.data<double>(), dx,
                      need_parameters ? dweight.data<double>() : nullptr, dbias.data<double>());
    };
    if (of.dense.dtype() == float64)
      run(Type<double>{});
    else
      run(Type<float>{});
  }
  const DType parameters = weight.defined() ? weight.dtype() : of.dense.dtype();
  const Tensor input = need_input ? cast(dx, x.dtype()) : dx;
  if (!need_parameters) return {input, {}, {}};
  return {input, cast(dweight, parameters), cast(dbias, parameters)};
}

}  // namespace

GroupNormResult group_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const GroupNormOptions& options, const char* op) {
  const RecordOp range(op, x, weight, bias);
  check_arguments(op, x, weight, bias, options);
  if constexpr (with_cuda)
    if (x.device().is_cuda()) return group_norm_forward_cuda(x, weight, bias, options, op);
  return forward_on_cpu(x, weight, bias, options);
}

GroupNormGrads group_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                   const Tensor& mean, const Tensor& rstd, const GroupNormOptions& options,
                                   bool need_input, bool need_parameters, const char* op) {
  const RecordOp range(op, "_backward", dy, x, weight);
  check_arguments(op, x, weight, {}, options);
  const Shape groups{x.size(0), options.num_groups};
  check<ShapeError>(dy.shape() == x.shape(), "{}: the gradient must be {} like the input, got {}", op,
                    x.shape(), dy);
  check<DTypeError>(dy.dtype() == x.dtype(), "{}: the gradient must be {} like the input, got {}", op,
                    x.dtype(), dy);
  check<DeviceError>(dy.device() == x.device(), "{}: the gradient must be on {} like the input, got {}", op,
                     x.device(), dy);
  for (const Tensor& saved : {mean, rstd}) {
    check<ShapeError>(saved.shape() == groups && saved.is_contiguous(),
                      "{}: saved statistics must be {}, got {}", op, groups, saved);
    check<DeviceError>(saved.device() == x.device(), "{}: saved statistics must be on {}, got {}", op,
                       x.device(), saved);
    check<DTypeError>(saved.dtype() == float64, "{}: saved statistics must be float64, got {}", op, saved);
  }
  if constexpr (with_cuda)
    if (x.device().is_cuda())
      return group_norm_backward_cuda(dy, x, weight, mean, rstd, options, need_input, op);
  return backward_on_cpu(dy, x, weight, mean, rstd, options, need_input, need_parameters);
}

GroupNormResult instance_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                      const Tensor& running_mean, const Tensor& running_var,
                                      const InstanceNormOptions& options) {
  const RecordOp range("instance_norm", x, weight, bias);
  check<ShapeError>(x.rank() >= 2 && x.size(1) >= 1,
                    "instance_norm: input must be [N, C, spatial...] with at least one channel, got {}", x);
  const GroupNormOptions groups{.num_groups = x.size(1), .eps = options.eps};
  check_arguments("instance_norm", x, weight, bias, groups);
  check_instances(x, running_mean, running_var, options);
  check_count("instance_norm", options.num_batches_tracked, x);
  const GroupNormResult result = group_norm_forward(x, weight, bias, groups, "instance_norm");
  if (running_mean.defined() && x.numel() > 0) {
    const auto n = static_cast<double>(x.numel() / (x.size(0) * x.size(1)));
    update_running({running_mean, running_var, options.num_batches_tracked, options.momentum, n / (n - 1)},
                   result.mean, result.variance);
  }
  return result;
}

}  // namespace pleat::ops
