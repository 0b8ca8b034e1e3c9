#include <algorithm>

#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/conv/cuda/unfold.h"

/// The contiguous form: the weights [K, C/g tap] times U [C/g tap, pixel] are planes of the result. One image
/// is one product of a batch (`separate`); where images are small or channels in groups, the pixels of
/// several images stand side by side in U, and what is [K][image][pixel] then is brought into the order of
/// tensors, and the other way round, as runs of pixels. A depth that only the batch could join, that of a
/// (1, 3, 3) kernel, is nothing but more pixels here: U has the size that it has for a conv2d.

namespace pleat::ops {
namespace {

using namespace cuda_unfold;

/// Pixels from which on an image is a product of its own: a tile of the GEMM. Not measured on a GPU.
constexpr int64_t separate_pixels = 128;

/// Output pixels that are in U together: those of some whole images, or some of one image's.
struct Slice {
  int64_t image, images;
  int64_t first, count;  ///< pixels of each image

  int64_t columns() const { return images * count; }
};

/// Whether each image has a product of its own. Then U is [image][C tap][pixel], or, of one image,
/// [group][C/g tap][pixel]; else [group][C/g tap][image][pixel].
bool is_separate(const ConvProblem& p, const Slice& slice) {
  return slice.images == 1 || (p.groups == 1 && slice.count >= separate_pixels);
}

/// The largest slice.
Slice largest_slice(const ConvProblem& p) {
  const int64_t columns = std::max<int64_t>(1, chunk_bytes() / (p.groups * p.depth() * element_bytes(p)));
  const int64_t image = p.output_pixels();
  if (columns >= image) return {0, std::min(p.batch, columns / image), 0, image};
  constexpr int64_t multiple = 32;
  return {0, 1, 0, columns > multiple ? columns / multiple * multiple : columns};
}

/// Calls f(slice, whether it is the last).
template <class F>
void for_each_slice(const ConvProblem& p, F f) {
  const Slice most = largest_slice(p);
  const int64_t image = p.output_pixels();
  for (int64_t n = 0; n < p.batch; n += most.images)
    for (int64_t first = 0; first < image; first += most.count) {
      const Slice slice{n, std::min(most.images, p.batch - n), first, std::min(most.count, image - first)};
      f(slice, n + slice.images == p.batch && first + slice.count == image);
    }
}

/// Where U, or dU, has the pixels of an image and of a row.
struct PlaneSteps {
  int64_t image, row;

  PlaneSteps(bool separate, int64_t rows, int64_t images, int64_t count)
      : image(separate ? rows * count : count), row(separate ? count : images * count) {}
};

/// U for `width` neighbouring pixels.
template <class T, std::size_t width>
struct UnfoldNchw {
  Window window;
  PixelOf pixel;
  FastDivider vectors, taps, kernel_h, kernel_w, channels;
  PlaneSteps steps;
  int64_t first, input_pixels;
  const T* x;
  T* u;

  UnfoldNchw(const ConvProblem& p, const Slice& slice, bool separate, const T* x_, T* u_)
      : window(p),
        pixel(p.output),
        vectors(slice.count / static_cast<int64_t>(width)),
        taps(p.taps()),
        kernel_h(p.kernel[1]),
        kernel_w(p.kernel[2]),
        channels(p.in_channels),
        steps(separate, p.in_channels * p.taps(), slice.images, slice.count),
        first(slice.first),
        input_pixels(p.input_pixels()),
        x(x_ + slice.image * p.in_channels * p.input_pixels()),
        u(u_) {}

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    using Block = Vector<T, width>;
    int64_t vector = index;
    int64_t tap = vectors.divide(vector);
    int64_t channel = taps.divide(tap);
    const int64_t plane = channel;  // of all images
    const int64_t image = channels.divide(channel);
    int64_t s = tap;
    int64_t r = kernel_w.divide(s);
    const int64_t t = kernel_h.divide(r);
    const int64_t column = vector * static_cast<int64_t>(width);
    auto at = pixel(first + column);
    Block block{};
    for (std::size_t j = 0; j < width; ++j) {
      const int64_t d = window.input_of(0, at.d, t);
      const int64_t h = window.input_of(1, at.h, r);
      const int64_t w = window.input_of(2, at.w, s);
      if (d >= 0 && h >= 0 && w >= 0)
        block.lane[j] = x[plane * input_pixels + window.input_pixel(0, d, h, w)];
      if (++at.w == window.output[2]) {
        at.w = 0;
        if (++at.h == window.output[1]) {
          at.h = 0;
          ++at.d;
        }
      }
    }
    const int64_t row = channel * taps.divisor() + tap;
    *reinterpret_cast<Block*>(u + image * steps.image + row * steps.row + column) = block;
  }
};

/// The products of dy and the weights that a launch folds: of all channels of some images, or of some
/// channels of one.
struct ChannelRange {
  int64_t image, images;
  int64_t first, count;  ///< channels
};

/// dx of some channels = sum of dU over the windows that read a pixel.
template <class T>
struct FoldNchw {
  Window window;
  PixelOf pixel;
  FastDivider pixels, channels;
  PlaneSteps steps;
  int64_t taps, image_size;
  const Sum<T>* du;
  T* dx;

  FoldNchw(const ConvProblem& p, const ChannelRange& range, bool separate, const Sum<T>* du_, T* dx_)
      : window(p),
        pixel(p.input),
        pixels(p.input_pixels()),
        channels(range.count),
        steps(separate, range.count * p.taps(), range.images, p.output_pixels()),
        taps(p.taps()),
        image_size(p.in_channels * p.input_pixels()),
        du(du_),
        dx(dx_ + range.image * image_size + range.first * p.input_pixels()) {}

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t place = index;
    int64_t channel = pixels.divide(place);
    const int64_t image = channels.divide(channel);
    const auto at = pixel(place);
    const Sum<T>* const from = du + image * steps.image + channel * taps * steps.row;
    Sum<T> total = 0;
    window.for_each_reader(at.d, at.h, at.w,
                           [&](int64_t tap, int64_t output) { total += from[tap * steps.row + output]; });
    dx[image * image_size + channel * pixels.divisor() + place] = convert<T>(total);
  }
};

/// Runs of elements [outer][inner][run] as [inner][outer][run].
template <class T, std::size_t width>
struct SwapRuns {
  FastDivider run, outer;
  int64_t inner;
  const T* from;
  T* to;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    using Block = Vector<T, width>;
    int64_t at = index;
    int64_t o = run.divide(at);
    const int64_t i = outer.divide(o);
    reinterpret_cast<Block*>(to)[index] =
        reinterpret_cast<const Block*>(from)[(o * inner + i) * run.divisor() + at];
  }
};

template <class T>
void swap_runs(Device device, int64_t outer, int64_t inner, int64_t run, const T* from, T* to) {
  by_width<16 / sizeof(T), T>(run, {from, to}, [&](auto width) {
    const int64_t vectors = run / static_cast<int64_t>(width());
    launch_indices(op, device, outer * inner * vectors,
                   SwapRuns<T, width()>{FastDivider(vectors), FastDivider(outer), inner, from, to});
  });
}

/// w [K, C/g, taps] as [group][C/g][K/g, flipped tap].
template <class T>
struct FlipWeightsNchw {
  FastDivider taps, group_out, group_in;
  const T* w;
  T* flipped;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t tap = index;
    int64_t k = taps.divide(tap);
    int64_t c = group_out.divide(k);
    const int64_t group = group_in.divide(c);
    const int64_t from = (group * group_out.divisor() + k) * group_in.divisor() + c;
    flipped[index] = w[from * taps.divisor() + taps.divisor() - 1 - tap];
  }
};

template <class T>
void unfold_planes(const ConvProblem& p, const Slice& slice, bool separate, const T* x, T* u) {
  by_width<16 / sizeof(T), T>(slice.count, {u}, [&](auto width) {
    launch_indices(op, p.device, slice.columns() * p.in_channels * p.taps() / static_cast<int64_t>(width()),
                   UnfoldNchw<T, width()>(p, slice, separate, x, u));
  });
}

int64_t elements_of_u(const ConvProblem& p) { return largest_slice(p).columns() * p.in_channels * p.taps(); }
/// Of the planes of y, or dy, of several images side by side; none where each image is a product of its own.
int64_t elements_of_merged(const ConvProblem& p, int64_t images, bool separate) {
  return separate ? 0 : images * p.output_pixels() * p.out_channels;
}

/// y = w x for one slice; all matrices [rows][pixels].
template <class T>
Gemm<T> plane_product(const ConvProblem& p, const T* w, int64_t columns) {
  return {.m = p.group_out(), .n = columns, .k = p.depth(), .a = w, .lda = p.depth()};
}

template <class T>
void multiply_plain(const ConvProblem& p, const T* x, const T* w, bool accumulate, T* y) {
  const int64_t pixels = p.output_pixels();
  Gemm<T> product = plane_product(p, w, pixels);
  product.b = x;
  product.ldb = pixels;
  product.c = y;
  product.ldc = pixels;
  product.accumulate = accumulate;
  multiply_all(p.device,
               GemmBatch<T>{.first = product,
                            .batch = p.batch,
                            .b_step = p.in_channels * pixels,
                            .c_step = p.out_channels * pixels},
               p.groups,
               {.a = p.group_out() * p.depth(), .b = p.group_in() * pixels, .c = p.group_out() * pixels});
}

/// y = w U(x) (+ bias).
template <class T>
void multiply_unfolded(const ConvProblem& p, const T* x, const T* w, const T* bias, T* y) {
  const int64_t pixels = p.output_pixels();
  const auto fill = [&](T* to, int64_t run, int64_t images) {
    if (bias != nullptr) fill_bias(p, bias, images, run, to);
  };
  if (is_pointwise(p)) {
    fill(y, pixels, p.batch);
    return multiply_plain(p, x, w, bias != nullptr, y);
  }
  const Slice most = largest_slice(p);
  const bool merges = !is_separate(p, most);
  if (!merges) fill(y, pixels, p.batch);
  const Tensor u = scratch_on<T>(p.device, elements_of_u(p));
  const Tensor merged = scratch_on<T>(p.device, elements_of_merged(p, most.images, !merges));
  for_each_slice(p, [&](const Slice& slice, bool) {
    const bool separate = is_separate(p, slice);
    unfold_planes(p, slice, separate, x, u.data<T>());
    T* const out = y + slice.image * p.out_channels * pixels + slice.first;
    // The last slice may be a single image where the others are several.
    if (merges) fill(separate ? out : merged.data<T>(), slice.columns(), 1);
    Gemm<T> product = plane_product(p, w, separate ? slice.count : slice.columns());
    product.b = u.data<T>();
    product.ldb = product.n;
    product.c = separate ? out : merged.data<T>();
    product.ldc = separate ? pixels : product.n;
    product.accumulate = bias != nullptr;
    cublas_gemm(op, p.device,
                GemmBatch<T>{.first = product,
                             .batch = p.groups * (separate ? slice.images : 1),
                             .a_step = p.groups > 1 ? p.group_out() * p.depth() : 0,
                             .b_step = p.depth() * product.n,
                             .c_step = p.group_out() * product.ldc});
    if (!separate) swap_runs(p.device, p.out_channels, slice.images, pixels, merged.data<T>(), out);
  });
}

/// How backward_input of other strides goes through dU.
struct FoldPlan {
  int64_t images;    ///< at once
  int64_t channels;  ///< of a group, at once, where one image is cut; else all
  bool separate;

  explicit FoldPlan(const ConvProblem& p) : images(1), channels(p.in_channels), separate(true) {
    const int64_t pixels = p.output_pixels();
    const int64_t image = p.in_channels * p.taps() * pixels * sum_bytes(p);
    if (image <= chunk_bytes())
      images = std::min(p.batch, chunk_bytes() / image);
    else if (image > image_bytes())
      channels = std::clamp<int64_t>(image_bytes() / (p.taps() * pixels * sum_bytes(p)), 1, p.group_in());
    separate = is_separate(p, {0, images, 0, pixels});
  }
};

/// dx = fold(w' dy), some images, or some channels of one, at a time.
template <class T>
void fold_products(const ConvProblem& p, const T* dy, const T* w, T* dx) {
  using Total = Sum<T>;
  const FoldPlan plan(p);
  const int64_t pixels = p.output_pixels();
  const int64_t dy_size = p.out_channels * pixels;
  const Tensor du = scratch_on<Total>(p.device, plan.images * plan.channels * p.taps() * pixels);
  const Tensor merged = scratch_on<T>(p.device, elements_of_merged(p, plan.images, plan.separate));
  const auto fold = [&](const ChannelRange& range, GemmBatch<T, Total> products, bool separate) {
    products.first.k = p.group_out();
    products.first.lda = p.depth();
    products.first.transpose_a = true;
    products.first.ldb = products.first.n;
    products.first.c = du.data<Total>();
    products.first.ldc = products.first.n;
    products.c_step = products.first.m * products.first.n;
    cublas_gemm(op, p.device, products);
    launch_indices(op, p.device, range.images * range.count * p.input_pixels(),
                   FoldNchw<T>(p, range, separate, du.data<Total>(), dx));
  };
  for (int64_t n = 0; n < p.batch; n += plan.images) {
    const int64_t images = std::min(plan.images, p.batch - n);
    const T* from = dy + n * dy_size;
    if (plan.channels < p.in_channels) {
      for (int64_t g = 0; g < p.groups; ++g)
        for (int64_t c = 0; c < p.group_in(); c += plan.channels) {
          const int64_t count = std::min(plan.channels, p.group_in() - c);
          fold({n, 1, g * p.group_in() + c, count},
               {.first = {.m = count * p.taps(),
                          .n = pixels,
                          .a = w + g * p.group_out() * p.depth() + c * p.taps(),
                          .b = from + g * p.group_out() * pixels}},
               true);
        }
      continue;
    }
    const bool separate = is_separate(p, {n, images, 0, pixels});
    const int64_t columns = separate ? pixels : images * pixels;
    if (!separate) {
      swap_runs(p.device, images, p.out_channels, pixels, from, merged.data<T>());
      from = merged.data<T>();
    }
    fold({n, images, 0, p.in_channels},
         {.first = {.m = p.depth(), .n = columns, .a = w, .b = from},
          .batch = p.groups * (separate ? images : 1),
          .a_step = p.groups > 1 ? p.group_out() * p.depth() : 0,
          .b_step = p.group_out() * columns},
         separate);
  }
}

/// dw [K, depth] = dy U(x)', summed over the slices in order. Its sums run over the pixels of many images, so
/// that these stand side by side.
template <class T>
void multiply_transposed(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const int64_t pixels = p.output_pixels();
  const Slice most = largest_slice(p);
  const Tensor u = scratch_on<T>(p.device, elements_of_u(p));
  const Tensor merged = scratch_on<T>(p.device, elements_of_merged(p, most.images, most.images == 1));
  WeightSum<T> sum(p, most.columns());
  for_each_slice(p, [&](const Slice& slice, bool is_last) {
    unfold_planes(p, slice, false, x, u.data<T>());
    const T* from = dy + slice.image * p.out_channels * pixels + slice.first;
    int64_t leading = pixels;
    if (slice.images > 1) {
      swap_runs(p.device, slice.images, p.out_channels, pixels, from, merged.data<T>());
      from = merged.data<T>();
      leading = slice.columns();
    }
    sum.add({.m = p.group_out(),
             .n = p.depth(),
             .a = from,
             .lda = leading,
             .b = u.data<T>(),
             .ldb = slice.columns(),
             .transpose_b = true,
             .ldc = p.depth()},
            slice.columns(), {.a = 1, .b = 1},
            {.a = p.group_out() * leading, .b = p.depth() * slice.columns()}, is_last, dw);
  });
}

class NchwForm : public UnfoldForm {
 public:
  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    const Slice most = largest_slice(p);
    const int64_t weights = p.out_channels * p.depth();
    if (pass == ConvPass::forward) {
      if (is_pointwise(p)) return 0;
      return (elements_of_u(p) + elements_of_merged(p, most.images, is_separate(p, most))) * element_bytes(p);
    }
    if (pass == ConvPass::backward_weight)
      return (elements_of_u(p) + elements_of_merged(p, most.images, most.images == 1)) * element_bytes(p) +
             WeightSum<float>::elements(p, most.columns()) * sum_bytes(p);
    if (p.stride == Spatial{1, 1, 1})
      return workspace_bytes(transposed_problem(p), ConvPass::forward) + weights * element_bytes(p);
    const FoldPlan plan(p);
    return plan.images * plan.channels * p.taps() * p.output_pixels() * sum_bytes(p) +
           elements_of_merged(p, plan.images, plan.separate) * element_bytes(p);
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      multiply_unfolded<T>(p, x.data<T>(), w.data<T>(), bias.defined() ? bias.data<T>() : nullptr,
                           y.data<T>());
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_stored_type(p, [&]<class T>(Type<T>) {
      if (p.stride != Spatial{1, 1, 1}) return fold_products(p, dy.data<T>(), w.data<T>(), dx.data<T>());
      const Tensor weights = scratch_on<T>(p.device, w.numel());
      launch_indices(op, p.device, w.numel(),
                     FlipWeightsNchw<T>{FastDivider(p.taps()), FastDivider(p.group_out()),
                                        FastDivider(p.group_in()), w.data<T>(), weights.data<T>()});
      multiply_unfolded<T>(transposed_problem(p), dy.data<T>(), weights.data<T>(), nullptr, dx.data<T>());
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_stored_type(
        p, [&]<class T>(Type<T>) { multiply_transposed(p, dy.data<T>(), x.data<T>(), dw.data<T>()); });
  }
};

}  // namespace

const UnfoldForm& unfold_nchw_form() {
  static const auto& form = *new NchwForm;
  return form;
}

}  // namespace pleat::ops
