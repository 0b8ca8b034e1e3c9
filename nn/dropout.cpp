#include "pleat/nn/dropout.h"

#include "pleat/core/tensor/create.h"
#include "pleat/nn/option_checks.h"
#include "pleat/nn/options_text.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/dropout.h"

namespace pleat::nn {

Tensor Dropout::forward(const Tensor& x) { return dropout(x, options.p, training()); }

template <ClassName name, int dims>
Tensor ChannelDropout<name, dims>::forward(const Tensor& x) {
  check<ShapeError>(
      x.rank() == dims + 2, "{}: needs [N, C] and {} spatial dimensions, got {}",
      [&] { return this->type_name(); }, dims, x);
  return channel_dropout(x, this->options.p, this->training());
}

template struct ChannelDropout<"Dropout1d", 1>;
template struct ChannelDropout<"Dropout2d", 2>;
template struct ChannelDropout<"Dropout3d", 3>;

Tensor StochasticDepth::forward(const Tensor& x) {
  if (options.p == 0 || !training()) return x;
  check<ShapeError>(x.rank() >= 1, "StochasticDepth: needs samples [N, ...], got {}", x);
  Shape one_each(x.shape().size(), 1);
  one_each[0] = x.size(0);
  return x * dropout(ones(one_each, {.dtype = x.dtype(), .device = x.device()}), options.p);
}

namespace detail {
void check_options(LayerName layer, const DropoutOptions& o) { check_share(layer.text, "p", o.p); }
std::string text_of_options(LayerName, const DropoutOptions& o) { return OptionsText()("p", o.p); }
}  // namespace detail

}  // namespace pleat::nn
