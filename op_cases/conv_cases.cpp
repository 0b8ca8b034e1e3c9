// Convolutions and their windows. Implementations are compared in tests/ops/conv_kernels_test.cpp.

#include <cmath>

#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/conv_norm_act.h"
#include "pleat/ops/unfold/unfold.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

/// Numbers for each spatial dimension.
struct Window {
  Index stride, low, high, dilation;
  int64_t groups = 1;
};

Shape spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

/// Where the tap k of the window at `at` lies in the input, without its first two dimensions.
Index place(const Index& at, const Index& k, const Window& w) {
  Index i(at.size());
  for (std::size_t d = 0; d < at.size(); ++d) i[d] = at[d] * w.stride[d] - w.low[d] + k[d] * w.dilation[d];
  return i;
}

bool inside(const Index& i, const Shape& shape) {
  for (std::size_t d = 0; d < i.size(); ++d)
    if (i[d] < 0 || i[d] >= shape[d]) return false;
  return true;
}

Index joined(Index first, const Index& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

void for_each(const Shape& shape, const std::function<void(const Index&)>& f) {
  (void)computed(shape, [&](const Index& at) {
    f(at);
    return 0.0;
  });
}

Shape windows(const Shape& image, const Shape& kernel, const Window& w) {
  Shape count;
  for (std::size_t d = 0; d < kernel.size(); ++d)
    count.push_back(
        (image[d + 2] + w.low[d] + w.high[d] - w.dilation[d] * (kernel[d] - 1) - 1) / w.stride[d] + 1);
  return count;
}

double bias_of(const Arrays& x, int64_t channel) { return x.size() > 2 ? x[2]({channel}) : 0; }

/// x [N, C, ...], weight [O, C / groups, ...] -> [N, O, ...].
Arrays convolution(const Arrays& x, const Window& w) {
  const Array &image = x[0], &weight = x[1];
  const Shape kernel = spatial(weight.shape);
  const int64_t inner = weight.shape[1], outer = weight.shape[0] / w.groups;
  return {computed(
      joined({image.shape[0], weight.shape[0]}, windows(image.shape, kernel, w)), [&](const Index& at) {
        const Index where(at.begin() + 2, at.end());
        double sum = bias_of(x, at[1]);
        for_each(kernel, [&](const Index& k) {
          const Index i = place(where, k, w);
          if (!inside(i, spatial(image.shape))) return;
          for (int64_t c = 0; c < inner; ++c)
            sum += image(joined({at[0], at[1] / outer * inner + c}, i)) * weight(joined({at[1], c}, k));
        });
        return sum;
      })};
}

/// The adjoint: x [N, C, ...], weight [C, O / groups, ...] -> [N, O, ...] of these spatial sizes.
Arrays transposed(const Arrays& x, const Window& w, const Shape& sizes) {
  const Array &image = x[0], &weight = x[1];
  const int64_t outer = weight.shape[1], inner = image.shape[1] / w.groups;
  Array y = computed(joined({image.shape[0], outer * w.groups}, sizes),
                     [&](const Index& at) { return bias_of(x, at[1]); });
  for_each(image.shape, [&](const Index& at) {
    for_each(spatial(weight.shape), [&](const Index& k) {
      const Index i = place({at.begin() + 2, at.end()}, k, w);
      if (!inside(i, sizes)) return;
      for (int64_t o = 0; o < outer; ++o)
        y(joined({at[0], at[1] / inner * outer + o}, i)) += image(at) * weight(joined({at[1], o}, k));
    });
  });
  return {y};
}

/// x [N, C, ...] -> [N, C * taps, windows].
Array unfolded(const Array& image, const Shape& kernel, const Window& w) {
  Shape all = joined({image.shape[0], image.shape[1]}, kernel);
  const Shape count = windows(image.shape, kernel, w);
  all.insert(all.end(), count.begin(), count.end());
  Array y = computed(all, [&](const Index& at) {
    const auto middle = at.begin() + 2 + static_cast<std::ptrdiff_t>(kernel.size());
    const Index i = place({middle, at.end()}, {at.begin() + 2, middle}, w);
    return inside(i, spatial(image.shape)) ? image(joined({at[0], at[1]}, i)) : 0;
  });
  int64_t taps = image.shape[1], number = 1;
  for (const int64_t k : kernel) taps *= k;
  for (const int64_t n : count) number *= n;
  y.shape = {image.shape[0], taps, number};
  return y;
}

/// The adjoint: what unfolding an image of numbers 0, 1, 2 ... finds says where each column's number goes.
Arrays folded(const Array& columns, const Shape& image, const Shape& kernel, const Window& w) {
  Array places{image, {}};
  Array y = computed(image, [&](const Index&) {
    places.elements.push_back(static_cast<double>(places.elements.size() + 1));
    return 0.0;
  });
  const Array from = unfolded(places, kernel, w);
  for (std::size_t i = 0; i < from.elements.size(); ++i)
    if (from.elements[i] > 0)
      y.elements[static_cast<std::size_t>(from.elements[i]) - 1] += columns.elements[i];
  return {y};
}

OpCase conv(const char* name, const char* variant, Tensors inputs, const Window& w, const Function& call,
            std::vector<Tensors> smooth) {
  return {.name = name,
          .inputs = std::move(inputs),
          .call = call,
          .reference = [w](const Arrays& x) { return convolution(x, w); },
          .variant = variant,
          .smooth = std::move(smooth),
          .slack = 4};
}

OpCase conv_transpose(const char* name, Tensors inputs, const Window& w, const Shape& sizes,
                      const Function& call, std::vector<Tensors> smooth) {
  OpCase c = conv(name, "", std::move(inputs), w, call, std::move(smooth));
  c.reference = [=](const Arrays& x) { return transposed(x, w, sizes); };
  return c;
}

/// A convolution behind (`first`) or before a norm of running statistics 0 and 1, both without a bias of
/// their own: x, weight, and the norm's weight and bias.
OpCase beside_norm(bool first) {
  const Window same{{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const auto inputs = [first](const Shape& image, int64_t out) {
    const Shape channels{first ? image[1] : out};
    return Tensors{normal(image), normal({out, image[1], 3, 3}, 2), normal(channels, 3), normal(channels, 4)};
  };
  return {.name = first ? "norm_act_conv" : "conv_norm_act",
          .inputs = inputs({2, 3, 7, 6}, 4),
          .call =
              [first](T x) {
                const BatchNormOperands norm{x[2], x[3], constant(zeros(x[2].shape()), x[2]),
                                             constant(ones(x[2].shape()), x[2])};
                return first ? norm_act_conv(x[0], norm, x[1], {}, {.padding = 1})
                             : conv_norm_act(x[0], x[1], {}, norm, {.padding = 1});
              },
          .reference =
              [=](const Arrays& x) {
                const auto normed = [&](const Array& of) {
                  return computed(of.shape, [&](const Index& at) {
                    return of(at) / std::sqrt(1 + 1e-5) * x[2]({at[1]}) + x[3]({at[1]});
                  });
                };
                return first ? convolution({normed(x[0]), x[1]}, same)
                             : Arrays{normed(convolution({x[0], x[1]}, same)[0])};
              },
          .smooth = {inputs({1, 2, 3, 4}, 2)},
          .slack = 8};
}

OpCase unfolding(const char* variant, const Shape& image, const Shape& kernel, const Window& w,
                 const UnfoldOptions& options) {
  return {.name = "unfold",
          .inputs = {normal(image)},
          .call = [options](T x) { return unfold(x[0], options); },
          .reference = [=](const Arrays& x) { return Arrays{unfolded(x[0], kernel, w)}; },
          .variant = variant,
          .smooth = {{normal(image)}}};
}

OpCase folding(const char* variant, const Shape& image, const Shape& kernel, const Window& w,
               const UnfoldOptions& options) {
  const Array columns = unfolded(computed(image, [](const Index&) { return 0.0; }), kernel, w);
  return {.name = "fold",
          .inputs = {normal(columns.shape)},
          .call = [=](T x) { return fold(x[0], spatial(image), options); },
          .reference = [=](const Arrays& x) { return folded(x[0], image, kernel, w); },
          .variant = variant};
}

std::vector<OpCase> make_conv() {
  const Shape line{2, 3, 9}, image{2, 3, 7, 6}, volume{1, 2, 5, 4, 3};
  const Window same{{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  std::vector<OpCase> cases = {
      conv("conv1d", "", {normal(line), normal({4, 3, 3}, 2), normal({4}, 3)}, {{2}, {1}, {1}, {1}},
           [](T x) { return conv1d(x[0], x[1], x[2], {.stride = 2, .padding = 1}); },
           {{normal({1, 2, 5}), normal({2, 2, 3}, 2), normal({2}, 3)}}),
      conv("conv2d", "", {normal(image), normal({4, 3, 3, 3}, 2), normal({4}, 3)}, same,
           [](T x) { return conv2d(x[0], x[1], x[2], {.padding = 1}); },
           {{normal({1, 2, 3, 4}), normal({2, 2, 3, 3}, 2), normal({2}, 3)}}),
      conv("conv2d", "groups, sides", {normal({2, 4, 5, 5}), normal({6, 2, 3, 2}, 2)},
           {{2, 1}, {0, 1}, {1, 0}, {1, 2}, 2},
           [](T x) {
             return conv2d(x[0], x[1],
                           {.stride = {2, 1}, .padding = {{0, 1}, {1, 0}}, .dilation = {1, 2}, .groups = 2});
           },
           {{normal({1, 4, 3, 3}), normal({2, 2, 3, 2}, 2)}}),
      conv("conv2d", "depthwise", {normal(image), normal({3, 1, 3, 3}, 2)},
           {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 3},
           [](T x) {
             return conv2d(x[0], x[1], {.padding = 1, .groups = x[0].size(1)});
           },
           {{normal({1, 2, 3, 3}), normal({2, 1, 3, 3}, 2)}}),
      conv("conv2d", "1 x 1", {normal(image), normal({4, 3, 1, 1}, 2)}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}},
           [](T x) { return conv2d(x[0], x[1]); }, {{normal({1, 2, 2, 3}), normal({2, 2, 1, 1}, 2)}}),
      conv("conv3d", "", {normal(volume), normal({3, 2, 3, 3, 3}, 2), normal({3}, 3)},
           {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
           [](T x) { return conv3d(x[0], x[1], x[2], {.padding = 1}); },
           {{normal({1, 1, 2, 3, 2}), normal({2, 1, 3, 3, 3}, 2), normal({2}, 3)}}),
      conv("conv3d", "flat", {normal(volume), normal({3, 2, 1, 3, 3}, 2)},
           {{1, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}},
           [](T x) {
             return conv3d(x[0], x[1], {.padding = {0, 1, 1}});
           },
           {{normal({1, 1, 2, 3, 2}), normal({2, 1, 1, 3, 3}, 2)}}),
      beside_norm(true), beside_norm(false),
      conv_transpose("conv_transpose1d", {normal({2, 3, 5}), normal({3, 2, 3}, 2), normal({2}, 3)},
                     {{2}, {1}, {1}, {1}}, {10},
                     [](T x) {
                       return conv_transpose1d(x[0], x[1], x[2],
                                               {.stride = 2, .padding = 1, .output_padding = 1});
                     },
                     {{normal({1, 2, 3}), normal({2, 2, 3}, 2), normal({2}, 3)}}),
      conv_transpose("conv_transpose2d", {normal({2, 3, 4, 5}), normal({3, 2, 3, 3}, 2), normal({2}, 3)},
                     {{2, 2}, {1, 1}, {1, 1}, {1, 1}}, {7, 9},
                     [](T x) {
                       return conv_transpose2d(x[0], x[1], x[2], {.stride = 2, .padding = 1});
                     },
                     {{normal({1, 2, 2, 3}), normal({2, 1, 3, 3}, 2), normal({1}, 3)}}),
      conv_transpose("conv_transpose3d", {normal({1, 2, 2, 3, 2}), normal({2, 2, 2, 3, 3}, 2), normal({2}, 3)},
                     {{1, 2, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}}, {3, 7, 4},
                     [](T x) {
                       return conv_transpose3d(x[0], x[1], x[2], {.stride = {1, 2, 1}});
                     },
                     {{normal({1, 1, 2, 2, 2}), normal({1, 2, 2, 2, 1}, 2), normal({2}, 3)}}),
  };
  cases[1].large = {normal({4, 16, 30, 30}), normal({16, 16, 3, 3}, 2), normal({16}, 3)};
  for (OpCase& c : cases) {
    Tensors wrong = c.inputs;
    Shape shape = wrong[1].shape();
    shape[0] += 1;
    shape[1] += 1;
    wrong[1] = normal(shape);
    // What is made of a convolution and a norm names the part that refuses.
    const bool has_norm = c.inputs.size() == 4;
    c.refused = {{wrong, c.call, (has_norm ? "conv2d" : c.name) + ": "}};
  }
  return cases;
}

std::vector<OpCase> make_windows() {
  const Window line{{2}, {1}, {1}, {1}}, plane{{1, 1}, {1, 0}, {1, 0}, {1, 1}},
      wide{{3, 3}, {0, 0}, {0, 0}, {2, 2}}, sides{{1, 1}, {0, 2}, {2, 1}, {1, 1}},
      volume{{1, 2, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}};
  std::vector<OpCase> cases;
  const auto add = [&](const char* variant, const Shape& image, const Shape& kernel, const Window& w,
                       const UnfoldOptions& options) {
    cases.push_back(unfolding(variant, image, kernel, w, options));
    cases.push_back(folding(variant, image, kernel, w, options));
  };
  add("line", {2, 2, 7}, {3}, line, {.kernel_size = 3, .stride = 2, .padding = 1});
  add("plane", {2, 2, 3, 4}, {3, 2}, plane, {.kernel_size = {3, 2}, .padding = {1, 0}});
  add("dilation", {1, 2, 7, 5}, {2, 2}, wide, {.kernel_size = 2, .stride = 3, .dilation = 2});
  add("sides", {1, 1, 4, 4}, {3, 3}, sides, {.kernel_size = 3, .padding = {{0, 2}, {2, 1}}});
  add("volume", {1, 1, 3, 3, 2}, {2, 3, 2}, volume,
      {.kernel_size = {2, 3, 2}, .stride = {1, 2, 1}, .padding = {0, 1, 1}});
  cases[0].large = {normal({30, 20, 200})};
  const auto refused = [](const UnfoldOptions& options, const char* words) {
    return Refusal{{normal({1, 2, 5, 5})}, [options](T x) { return unfold(x[0], options); }, words};
  };
  cases[0].refused = {refused({.kernel_size = 6}, "unfold: a kernel of 6 with dilation 1 reaches over 6"),
                      refused({.kernel_size = 0}, "kernel_size must be at least 1"),
                      refused({.kernel_size = 2, .stride = 0}, "stride must be at least 1"),
                      {{normal({5, 5})}, [](T x) { return unfold(x[0], {.kernel_size = 2}); }, "unfold: "}};
  cases[1].refused = {{{normal({1, 8, 15})},
                       [](T x) {
                         return fold(x[0], {5, 5}, {.kernel_size = 2});
                       },
                       "so columns need [N, C * 4, 16], got [1, 8, 15]"}};
  return cases;
}

}  // namespace

const std::vector<OpCase>& conv_ops() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all = make_conv();
    for (OpCase& c : make_windows()) all.push_back(std::move(c));
    return all;
  }();
  return cases;
}

}  // namespace pleat::test
