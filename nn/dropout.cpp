#include "pleat/nn/dropout.h"

#include "pleat/autograd/functions/dropout.h"
#include "pleat/core/format.h"

namespace pleat::nn {
namespace {

void check_probability(const std::string& module, double p) {
  check<ValueError>(p >= 0 && p <= 1, "{}: p must be in [0, 1], got {}", module, p);
}

}  // namespace

Dropout::Dropout(DropoutOptions options_) : options(options_) { check_probability("Dropout", options.p); }

Tensor Dropout::forward(const Tensor& x) { return dropout(x, options.p, training()); }

std::string Dropout::options_text() const { return fmt::format("p={}", options.p); }

template <int dims>
ChannelDropout<dims>::ChannelDropout(DropoutOptions options_) : options(options_) {
  check_probability("Dropout" + std::to_string(dims) + "d", options.p);
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
