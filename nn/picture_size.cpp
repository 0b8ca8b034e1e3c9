#include "pleat/nn/picture_size.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/conv/problem.h"

namespace pleat::nn {
namespace {

using Sides = std::vector<int64_t>;  ///< height and width

/// The modules of a Sequential in the order in which they are called.
void add_layers(const Module& module, std::vector<const Module*>& layers) {
  if (typeid(module) != typeid(Sequential)) return layers.push_back(&module);
  for (const Module& inner : static_cast<const Sequential&>(module)) add_layers(inner, layers);
}

bool keeps_size(const Module& module) {
  constexpr std::string_view names =
      " ReLU ReLU6 LeakyReLU PReLU ELU SELU CELU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh Sigmoid Tanh "
      "Softplus Identity BatchNorm2d GroupNorm InstanceNorm2d Dropout LocalResponseNorm Dropout2d LayerNorm ";
  return names.find(' ' + module.type_name() + ' ') != names.npos;
}

/// The smallest sides of which windows make `sides`.
template <class Options>
Sides before_windows(const Sides& sides, const std::vector<int64_t>& kernel,
                     const std::vector<int64_t>& stride, const Options& options) {
  const char* op = "picture_size_hint";
  const Shape dilation = options.dilation.expand(2, op, "dilation");
  const auto padding = ops::resolve_padding(op, options.padding, kernel, stride, dilation);
  Sides before;
  for (std::size_t d = 0; d < 2; ++d)
    before.push_back((sides[d] - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + 1 - padding[d].first -
                     padding[d].second);
  return before;
}

template <class P>
Sides before_pool(const Sides& sides, const P& pool) {
  const Shape kernel = pool.options.kernel_size.get().expand(2, "pool", "kernel_size");
  return before_windows(
      sides, kernel, pool.options.stride.empty() ? kernel : pool.options.stride.expand(2, "pool", "stride"),
      pool.options);
}

std::optional<Sides> before_layers(Sides sides, const std::vector<const Module*>& layers);

std::optional<Sides> before(const Sides& sides, const Module& module) {
  if (const auto* conv = dynamic_cast<const Conv2d*>(&module))
    return before_windows(sides, {conv->weight.size(2), conv->weight.size(3)},
                          conv->options.stride.expand(2, "conv2d", "stride"), conv->options);
  if (const auto* pool = dynamic_cast<const MaxPool2d*>(&module)) return before_pool(sides, *pool);
  if (const auto* pool = dynamic_cast<const AvgPool2d*>(&module)) return before_pool(sides, *pool);
  if (const auto* residual = dynamic_cast<const Residual*>(&module)) {
    std::vector<const Module*> layers;
    add_layers(residual->body.get(), layers);
    return before_layers(sides, layers);
  }
  return keeps_size(module) ? std::optional(sides) : std::nullopt;
}

std::optional<Sides> before_layers(Sides sides, const std::vector<const Module*>& layers) {
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const std::optional<Sides> earlier = before(sides, **layer);
    if (!earlier || std::ranges::min(*earlier) < 1) return std::nullopt;
    sides = *earlier;
  }
  return sides;
}

/// The last convolution of these layers, which decides on the channels; or none.
const Conv2d* last_conv(const std::vector<const Module*>& layers) {
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    if (const auto* conv = dynamic_cast<const Conv2d*>(*layer)) return conv;
    if (const auto* residual = dynamic_cast<const Residual*>(*layer)) {
      std::vector<const Module*> inside;
      add_layers(residual->body.get(), inside);
      return last_conv(inside);
    }
  }
  return nullptr;
}

}  // namespace

std::string picture_size_hint(const Module& network, const Module& layer) {
  const auto* linear = dynamic_cast<const Linear*>(&layer);
  std::vector<const Module*> layers;
  add_layers(network, layers);
  layers.erase(std::ranges::find(layers, &layer), layers.end());
  while (!layers.empty() && keeps_size(*layers.back())) layers.pop_back();  // a dropout
  if (linear == nullptr || layers.empty() || dynamic_cast<const Flatten*>(layers.back()) == nullptr)
    return "";
  layers.pop_back();
  const Conv2d* last = last_conv(layers);
  const auto* first = layers.empty() ? nullptr : dynamic_cast<const Conv2d*>(layers.front());
  if (last == nullptr || first == nullptr) return "";
  const double pixels =
      static_cast<double>(linear->weight.size(1)) / static_cast<double>(last->weight.size(0));
  const auto side = static_cast<int64_t>(std::sqrt(pixels));
  if (static_cast<double>(side * side) != pixels) return "";
  const std::optional<Sides> sides = before_layers({side, side}, layers);
  if (!sides) return "";
  return fmt::format("; the network takes pictures [N, {}, {}, {}]",
                     first->weight.size(1) * first->options.groups, (*sides)[0], (*sides)[1]);
}

}  // namespace pleat::nn
