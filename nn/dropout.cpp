#include "pleat/nn/dropout.h"

#include "pleat/core/base/format.h"
#include "pleat/nn/option_checks.h"
#include "pleat/ops/elementwise/dropout.h"

namespace pleat::nn {
Dropout::Dropout(DropoutOptions options_) : options(options_) { check_share("Dropout", "p", options.p); }

Tensor Dropout::forward(const Tensor& x) { return dropout(x, options.p, training()); }

std::string Dropout::options_text() const { return fmt::format("p={}", options.p); }

template <int dims>
ChannelDropout<dims>::ChannelDropout(DropoutOptions options_) : options(options_) {
  check_share("Dropout" + std::to_string(dims) + "d", "p", options.p);
}

template <int dims>
Tensor ChannelDropout<dims>::forward(const Tensor& x) {
  check<ShapeError>(x.rank() == dims + 2, "{}: needs [N, C] and {} spatial dimensions, got {}", type_name(),
                    dims, x.describe());
  return channel_dropout(x, options.p, training());
}

template <int dims>
std::string ChannelDropout<dims>::options_text() const {
  return fmt::format("p={}", options.p);
}

template class ChannelDropout<1>;
template class ChannelDropout<2>;
template class ChannelDropout<3>;

}  // namespace pleat::nn
