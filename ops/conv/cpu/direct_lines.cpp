#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "pleat/core/base/simd.h"
#include "pleat/core/base/small_vector.h"
#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/nhwc.h"

/// Depthwise convolution of fewer channels than a vector has lanes (filters of pictures, their gradients): a
/// vector lies along a line's pixels and their channels, which follow one another in memory. A tap reads the
/// same line some pixels further, so of each tap as many vectors of weights are kept as the channels take to
/// fall on the same lanes again. Lines of the source are copied with their padding, and, where the gather
/// steps, each class of every `source_step`th pixel by itself.

namespace pleat::ops {
namespace {

using simd::for_constants;
using simd::lanes;
using simd::Vector;

/// Elements of the result that a task computes, about.
constexpr int64_t elements_of_task = 16384;
constexpr int64_t longest_period = 7;
constexpr double most_elements_read = 1 << 20;

/// Vectors after which the channels fall on the same lanes again.
template <class T>
int64_t period_of(int64_t channels) {
  return channels / std::gcd(channels, lanes<T>);
}

/// Of other gathers the kernel for lanes computes as many channels as are 16 bytes with vectors, and needs no
/// copy, which costs more than it saves where the gather steps or lines are short.
template <class T>
bool lines_suit(const Gather& gather) {
  constexpr int64_t fewest_channels = 16 / static_cast<int64_t>(sizeof(T)), fewest_vectors = 7;
  const int64_t channels = gather.result_pitch();
  if (gather.source_channels != 1 || gather.result_channels != 1 || channels >= lanes<T> ||
      period_of<T>(channels) > longest_period)
    return false;
  const auto& [slices, rows, columns] = gather.dims;
  if (channels >= fewest_channels &&
      (columns.source_step > 1 || columns.count * channels < fewest_vectors * lanes<T>))
    return false;
  // Taps may lie far apart.
  const double read = static_cast<double>(slices.taps.size()) *
                      static_cast<double>(rows.reach() + rows.source_step) *
                      static_cast<double>(columns.source_step * columns.count + columns.reach());
  return read * static_cast<double>(channels) <= most_elements_read;
}

/// Calls `f` with the period as a constant.
template <class T, class F>
void by_period(int64_t channels, const F& f) {
  const int64_t period = period_of<T>(channels);
  if (period == 1) f(std::integral_constant<int, 1>());
  if (period == 3) f(std::integral_constant<int, 3>());
  if (period == 5) f(std::integral_constant<int, 5>());
  if (period == 7) f(std::integral_constant<int, 7>());
}

/// Where a tap begins to read for a line of the result, and its number.
template <class T>
struct LineTap {
  const T* from;
  int64_t tap;
};
template <class T>
using LineTaps = SmallVector<LineTap<T>, 32>;

/// How a gather is cut: tasks compute some lines of one slice of an image.
template <class T>
class LinePlan {
 public:
  explicit LinePlan(const Gather& gather)
      : gather_(gather),
        channels_(gather.result_pitch()),
        vectors_(period_of<T>(channels_)),
        lines_(std::clamp<int64_t>(std::min(elements_of_task, gather.pixels() * channels_ / tasks_wanted) /
                                       (columns().count * channels_),
                                   1, rows().count)),
        read_((lines_ - 1) * rows().source_step + rows().reach()),
        pixels_(columns().count + (columns().reach() - 1) / columns().source_step),
        class_elements_(pixels_ * channels_ + vectors_ * lanes<T>),
        is_read_(static_cast<std::size_t>(read_)) {
    for (int64_t line = 0; line < lines_; ++line)
      for (const GatherDim::Tap& tap : rows().taps)
        is_read_[static_cast<std::size_t>(line * rows().source_step + tap.offset - rows().low())] = true;
  }

  int64_t channels() const { return channels_; }
  int64_t vectors() const { return vectors_; }
  int64_t count() const { return gather_.batch * gather_.dims[0].count * ceil_div(rows().count, lines_); }
  /// Elements of a line of the result.
  int64_t of_line() const { return columns().count * channels_; }
  /// The same, and what is computed beyond its end, a period at most.
  int64_t stage_elements() const { return of_line() + vectors_ * lanes<T>; }
  int64_t buffer_elements() const { return slices() * read_ * line_elements(); }
  /// Of a tap the weights for one period.
  int64_t weights_of_tap() const { return vectors_ * lanes<T>; }
  int64_t weight_elements() const { return gather_.taps() * weights_of_tap(); }

  struct Task {
    int64_t image, slice, first_line, lines;
  };
  Task task(int64_t index) const {
    const int64_t parts = ceil_div(rows().count, lines_), first = index % parts * lines_;
    return {index / parts / gather_.dims[0].count, index / parts % gather_.dims[0].count, first,
            std::min(lines_, rows().count - first)};
  }

  /// The source's lines that a task reads, padded.
  void fill(const Task& task, const T* source, T* buffer) const {
    const int64_t lines = (task.lines - 1) * rows().source_step + rows().reach();
    for (int64_t t = 0; t < slices(); ++t)
      for (int64_t i = 0; i < lines; ++i) {
        const int64_t line = source_line(task, i);
        if (is_read_[static_cast<std::size_t>(i)] && inside(slice_of(task, t), 0) && inside(line, 1))
          copy_line(
              source + ((task.image * gather_.source[0] + slice_of(task, t)) * gather_.source[1] + line) *
                           gather_.source[2] * channels_,
              buffer + (t * read_ + i) * line_elements());
      }
  }

  /// What a line of the task's result reads of its buffer: the taps inside the source.
  void list_taps(const Task& task, int64_t line, const T* buffer, LineTaps<T>& taps) const {
    taps.clear();
    int64_t tap = -1;
    for (int64_t t = 0; t < slices(); ++t)
      for (const GatherDim::Tap& row : rows().taps) {
        const int64_t at = line * rows().source_step + row.offset - rows().low();
        const bool is_inside = inside(slice_of(task, t), 0) && inside(source_line(task, at), 1);
        for (const GatherDim::Tap& column : columns().taps) {
          ++tap;
          if (!is_inside) continue;
          const int64_t pixel = column.offset - columns().low(), step = columns().source_step;
          taps.push_back({buffer + (t * read_ + at) * line_elements() + pixel % step * class_elements_ +
                              pixel / step * channels_,
                          tap});
        }
      }
  }

  /// The first pixel of a line of the task's result.
  int64_t first_row(const Task& task, int64_t line) const {
    const auto& [d, r, c] = gather_.dims;
    const int64_t slice = task.image * gather_.result[0] + d.first + d.step * task.slice;
    return (slice * gather_.result[1] + r.first + r.step * (task.first_line + line)) * gather_.result[2] +
           c.first;
  }

 private:
  const GatherDim& rows() const { return gather_.dims[1]; }
  const GatherDim& columns() const { return gather_.dims[2]; }
  int64_t slices() const { return static_cast<int64_t>(gather_.dims[0].taps.size()); }
  int64_t line_elements() const { return columns().source_step * class_elements_; }
  bool inside(int64_t at, std::size_t d) const { return at >= 0 && at < gather_.source[d]; }
  int64_t slice_of(const Task& task, int64_t tap) const {
    return task.slice * gather_.dims[0].source_step +
           gather_.dims[0].taps[static_cast<std::size_t>(tap)].offset;
  }
  int64_t source_line(const Task& task, int64_t i) const {
    return task.first_line * rows().source_step + rows().low() + i;
  }

  void copy_line(const T* line, T* to) const {
    const int64_t step = columns().source_step;
    for (int64_t of_class = 0; of_class < step; ++of_class, to += class_elements_) {
      const int64_t first = columns().low() + of_class;
      const int64_t begin = std::clamp<int64_t>(ceil_div(-first, step), 0, pixels_);
      const int64_t end = std::clamp<int64_t>(ceil_div(gather_.source[2] - first, step), begin, pixels_);
      std::fill(to, to + begin * channels_, T(0));
      std::fill(to + end * channels_, to + class_elements_, T(0));
      const T* from = line + (first + begin * step) * channels_;
      if (step == 1)
        std::copy_n(from, (end - begin) * channels_, to + begin * channels_);
      else
        copy_pixels(from, step, end - begin, to + begin * channels_);
    }
  }

  /// Every `step`th pixel, of 1 to 3 channels: lines_suit has no others where the gather steps.
  void copy_pixels(const T* from, int64_t step, int64_t count, T* to) const {
    const auto copy = [&](auto channels) {
      for (int64_t i = 0; channels == channels_ && i < count; ++i)
        for (int64_t c = 0; c < channels; ++c) to[i * channels + c] = from[i * step * channels + c];
    };
    for_constants<4>(copy);
  }

  Gather gather_;
  int64_t channels_;
  int64_t vectors_;            ///< of a period
  int64_t lines_;              ///< of a task's result
  int64_t read_;               ///< lines of the source that these read
  int64_t pixels_;             ///< of a class of a line's pixels
  int64_t class_elements_;     ///< and what is read beyond them
  std::vector<bool> is_read_;  ///< of the lines
};

/// `count` vectors of what pixels have in turn.
template <class T, class At>
void repeat_channels(int64_t channels, int64_t count, const At& at, T* to) {
  for (int64_t i = 0; i < count * lanes<T>; ++i) to[i] = at(i % channels);
}

/// to = start + the sum over taps of the elements `first` to `count`, `period` * `times` vectors at once.
/// Returns the first that is left.
template <class T, int period, int times>
int64_t sum_taps(const LineTaps<T>& taps, const T* weights, const T* start, int64_t first, int64_t count,
                 T* to) {
  constexpr int64_t together = period * times * lanes<T>;
  for (; count - first >= together; first += together) {
    Vector<T> total[times][period];
    for_constants<period>([&](auto v) {
      for_constants<times>([&](auto i) { total[i][v] = simd::load(start + v * lanes<T>); });
    });
    for (const LineTap<T>& tap : taps) {
      const T* const x = tap.from + first;
      const T* const w = weights + tap.tap * period * lanes<T>;
      for_constants<period>([&](auto v) {
        const Vector<T> weight = simd::load(w + v * lanes<T>);
        for_constants<times>(
            [&](auto i) { total[i][v] += simd::load(x + (i * period + v) * lanes<T>) * weight; });
      });
    }
    for_constants<times>([&](auto i) {
      for_constants<period>(
          [&](auto v) { simd::store(to + first + (i * period + v) * lanes<T>, total[i][v]); });
    });
  }
  return first;
}

/// Periods that are computed together: they share loads of the weights, and their sums fill registers.
constexpr int periods_together(int period) { return period == 1 ? 8 : period == 3 ? 4 : 2; }

template <class T>
GatherTasks<T> line_tasks(const Gather& gather, const GatherWeights<T>& weights) {
  const LinePlan<T> plan(gather);
  const auto packed = weights.packed(plan.weight_elements(), [&](T* to) {
    for (std::size_t tap = 0; tap < weights.taps.size(); ++tap, to += plan.weights_of_tap())
      repeat_channels(
          plan.channels(), plan.vectors(),
          [&](int64_t c) { return weights.data[weights.taps[tap] * weights.tap + c * weights.group]; }, to);
  });
  const int64_t step = gather.dims[2].step;
  const auto run = [=](int64_t index, const GatherOperands<T>& operands) {
    const int64_t channels = plan.channels(), of_line = plan.of_line();
    const auto memory = scratch<T>(plan.buffer_elements() + plan.stage_elements() + plan.weights_of_tap());
    T* const buffer = elements_of<T>(memory);
    T* const stage = buffer + plan.buffer_elements();
    T* const start = stage + plan.stage_elements();
    repeat_channels(
        channels, plan.vectors(),
        [&](int64_t c) { return operands.bias != nullptr ? operands.bias[c] : T(0); }, start);
    const auto task = plan.task(index);
    plan.fill(task, operands.source, buffer);
    LineTaps<T> taps;
    std::vector<int64_t> rows;
    for (int64_t line = 0; line < task.lines; ++line) {
      plan.list_taps(task, line, buffer, taps);
      T* const y = operands.y + plan.first_row(task, line) * channels;
      // What is left of a line, and lines of pixels that lie apart, are computed in the stage.
      T* const to = step == 1 ? y : stage;
      by_period<T>(channels, [&](auto period) {
        const T* const w = elements_of<T>(packed);
        int64_t done = sum_taps<T, period, periods_together(period)>(taps, w, start, 0, of_line, to);
        done = sum_taps<T, period, 1>(taps, w, start, done, of_line, to);
        if (done == of_line) return;
        sum_taps<T, period, 1>(taps, w, start, done, done + period * lanes<T>, stage);
        if (step == 1) std::copy(stage + done, stage + of_line, y + done);
      });
      for (int64_t i = 0; step > 1 && i < of_line; i += channels)
        copy_channels(stage + i, channels, y + i * step);
      if (!operands.completion.finish) continue;
      rows.clear();
      for (int64_t i = 0; i < of_line; i += channels)
        rows.push_back(plan.first_row(task, line) + i / channels * step);
      operands.completion.finish_rows(0, channels, {operands.y, channels, false}, rows.data(), channels,
                                      static_cast<int64_t>(rows.size()));
    }
  };
  return {plan.count(), run};
}

template <class T>
GatherMemory lines_memory(const Gather& gather) {
  constexpr int64_t element = sizeof(T);
  const LinePlan<T> plan(gather);
  return {plan.weight_elements() * element,
          (plan.buffer_elements() + plan.stage_elements() + plan.weights_of_tap()) * element};
}

/// Taps of a tile of the gradient of the weight, with a sum for each vector of a period.
constexpr int taps_together(int period) { return period == 1 ? 12 : period == 3 ? 6 : period == 5 ? 4 : 3; }

/// sums[tap] += the products of a line of dy, of `count` elements, and what taps read.
template <class T, int period>
void add_line(const LineTaps<T>& taps, const T* dy, int64_t count, T* sums) {
  using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  constexpr int together = taps_together(period);
  constexpr int64_t step = period * lanes<T>;
  Vector<Index> lane;
  for (int64_t i = 0; i < lanes<T>; ++i) lane[i] = static_cast<Index>(i);
  for (std::size_t first = 0; first < taps.size(); first += together) {
    // Of fewer taps the last one is computed again.
    const T* x[together];
    for (std::size_t i = 0; i < together; ++i) x[i] = taps[std::min(first + i, taps.size() - 1)].from;
    Vector<T> total[together][period] = {};
    // Beyond the end of the line a tap may read an infinity, which is none of its.
    const auto add = [&](int64_t at, auto is_last) {
      for_constants<period>([&](auto v) {
        const Vector<T> gradient = simd::load(dy + at + v * lanes<T>);
        const auto inside = lane < static_cast<Index>(std::min(count - at, step) - v * lanes<T>);
        for_constants<together>([&](auto i) {
          const Vector<T> product = simd::load(x[i] + at + v * lanes<T>) * gradient;
          total[i][v] += is_last ? (inside ? product : Vector<T>{}) : product;
        });
      });
    };
    int64_t at = 0;
    for (; count - at >= step; at += step) add(at, std::false_type());
    if (at < count) add(at, std::true_type());
    for_constants<together>([&](auto i) {
      if (first + i >= taps.size()) return;
      T* const sum = sums + taps[first + i].tap * step;
      for_constants<period>(
          [&](auto v) { simd::store(sum + v * lanes<T>, simd::load(sum + v * lanes<T>) + total[i][v]); });
    });
  }
}

/// Tasks of neighbouring lines whose sums are one chunk.
template <class T>
int64_t chunks_of(const LinePlan<T>& plan) {
  return std::min(plan.count(), tasks_wanted);
}

template <class T>
void weight_gradient(const Gather& gather, const T* dy, const T* x, T* dw) {
  const LinePlan<T> plan(gather);
  const int64_t chunks = chunks_of(plan), size = plan.weight_elements(), channels = plan.channels();
  const auto partials = scratch<T>(chunks * size);
  T* const sums = elements_of<T>(partials);
  parallel_chunks(chunks, [&](int64_t chunk) {
    const auto memory = scratch<T>(plan.buffer_elements() + plan.stage_elements());
    T* const buffer = elements_of<T>(memory);
    T* const stage = buffer + plan.buffer_elements();
    T* const own = sums + chunk * size;
    std::fill_n(own, size, T(0));
    std::fill_n(stage, plan.stage_elements(), T(0));
    LineTaps<T> taps;
    for (int64_t index = plan.count() * chunk / chunks; index < plan.count() * (chunk + 1) / chunks;
         ++index) {
      const auto task = plan.task(index);
      plan.fill(task, x, buffer);
      for (int64_t line = 0; line < task.lines; ++line) {
        plan.list_taps(task, line, buffer, taps);
        std::copy_n(dy + plan.first_row(task, line) * channels, plan.of_line(), stage);
        by_period<T>(channels, [&](auto period) { add_line<T, period>(taps, stage, plan.of_line(), own); });
      }
    }
  });
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t tap = 0; tap < gather.taps(); ++tap) {
      T total = 0;
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        for (int64_t i = c; i < plan.weights_of_tap(); i += channels)
          total += sums[chunk * size + tap * plan.weights_of_tap() + i];
      dw[c * gather.taps() + tap] = total;
    }
}

template <class T>
int64_t weight_workspace(const Gather& gather) {
  const LinePlan<T> plan(gather);
  return (num_threads() * (plan.buffer_elements() + plan.stage_elements()) +
          chunks_of(plan) * plan.weight_elements()) *
         static_cast<int64_t>(sizeof(T));
}

}  // namespace

template <class T>
DirectKernel<T> lines_kernel() {
  return {lines_suit<T>, line_tasks<T>, lines_memory<T>};
}
template <class T>
DirectWeightKernel<T> lines_weight_kernel() {
  return {lines_suit<T>, weight_gradient<T>, weight_workspace<T>};
}
template DirectKernel<float> lines_kernel();
template DirectKernel<double> lines_kernel();
template DirectWeightKernel<float> lines_weight_kernel();
template DirectWeightKernel<double> lines_weight_kernel();

}  // namespace pleat::ops
