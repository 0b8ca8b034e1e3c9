#include <algorithm>
#include <optional>

#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/conv/cuda/unfold.h"

/// The channels-last form: U [group][row, tap C/g] of rows (output pixels of many images) times the weights
/// [K, tap C/g] is the result as it lies.

namespace pleat::ops {
namespace {

using namespace cuda_unfold;

/// Rows unfolded at once; whole images where one fits.
int64_t rows_of_chunk(const ConvProblem& p) {
  const int64_t row_bytes = p.groups * p.depth() * element_bytes(p);
  const int64_t rows = std::max<int64_t>(1, chunk_bytes() / row_bytes);
  const int64_t image = p.output_pixels();
  return std::min(p.batch * image, rows > image ? rows / image * image : rows);
}

/// How many elements the rows of U lie apart in x itself, where they do: pointwise convolutions, and windows
/// along w that neither overlap nor leave a gap at the end of an image's line. Windows in two dimensions that
/// do not overlap (patches) are unfolded: one product for each line of a kernel, which has no more than a
/// line's rows and adds to the result, would cost more than writing the input once in another order.
std::optional<int64_t> rows_in_input(const ConvProblem& p) {
  if (!p.is_pointwise(0) || !p.is_pointwise(1) || p.padding_low[2] != 0) return std::nullopt;
  const bool one_tap = p.kernel[2] == 1;
  if (!one_tap && (p.groups != 1 || p.dilation[2] != 1 || p.stride[2] < p.kernel[2])) return std::nullopt;
  const bool in_step = p.input[2] == p.output[2] * p.stride[2];
  const bool one_line =
      p.batch * p.input[0] * p.input[1] == 1 && (p.output[2] - 1) * p.stride[2] + p.kernel[2] <= p.input[2];
  if (!in_step && !one_line) return std::nullopt;
  return p.stride[2] * p.in_channels;
}

/// Whether the rows of U are the whole of the input, so that dU is dx.
bool rows_are_input(const ConvProblem& p) {
  return p.groups == 1 && rows_in_input(p) == p.depth() && p.input[2] == p.output[2] * p.stride[2];
}

/// U[group][row][tap][channel] for `width` neighbouring channels.
template <class T, std::size_t width>
struct UnfoldNhwc {
  Window window;
  PixelOf pixel;
  FastDivider vectors, taps, kernel_h, kernel_w, rows;
  int64_t channels;  ///< of the input, all groups
  int64_t first;     ///< row
  const T* x;
  T* u;

  UnfoldNhwc(const ConvProblem& p, int64_t first_row, int64_t row_count, const T* x_, T* u_)
      : window(p),
        pixel(p.output),
        vectors(p.group_in() / static_cast<int64_t>(width)),
        taps(p.taps()),
        kernel_h(p.kernel[1]),
        kernel_w(p.kernel[2]),
        rows(row_count),
        channels(p.in_channels),
        first(first_row),
        x(x_),
        u(u_) {}

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    using Block = Vector<T, width>;
    int64_t vector = index;
    int64_t tap = vectors.divide(vector);
    int64_t row = taps.divide(tap);
    const int64_t group = rows.divide(row);
    int64_t s = tap;
    int64_t r = kernel_w.divide(s);
    const int64_t t = kernel_h.divide(r);
    const auto at = pixel(first + row);
    const int64_t d = window.input_of(0, at.d, t);
    const int64_t h = window.input_of(1, at.h, r);
    const int64_t w = window.input_of(2, at.w, s);
    Block block{};
    if (d >= 0 && h >= 0 && w >= 0)
      block =
          *reinterpret_cast<const Block*>(x + window.input_pixel(at.n, d, h, w) * channels +
                                          (group * vectors.divisor() + vector) * static_cast<int64_t>(width));
    reinterpret_cast<Block*>(u)[index] = block;
  }
};

/// The rows of dU that a launch folds: those of whole images, or some of one image's.
struct RowRange {
  int64_t image, images;
  int64_t first, count;  ///< rows, from those of `image` on
};

/// dx[row of an input pixel][channel] = before + sum of dU over the windows that read it.
template <class T, std::size_t width>
struct FoldNhwc {
  using Total = Sum<T>;
  Window window;
  PixelOf pixel;
  FastDivider vectors, groups;
  RowRange range;
  int64_t output_pixels, taps;
  const Total* du;
  const Total* before;  ///< null: nothing
  T* dx;                ///< or, where `sums` is not null, that instead
  Total* sums;

  FoldNhwc(const ConvProblem& p, const RowRange& rows, const Total* du_, const Total* before_, T* dx_,
           Total* sums_)
      : window(p),
        pixel(p.input),
        vectors(p.group_in() / static_cast<int64_t>(width)),
        groups(p.groups),
        range(rows),
        output_pixels(p.output_pixels()),
        taps(p.taps()),
        du(du_),
        before(before_),
        dx(dx_),
        sums(sums_) {}

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    using Block = Vector<Total, width>;
    int64_t vector = index;
    int64_t group = vectors.divide(vector);
    const int64_t row = groups.divide(group);
    const auto at = pixel(row);
    Block total{};
    if (before != nullptr) total = reinterpret_cast<const Block*>(before)[index];
    window.for_each_reader(at.d, at.h, at.w, [&](int64_t tap, int64_t output) {
      const int64_t from = at.n * output_pixels + output - range.first;
      if (from < 0 || from >= range.count) return;
      const Block block = reinterpret_cast<const Block*>(
          du)[((group * range.count + from) * taps + tap) * vectors.divisor() + vector];
      for (std::size_t j = 0; j < width; ++j) total.lane[j] += block.lane[j];
    });
    if (sums != nullptr) {
      reinterpret_cast<Block*>(sums)[index] = total;
      return;
    }
    Vector<T, width> rounded;
    for (std::size_t j = 0; j < width; ++j) rounded.lane[j] = convert<T>(total.lane[j]);
    reinterpret_cast<Vector<T, width>*>(dx)[index] = rounded;
  }
};

/// w [K, taps, C/g] as [group][flipped tap, K/g][C/g].
template <class T>
struct FlipWeightsNhwc {
  FastDivider channels, group_out, taps;
  const T* w;
  T* flipped;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t c = index;
    int64_t k = channels.divide(c);
    int64_t tap = group_out.divide(k);
    const int64_t group = taps.divide(tap);
    const int64_t from = (group * group_out.divisor() + k) * taps.divisor() + (taps.divisor() - 1 - tap);
    flipped[index] = w[from * channels.divisor() + c];
  }
};

/// The rows of U, some at a time: unfolded, or found in x.
template <class T>
class RowsOfU {
 public:
  RowsOfU(const ConvProblem& p, const T* x)
      : p_(p), x_(x), in_input_(rows_in_input(p)), u_(scratch_on<T>(p.device, elements(p))) {}

  static int64_t elements(const ConvProblem& p) {
    return rows_in_input(p) ? 0 : rows_of_chunk(p) * p.groups * p.depth();
  }
  /// Rows that can be had at once.
  int64_t most() const { return in_input_ ? p_.batch * p_.output_pixels() : rows_of_chunk(p_); }

  struct Matrices {
    const T* data;
    int64_t leading;
    int64_t group_step;
  };
  /// Those from `first` on, of each group.
  Matrices get(int64_t first, int64_t count) const {
    if (in_input_) return {x_ + first * *in_input_, *in_input_, p_.group_in()};
    by_width<16 / sizeof(T), T>(p_.group_in(), {x_}, [&](auto width) {
      launch_indices(op, p_.device, p_.groups * count * p_.depth() / static_cast<int64_t>(width()),
                     UnfoldNhwc<T, width()>(p_, first, count, x_, u_.template data<T>()));
    });
    return {u_.template data<T>(), p_.depth(), count * p_.depth()};
  }

 private:
  ConvProblem p_;
  const T* x_;
  std::optional<int64_t> in_input_;
  Tensor u_;
};

/// The weights of each group as a matrix [depth, K/g], transposed or not.
template <class T>
struct GroupWeights {
  const T* data;
  int64_t leading;
  bool transposed;
};

/// y = U(x) w (+ bias).
template <class T>
void multiply_unfolded(const ConvProblem& p, const T* x, const GroupWeights<T>& w, const T* bias, T* y) {
  const int64_t rows = p.batch * p.output_pixels();
  const RowsOfU<T> u(p, x);
  if (bias != nullptr) fill_bias(p, bias, rows, 1, y);
  for (int64_t first = 0; first < rows; first += u.most()) {
    const int64_t count = std::min(u.most(), rows - first);
    const auto part = u.get(first, count);
    cublas_gemm(op, p.device,
                GemmBatch<T>{.first = {.m = count,
                                       .n = p.group_out(),
                                       .k = p.depth(),
                                       .a = part.data,
                                       .lda = part.leading,
                                       .b = w.data,
                                       .ldb = w.leading,
                                       .transpose_b = w.transposed,
                                       .c = y + first * p.out_channels,
                                       .ldc = p.out_channels,
                                       .accumulate = bias != nullptr},
                             .batch = p.groups,
                             .a_step = part.group_step,
                             .b_step = p.group_out() * p.depth(),
                             .c_step = p.group_out()});
  }
}

/// Rows of dU at once: of whole images, or of a part of one.
int64_t rows_of_fold(const ConvProblem& p) {
  const int64_t row_bytes = p.groups * p.depth() * sum_bytes(p);
  const int64_t image = p.output_pixels();
  if (image * row_bytes <= chunk_bytes())
    return std::min(p.batch, chunk_bytes() / (image * row_bytes)) * image;
  return std::clamp<int64_t>(image_bytes() / row_bytes, 1, image);
}

/// Sums of half types that wait for the rest of an image's rows are float.
bool keeps_sums(const ConvProblem& p) { return is_half(p.dtype) && rows_of_fold(p) < p.output_pixels(); }

/// dU of some rows = dy w, as float where T is a half type.
template <class T, class Out>
void multiply_rows(const ConvProblem& p, const T* dy, int64_t rows, const T* w, Out* du) {
  cublas_gemm(op, p.device,
              GemmBatch<T, Out>{.first = {.m = rows,
                                          .n = p.depth(),
                                          .k = p.group_out(),
                                          .a = dy,
                                          .lda = p.out_channels,
                                          .b = w,
                                          .ldb = p.depth(),
                                          .c = du,
                                          .ldc = p.depth()},
                                .batch = p.groups,
                                .a_step = p.group_out(),
                                .b_step = p.group_out() * p.depth(),
                                .c_step = rows * p.depth()});
}

/// dx = fold(dy w), some images, or a part of one, at a time.
template <class T>
void fold_products(const ConvProblem& p, const T* dy, const T* w, T* dx) {
  using Total = Sum<T>;
  const int64_t most = rows_of_fold(p);
  const int64_t image_rows = p.output_pixels();
  const int64_t image_size = p.input_pixels() * p.in_channels;
  const Tensor du = scratch_on<Total>(p.device, most * p.groups * p.depth());
  const Tensor kept = scratch_on<Total>(p.device, keeps_sums(p) ? image_size : 0);
  const auto fold = [&](const RowRange& range, bool is_first, bool is_last) {
    multiply_rows(p, dy + (range.image * image_rows + range.first) * p.out_channels, range.count, w,
                  du.data<Total>());
    T* const to = dx + range.image * image_size;
    Total* sums = nullptr;
    if constexpr (std::is_same_v<T, Total>)
      sums = to;
    else if (!is_first || !is_last)
      sums = kept.data<Total>();
    by_width<16 / sizeof(Total), T>(p.group_in(), {dx}, [&](auto width) {
      launch_indices(op, p.device, range.images * image_size / static_cast<int64_t>(width()),
                     FoldNhwc<T, width()>(p, range, du.data<Total>(), is_first ? nullptr : sums, to,
                                          is_last ? nullptr : sums));
    });
  };
  if (most >= image_rows) {
    const int64_t images = most / image_rows;
    for (int64_t n = 0; n < p.batch; n += images) {
      const int64_t count = std::min(images, p.batch - n);
      fold({n, count, 0, count * image_rows}, true, true);
    }
    return;
  }
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t first = 0; first < image_rows; first += most) {
      const int64_t count = std::min(most, image_rows - first);
      fold({n, 1, first, count}, first == 0, first + count == image_rows);
    }
}

/// dw [K, depth] = dy' U(x), summed over the chunks in order.
template <class T>
void multiply_transposed(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const int64_t rows = p.batch * p.output_pixels();
  const RowsOfU<T> u(p, x);
  WeightSum<T> sum(p, u.most());
  for (int64_t first = 0; first < rows; first += u.most()) {
    const int64_t count = std::min(u.most(), rows - first);
    const auto part = u.get(first, count);
    sum.add({.m = p.group_out(),
             .n = p.depth(),
             .a = dy + first * p.out_channels,
             .lda = p.out_channels,
             .transpose_a = true,
             .b = part.data,
             .ldb = part.leading,
             .ldc = p.depth()},
            count, {.a = p.out_channels, .b = part.leading}, {.a = p.group_out(), .b = part.group_step},
            first + count == rows, dw);
  }
}

class NhwcForm : public UnfoldForm {
 public:
  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    const int64_t weights = p.out_channels * p.depth();
    if (pass == ConvPass::forward) return RowsOfU<float>::elements(p) * element_bytes(p);
    if (pass == ConvPass::backward_weight) {
      const int64_t rows = rows_in_input(p) ? p.batch * p.output_pixels() : rows_of_chunk(p);
      return RowsOfU<float>::elements(p) * element_bytes(p) +
             WeightSum<float>::elements(p, rows) * sum_bytes(p);
    }
    if (rows_are_input(p)) return 0;
    if (p.stride == Spatial{1, 1, 1})
      return (RowsOfU<float>::elements(transposed_problem(p)) + (p.taps() == 1 ? 0 : weights)) *
             element_bytes(p);
    return (rows_of_fold(p) * p.groups * p.depth() + (keeps_sums(p) ? p.input_pixels() * p.in_channels : 0)) *
           sum_bytes(p);
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      multiply_unfolded(p, x.data<T>(), GroupWeights<T>{w.data<T>(), p.depth(), true},
                        bias.defined() ? bias.data<T>() : nullptr, y.data<T>());
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      const T* weights = w.data<T>();
      if (rows_are_input(p))
        return multiply_rows(p, dy.data<T>(), p.batch * p.output_pixels(), weights, dx.data<T>());
      if (p.stride != Spatial{1, 1, 1}) return fold_products(p, dy.data<T>(), weights, dx.data<T>());
      const Tensor memory = scratch_on<T>(p.device, p.taps() == 1 ? 0 : w.numel());
      if (p.taps() > 1) {
        launch_indices(op, p.device, memory.numel(),
                       FlipWeightsNhwc<T>{FastDivider(p.group_in()), FastDivider(p.group_out()),
                                          FastDivider(p.taps()), weights, memory.data<T>()});
        weights = memory.data<T>();
      }
      multiply_unfolded<T>(transposed_problem(p), dy.data<T>(), {weights, p.group_in(), false}, nullptr,
                           dx.data<T>());
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_stored_type(
        p, [&]<class T>(Type<T>) { multiply_transposed(p, dy.data<T>(), x.data<T>(), dw.data<T>()); });
  }
};

}  // namespace

const UnfoldForm& unfold_nhwc_form() {
  static const auto& form = *new NhwcForm;
  return form;
}

}  // namespace pleat::ops
