#include "pleat/nn/norm.h"

#include "pleat/autograd/functions/norm.h"
#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"

namespace pleat::nn {

template <int dims>
BatchNorm<dims>::BatchNorm(BatchNormOptions o) : options(std::move(o)) {
  const int64_t features = options.num_features;
  check<ValueError>(features >= 1, "{}: num_features must be at least 1, got {}", type_name(), features);
  check<ValueError>(options.eps > 0, "{}: eps must be positive, got {}", type_name(), options.eps);
  check<ValueError>(!options.momentum || (*options.momentum >= 0 && *options.momentum <= 1),
                    "{}: momentum must be in [0, 1], got {}", type_name(), options.momentum.value_or(0));
  if (options.affine) {
    weight = ones({features});
    bias = zeros({features});
  }
  if (options.track_running_stats) {
    running_mean = zeros({features});
    running_var = ones({features});
    num_batches_tracked = scalar(0, int64);
  }
}

template <int dims>
Tensor BatchNorm<dims>::forward(const Tensor& x) {
  check<ShapeError>(x.rank() == dims + 2 || (dims == 1 && x.rank() == 2), "{}: needs [N, C{}], got {}",
                    type_name(), dims == 1 ? "] or [N, C, L" : ", spatial...", x.describe());
  int64_t seen = 0;
  if (training() && num_batches_tracked.defined()) {
    seen = num_batches_tracked.item<int64_t>();
    ops::fill(num_batches_tracked, seen + 1);
  }
  return batch_norm(x, weight, bias, running_mean, running_var,
                    {.training = training() || !running_mean.defined(),
                     .momentum = options.momentum,
                     .eps = options.eps,
                     .batches_tracked = seen,
                     .implementation = options.implementation});
}

template <int dims>
void BatchNorm<dims>::members(Members& m) {
  m("weight", weight);
  m("bias", bias);
  if (!options.track_running_stats) return;
  m.buffer("running_mean", running_mean);
  m.buffer("running_var", running_var);
  m.buffer("num_batches_tracked", num_batches_tracked);
}

template <int dims>
std::string BatchNorm<dims>::options_text() const {
  std::string text = fmt::format("{}", options.num_features.get());
  if (options.eps != 1e-5) text += fmt::format(", eps={}", options.eps);
  if (!options.momentum)
    text += ", momentum=none";
  else if (*options.momentum != 0.1)
    text += fmt::format(", momentum={}", *options.momentum);
  if (!options.affine) text += ", affine=false";
  if (!options.track_running_stats) text += ", track_running_stats=false";
  return text;
}

template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;

}  // namespace pleat::nn
