#include <cmath>

#include "pleat/core/tensor/create.h"
#include "pleat/ops/norm/cuda/norm_cuda.h"
#include "pleat/ops/norm/cuda/norm_functors.h"
#include "pleat/ops/norm/cuda/reduce_groups.h"
#include "pleat/ops/norm/cuda/row_functors.h"
#include "pleat/ops/norm/cuda/row_lines.h"
#include "pleat/ops/spatial/channel_layout.h"

/// Group normalisation on a GPU. Forward reads x for the statistics and again for the result; backward reads
/// dy and x for the sums of each channel of each image, from which follow those of groups and of channels,
/// and again for dx. Where images are single pixels (as layer norm has them) a channel of an image is one
/// element: there sums of groups and of channels are gathered apart.

namespace pleat::ops {
namespace {

/// Group normalisation on the GPU. x, dy, y and dx lie as `view` says and are of one
/// floating type; weight and bias [C] may be undefined; mean, variance and rstd are [N, groups] float64,
/// dense, the first two undefined where x is not centred.
struct GroupNormCall {
  const char* op;
  ChannelView view;
  int64_t groups;  ///< of an image
  Tensor x, weight, bias;
  Tensor mean, rstd;
};

/// A view with the numbers of its groups.
struct Groups {
  ChannelView view;
  int64_t groups;    ///< of an image
  int64_t channels;  ///< of a group
  bool rows;         ///< a group is a row of single elements

  explicit Groups(const GroupNormCall& call)
      : view(call.view),
        groups(call.groups),
        channels(call.view.channels / call.groups),
        rows(call.view.pixels == 1) {}

  Device device;
  int64_t count() const { return view.images * groups; }
  int64_t length() const { return channels * view.pixels; }
  bool down() const { return view.channels_last && !rows; }
  /// What is normalised alike and in one go: rows, or channels of images.
  int64_t run() const { return rows ? length() : view.channels_last ? view.channels : view.pixels; }
  GroupLayout layout(std::size_t width) const {
    if (rows) return GroupLayout::along(count(), 1, length(), width);
    if (view.channels_last) return GroupLayout::down(view.images, view.pixels, view.channels, width);
    return GroupLayout::along(view.images * view.channels, 1, view.pixels, width);
  }
};

static_assert(longest_held_row == int64_t{TeamLines::most_of<float>} * block_threads);

double* data_or_null(const Tensor& t) { return t.defined() ? t.data<double>() : nullptr; }

Statistics statistics_of(const GroupNormCall& call, int64_t joined) {
  return {data_or_null(call.mean), call.rstd.data<double>(),        {call.weight, 1},
          {call.bias, 0},          FastDivider(call.view.channels), FastDivider(joined)};
}

/// Of each channel of each image: sum of dy, and of dy (x - mean) rstd.
template <class T>
struct FinishGradients {
  Statistics of;
  GradientState* sums;

  PLEAT_HOST_DEVICE void operator()(int64_t i, const GradientState& state) const {
    const int64_t s = of.statistic(i);
    const double cut = static_cast<double>(static_cast<T>(of.mean[s])) - of.mean[s];
    sums[i] = {state.dy, (state.dy_x + cut * state.dy) * of.rstd[s]};
  }
};

/// What channel `number` of a group adds to the group's sums.
struct WeightedSums {
  Statistics of;
  const GradientState* sums;

  PLEAT_HOST_DEVICE GradientState operator()(int64_t group, int64_t number) const {
    const int64_t i = group * of.joined.divisor() + number;
    const double weight = of.weight[of.channel(i)];
    return {weight * sums[i].dy, weight * sums[i].dy_x};
  }
};
struct StoreSums {
  GradientState* to;
  PLEAT_HOST_DEVICE void operator()(int64_t group, const GradientState& state) const { to[group] = state; }
};

/// What image `number` adds to a channel's sums.
struct ImageSums {
  int64_t channels;
  const GradientState* sums;
  PLEAT_HOST_DEVICE GradientState operator()(int64_t channel, int64_t number) const {
    return sums[number * channels + channel];
  }
};
struct StoreParameters {
  std::byte* dweight;
  std::byte* dbias;
  DType dtype;

  StoreParameters(const Tensor& weight, const Tensor& bias)
      : dweight(weight.raw()), dbias(bias.raw()), dtype(weight.dtype()) {}
  PLEAT_HOST_DEVICE void operator()(int64_t channel, const GradientState& state) const {
    store_as<double>(dbias, channel, dtype, state.dy);
    store_as<double>(dweight, channel, dtype, state.dy_x);
  }
};

/// Rows as lines, which may be too long for registers. `weight` and `bias` are dense.
NormLines lines_of(const Groups& groups, const Tensor& weight, const Tensor& bias,
                   std::initializer_list<Tensor> all) {
  Lines lines;
  lines.outer = groups.count();
  lines.size = groups.length();
  const Tensor& first = *all.begin();
  const auto type = [&](const Tensor& t) { return t.defined() ? t.dtype() : first.dtype(); };
  return {TeamLines(lines, all),
          weight.defined() ? weight.raw() : nullptr,
          bias.defined() ? bias.raw() : nullptr,
          type(weight),
          type(bias),
          FastDivider(groups.groups)};
}
Tensor dense_parameter(const Tensor& t) { return t.defined() ? t.contiguous() : t; }

/// Calls `f(width, across)`, both integral constants.
template <class S, class F>
void by_format(const Groups& groups, std::initializer_list<const S*> data, const F& f) {
  if (groups.down())
    by_width<S, true>(groups.run(), data, f);
  else
    by_width<S, false>(groups.run(), data, f);
}

/// Memory for sums of `count` groups.
class Sums {
 public:
  Sums(int64_t count, Device device) : memory_(empty({2 * count}, {.dtype = float64, .device = device})) {}
  GradientState* data() const { return reinterpret_cast<GradientState*>(memory_.data<double>()); }

 private:
  Tensor memory_;
};

template <class T, class S>
void find_moments(const GroupNormCall& call, const Groups& groups, const FinishMoments& finish) {
  const S* const x = call.x.data<S>();
  if (groups.down())
    return by_width<S, true>(groups.view.channels, {x}, [&](auto width, auto) {
      reduce_groups<true>(call.op, call.x.device(), groups.layout(width), groups.channels,
                          MomentSums<T, S, width>{x}, finish);
    });
  // The channels of a group lie next to each other: one long run.
  by_width<S, false>(groups.length(), {x}, [&](auto width, auto) {
    reduce_groups<false>(call.op, call.x.device(),
                         GroupLayout::along(groups.count(), 1, groups.length(), width), 1,
                         MomentSums<T, S, width>{x}, finish);
  });
}

template <class T, class S>
void forward(const GroupNormCall& call, double eps, const Tensor& variance, const Tensor& result) {
  const Groups groups(call);
  const Device device = call.x.device();
  const Tensor weight = dense_parameter(call.weight), bias = dense_parameter(call.bias);
  if (groups.rows)
    if (const NormLines of = lines_of(groups, weight, bias, {call.x, result, weight, bias});
        of.lines.are_held())
      return launch_blocks(
          call.op, device, of.lines.blocks(),
          NormalizeLines<T, S>{of, eps, call.x.data<S>(), data_or_null(call.mean), data_or_null(variance),
                               call.rstd.data<double>(), result.data<S>()});
  find_moments<T, S>(call, groups,
                     {eps, call.mean.data<double>(), variance.data<double>(), call.rstd.data<double>()});
  const S* const x = call.x.data<S>();
  S* const y = result.data<S>();
  if (groups.rows)
    return map_groups<false>(
        call.op, device, groups.layout(1),
        ApplyRow<T, S, 1>{x, RowStatistics(statistics_of(call, 1), groups.channels, 1), y});
  by_format<S>(groups, {x, y}, [&](auto width, auto across) {
    map_groups<across>(call.op, device, groups.layout(width),
                       ApplyAffine<T, S, width>{x, statistics_of(call, groups.channels), {}, y});
  });
}

/// Sums of channels of images, then of groups and of channels.
template <class T, class S>
void backward(const GroupNormCall& call, const Tensor& gradient, const Tensor& result, const Tensor& dweight,
              const Tensor& dbias) {
  const Groups groups(call);
  const ChannelView& view = groups.view;
  const Device device = call.x.device();
  const S* const x = call.x.data<S>();
  const S* const dy = gradient.data<S>();
  S* const dx = result.defined() ? result.data<S>() : nullptr;
  const Statistics of = statistics_of(call, groups.channels);
  const Sums each(view.images * view.channels, device);
  const Sums of_groups(groups.count(), device);
  by_format<S>(groups, {dy, x, dx}, [&](auto width, auto across) {
    reduce_groups<across>(call.op, device, groups.layout(width), 1,
                          ReduceGradients<T, S, width>{dy, x, of, {}}, FinishGradients<T>{of, each.data()});
    merge_states<GradientState>(call.op, device, view.channels, view.images,
                                ImageSums{view.channels, each.data()}, StoreParameters(dweight, dbias));
    if (dx == nullptr) return;
    merge_states<GradientState>(call.op, device, groups.count(), groups.channels,
                                WeightedSums{of, each.data()}, StoreSums{of_groups.data()});
    map_groups<across>(call.op, device, groups.layout(width),
                       ApplyGradient<T, S, width>{
                           dy, x, of, of_groups.data(), static_cast<double>(groups.length()), {}, dx});
  });
}

/// The same where a channel of an image is a single element.
template <class T, class S>
void backward_rows(const GroupNormCall& call, const Tensor& gradient, const Tensor& result,
                   const Tensor& dweight, const Tensor& dbias) {
  const Groups groups(call);
  const ChannelView& view = groups.view;
  const Device device = call.x.device();
  const S* const x = call.x.data<S>();
  const S* const dy = gradient.data<S>();
  S* const dx = result.defined() ? result.data<S>() : nullptr;
  const Statistics of = statistics_of(call, 1);
  by_width<S, true>(groups.length(), {dy, x}, [&](auto width, auto) {
    reduce_groups<true>(call.op, device, GroupLayout::down(1, view.images, view.channels, width), 1,
                        ColumnSums<T, S, width>{dy, x, RowStatistics(of, groups.channels, width)},
                        StoreParameters(dweight, dbias));
  });
  if (dx == nullptr) return;
  const Tensor weight = dense_parameter(call.weight);
  if (const NormLines lines = lines_of(groups, weight, {}, {call.x, gradient, result, weight});
      lines.lines.are_held())
    return launch_blocks(call.op, device, lines.lines.blocks(),
                         NormalizeBackwardLines<T, S>{lines, dy, x, of.mean, of.rstd, dx});
  const RowStatistics rows(of, groups.channels, 1);
  const Sums of_groups(groups.count(), device);
  reduce_groups<false>(call.op, device, groups.layout(1), 1, RowSums<T, S, 1>{dy, x, rows},
                       FinishGradients<T>{of, of_groups.data()});
  map_groups<false>(call.op, device, groups.layout(1),
                    ApplyRowGradient<T, S, 1>{dy, x, rows, of_groups.data(), dx});
}

/// Writes mean, variance, rstd and y.
void run_forward(const GroupNormCall& call, double eps, const Tensor& variance, const Tensor& y) {
  by_stored_type(call.x.dtype(),
                 [&]<class T, class S>(Type<T>, Type<S>) { forward<T, S>(call, eps, variance, y); });
}

/// Writes dx, unless it is undefined, and dweight and dbias [C], dense.
void run_backward(const GroupNormCall& call, const Tensor& dy, const Tensor& dx, const Tensor& dweight,
                  const Tensor& dbias) {
  by_stored_type(call.x.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    if (call.view.pixels == 1)
      backward_rows<T, S>(call, dy, dx, dweight, dbias);
    else
      backward<T, S>(call, dy, dx, dweight, dbias);
  });
}

}  // namespace

GroupNormResult group_norm_forward_cuda(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                        const GroupNormOptions& options, const char* op, bool centred) {
  const Tensor dense = channel_dense(x);
  const TensorOptions statistics{.dtype = float64, .device = x.device()};
  const Shape shape{x.size(0), options.num_groups};
  if (x.numel() == 0)
    return {empty_like(dense), zeros(shape, statistics), zeros(shape, statistics), zeros(shape, statistics)};
  GroupNormResult result{empty_like(dense), {}, {}, empty(shape, statistics)};
  if (centred) result.mean = empty(shape, statistics), result.variance = empty(shape, statistics);
  run_forward({op, channel_view(dense), options.num_groups, dense, weight, bias, result.mean, result.rstd},
              options.eps, result.variance, result.y);
  return result;
}

GroupNormGrads group_norm_backward_cuda(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                        const Tensor& mean, const Tensor& rstd,
                                        const GroupNormOptions& options, bool need_input, const char* op) {
  const Tensor dense = channel_dense(x);
  const TensorOptions parameters{.dtype = weight.defined() ? weight.dtype() : compute_dtype(x.dtype()),
                                 .device = x.device()};
  const Shape shape{x.size(1)};
  const bool is_empty = x.numel() == 0;
  const GroupNormGrads grads{need_input ? empty_like(dense) : Tensor(),
                             is_empty ? zeros(shape, parameters) : empty(shape, parameters),
                             is_empty ? zeros(shape, parameters) : empty(shape, parameters)};
  if (!is_empty)
    run_backward({op, channel_view(dense), options.num_groups, dense, weight, {}, mean, rstd},
                 laid_out_as(dy, dense), grads.x, grads.weight, grads.bias);
  return grads;
}

}  // namespace pleat::ops
