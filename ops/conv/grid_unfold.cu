#include <algorithm>

#include "pleat/core/create.h"
#include "pleat/core/grid.h"
#include "pleat/core/grid_elementwise.h"
#include "pleat/ops/conv/grid_rows.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/rows.h"
#include "pleat/ops/matmul/device_gemm.h"

/// Unfold + GEMM on a grid: some rows (output pixels of many images) are unfolded by one launch into U
/// [group][row, tap C/g], small enough to stay in the GPU's second-level cache, and multiplied with the
/// weights [K, tap C/g] by one GEMM. Channels-last rows need no transpose of the result. backward_input with
/// stride 1 is the forward of dy with turned weights; with other strides each input pixel gathers what its
/// windows left, without atomics. The order of every sum is fixed. (Formulas: Chellapilla, Puri, Simard:
/// "High performance convolutional neural networks", 2006.)

namespace pleat::ops {
namespace {

/// Bytes of U at once: what a large GPU's second-level cache holds beside the operands.
constexpr int64_t chunk_bytes = int64_t{24} << 20;

/// Rows unfolded at once; whole images where one fits.
int64_t rows_of_chunk(const ConvProblem& p, int64_t element) {
  const int64_t row_bytes = std::max<int64_t>(1, p.groups * p.depth() * element);
  const int64_t rows = std::max<int64_t>(1, chunk_bytes / row_bytes);
  const int64_t image = std::max<int64_t>(1, p.output_pixels());
  return rows > image ? rows / image * image : rows;
}

/// Whether x itself is U.
bool is_plain(const ConvProblem& p) { return p.groups == 1 && is_pointwise(p); }

/// U[group][row][tap][channel] for `width` neighbouring channels.
template <class T, std::size_t width>
struct UnfoldRows {
  Window window;
  PixelOf pixel;
  FastDivider vectors, taps, kernel_h, kernel_w, rows;
  int64_t channels;  ///< of the input, all groups
  int64_t first;     ///< row
  const T* x;
  T* u;

  UnfoldRows(const ConvProblem& p, int64_t first_row, int64_t row_count, const T* x_, T* u_)
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

/// dx[row of an input pixel][channel] = sum of dU over the windows that read it.
template <class T, std::size_t width>
struct FoldRows {
  Window window;
  PixelOf pixel;
  FastDivider vectors, groups;
  int64_t images_first;  ///< first image whose rows dU has
  int64_t row_count;     ///< rows of dU a group
  const T* du;
  T* dx;

  FoldRows(const ConvProblem& p, int64_t first_image, int64_t rows, const T* du_, T* dx_)
      : window(p),
        pixel(p.input),
        vectors(p.group_in() / static_cast<int64_t>(width)),
        groups(p.groups),
        images_first(first_image),
        row_count(rows),
        du(du_),
        dx(dx_ + first_image * p.input_pixels() * p.in_channels) {}

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    using Block = Vector<T, width>;
    int64_t vector = index;
    int64_t group = vectors.divide(vector);
    const int64_t row = groups.divide(group);
    const auto at = pixel(row);
    Block total{};
    int64_t tap = 0;
    for (int64_t t = 0; t < window.kernel[0]; ++t) {
      const int64_t d = window.output_of(0, at.d, t);
      for (int64_t r = 0; r < window.kernel[1]; ++r) {
        const int64_t h = window.output_of(1, at.h, r);
        for (int64_t s = 0; s < window.kernel[2]; ++s, ++tap) {
          const int64_t w = window.output_of(2, at.w, s);
          if (d < 0 || h < 0 || w < 0) continue;
          const int64_t from = group * row_count + window.output_pixel(at.n, d, h, w);
          const int64_t taps = window.kernel[0] * window.kernel[1] * window.kernel[2];
          const Block block =
              reinterpret_cast<const Block*>(du)[(from * taps + tap) * vectors.divisor() + vector];
          for (std::size_t j = 0; j < width; ++j) total.lane[j] += block.lane[j];
        }
      }
    }
    reinterpret_cast<Block*>(dx)[index] = total;
  }
};

/// w [K, taps, C/g] as [group][tap turned round, K/g][C/g].
template <class T>
struct TurnWeights {
  FastDivider channels, group_out, taps;
  const T* w;
  T* turned;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t c = index;
    int64_t k = channels.divide(c);
    int64_t tap = group_out.divide(k);
    const int64_t group = taps.divide(tap);
    const int64_t from = (group * group_out.divisor() + k) * taps.divisor() + (taps.divisor() - 1 - tap);
    turned[index] = w[from * channels.divisor() + c];
  }
};

template <class T>
struct FillRows {
  FastDivider channels;
  const T* bias;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t k = index;
    channels.divide(k);
    y[index] = bias[k];
  }
};

/// total[i] = parts[0][i] + parts[1][i] + ..., in this order.
template <class T>
struct SumParts {
  int64_t parts, size;
  const T* from;
  T* total;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    T sum = from[i];
    for (int64_t part = 1; part < parts; ++part) sum += from[part * size + i];
    total[i] = sum;
  }
};

constexpr const char* op = "conv";

/// Calls `f(std::integral_constant<std::size_t, width>{})` with the number of channels of `data` moved at
/// once.
template <class T, class F>
void by_width(const ConvProblem& p, const T* data, F f) {
  constexpr std::size_t wide = 16 / sizeof(T);
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % sizeof(Vector<T, wide>) == 0;
  if (aligned && p.group_in() % static_cast<int64_t>(wide) == 0)
    f(std::integral_constant<std::size_t, wide>{});
  else
    f(std::integral_constant<std::size_t, 1>{});
}

template <class T>
void unfold_rows(const ConvProblem& p, const T* x, int64_t first, int64_t rows, T* u) {
  by_width(p, x, [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
    grid_for(op, p.device, p.groups * rows * p.depth() / static_cast<int64_t>(width),
             UnfoldRows<T, width>(p, first, rows, x, u));
  });
}

template <class T>
Tensor scratch_on(Device device, int64_t elements) {
  return empty({elements}, {.dtype = dtype_of<T>(), .device = device});
}

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
  const bool plain = is_plain(p);
  const int64_t chunk = plain ? rows : std::min(rows, rows_of_chunk(p, sizeof(T)));
  const Tensor u = scratch_on<T>(p.device, plain ? 0 : chunk * p.groups * p.depth());
  if (bias != nullptr)
    grid_for(op, p.device, rows * p.out_channels, FillRows<T>{FastDivider(p.out_channels), bias, y});
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    if (!plain) unfold_rows(p, x, first, count, u.data<T>());
    device_gemm(op, p.device,
                GemmBatch<T>{.first = {.m = count,
                                       .n = p.group_out(),
                                       .k = p.depth(),
                                       .a = plain ? x : u.data<T>(),
                                       .lda = p.depth(),
                                       .b = w.data,
                                       .ldb = w.leading,
                                       .transpose_b = w.transposed,
                                       .c = y + first * p.out_channels,
                                       .ldc = p.out_channels,
                                       .accumulate = bias != nullptr},
                             .batch = p.groups,
                             .a_step = count * p.depth(),
                             .b_step = p.group_out() * p.depth(),
                             .c_step = p.group_out()});
  }
}

/// dx = fold(dy w), some images at a time.
template <class T>
void fold_products(const ConvProblem& p, const T* dy, const T* w, T* dx) {
  const int64_t images =
      std::max<int64_t>(1, rows_of_chunk(p, sizeof(T)) / std::max<int64_t>(1, p.output_pixels()));
  const Tensor du =
      scratch_on<T>(p.device, std::min(images, p.batch) * p.output_pixels() * p.groups * p.depth());
  for (int64_t first = 0; first < p.batch; first += images) {
    const int64_t count = std::min(images, p.batch - first);
    const int64_t rows = count * p.output_pixels();
    device_gemm(op, p.device,
                GemmBatch<T>{.first = {.m = rows,
                                       .n = p.depth(),
                                       .k = p.group_out(),
                                       .a = dy + first * p.output_pixels() * p.out_channels,
                                       .lda = p.out_channels,
                                       .b = w,
                                       .ldb = p.depth(),
                                       .c = du.data<T>(),
                                       .ldc = p.depth()},
                             .batch = p.groups,
                             .a_step = p.group_out(),
                             .b_step = p.group_out() * p.depth(),
                             .c_step = rows * p.depth()});
    by_width<T>(p, dx, [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
      grid_for(op, p.device, count * p.input_pixels() * p.in_channels / static_cast<int64_t>(width),
               FoldRows<T, width>(p, first, rows, du.data<T>(), dx));
    });
  }
}

/// Parts into which the rows of a chunk are cut for dw, so that a small matrix of weights keeps a large GPU
/// busy.
int64_t parts_of(const ConvProblem& p, int64_t rows) {
  constexpr int64_t tile = 128;
  constexpr int64_t wanted = 264;  // two blocks for each multiprocessor of the largest GPUs
  const int64_t tiles = p.groups * ceil_div(p.group_out(), tile) * ceil_div(p.depth(), tile);
  int64_t parts = std::min(ceil_div(wanted, tiles), std::max<int64_t>(1, rows / 256));
  while (rows % parts != 0) --parts;  // equal parts are one batch of products
  return parts;
}

/// dw [K, depth] = dy' U(x), summed over the chunks in order.
template <class T>
void multiply_transposed(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const int64_t rows = p.batch * p.output_pixels();
  const bool plain = is_plain(p);
  const int64_t chunk = std::min(rows, rows_of_chunk(p, sizeof(T)));
  const int64_t size = p.out_channels * p.depth();
  const int64_t most_parts =
      std::max(parts_of(p, chunk), parts_of(p, rows % chunk == 0 ? chunk : rows % chunk));
  const Tensor u = scratch_on<T>(p.device, plain ? 0 : chunk * p.groups * p.depth());
  const Tensor partials = scratch_on<T>(p.device, (most_parts + 1) * size);
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    const int64_t parts = parts_of(p, count);
    const int64_t part_rows = count / parts;
    if (!plain) unfold_rows(p, x, first, count, u.data<T>());
    // The sum so far lies in front of the parts, so that one ordered sum takes all.
    T* const sums = partials.data<T>() + size;
    for (int64_t g = 0; g < p.groups; ++g)
      device_gemm(
          op, p.device,
          GemmBatch<T>{.first = {.m = p.group_out(),
                                 .n = p.depth(),
                                 .k = part_rows,
                                 .a = dy + first * p.out_channels + g * p.group_out(),
                                 .lda = p.out_channels,
                                 .transpose_a = true,
                                 .b = plain ? x + first * p.depth() : u.data<T>() + g * count * p.depth(),
                                 .ldb = p.depth(),
                                 .c = sums + g * p.group_out() * p.depth(),
                                 .ldc = p.depth()},
                       .batch = parts,
                       .a_step = part_rows * p.out_channels,
                       .b_step = part_rows * p.depth(),
                       .c_step = size});
    const bool is_first = first == 0;
    const bool is_last = first + count == rows;
    grid_for(op, p.device, size,
             SumParts<T>{is_first ? parts : parts + 1, size, is_first ? sums : partials.data<T>(),
                         is_last ? dw : partials.data<T>()});
  }
}

class GridUnfoldConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "unfold"; }
  bool runs_on(Device device) const override { return uses_grid(device); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    return uses_grid(problem.device) ? std::string() : std::string("it runs on CUDA");
  }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::rows; }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    const int64_t element = size_of(compute_dtype(p.dtype));
    const int64_t rows = p.batch * p.output_pixels();
    const int64_t chunk = std::min(rows, rows_of_chunk(p, element));
    const int64_t size = p.out_channels * p.depth();
    int64_t elements = is_plain(p) ? 0 : chunk * p.groups * p.depth();
    if (pass == ConvPass::backward_input) elements += size;
    if (pass == ConvPass::backward_weight && rows > 0) elements += (parts_of(p, chunk) + 1) * size;
    return elements * element;
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_type(p, [&]<class T>(Type<T>) {
      multiply_unfolded(p, x.data<T>(), GroupWeights<T>{w.data<T>(), p.depth(), true},
                        bias.defined() ? bias.data<T>() : nullptr, y.data<T>());
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_type(p, [&]<class T>(Type<T>) {
      if (p.stride != Spatial{1, 1, 1}) return fold_products(p, dy.data<T>(), w.data<T>(), dx.data<T>());
      const Tensor weights = scratch_on<T>(p.device, p.out_channels * p.depth());
      grid_for(op, p.device, weights.numel(),
               TurnWeights<T>{FastDivider(p.group_in()), FastDivider(p.group_out()), FastDivider(p.taps()),
                              w.data<T>(), weights.data<T>()});
      multiply_unfolded<T>(transposed_problem(p), dy.data<T>(),
                           GroupWeights<T>{weights.data<T>(), p.group_in(), false}, nullptr, dx.data<T>());
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_type(p, [&]<class T>(Type<T>) { multiply_transposed(p, dy.data<T>(), x.data<T>(), dw.data<T>()); });
  }
};

}  // namespace

const ConvImplementation& grid_unfold_conv() {
  static const GridUnfoldConv implementation;
  return implementation;
}

}  // namespace pleat::ops
