#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/conv/cuda/pixels.h"
#include "pleat/ops/conv/cuda/products.h"
#include "pleat/ops/conv/cuda/windows.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/nhwc.h"

/// Unfold + GEMM on a GPU: a launch unfolds windows of many images into a matrix U, small enough to stay in
/// the GPU's second-level cache where that does not take many launches, and a GEMM multiplies it with the
/// weights. backward_input with stride 1 is the forward of dy with the taps in reversed order; with other
/// strides each input pixel gathers what its windows left, without atomics. The order of every sum is fixed.
/// Half types are operands of the products; sums are float and are rounded once. (Formulas: Chellapilla,
/// Puri, Simard: "High performance convolutional neural networks", 2006.)
///
/// Contiguous, the weights [K, C/g tap] times U [C/g tap, pixel] are planes of the result: a product for each
/// image, or, where images are a few pixels or channels in groups, one of the pixels of several images side
/// by side; what is [K][image][pixel] then is brought into the order of tensors by a copy. Channels-last, all
/// these matrices are transposed: U [row, tap C/g], rows being pixels of all images, times [tap C/g, K] is
/// the result as it lies.

namespace pleat::ops {
namespace {

using namespace cuda_conv;

/// Pixels from which on an image is a product of its own. Not measured on a GPU.
constexpr int64_t separate_pixels = 16;

/// Bytes that may be taken, of `most`.
int64_t allowed(int64_t most) { return std::clamp<int64_t>(ConvPolicy::current().workspace_limit, 1, most); }
constexpr int64_t cached = int64_t{24} << 20;  ///< what a large GPU's second-level cache holds
constexpr int64_t large = int64_t{256} << 20;
/// Bytes unfolded at once, of `all`: cached, but no less than an eighth.
int64_t chunk_bytes(int64_t all) {
  return allowed(std::clamp(ceil_div(std::max<int64_t>(all, 1), int64_t{8}), cached, large));
}

/// Single pixels lie alike in both formats; channels-last, all images make one product.
bool is_nhwc(const ConvProblem& p) {
  return p.format == MemoryFormat::channels_last ||
         (p.taps() == 1 && p.input_pixels() == 1 && p.output_pixels() == 1);
}

std::array<int64_t, 4> all_pixels(const ConvProblem& p) {
  return {p.batch, p.output[0], p.output[1], p.output[2]};
}

/// The most output pixels that are in U together: neighbours.
PixelBox largest_slice(const ConvProblem& p) {
  const int64_t pixel_bytes = p.groups * p.depth() * element_bytes(p);
  int64_t pixels = std::max<int64_t>(1, chunk_bytes(p.batch * p.output_pixels() * pixel_bytes) / pixel_bytes);
  const auto all = all_pixels(p);
  PixelBox slice{{}, {1, 1, 1, 1}};
  for (std::size_t i = 4; i-- > 0 && pixels > 0; pixels /= all[i]) {
    slice.size[i] = std::min(all[i], pixels);
    if (slice.size[i] == all[i]) continue;
    constexpr int64_t multiple = 32;
    if (i == 3 && pixels > multiple) slice.size[i] = pixels / multiple * multiple;
    break;
  }
  return slice;
}

/// Calls f(slice, whether it is the last).
template <class F>
void for_each_slice(const ConvProblem& p, const PixelBox& most, const F& f) {
  const auto all = all_pixels(p);
  PixelBox slice;
  const auto loop = [&](const auto& self, std::size_t i, bool is_last) -> void {
    if (i == 4) return f(slice, is_last);
    for (int64_t first = 0; first < all[i]; first += most.size[i]) {
      slice.first[i] = first;
      slice.size[i] = std::min(most.size[i], all[i] - first);
      self(self, i + 1, is_last && first + slice.size[i] == all[i]);
    }
  };
  loop(loop, 0, true);
}

/// The number of a slice's first pixel in its image.
int64_t first_pixel(const ConvProblem& p, const PixelBox& slice) {
  return (slice.first[1] * p.output[1] + slice.first[2]) * p.output[2] + slice.first[3];
}

/// Whether a product has the pixels of one image; else, those of all images of a slice.
bool is_separate(const ConvProblem& p, const PixelBox& slice) {
  return !is_nhwc(p) && (slice.size[0] == 1 || (p.groups == 1 && slice.pixels() >= separate_pixels));
}
/// Whether pixels of several images stand side by side that lie apart in y.
bool is_merged(const ConvProblem& p, const PixelBox& slice) { return !is_nhwc(p) && !is_separate(p, slice); }

/// U of a slice.
ColumnSteps column_steps(const ConvProblem& p, const PixelBox& slice, bool separate) {
  const int64_t count = slice.count(), depth = p.depth();
  if (is_nhwc(p)) return {slice.pixels() * depth, count * depth, 1, p.group_in(), depth};
  const int64_t row = separate ? slice.pixels() : count;
  return {separate ? p.groups * depth * row : slice.pixels(), depth * row, p.taps() * row, row, 1};
}

/// The planes of some whole images as [K, image, pixel], y as it lies or `merged` [K][image][pixel].
Tensor planes(const ConvProblem& p, const PixelBox& slice, const Tensor& y) {
  const int64_t pixels = p.output_pixels();
  return y.as_strided({p.out_channels, slice.size[0], pixels}, {pixels, p.out_channels * pixels, 1},
                      y.offset() + slice.first[0] * p.out_channels * pixels);
}
Tensor merged_planes(const ConvProblem& p, const PixelBox& slice, const Tensor& merged) {
  const int64_t pixels = p.output_pixels();
  return merged.as_strided({p.out_channels, slice.size[0], pixels}, {slice.size[0] * pixels, pixels, 1}, 0);
}
int64_t elements_of_merged(const ConvProblem& p, const PixelBox& most, bool merges) {
  return merges ? most.count() * p.out_channels : 0;
}

/// The products of a batch whose matrices lie `each` apart, for each group. They are given as of contiguous
/// planes; channels-last all matrices are transposed.
template <class T, class Out>
void multiply(const ConvProblem& p, Gemm<T, Out> product, int64_t batch, Steps each, Steps group) {
  if (is_nhwc(p)) {
    std::swap(product.m, product.n);
    std::swap(product.a, product.b);
    std::swap(product.lda, product.ldb);
    std::swap(product.transpose_a, product.transpose_b);
    product.transpose_a = !product.transpose_a;
    product.transpose_b = !product.transpose_b;
    std::swap(each.a, each.b);
    std::swap(group.a, group.b);
  }
  multiply_all(p.device,
               GemmBatch<T, Out>{
                   .first = product, .batch = batch, .a_step = each.a, .b_step = each.b, .c_step = each.c},
               p.groups, group);
}

/// How many elements the rows of U lie apart in x itself, channels-last, where they do: pointwise
/// convolutions, and windows along w that neither overlap nor leave a gap at the end of an image's line.
/// Windows in two dimensions that do not overlap (patches) are unfolded: one product for each line of a
/// kernel, which has no more than a line's rows and adds to the result, would cost more than writing the
/// input once in another order.
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
  return is_nhwc(p) && p.groups == 1 && rows_in_input(p) == p.depth() &&
         p.input[2] == p.output[2] * p.stride[2];
}

/// U, a slice at a time: unfolded, or found in x. `joined`: also contiguous, the pixels of several images are
/// to stand side by side.
template <class T>
class Columns {
 public:
  Columns(const ConvProblem& p, const Tensor& x, bool joined, bool flipped = false)
      : p_(p), x_(x), flipped_(flipped), u_(scratch_on<T>(p.device, elements(p, joined))) {}

  static bool are_in_input(const ConvProblem& p, bool joined) {
    return is_nhwc(p) ? rows_in_input(p).has_value() : !joined && is_pointwise(p);
  }
  /// The slices.
  static PixelBox most(const ConvProblem& p, bool joined) {
    return are_in_input(p, joined) ? PixelBox{{}, all_pixels(p)} : largest_slice(p);
  }
  static int64_t elements(const ConvProblem& p, bool joined) {
    return are_in_input(p, joined) ? 0 : most(p, joined).count() * p.groups * p.depth();
  }

  struct Matrices {
    const T* data;
    int64_t leading, pixel, image, group;  ///< steps
  };
  Matrices get(const PixelBox& slice, bool separate) const {
    if (u_.numel() == 0) {
      const T* const x = x_.template data<T>();
      if (!is_nhwc(p_))
        return {x, p_.input_pixels(), 1, p_.in_channels * p_.input_pixels(),
                p_.group_in() * p_.input_pixels()};
      return {x, *rows_in_input(p_), *rows_in_input(p_), 0, p_.group_in()};
    }
    const ColumnSteps steps = column_steps(p_, slice, separate);
    unfold_box(op, p_, slice, x_, u_.raw(), steps, flipped_);
    return {u_.template data<T>(), is_nhwc(p_) ? steps.pixel : steps.tap, steps.pixel, steps.image,
            steps.group};
  }

 private:
  ConvProblem p_;
  Tensor x_;
  bool flipped_;
  Tensor u_;
};

/// The weights of each group as a matrix [K/g, depth], transposed or not.
template <class T>
struct GroupWeights {
  const T* data;
  int64_t leading;
  bool transposed;
};

bool merges_forward(const ConvProblem& p) {
  return !Columns<float>::are_in_input(p, false) && is_merged(p, largest_slice(p));
}

/// y = w U(x) (+ bias).
template <class T>
void multiply_columns(const ConvProblem& p, const Tensor& x, const GroupWeights<T>& w, const Tensor& bias,
                      const Tensor& y, bool flipped) {
  const int64_t pixels = p.output_pixels();
  const bool nhwc = is_nhwc(p), merges = merges_forward(p);
  const PixelBox most = Columns<T>::most(p, false);
  const Columns<T> u(p, x, false, flipped);
  const Tensor merged = scratch_on<T>(p.device, elements_of_merged(p, most, merges));
  if (bias.defined() && !merges)
    copy_into(y, bias.as_strided({p.out_channels, 1, 1, 1}, {1, 1, 1, 1}, bias.offset()));
  for_each_slice(p, most, [&](const PixelBox& slice, bool) {
    const bool separate = !nhwc && !merges;
    const auto part = u.get(slice, separate);
    if (bias.defined() && merges)
      copy_into(merged_planes(p, slice, merged),
                bias.as_strided({p.out_channels, 1, 1}, {1, 1, 1}, bias.offset()));
    Gemm<T> product{.m = p.group_out(),
                    .n = separate ? slice.pixels() : slice.count(),
                    .k = p.depth(),
                    .a = w.data,
                    .lda = w.leading,
                    .transpose_a = w.transposed,
                    .b = part.data,
                    .ldb = part.leading,
                    .transpose_b = nhwc,
                    .c = y.data<T>() + slice.first[0] * p.out_channels * pixels +
                         first_pixel(p, slice) * (nhwc ? p.out_channels : 1),
                    .ldc = nhwc ? p.out_channels : pixels,
                    .accumulate = bias.defined()};
    if (merges) {
      product.c = merged.data<T>();
      product.ldc = product.n;
    }
    multiply(
        p, product, separate ? slice.size[0] : 1, {.b = part.image, .c = p.out_channels * pixels},
        {.a = p.group_out() * p.depth(), .b = part.group, .c = p.group_out() * (nhwc ? 1 : product.ldc)});
    if (merges) copy_into(planes(p, slice, y), merged_planes(p, slice, merged));
  });
}

/// How backward_input of other strides goes through dU.
struct FoldPlan {
  int64_t images;    ///< at once
  int64_t channels;  ///< of a group, at once, where one image is cut; else all

  explicit FoldPlan(const ConvProblem& p) : images(1), channels(p.in_channels) {
    const int64_t channel = p.taps() * p.output_pixels() * sum_bytes(p);
    const int64_t image = p.in_channels * channel, chunk = chunk_bytes(p.batch * image);
    if (image <= chunk)
      images = std::min(p.batch, chunk / image);
    else if (image > allowed(large))
      channels = std::clamp<int64_t>(allowed(large) / channel, 1, p.group_in());
  }
  PixelBox slice(const ConvProblem& p, int64_t first = 0) const {
    return {{first, 0, 0, 0}, {std::min(images, p.batch - first), p.output[0], p.output[1], p.output[2]}};
  }
  int64_t elements(const ConvProblem& p) const { return images * channels * p.taps() * p.output_pixels(); }
};

/// dx = fold(w' dy), some images, or some channels of one, at a time.
template <class T>
void fold_products(const ConvProblem& p, const Tensor& dy, const T* w, const Tensor& dx) {
  using Total = Sum<T>;
  const FoldPlan plan(p);
  const bool nhwc = is_nhwc(p);
  const int64_t pixels = p.output_pixels(), dy_size = p.out_channels * pixels;
  const int64_t plane = nhwc ? 1 : p.input_pixels(), dx_size = p.in_channels * p.input_pixels();
  const Tensor du = scratch_on<Total>(p.device, plan.elements(p));
  const Tensor merged =
      scratch_on<T>(p.device, elements_of_merged(p, plan.slice(p), is_merged(p, plan.slice(p))));
  const auto fold = [&](const ConvProblem& part, int64_t image, int64_t channel, const ColumnSteps& steps) {
    fold_columns(op, part, du.raw(), du.dtype(), steps,
                 dx.raw() + (image * dx_size + channel * plane) * static_cast<int64_t>(sizeof(T)), dx.dtype(),
                 {dx_size, plane, nhwc ? p.in_channels : 1});
  };
  Gemm<T, Total> product{
      .k = p.group_out(), .lda = p.depth(), .transpose_a = true, .transpose_b = nhwc, .c = du.data<Total>()};
  for (int64_t n = 0; n < p.batch; n += plan.images) {
    const PixelBox slice = plan.slice(p, n);
    ConvProblem part = p;
    part.batch = slice.size[0];
    product.b = dy.data<T>() + n * dy_size;
    product.ldb = nhwc ? p.out_channels : pixels;
    if (plan.channels == p.in_channels) {
      const bool separate = is_separate(p, slice);
      product.m = p.depth();
      product.n = separate ? pixels : slice.count();
      product.a = w;
      if (is_merged(p, slice)) {
        copy_into(merged_planes(p, slice, merged), planes(p, slice, dy));
        product.b = merged.data<T>();
        product.ldb = product.n;
      }
      product.ldc = nhwc ? p.depth() : product.n;
      multiply(p, product, separate ? slice.size[0] : 1,
               {.b = dy_size, .c = p.in_channels * p.taps() * pixels},
               {.a = p.group_out() * p.depth(),
                .b = p.group_out() * (nhwc ? 1 : product.n),
                .c = p.depth() * product.n});
      fold(part, n, 0, column_steps(p, slice, separate));
      continue;
    }
    part.groups = 1;
    for (int64_t c = 0, count = 0; c < p.in_channels; c += count) {
      const int64_t group = c / p.group_in(), channel = c % p.group_in();
      count = std::min(plan.channels, p.group_in() - channel);
      // Channels-last, those of each tap are a product of their own.
      product.m = nhwc ? count : count * p.taps();
      product.n = pixels;
      product.a = w + group * p.group_out() * p.depth() + channel * (nhwc ? 1 : p.taps());
      product.b = dy.data<T>() + n * dy_size + group * p.group_out() * (nhwc ? 1 : pixels);
      product.ldc = nhwc ? count : pixels;
      part.in_channels = count;
      ConvProblem one_group = p;
      one_group.groups = 1;
      multiply(one_group, product, nhwc ? p.taps() : 1, {.a = p.group_in(), .c = count * pixels}, {});
      fold(part, n, c,
           nhwc ? ColumnSteps{0, 0, 1, count * pixels, count}
                : ColumnSteps{0, 0, p.taps() * pixels, pixels, 1});
    }
  }
}

/// dw [K, depth] = dy U(x)', summed over the slices in order. Its sums run over the pixels of many images, so
/// that these stand side by side.
template <class T>
void multiply_transposed(const ConvProblem& p, const Tensor& dy, const Tensor& x, T* dw) {
  const bool nhwc = is_nhwc(p);
  const int64_t pixels = p.output_pixels();
  const PixelBox most = Columns<T>::most(p, true);
  const Columns<T> u(p, x, true);
  const Tensor merged = scratch_on<T>(p.device, elements_of_merged(p, most, !nhwc && most.size[0] > 1));
  WeightSum<T> sum(p, most.count());
  for_each_slice(p, most, [&](const PixelBox& slice, bool is_last) {
    const auto part = u.get(slice, false);
    const T* from = dy.data<T>() + slice.first[0] * p.out_channels * pixels +
                    first_pixel(p, slice) * (nhwc ? p.out_channels : 1);
    int64_t leading = nhwc ? p.out_channels : pixels;
    if (!nhwc && slice.size[0] > 1) {
      copy_into(merged_planes(p, slice, merged), planes(p, slice, dy));
      from = merged.data<T>();
      leading = slice.count();
    }
    sum.add({.m = p.group_out(),
             .n = p.depth(),
             .a = from,
             .lda = leading,
             .transpose_a = nhwc,
             .b = part.data,
             .ldb = part.leading,
             .transpose_b = !nhwc,
             .ldc = p.depth()},
            slice.count(), {.a = nhwc ? p.out_channels : 1, .b = part.pixel},
            {.a = p.group_out() * (nhwc ? 1 : leading), .b = part.group}, is_last, dw);
  });
}

/// w [K, C/g tap], or [K, tap C/g], as the weights [C, K/g tap] of the transposed problem but for the order
/// of the taps.
Tensor exchanged_weights(const ConvProblem& p, const Tensor& w) {
  const int64_t taps = p.taps(), in = p.group_in(), out = p.group_out();
  const Tensor result = empty({w.numel()}, {.dtype = w.dtype(), .device = w.device()});
  const Shape shape{p.groups, in, out, taps};
  const int64_t tap = is_nhwc(p) ? in : 1, to_tap = is_nhwc(p) ? out : 1;
  const int64_t channel = is_nhwc(p) ? 1 : taps;
  copy_into(result.as_strided(shape, {in * out * taps, out * taps, channel, to_tap}, 0),
            w.as_strided(shape, {in * out * taps, channel, in * taps, tap}, w.offset()));
  return result;
}

class UnfoldConvCuda : public ConvImplementation {
 public:
  std::string_view name() const override { return "unfold"; }
  bool runs_on(Device device) const override { return device.is_cuda(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    return problem.device.is_cuda() ? std::string() : std::string("it runs on CUDA");
  }
  ConvLayout layout(const ConvProblem& problem) const override { return requested_layout(problem); }
  bool takes(DType) const override { return true; }
  double cost(const ConvProblem& p, ConvPass) const override { return static_cast<double>(p.flops()); }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    if (pass == ConvPass::backward_weight) {
      const PixelBox most = Columns<float>::most(p, true);
      return (Columns<float>::elements(p, true) +
              elements_of_merged(p, most, !is_nhwc(p) && most.size[0] > 1)) *
                 element_bytes(p) +
             WeightSum<float>::elements(p, most.count()) * sum_bytes(p);
    }
    if (pass == ConvPass::forward)
      return (Columns<float>::elements(p, false) +
              elements_of_merged(p, Columns<float>::most(p, false), merges_forward(p))) *
             element_bytes(p);
    if (rows_are_input(p)) return 0;
    if (p.stride == Spatial{1, 1, 1})
      return workspace_bytes(transposed_problem(p), ConvPass::forward) +
             (p.taps() == 1 ? 0 : p.out_channels * p.depth()) * element_bytes(p);
    const FoldPlan plan(p);
    return plan.elements(p) * sum_bytes(p) +
           elements_of_merged(p, plan.slice(p), is_merged(p, plan.slice(p))) * element_bytes(p);
  }
  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      multiply_columns<T>(p, x, {w.data<T>(), p.depth(), false}, bias, y, false);
    });
  }
  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      if (rows_are_input(p)) {
        Gemm<T> product{.m = p.depth(), .n = p.batch * p.output_pixels(), .k = p.out_channels};
        product.a = w.data<T>();
        product.lda = product.ldc = p.depth();
        product.b = dy.data<T>();
        product.ldb = p.out_channels;
        product.c = dx.data<T>();
        product.transpose_a = product.transpose_b = true;
        return multiply(p, product, 1, {}, {});
      }
      if (p.stride != Spatial{1, 1, 1}) return fold_products(p, dy, w.data<T>(), dx);
      const Tensor weights = p.taps() == 1 ? w : exchanged_weights(p, w);
      const ConvProblem back = transposed_problem(p);
      multiply_columns<T>(back, dy,
                          p.taps() == 1 ? GroupWeights<T>{weights.data<T>(), p.depth(), true}
                                        : GroupWeights<T>{weights.data<T>(), back.depth(), false},
                          {}, dx, true);
    });
  }
  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_stored_type(p, [&]<class T>(Type<T>) { multiply_transposed(p, dy, x, dw.data<T>()); });
  }
};

}  // namespace

const ConvImplementation* unfold_conv_cuda() {
  static const auto* const implementation = new UnfoldConvCuda;
  return implementation;
}

}  // namespace pleat::ops
