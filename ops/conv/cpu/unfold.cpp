#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/ops/conv/cpu/channel_sums.h"
#include "pleat/ops/conv/fusion.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/nhwc.h"
#include "pleat/ops/matmul/gemm_panels.h"
#include "pleat/ops/matmul/result_finish.h"

/// Unfold + GEMM in rows: a tile of output pixels is unfolded into U [rows, taps * C/g], small enough for the
/// second level cache, and multiplied with the weights [K, taps * C/g]. The batch is part of the rows, the
/// result is channels-last without a transpose, and no matrix of the whole batch exists. (Chellapilla et al.
/// 2006; the tiling is that of oneDNN's gemm convolution.)

namespace pleat::ops {
namespace {

/// Bytes of one tile's matrices: half of a usual second-level cache.
constexpr int64_t tile_bytes = 512 << 10;

int64_t rows_of_tile(int64_t depth, int64_t channels, int64_t element) {
  // Each tile reads the weights, or adds to their gradient: many rows where these leave the cache.
  constexpr int64_t few = 64, many = 256, most_bytes = 8 << 20;
  const bool leaves = depth * channels * element > tile_bytes && many * depth * element <= most_bytes;
  return std::clamp<int64_t>(tile_bytes / ((depth + channels) * element) / 16 * 16, leaves ? many : few, 512);
}

/// Calls `visit(tap, count, pixel)` for each run of taps of one window row that lie beside each other in
/// memory, with the first one's input pixel, or -1 for taps in the padding. With dilation or channel groups
/// runs are single taps.
template <class Visit>
void for_each_run(const ConvProblem& p, const Pixel& out, bool joined, const Visit& visit) {
  const int64_t w0 = out.w * p.stride[2] - p.padding_low[2];
  const int64_t kernel_w = p.kernel[2];
  int64_t tap = 0;
  for (int64_t t = 0; t < p.kernel[0]; ++t) {
    const int64_t d = out.d * p.stride[0] - p.padding_low[0] + t * p.dilation[0];
    for (int64_t r = 0; r < p.kernel[1]; ++r, tap += kernel_w) {
      const int64_t h = out.h * p.stride[1] - p.padding_low[1] + r * p.dilation[1];
      if (d < 0 || d >= p.input[0] || h < 0 || h >= p.input[1]) {
        visit(tap, kernel_w, int64_t{-1});
        continue;
      }
      const int64_t line = ((out.n * p.input[0] + d) * p.input[1] + h) * p.input[2];
      if (joined) {
        const int64_t first = std::clamp<int64_t>(-w0, 0, kernel_w);
        const int64_t last = std::clamp<int64_t>(p.input[2] - w0, first, kernel_w);
        if (first > 0) visit(tap, first, int64_t{-1});
        if (last > first) visit(tap + first, last - first, line + w0 + first);
        if (last < kernel_w) visit(tap + last, kernel_w - last, int64_t{-1});
      } else {
        for (int64_t s = 0; s < kernel_w; ++s) {
          const int64_t w = w0 + s * p.dilation[2];
          visit(tap + s, int64_t{1}, w >= 0 && w < p.input[2] ? line + w : -1);
        }
      }
    }
  }
}

bool taps_join(const ConvProblem& p) { return p.groups == 1 && p.dilation[2] == 1; }

/// Fills U [rows, taps, C/g] for the channels of one group.
template <class T>
void unfold_rows(const ConvProblem& p, const T* x, int64_t group, int64_t first_row, int64_t rows, T* u) {
  const int64_t channels = p.group_in();
  const bool joined = taps_join(p);
  const T* source = x + group * channels;
  Pixel pixel(first_row, p.output);
  for (int64_t row = 0; row < rows; ++row, u += p.depth(), pixel.advance(p.output))
    for_each_run(p, pixel, joined, [&](int64_t tap, int64_t count, int64_t at) {
      T* to = u + tap * channels;
      const int64_t n = count * channels;
      if (at < 0)
        std::fill_n(to, n, T(0));
      else
        std::memcpy(to, source + at * p.in_channels, static_cast<std::size_t>(n) * sizeof(T));
    });
}

/// The type in which products of T are summed.
template <class T>
using Sum = typename Gemm<T>::Scale;

/// Calls `f(Type<T>{})` with the type of the operands: as by_type, or BFloat16.
template <class F>
void by_operand_type(const ConvProblem& problem, F f) {
  if (problem.dtype == bfloat16)
    f(Type<BFloat16>{});
  else
    by_type(problem, f);
}

/// Adds U [rows, taps, C/g] back to the input pixels it came from.
template <class T>
void fold_rows(const ConvProblem& p, const T* u, int64_t group, int64_t first_row, int64_t rows, T* dx) {
  const int64_t channels = p.group_in();
  const bool joined = taps_join(p);
  T* target = dx + group * channels;
  Pixel pixel(first_row, p.output);
  for (int64_t row = 0; row < rows; ++row, u += p.depth(), pixel.advance(p.output))
    for_each_run(p, pixel, joined, [&](int64_t tap, int64_t count, int64_t at) {
      if (at < 0) return;
      const T* from = u + tap * channels;
      T* to = target + at * p.in_channels;
      for (int64_t i = 0; i < count * channels; ++i) to[i] += from[i];
    });
}

/// The weights of one group as the right-hand matrix of the product.
template <class T>
struct WeightMatrix {
  const T* data;
  int64_t group_size;  ///< elements of a group
  int64_t leading;
  bool transposed;  ///< stored [K, depth], else [depth, K]
};

/// Threads that have no tile of their own share the products of one tile after the other.
bool shares_products(const RowTiles& tiles) { return tiles.tiles < 4; }

template <class T>
RowTiles tiles_of(const ConvProblem& p) {
  return {p.batch * p.output_pixels(), rows_of_tile(p.depth(), p.out_channels, sizeof(T))};
}

/// y [rows, K] = U(x) * weights (+ bias), tile by tile and group by group: `multiply` takes a product with
/// all but its right-hand matrix, and the group; `finish` a tile, whose rows of y are complete, and these. A
/// thread takes `grain` tiles at least.
template <class T, class Multiply, class Finish>
void multiply_tiles(const ConvProblem& p, const T* x, const T* bias, T* y, int64_t grain,
                    const Multiply& multiply, const Finish& finish) {
  const bool plain = is_pointwise(p);
  const int64_t depth = p.depth();
  const auto tiles = tiles_of<T>(p);
  const auto multiply_tile = [&](int64_t t) {
    const int64_t first = tiles.first(t);
    const int64_t rows = tiles.size(t);
    const auto memory = plain ? nullptr : scratch<T>(rows * depth);
    T* out = y + first * p.out_channels;
    for (int64_t g = 0; g < p.groups; ++g) {
      Gemm<T> product{.m = rows, .n = p.group_out(), .k = depth};
      if (plain) {
        product.a = x + first * p.in_channels + g * depth;
        product.lda = p.in_channels;
      } else {
        unfold_rows(p, x, g, first, rows, elements_of<T>(memory));
        product.a = elements_of<T>(memory);
        product.lda = depth;
      }
      product.c = out + g * p.group_out();
      product.ldc = p.out_channels;
      if (bias != nullptr) product.start = bias + g * p.group_out();
      multiply(product, g);
    }
    finish(t, out, rows);
  };
  parallel_for(0, tiles.tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) multiply_tile(t);
  });
}

template <class T>
void multiply_unfolded(const ConvProblem& p, const T* x, const WeightMatrix<T>& w, const T* bias, T* y,
                       ChannelSums<Sum<T>, T>* sums = nullptr) {
  const RowTiles tiles = tiles_of<T>(p);
  const bool shared = shares_products(tiles);
  if (sums != nullptr) sums->prepare(tiles.tiles, p.out_channels);
  multiply_tiles(
      p, x, bias, y, shared ? tiles.tiles : 1,
      [&](Gemm<T>& product, int64_t g) {
        product.b = w.data + g * w.group_size;
        product.ldb = w.leading;
        product.transpose_b = w.transposed;
        shared ? gemm(product) : gemm_serial(product);
      },
      [&](int64_t tile, const T* out, int64_t rows) {
        if (sums == nullptr) return;
        const auto pixel = [&](int64_t row) { return out + row * p.out_channels; };
        sums->add(tile, 0, 0, p.out_channels, rows, pixel, [&](int64_t row) { return pixel(row) - y; });
      });
  if (sums != nullptr) sums->merge(0, 0, p.out_channels);
}

/// The forward with weights in panels, for products of bfloat16.
class UnfoldOfPanels : public PreparedConv {
 public:
  UnfoldOfPanels(const ConvProblem& p, const Tensor& w, SharedBlocks& shared) : problem_(p) {
    const int64_t depth = p.depth();
    for (int64_t g = 0; g < p.groups; ++g) {
      const Gemm<BFloat16> product{.m = 1,
                                   .n = p.group_out(),
                                   .k = depth,
                                   .b = w.data<BFloat16>() + g * p.group_out() * depth,
                                   .ldb = depth,
                                   .transpose_b = true};
      panels_.emplace_back(product, shared, [&](const ColumnPanels<BFloat16>& panels) {
        panels.pack(product, 0, panels.count());
      });
    }
  }

  void run(const Tensor& x, const Tensor& bias, const Tensor& y, const ResultFinish& finish) const override {
    const RowFinish<BFloat16> rows(finish);
    auto* const first = y.data<BFloat16>();
    // Of less than a tile for each thread they share the columns.
    const int64_t tiles = tiles_of<BFloat16>(problem_).tiles;
    const bool shares_columns = tiles < num_threads();
    multiply_tiles(
        problem_, x.data<BFloat16>(), bias.defined() ? bias.data<BFloat16>() : nullptr, first,
        shares_columns ? tiles : 1,
        [&](const Gemm<BFloat16>& product, int64_t g) {
          const auto& panels = panels_[static_cast<std::size_t>(g)];
          shares_columns ? gemm(product, panels) : gemm_serial(product, panels);
        },
        [&](int64_t, BFloat16* values, int64_t count) {
          if (rows) rows.run(values, values - first, count * problem_.out_channels);
        });
  }

 private:
  ConvProblem problem_;
  std::vector<ColumnPanels<BFloat16>> panels_;  ///< of each group
};

/// w [K, taps, C/g] as [g, flipped taps, K/g, C/g]: rows of C/g elements move, nothing is transposed.
template <class T>
std::shared_ptr<std::byte> rotated_weights(const ConvProblem& p, const T* w) {
  const int64_t taps = p.taps();
  const int64_t channels = p.group_in();
  auto memory = scratch<T>(p.out_channels * p.depth());
  T* out = elements_of<T>(memory);
  for (int64_t g = 0; g < p.groups; ++g)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t k = 0; k < p.group_out(); ++k, out += channels)
        std::copy_n(w + ((g * p.group_out() + k) * taps + (taps - 1 - tap)) * channels, channels, out);
  return memory;
}

bool is_unit_stride(const ConvProblem& p) { return p.stride == Spatial{1, 1, 1}; }

/// dx = fold(dy * w), an image at a time, so that no two threads add to one pixel. What is not summed in its
/// own type is summed beside dx.
template <class T>
void fold_products(const ConvProblem& p, const T* dy, const T* w, T* dx) {
  const int64_t depth = p.depth();
  const int64_t image_in = p.input_pixels() * p.in_channels;
  const RowTiles tiles(p.output_pixels(), rows_of_tile(depth, p.out_channels, sizeof(Sum<T>)));
  parallel_chunks(p.batch, [&](int64_t n) {
    constexpr bool in_place = std::is_same_v<T, Sum<T>>;
    const auto memory = scratch<Sum<T>>(std::min(tiles.tile, tiles.rows) * depth);
    const auto image = in_place ? nullptr : scratch<Sum<T>>(image_in);
    Sum<T>* const sums = in_place ? reinterpret_cast<Sum<T>*>(dx + n * image_in) : elements_of<Sum<T>>(image);
    std::fill_n(sums, image_in, Sum<T>(0));
    for (int64_t t = 0; t < tiles.tiles; ++t) {
      const int64_t first = n * p.output_pixels() + tiles.first(t);
      for (int64_t g = 0; g < p.groups; ++g) {
        gemm_serial(Gemm<T, Sum<T>>{.m = tiles.size(t),
                                    .n = depth,
                                    .k = p.group_out(),
                                    .a = dy + first * p.out_channels + g * p.group_out(),
                                    .lda = p.out_channels,
                                    .b = w + g * p.group_out() * depth,
                                    .ldb = depth,
                                    .c = elements_of<Sum<T>>(memory),
                                    .ldc = depth});
        fold_rows(p, elements_of<Sum<T>>(memory), g, tiles.first(t), tiles.size(t), sums);
      }
    }
    if constexpr (!in_place)
      for (int64_t i = 0; i < image_in; ++i) dx[n * image_in + i] = convert<T>(sums[i]);
  });
}

/// dw [K, depth] = dy^T * U(x), summed over chunks of tiles.
template <class T>
void multiply_transposed(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const bool plain = is_pointwise(p);
  const int64_t depth = p.depth();
  const int64_t size = p.out_channels * depth;
  const RowTiles tiles(p.batch * p.output_pixels(), rows_of_tile(depth, p.out_channels, sizeof(T)));
  const int64_t chunks = chunks_for(tiles.tiles, size * static_cast<int64_t>(sizeof(Sum<T>)));
  const auto partials = scratch<Sum<T>>(chunks * size);
  parallel_chunks(chunks, [&](int64_t chunk) {
    Sum<T>* sum = elements_of<Sum<T>>(partials) + chunk * size;
    const auto memory = plain ? nullptr : scratch<T>(tiles.tile * depth);
    const int64_t begin = tiles.tiles * chunk / chunks;
    const int64_t end = tiles.tiles * (chunk + 1) / chunks;
    const int64_t together = plain ? std::max<int64_t>(1, end - begin) : 1;  // nothing is unfolded
    for (int64_t t = begin; t < end; t += together) {
      const int64_t first = tiles.first(t);
      const int64_t rows = tiles.first(t + together - 1) + tiles.size(t + together - 1) - first;
      for (int64_t g = 0; g < p.groups; ++g) {
        Gemm<T, Sum<T>> product{.m = p.group_out(), .n = depth, .k = rows};
        product.a = dy + first * p.out_channels + g * p.group_out();
        product.lda = p.out_channels;
        product.transpose_a = true;
        if (plain) {
          product.b = x + first * p.in_channels + g * depth;
          product.ldb = p.in_channels;
        } else {
          unfold_rows(p, x, g, first, rows, elements_of<T>(memory));
          product.b = elements_of<T>(memory);
          product.ldb = depth;
        }
        product.c = sum + g * p.group_out() * depth;
        product.ldc = depth;
        product.accumulate = t != begin;
        chunks == 1 ? gemm(product) : gemm_serial(product);
      }
    }
  });
  sum_partials(elements_of<Sum<T>>(partials), chunks, size, dw);
}

/// Whether a problem is computed on contiguous operands as they lie, as products with the planes of an image:
/// to few result channels, where the products are little work beside a copy of the input.
bool takes_planes(const ConvProblem& p) {
  constexpr int64_t most_channels = 16;
  return p.format == MemoryFormat::contiguous && is_pointwise(p) && p.groups == 1 && !is_half(p.dtype) &&
         p.out_channels <= most_channels;
}

/// y [N, K, pixels] = w [K, C] x [N, C, pixels] + bias, or dx = transposed w times dy.
template <class T>
void multiply_planes(const ConvProblem& p, bool forward, const T* w, const T* from, const T* bias, T* to) {
  const int64_t pixels = p.output_pixels();
  const int64_t rows = forward ? p.out_channels : p.in_channels;
  const int64_t depth = forward ? p.in_channels : p.out_channels;
  if (bias != nullptr)
    parallel_for(0, p.batch * rows, ceil_div(1 << 14, pixels), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) std::fill_n(to + i * pixels, pixels, bias[i % rows]);
    });
  const Gemm<T> product{.m = rows,
                        .n = pixels,
                        .k = depth,
                        .a = w,
                        .lda = p.in_channels,
                        .transpose_a = !forward,
                        .b = from,
                        .ldb = pixels,
                        .c = to,
                        .ldc = pixels,
                        .accumulate = bias != nullptr};
  batched_gemm(GemmBatch<T>{product, p.batch, 0, depth * pixels, rows * pixels});
}

/// dw [K, C] = the sum of dy [N, K, pixels] times transposed x [N, C, pixels].
template <class T>
void sum_planes(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const int64_t pixels = p.output_pixels();
  gemm(Gemm<T>{.m = p.out_channels,
               .n = p.in_channels,
               .k = pixels,
               .a = dy,
               .lda = pixels,
               .b = x,
               .ldb = pixels,
               .transpose_b = true,
               .c = dw,
               .ldc = p.in_channels,
               .terms = p.batch,
               .a_term_step = p.out_channels * pixels,
               .b_term_step = p.in_channels * pixels});
}

/// The time of a product of bfloat16 beside one of float32, measured.
double bfloat16_products(ConvPass pass) { return pass == ConvPass::backward_weight ? 0.5 : 0.45; }

/// What the columns of a product grow by, as they are computed in vectors.
double padded_columns(const ConvProblem& p, ConvPass pass) {
  const int64_t columns = pass == ConvPass::forward                               ? p.group_out()
                          : pass == ConvPass::backward_input && is_unit_stride(p) ? p.group_in()
                                                                                  : p.depth();
  return static_cast<double>(round_up(columns, int64_t{16})) / static_cast<double>(columns);
}

template <class T>
void multiply_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Tensor& y, ChannelSums<Sum<T>, T>* sums) {
  const WeightMatrix<T> weights{w.data<T>(), p.group_out() * p.depth(), p.depth(), true};
  multiply_unfolded(p, x.data<T>(), weights, bias.defined() ? bias.data<T>() : nullptr, y.data<T>(), sums);
}

class UnfoldConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "unfold"; }
  bool runs_on(Device device) const override { return device.is_cpu(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    return problem.device.is_cpu() ? std::string() : std::string("it runs on the CPU");
  }
  ConvLayout layout(const ConvProblem& problem) const override {
    return takes_planes(problem) ? ConvLayout::nchw : ConvLayout::nhwc;
  }
  bool takes(DType dtype) const override { return dtype == bfloat16 && multiplies_bfloat16(); }
  /// Its products are slower than those of `direct` by a third, and padding is multiplied, too. Those of
  /// bfloat16 take half the time, and beside them the unfolding counts.
  double cost(const ConvProblem& problem, ConvPass pass) const override {
    // Less than that of any that copies the input before.
    if (takes_planes(problem)) return static_cast<double>(problem.flops()) / 4;
    const ConvProblem p = simplify(problem, MemoryFormat::channels_last);
    const bool folds = pass == ConvPass::backward_input && !is_unit_stride(p);
    // An image is folded by one thread.
    constexpr int64_t most_threads = 8;
    const double idle = folds && p.batch < most_threads ? 2 : 1;
    const double products = 1.3 * idle * static_cast<double>(problem.flops()) / 2 * padded_columns(p, pass);
    if (!takes(problem.dtype)) return products + cost_of_conversion(problem);
    if (is_pointwise(p)) return bfloat16_products(pass) * products;
    const bool is_back = pass == ConvPass::backward_input && !folds;
    const auto pixels = static_cast<double>(p.batch * (is_back ? p.input_pixels() : p.output_pixels()));
    const auto channels = static_cast<double>(is_back ? p.out_channels : p.in_channels);
    const auto taps = static_cast<double>(p.taps());
    const double runs =
        taps / static_cast<double>(taps_join(p) ? p.kernel[2] : 1) * static_cast<double>(p.groups);
    const double of_element = folds ? 12 : 4;
    return bfloat16_products(pass) * products + pixels * (of_element * taps * channels + 250 * runs);
  }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (takes_planes(p)) return 0;
    const int64_t sum = size_of(compute_dtype(p.dtype));
    const bool folds = pass == ConvPass::backward_input && !is_unit_stride(p);
    const int64_t element = folds ? sum : size_of(p.dtype);
    const int64_t depth = p.depth();
    int64_t tile = is_pointwise(p) ? 0 : rows_of_tile(depth, p.out_channels, element) * depth * element;
    if (folds && sum != size_of(p.dtype)) tile += p.input_pixels() * p.in_channels * sum;
    const int64_t weights = p.out_channels * depth;
    const int64_t tiles =
        RowTiles(p.batch * p.output_pixels(), rows_of_tile(depth, p.out_channels, element)).tiles;
    int64_t shared = 0;
    if (pass == ConvPass::backward_input) shared = weights * element;
    if (pass == ConvPass::backward_weight) shared = chunks_for(tiles, weights * sum) * weights * sum;
    return num_threads() * tile + shared;
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_operand_type(p, [&]<class T>(Type<T>) {
      if (takes_planes(p))
        return multiply_planes(p, true, w.data<T>(), x.data<T>(), bias.defined() ? bias.data<T>() : nullptr,
                               y.data<T>());
      multiply_forward<T>(p, x, w, bias, y, nullptr);
    });
  }

  bool fused_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
                     const Tensor& y, ConvFusion& fusion) const override {
    if (fusion.by != nullptr || takes_planes(p)) return false;
    by_operand_type(p, [&]<class T>(Type<T>) {
      ChannelSums<Sum<T>, T> sums;
      multiply_forward(p, x, w, bias, y, &sums);
      fusion.moments = {std::move(sums.first), std::move(sums.second)};
    });
    return true;
  }

  std::unique_ptr<PreparedConv> prepare(const ConvProblem& p, ConvPass pass, const Tensor& w,
                                        SharedBlocks& shared) const override {
    if (pass != ConvPass::forward || p.dtype != bfloat16) return nullptr;
    return std::make_unique<UnfoldOfPanels>(p, w, shared);
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_operand_type(p, [&]<class T>(Type<T>) {
      if (takes_planes(p))
        return multiply_planes<T>(p, false, w.data<T>(), dy.data<T>(), nullptr, dx.data<T>());
      if (!is_unit_stride(p)) return fold_products(p, dy.data<T>(), w.data<T>(), dx.data<T>());
      const auto rotated = rotated_weights(p, w.data<T>());
      const WeightMatrix<T> weights{elements_of<T>(rotated), p.group_out() * p.depth(), p.group_in(), false};
      multiply_unfolded<T>(transposed_problem(p), dy.data<T>(), weights, nullptr, dx.data<T>());
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_operand_type(p, [&]<class T>(Type<T>) {
      if (takes_planes(p)) return sum_planes(p, dy.data<T>(), x.data<T>(), dw.data<T>());
      multiply_transposed(p, dy.data<T>(), x.data<T>(), dw.data<T>());
    });
  }
};

}  // namespace

const ConvImplementation* unfold_conv() {
  static const auto* const implementation = new UnfoldConv;
  return implementation;
}

}  // namespace pleat::ops
