#include "pleat/nn/pool.h"

#include "pleat/nn/options_text.h"

namespace pleat::nn::detail {
namespace {

template <class Options>
std::string window_text(const Options& o, OptionsText text = {}) {
  text("kernel_size", o.kernel_size)("stride", o.stride, PerDim())("padding", o.padding, 0);
  if constexpr (requires { o.dilation; }) text("dilation", o.dilation, 1);
  return text;
}

}  // namespace

std::string text_of_options(LayerName, const MaxPoolOptions& o) { return window_text(o); }
std::string text_of_options(LayerName, const AvgPoolOptions& o) { return window_text(o); }
std::string text_of_options(LayerName, const LpPoolOptions& o) {
  return window_text(o, OptionsText()("norm_type", o.norm_type));
}
std::string text_of_options(LayerName, const MaxUnpoolOptions& o) { return window_text(o); }
std::string text_of_options(LayerName, const AdaptivePoolOptions& o) {
  return OptionsText()("output_size", o.output_size);
}

}  // namespace pleat::nn::detail
