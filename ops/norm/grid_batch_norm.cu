#include <cmath>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/fast_divider.h"
#include "pleat/core/grid.h"
#include "pleat/core/grid_elementwise.h"
#include "pleat/ops/norm/float_types.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/per_channel.h"
#include "pleat/ops/norm/running_statistics.h"

/// Batch normalisation on a grid, in both memory formats. Forward: one reading of x for the statistics, one
/// for the result; backward: one reading of dy and x for the sums of each channel, one for dx. Sums are of
/// float64 and around an element of the channel, so that a large mean costs no digits, and their order is
/// fixed.

namespace pleat::ops {
namespace {

constexpr const char* op = "batch_norm";

/// Threads that read a tensor: about what a large GPU holds at once.
constexpr int64_t readers = 131072;
/// Partial sums that one thread adds up.
constexpr int64_t fan_in = 64;

/// Where the elements of a view [images, channels, pixels] lie.
struct Elements {
  FastDivider channels, pixels;
  int64_t values;  ///< of a channel
  bool channels_last;

  explicit Elements(const ChannelView& view)
      : channels(view.channels),
        pixels(view.pixels),
        values(view.images * view.pixels),
        channels_last(view.channels_last) {}

  /// Value number j of channel c.
  PLEAT_HOST_DEVICE int64_t at(int64_t c, int64_t j) const {
    if (channels_last) return j * channels.divisor() + c;
    int64_t pixel = j;
    const int64_t image = pixels.divide(pixel);
    return (image * channels.divisor() + c) * pixels.divisor() + pixel;
  }
  PLEAT_HOST_DEVICE int64_t channel_of(int64_t element) const {
    int64_t rest = channels_last ? element : pixels.divide(element);
    channels.divide(rest);
    return rest;
  }
};

/// Two sums for each channel; `Values` gives what a value adds to them.
struct Two {
  double a = 0, b = 0;
};

/// (x - origin), (x - origin)^2 with the channel's first value as origin.
template <class T>
struct MomentsOf {
  const T* x;

  PLEAT_HOST_DEVICE Two operator()(int64_t element, int64_t first) const {
    const double d = static_cast<double>(x[element]) - static_cast<double>(x[first]);
    return {d, d * d};
  }
};

/// dy, dy (x - mean).
template <class T>
struct GradientsOf {
  const T* dy;
  const T* x;
  const double* mean;
  Elements elements;

  PLEAT_HOST_DEVICE Two operator()(int64_t element, int64_t first) const {
    const double g = static_cast<double>(dy[element]);
    return {g, g * (static_cast<double>(x[element]) - mean[elements.channel_of(first)])};
  }
};

/// sums[c][slot] over the values slot, slot + slots, ... of channel c: neighbouring threads read neighbours.
template <class Values>
struct SumValues {
  Elements elements;
  FastDivider inner;  ///< channels in channels-last format, else slots
  int64_t slots;
  Values values;
  Two* sums;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t rest = index;
    const int64_t outer = inner.divide(rest);
    const int64_t c = elements.channels_last ? rest : outer;
    const int64_t slot = elements.channels_last ? outer : rest;
    const int64_t first = elements.at(c, 0);
    Two total;
    for (int64_t j = slot; j < elements.values; j += slots) {
      const Two value = values(elements.at(c, j), first);
      total.a += value.a;
      total.b += value.b;
    }
    sums[c * slots + slot] = total;
  }
};

struct SumSums {
  FastDivider groups;
  int64_t slots;  ///< of `from` a channel
  const Two* from;
  Two* to;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t group = index;
    const int64_t c = groups.divide(group);
    const int64_t end = (group + 1) * fan_in < slots ? (group + 1) * fan_in : slots;
    Two total;
    for (int64_t slot = group * fan_in; slot < end; ++slot) {
      total.a += from[c * slots + slot].a;
      total.b += from[c * slots + slot].b;
    }
    to[index] = total;
  }
};

Two* pairs(const Tensor& memory) { return reinterpret_cast<Two*>(memory.data<double>()); }

Tensor new_pairs(Device device, int64_t count) {
  return empty({2 * count}, {.dtype = float64, .device = device});
}

/// [C] pairs of sums.
template <class Values>
Tensor channel_sums(const BatchNormProblem& problem, const Elements& elements, const Values& values) {
  const int64_t channels = problem.view.channels;
  const auto clamped = [](int64_t x, int64_t high) { return x < 1 ? 1 : x > high ? high : x; };
  int64_t slots = clamped(readers / channels, clamped(elements.values / 4, elements.values));
  Tensor sums = new_pairs(problem.device, channels * slots);
  grid_for(op, problem.device, channels * slots,
           SumValues<Values>{elements, FastDivider(elements.channels_last ? channels : slots), slots, values,
                             pairs(sums)});
  while (slots > 1) {
    const int64_t groups = (slots + fan_in - 1) / fan_in;
    const Tensor next = new_pairs(problem.device, channels * groups);
    grid_for(op, problem.device, channels * groups,
             SumSums{FastDivider(groups), slots, pairs(sums), pairs(next)});
    sums = next;
    slots = groups;
  }
  return sums;
}

template <class T>
struct FinishMoments {
  Elements elements;
  const T* x;
  const Two* sums;
  double* mean;
  double* variance;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    const auto n = static_cast<double>(elements.values);
    const double offset = sums[c].a / n;
    const double squares = sums[c].b / n - offset * offset;
    mean[c] = static_cast<double>(x[elements.at(c, 0)]) + offset;
    variance[c] = squares > 0 ? squares : 0;
  }
};

/// y = (x - shift) scale + bias; dx = dy scale - (x - shift) slope - offset.
template <class T>
struct Numbers3 {
  T shift, scale, bias;
};
template <class T>
struct Numbers4 {
  T shift, scale, slope, offset;
};

template <class T>
struct ForwardNumbers {
  const double* mean;
  const double* variance;
  const double* weight;
  const double* bias;
  double eps;
  Numbers3<T>* numbers;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    const double scale = weight[c] / std::sqrt(variance[c] + eps);
    const T shift = static_cast<T>(mean[c]);
    // The bias takes the part of the mean that its rounding cuts off.
    const double cut = static_cast<double>(shift) - mean[c];
    numbers[c] = {shift, static_cast<T>(scale), static_cast<T>(bias[c] + cut * scale)};
  }
};

template <class T>
struct BackwardNumbers {
  const double* mean;
  const double* rstd;
  const double* weight;
  const Two* sums;
  double values;
  bool training;
  double* dweight;
  double* dbias;
  Numbers4<T>* numbers;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    dbias[c] = sums[c].a;
    dweight[c] = sums[c].b * rstd[c];
    const double scale = weight[c] * rstd[c];
    const T shift = static_cast<T>(mean[c]);
    const double cut = static_cast<double>(shift) - mean[c];
    const double slope = training ? scale * rstd[c] * dweight[c] / values : 0;
    const double offset = training ? scale * dbias[c] / values + slope * cut : 0;
    numbers[c] = {shift, static_cast<T>(scale), static_cast<T>(slope), static_cast<T>(offset)};
  }
};

/// `width` neighbours at a time, which are of one channel, or in channels-last format of as many channels.
template <class T, std::size_t width>
struct Apply {
  Elements elements;
  const Numbers3<T>* numbers;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    using Block = Vector<T, width>;
    const int64_t c = elements.channel_of(index * static_cast<int64_t>(width));
    Block block = reinterpret_cast<const Block*>(x)[index];
    for (std::size_t j = 0; j < width; ++j) {
      const Numbers3<T> k = numbers[elements.channels_last ? c + static_cast<int64_t>(j) : c];
      block.lane[j] = (block.lane[j] - k.shift) * k.scale + k.bias;
    }
    reinterpret_cast<Block*>(y)[index] = block;
  }
};

template <class T, std::size_t width>
struct ApplyBackward {
  Elements elements;
  const Numbers4<T>* numbers;
  const T* dy;
  const T* x;
  T* dx;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    using Block = Vector<T, width>;
    const int64_t c = elements.channel_of(index * static_cast<int64_t>(width));
    Block block = reinterpret_cast<const Block*>(dy)[index];
    const Block values = reinterpret_cast<const Block*>(x)[index];
    for (std::size_t j = 0; j < width; ++j) {
      const Numbers4<T> k = numbers[elements.channels_last ? c + static_cast<int64_t>(j) : c];
      block.lane[j] = block.lane[j] * k.scale - (values.lane[j] - k.shift) * k.slope - k.offset;
    }
    reinterpret_cast<Block*>(dx)[index] = block;
  }
};

/// Calls `f(std::integral_constant<std::size_t, width>{})` with the number of neighbours that can be moved at
/// once.
template <class T, class F>
void by_width(const ChannelView& view, std::initializer_list<const T*> data, F f) {
  constexpr std::size_t wide = 16 / sizeof(T);
  bool can = (view.channels_last ? view.channels : view.pixels) % static_cast<int64_t>(wide) == 0;
  for (const T* pointer : data)
    can = can && reinterpret_cast<std::uintptr_t>(pointer) % sizeof(Vector<T, wide>) == 0;
  if (can)
    f(std::integral_constant<std::size_t, wide>{});
  else
    f(std::integral_constant<std::size_t, 1>{});
}

class GridNative final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "native"; }

  std::string unsupported(const BatchNormProblem& problem) const override {
    return uses_grid(problem.device) ? "" : "it runs on CUDA";
  }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    by_float_type(problem, t,
                  [&]<class T>(Type<T>, const BatchNormForward& own) { run_forward<T>(problem, own); });
  }

  void backward(const BatchNormProblem& problem, const BatchNormBackward& t) const override {
    by_float_type(problem, t,
                  [&]<class T>(Type<T>, const BatchNormBackward& own) { run_backward<T>(problem, own); });
  }

 private:
  template <class T>
  static void run_forward(const BatchNormProblem& problem, const BatchNormForward& t) {
    const Elements elements(problem.view);
    const int64_t channels = problem.view.channels;
    const T* const x = t.x.data<T>();
    T* const y = t.y.data<T>();
    double* const mean = t.mean.data<double>();
    double* const variance = t.variance.data<double>();
    if (problem.training) {
      const Tensor sums = channel_sums(problem, elements, MomentsOf<T>{x});
      grid_for(op, problem.device, channels, FinishMoments<T>{elements, x, pairs(sums), mean, variance});
    }
    const Tensor weight = per_channel_on(t.weight, problem.view.channels, 1, problem.device);
    const Tensor bias = per_channel_on(t.bias, problem.view.channels, 0, problem.device);
    const Tensor memory = empty({3 * channels}, {.dtype = dtype_of<T>(), .device = problem.device});
    auto* const numbers = reinterpret_cast<Numbers3<T>*>(memory.data<T>());
    grid_for(
        op, problem.device, channels,
        ForwardNumbers<T>{mean, variance, weight.data<double>(), bias.data<double>(), problem.eps, numbers});
    by_width<T>(problem.view, {x, y}, [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
      grid_for(op, problem.device, channels * elements.values / static_cast<int64_t>(width),
               Apply<T, width>{elements, numbers, x, y});
    });
  }

  template <class T>
  static void run_backward(const BatchNormProblem& problem, const BatchNormBackward& t) {
    const Elements elements(problem.view);
    const int64_t channels = problem.view.channels;
    const T* const dy = t.dy.data<T>();
    const T* const x = t.x.data<T>();
    const double* const mean = t.mean.data<double>();
    const Tensor sums = channel_sums(problem, elements, GradientsOf<T>{dy, x, mean, elements});
    const Tensor weight = per_channel_on(t.weight, problem.view.channels, 1, problem.device);
    const Tensor memory = empty({4 * channels}, {.dtype = dtype_of<T>(), .device = problem.device});
    auto* const numbers = reinterpret_cast<Numbers4<T>*>(memory.data<T>());
    grid_for(op, problem.device, channels,
             BackwardNumbers<T>{mean, t.rstd.data<double>(), weight.data<double>(), pairs(sums),
                                static_cast<double>(elements.values), problem.training,
                                t.dweight.data<double>(), t.dbias.data<double>(), numbers});
    if (!t.dx.defined()) return;
    T* const dx = t.dx.data<T>();
    by_width<T>(problem.view, {dy, x, dx},
                [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
                  grid_for(op, problem.device, channels * elements.values / static_cast<int64_t>(width),
                           ApplyBackward<T, width>{elements, numbers, dy, x, dx});
                });
  }
};

struct UpdateRunning {
  double momentum, factor;
  const double* batch;
  DType dtype;
  std::byte* running;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    const double r = load_as<double>(running, c, dtype);
    store_as(running, c, dtype, r + momentum * (batch[c] * factor - r));
  }
};

struct ReciprocalDeviation {
  double eps;
  const double* variance;
  double* rstd;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const { rstd[c] = 1 / std::sqrt(variance[c] + eps); }
};

}  // namespace

const BatchNormImplementation& grid_native_batch_norm() {
  static const GridNative native;
  return native;
}

void update_running(const Tensor& running, const Tensor& batch, double momentum, double factor) {
  const Tensor dense = to_format(running, MemoryFormat::contiguous);
  grid_for(op, running.device(), running.numel(),
           UpdateRunning{momentum, factor, batch.data<double>(), running.dtype(), dense.raw()});
  if (dense.raw() != running.raw())
    copy_into(running, dense);
  else
    running.bump_version();
}

Tensor reciprocal_deviation(const Tensor& variance, double eps) {
  const Tensor rstd = empty(variance.shape(), {.dtype = float64, .device = variance.device()});
  grid_for(op, variance.device(), rstd.numel(),
           ReciprocalDeviation{eps, variance.data<double>(), rstd.data<double>()});
  return rstd;
}

}  // namespace pleat::ops
